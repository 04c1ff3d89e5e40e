#include "approvals_lab.hpp"
#include "support/temp_dir.hpp"

/// What stands behind the words of a command that a person approves.
namespace boyd::approvals_contents_test {

using namespace boyd::test;
using namespace boyd::test::approvals_lab;
using Catch::Matchers::Contains;
using nlohmann::json;
namespace fs = std::filesystem;

namespace {

/// The request that waits once `earlier` is over.
json pending_after(const home_of_boyd& home, const std::string& earlier) {
  json found;
  REQUIRE(wait_until([&] {
    const auto all = home.run({"approvals", "ls", "--json"}).json();
    for (const auto& a : all["items"])
      if (a["state"] == "pending" && a["approval_id"] != earlier) {
        found = a;
        return true;
      }
    return false;
  }));
  return found;
}

std::string command(const std::string& words) {
  return json{{"command", words}}.dump();
}

} // namespace

TEST_CASE("case R5: an approved command whose inputs have changed is asked about anew",
          "[e2e][approvals]") {
  struct form {
    const char* words;
    const char* file; ///< that it runs in the end
  };
  const auto f = GENERATE(
      form{"make -s", "dep.sh"}, form{"sh de?.sh", "dep.sh"}, form{"F=dep; sh $F.sh", "dep.sh"},
      form{"cd sub && sh dep.sh", "sub/dep.sh"}, form{"sh linked/dep.sh", "sub/dep.sh"},
      form{"cd sub/.git/logs && sh dep.sh", "sub/.git/logs/dep.sh"});
  INFO(f.words);
  model_endpoint endpoint;
  endpoint.then(wants("run_command", command(f.words))).then(stream_answer("ok"));
  const home_of_boyd home(yaml_of(endpoint));
  const auto workspace = home.file("kernel/default/");
  const auto effects_of = "echo as seen >> " + workspace + "effects\n";
  write_file(workspace + "Makefile", "all:\n\t@sh dep.sh\n");
  fs::create_directory(workspace + "sub");
  fs::create_directory_symlink("sub", workspace + "linked");
  fs::create_directories(fs::path(workspace + f.file).parent_path());
  write_file(workspace + f.file, effects_of);
  busy_node n(home);
  const auto id = n.pending_id();
  const auto shown = home.run({"approvals", "show", id});
  CHECK_THAT(shown.out, Contains("contents: this approval covers all files of the workspace"));
  CHECK(approval(home, id)["contents_bound"] == true);
  write_file(workspace + f.file, "echo exchanged >> " + workspace + "effects\n");
  CHECK(home.run({"approvals", "approve", id}).code == 0);
  const auto again = pending_after(home, id);
  CHECK_THAT(again["reason"].get<std::string>(),
             Contains("changed after the approval") && Contains(f.file));
  CHECK(effects(home).empty());
  CHECK(approval(home, id)["state"] == "voided");
  CHECK(trail(approval(home, id)) == lines{"ask:accepted", "approve:accepted", "use:mutated"});
  // Now a person has seen what is there.
  CHECK(home.run({"approvals", "approve", again["approval_id"]}).code == 0);
  CHECK(n.end_of_cycle().code == 0);
  CHECK(effects(home) == "exchanged\n");
}

TEST_CASE("case R5: files that come, go, or are left out by the policy", "[e2e][approvals]") {
  model_endpoint endpoint;
  endpoint.then(wants("run_command", command("cat in/* >> effects"))).then(stream_answer("ok"));
  const home_of_boyd home(yaml_of(endpoint, "{unbound: [\"build/**\"]}"));
  const auto workspace = home.file("kernel/default/");
  fs::create_directory(workspace + "in");
  fs::create_directory(workspace + "build");
  write_file(workspace + "in/one", "one\n");
  busy_node n(home);
  const auto first = n.pending_id();
  write_file(workspace + "in/two", "two\n");
  CHECK(home.run({"approvals", "approve", first}).code == 0);
  const auto second = pending_after(home, first);
  CHECK_THAT(second["reason"].get<std::string>(), Contains("in/two"));
  fs::remove(workspace + "in/one");
  const std::string second_id = second["approval_id"];
  CHECK(home.run({"approvals", "approve", second_id}).code == 0);
  const auto third = pending_after(home, second_id);
  CHECK_THAT(third["reason"].get<std::string>(), Contains("in/one"));
  write_file(workspace + "build/output", "not an input\n");
  CHECK(home.run({"approvals", "approve", third["approval_id"]}).code == 0);
  CHECK(n.end_of_cycle().code == 0);
  CHECK(effects(home) == "two\n");
}

TEST_CASE("case R5: what is not bound is told before a person decides", "[e2e][approvals]") {
  model_endpoint endpoint;
  endpoint.then(wants("run_command", command("sh linked/dep.sh"))).then(stream_answer("ok"));
  const home_of_boyd home(yaml_of(endpoint));
  const auto workspace = home.file("kernel/default/");
  const temp_dir outside;
  const bool many = GENERATE(true, false);
  if (many) {
    constexpr int too_many = 20'001;
    fs::create_directory(workspace + "many");
    for (int i = 0; i < too_many; ++i)
      write_file(workspace + "many/" + std::to_string(i), "");
  } else {
    fs::create_directory_symlink(outside.path(), workspace + "linked");
  }
  busy_node n(home);
  const auto a = n.pending();
  const std::string id = a["approval_id"];
  const auto shown = home.run({"approvals", "show", id}).out;
  if (many) {
    CHECK_THAT(shown, Contains("FILE CONTENTS NOT COVERED") && Contains("more than 20000 files"));
    CHECK_THAT(home.run({"approvals", "ls"}).out, Contains("does not cover file contents"));
    CHECK(a["contents_bound"] == false);
  } else {
    CHECK_THAT(shown, Contains("NOT COVERED") && Contains("linked"));
  }
  CHECK(home.run({"approvals", "reject", id}).code == 0);
  CHECK(n.end_of_cycle().code == 0);
}

} // namespace boyd::approvals_contents_test
