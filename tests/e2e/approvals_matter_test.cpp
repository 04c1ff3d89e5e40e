#include "approvals_lab.hpp"
#include "support/temp_dir.hpp"

/// What exactly a person's word is about: what they were shown, and what would be met.
namespace boyd::approvals_matter_test {

using namespace boyd::test;
using namespace boyd::test::approvals_lab;
using Catch::Matchers::Contains;
using nlohmann::json;
namespace fs = std::filesystem;

TEST_CASE("case 50 patch-base-moved: what would be met has changed after the approval",
          "[e2e][approvals]") {
  SECTION("a script that the command names") {
    const std::string words =
        GENERATE(R"({"command":"sh ./deploy.sh"})", R"({"argv":["sh","deploy.sh"]})");
    INFO(words);
    model_endpoint endpoint;
    endpoint.then(wants("run_command", words)).then(stream_answer("ok"));
    const home_of_boyd home(yaml_of(endpoint));
    write_file(home.file("kernel/default/deploy.sh"), "echo as seen >> effects\n");
    busy_node n(home);
    const auto id = n.pending_id();
    CHECK(approval(home, id)["before_sha256"].get<std::string>().size() == 64);
    write_file(home.file("kernel/default/deploy.sh"), "echo exchanged >> effects\n");
    CHECK(home.run({"approvals", "approve", id}).code == 0);
    std::string again;
    REQUIRE(wait_until([&] {
      const auto items = home.run({"approvals", "ls", "--json"}).json()["items"];
      if (items.size() != 1 || items[0]["approval_id"] == id)
        return false;
      again = items[0]["approval_id"];
      return true;
    }));
    CHECK(home.run({"approvals", "reject", again}).code == 0);
    CHECK(n.end_of_cycle().code == 0);
    CHECK(effects(home).empty());
    CHECK(approval(home, id)["state"] == "voided");
    CHECK(trail(approval(home, id)) == lines{"ask:accepted", "approve:accepted", "use:mutated"});
  }
  SECTION("the same script runs") {
    model_endpoint endpoint;
    endpoint.then(wants("run_command", R"({"argv":["sh","deploy.sh"]})")).then(stream_answer("ok"));
    const home_of_boyd home(yaml_of(endpoint));
    write_file(home.file("kernel/default/deploy.sh"), "echo as seen >> effects\n");
    busy_node n(home);
    CHECK(home.run({"approvals", "approve", n.pending_id()}).code == 0);
    CHECK(n.end_of_cycle().code == 0);
    CHECK(effects(home) == "as seen\n");
  }
  SECTION("the file is written between the approval's use and its replacement") {
    model_endpoint endpoint;
    endpoint.then(wants("write_file", R"({"path":"plan.txt","content":"mine\n"})"))
        .then(stream_answer("ok"));
    const home_of_boyd home(yaml_of(endpoint, "{}", "node: {chaos: true}\n"));
    const auto plan = home.file("kernel/default/plan.txt");
    const bool was_there = GENERATE(true, false);
    if (was_there)
      write_file(plan, "before\n");
    busy_node n(home);
    const auto id = n.pending_id();
    // The replacement waits until the fault is taken back.
    CHECK(home.run({"chaos", "inject", "file_tools.write", "--delay", "60s"}).code == 0);
    CHECK(home.run({"approvals", "approve", id}).code == 0);
    REQUIRE(wait_until([&] { return approval(home, id)["state"] == "used"; }));
    write_file(plan, "somebody else's\n");
    CHECK(home.run({"chaos", "clear"}).code == 0);
    CHECK(n.end_of_cycle().code == 0);
    CHECK(read_file(plan) == "somebody else's\n");
    CHECK_THAT(endpoint.requests().at(1).json["messages"].back()["content"].get<std::string>(),
               Contains("has changed since it was read"));
  }
  SECTION("a link out of the workspace is not followed to look") {
    model_endpoint endpoint;
    endpoint.then(wants("write_file", R"({"path":"plan.txt","content":"mine\n"})"))
        .then(stream_answer("ok"));
    const home_of_boyd home(yaml_of(endpoint));
    const temp_dir outside;
    write_file(outside.file("plan"), "outside\n");
    fs::create_symlink(outside.file("plan"), home.file("kernel/default/plan.txt"));
    busy_node n(home);
    const auto id = n.pending_id();
    write_file(outside.file("plan"), "changed\n"); // nothing that was looked at
    CHECK(home.run({"approvals", "approve", id}).code == 0);
    CHECK(n.end_of_cycle().code == 0);
    CHECK(approval(home, id)["state"] == "used");
    CHECK(read_file(outside.file("plan")) == "changed\n");
    CHECK_THAT(endpoint.requests().at(1).json["messages"].back()["content"].get<std::string>(),
               Contains("symbolic link"));
  }
}

TEST_CASE("approvals: what looks like a secret hides nothing of an action", "[e2e][approvals]") {
  const std::string dashes(5, '-');
  const auto hidden = "echo tidy # " + dashes + "BEGIN PRIVATE KEY" + dashes +
                      "\necho pwned > effects; id >> effects\n: " + dashes + "END PRIVATE KEY" +
                      dashes;
  const auto key = std::string("gh") + "p_" + "a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8";
  model_endpoint endpoint;
  endpoint.then(wants("run_command", json{{"command", hidden}}.dump()))
      .then(wants("run_command", R"({"command":"echo a://b:;id>effects;@c"})"))
      .then(wants("run_command", json{{"command", "echo " + key}}.dump()))
      .then(stream_answer("ok"));
  const home_of_boyd home(yaml_of(endpoint));
  busy_node n(home);
  const auto first = n.pending();
  const std::string id = first["approval_id"];
  CHECK_THAT(home.run({"approvals", "show", id}).out,
             Contains("echo pwned > effects; id >> effects"));
  CHECK(home.run({"approvals", "reject", id}).code == 0);
  // What could be hidden in a password is not even asked for.
  std::string second;
  REQUIRE(wait_until([&] {
    const auto items = home.run({"approvals", "ls", "--json"}).json()["items"];
    if (items.size() != 1 || items[0]["approval_id"] == id)
      return false;
    second = items[0]["approval_id"];
    return true;
  }));
  CHECK_THAT(endpoint.requests().at(2).json["messages"].back()["content"].get<std::string>(),
             Contains("could not review the whole request"));
  const auto shown = home.run({"approvals", "show", second}).out;
  CHECK_THAT(shown, Contains("NOT ALL OF THIS IS SHOWN: 1 part") && Contains("40 bytes, sha256 ") &&
                        Contains("echo [redacted]") && !Contains(key));
  CHECK(home.run({"approvals", "reject", second}).code == 0);
  CHECK(n.end_of_cycle().code == 0);
  CHECK(effects(home).empty());
  // The record has the hash of what was really asked for.
  const auto actions = turns(home, first["dispatch_id"], "action");
  REQUIRE(actions.size() == 6); // asked about, then decided
  CHECK(actions[0]["arguments_sha256"] == approval(home, id)["arguments_sha256"]);
  CHECK(actions[1]["arguments_sha256"] == actions[0]["arguments_sha256"]);
  CHECK(actions[2]["arguments_sha256"] != actions[0]["arguments_sha256"]);
}

} // namespace boyd::approvals_matter_test
