#include "program.hpp"
#include "support/pch.hpp"

#include <filesystem>

// `boyd patches`, and the setup of worktrees, with real repositories.

namespace boyd::patches_test {

using namespace boyd::test;
using Catch::Matchers::Contains;
namespace fs = std::filesystem;
using nlohmann::json;

namespace {

std::string numbers(int from, int to) {
  std::string text;
  for (int i = from; i <= to; ++i)
    text += std::to_string(i) + "\n";
  return text;
}

/// 9 MiB in lines: more than a patch takes of one file, and of these three more than it takes at
/// all.
std::string long_text() {
  std::string text;
  while (text.size() < (std::size_t{9} << 20))
    text += std::string(1023, 'x') + "\n";
  return text;
}

/// A repository, and an agent that works in worktrees of it by a script of the test's.
class coder {
 public:
  explicit coder(const std::string& body, const std::string& worktree = {}) {
    fs::create_directories(repo());
    write_file(repo("long.txt"), numbers(1, 30));
    write_file(repo("old.txt"), "old\n");
    write_file(repo("run.sh"), "#!/bin/sh\n");
    git(repo(), "init -q -b main .");
    git(repo(), "add -A");
    git(repo(), "commit -q -m first");
    work(body);
    const auto* root = std::getenv("BOYD_SOURCE_DIR");
    const std::string answer =
        (root == nullptr ? std::string(".") : std::string(root)) + "/tests/data/agent_cli";
    write_file(directory_.file("agent"), "#!/bin/sh\ncat > /dev/null\n. '" +
                                             directory_.file("body") + "'\ncat '" + answer +
                                             "/claude_success.jsonl'\n");
    fs::permissions(directory_.file("agent"), fs::perms::owner_all);
    home.write_configuration(
        "version: 1\nnode: {sandbox: {writable: [" + directory_.path() + "], readable: [" + answer +
        "]}}\nkernels:\n  - schedule: \"0 0 1 1 *\"\n    agents:\n"
        "      - agent_id: coder\n        retry: {max_attempts: 1}\n"
        "        executor:\n          type: agent_cli\n"
        "          adapter: claude\n          program: " +
        directory_.file("agent") + "\n          worktree: {repo: " + repo() + worktree + "}\n");
  }

  void work(const std::string& body) const { write_file(directory_.file("body"), body); }
  std::string repo(const std::string& file = {}) const {
    return directory_.file("repo") + (file.empty() ? "" : "/" + file);
  }
  std::string file(const std::string& name) const { return directory_.file(name); }

  json run() const {
    const auto ended = home.run({"run", "coder"});
    INFO(ended.err);
    const auto all = home.run({"dispatches", "show", "last", "--json"}).json();
    return all.at("dispatch");
  }

  json listed(bool all = false) const {
    std::vector<std::string> args{"patches", "ls", "--json"};
    if (all)
      args.emplace_back("--all");
    return home.run(args).json().at("items");
  }

 private:
  temp_dir directory_;

 public:
  home_of_boyd home{"version: 1\nkernels: [{agents: []}]\n"};
};

const char* changes = "sed -i 's/^3$/three/' long.txt\nrm old.txt\nmkdir -p deep/er\n"
                      "echo new > deep/er/new.txt\nchmod +x run.sh\n"
                      "printf 'a\\000b' > picture.bin\n";

} // namespace

TEST_CASE("patches: of a run in a worktree, applied with what people changed", "[e2e][patches]") {
  const coder c(changes);
  CHECK_THAT(c.home.run({"patches"}).out, Contains("No patches"));
  const auto row = c.run();
  INFO(row.dump(1));
  REQUIRE(row.at("status") == "done");
  const auto items = c.listed();
  REQUIRE(items.size() == 1);
  const auto& p = items[0];
  CHECK(p.at("dispatch_id") == row.at("dispatch_id"));
  CHECK(p.at("agent_id") == "coder");
  CHECK(p.at("state") == "open");
  CHECK(p.at("repository") == c.repo());
  CHECK(p.at("base").get<std::string>() + "\n" == git(c.repo(), "rev-parse HEAD"));
  CHECK(p.at("files") == 5);
  CHECK_THAT(c.home.run({"patches", "show", "coder"}).out,
             Contains("Boyd-Repository: " + c.repo()) && Contains("+three"));
  // People went on meanwhile, at another place of the same file.
  write_file(c.repo("long.txt"), numbers(1, 28) + "29 and more\n30\n");
  write_file(c.repo("other.txt"), "a person's\n");
  const auto applied = c.home.run({"patches", "apply", "coder", "--json"});
  INFO(applied.out << applied.err);
  REQUIRE(applied.code == 0);
  const auto told = applied.json();
  CHECK(told.at("changed").size() == 5);
  CHECK(told.at("merged") == json{"long.txt"});
  CHECK_THAT(read_file(c.repo("long.txt")), Contains("2\nthree\n4") && Contains("29 and more"));
  CHECK_FALSE(fs::exists(c.repo("old.txt")));
  CHECK(read_file(c.repo("deep/er/new.txt")) == "new\n");
  CHECK(read_file(c.repo("picture.bin")) == std::string("a\0b", 3));
  CHECK(read_file(c.repo("other.txt")) == "a person's\n");
  CHECK((fs::status(c.repo("run.sh")).permissions() & fs::perms::owner_exec) != fs::perms::none);
  CHECK_THAT(git(c.repo(), "status --porcelain"), !Contains("boyd"));
  CHECK(c.listed().empty());
  CHECK(c.listed(true).at(0).at("state") == "applied");
  const auto again = c.home.run({"patches", "apply", "coder"});
  CHECK(again.code == 1);
  CHECK_THAT(again.err, Contains("the patch was applied at"));
  CHECK(c.home.run({"patches", "discard", "coder"}).code == 0);
  CHECK(c.listed(true).empty());
}

TEST_CASE("patches: a conflict is told with its files, and nothing is changed", "[e2e][patches]") {
  const coder c(changes);
  REQUIRE(c.run().at("status") == "done");
  auto mine = numbers(1, 30);
  mine.replace(mine.find("3\n"), 2, "3, but mine\n");
  write_file(c.repo("long.txt"), mine);
  fs::create_directories(c.repo("deep/er"));
  write_file(c.repo("deep/er/new.txt"), "mine\n");
  const auto before = git(c.repo(), "status --porcelain");
  program node(c.home.node()); // the same with a node
  REQUIRE(node.wait_for_stderr("ready"));
  const auto refused = c.home.run({"patches", "apply", "last"});
  INFO(refused.err);
  CHECK(refused.code == 5);
  CHECK_THAT(refused.err, Contains("nothing was changed") &&
                              Contains("long.txt has changed at the same place") &&
                              Contains("deep/er/new.txt is there already") &&
                              Contains("git apply --3way"));
  CHECK(git(c.repo(), "status --porcelain") == before);
  CHECK(fs::exists(c.repo("old.txt")));
  const auto slip = c.home.run({"patches", "apply", "codre"});
  CHECK(slip.code == 1);
  CHECK_THAT(slip.err, Contains("no patch has this name: codre"));
  CHECK(c.home.run({"patches", "discard", "last"}).code == 2); // nobody agreed
  CHECK(c.listed().size() == 1);
  CHECK(c.home.run({"patches", "discard", "last", "--yes"}).code == 0);
  CHECK(c.listed().empty());
}

TEST_CASE("patches: an application that was cut short is taken back first", "[e2e][patches]") {
  const coder c("echo two >> old.txt\necho more >> run.sh\n");
  REQUIRE(c.run().at("status") == "done");
  REQUIRE(c.home.run({"patches", "apply", "last"}).code == 0);
  const auto mark = c.listed(true).at(0).at("file").get<std::string>() + ".applied";
  fs::remove(mark);
  // All of it stands already: that is noted, and nothing else happens.
  const auto noted = c.home.run({"patches", "apply", "last", "--json"}).json();
  CHECK(noted.at("changed").empty());
  CHECK(noted.at("unchanged").size() == 2);
  CHECK(read_file(c.repo("old.txt")) == "old\ntwo\n");
  CHECK(fs::exists(mark));
}

TEST_CASE("patches: a crash before the mark leaves nothing to do twice", "[e2e][patches]") {
  const coder c("sed -i 's/^3$/three/' long.txt\nrm old.txt\n");
  REQUIRE(c.run().at("status") == "done");
  // A person's line, so that the file ends as neither has it.
  write_file(c.repo("long.txt"), numbers(1, 28) + "29 and more\n30\n");
  const auto mark = c.listed().at(0).at("file").get<std::string>() + ".applied";
  fs::create_directories(mark + "/in the way"); // the mark cannot be made
  const auto broken = c.home.run({"patches", "apply", "last"});
  INFO(broken.err);
  CHECK(broken.code == 1);
  CHECK_FALSE(fs::exists(c.repo("old.txt")));
  const auto text = read_file(c.repo("long.txt"));
  CHECK_THAT(text, Contains("three") && Contains("29 and more"));
  fs::remove_all(mark);
  REQUIRE(c.listed().size() == 1);
  const auto again = c.home.run({"patches", "apply", "last", "--json"});
  INFO(again.out << again.err);
  REQUIRE(again.code == 0);
  CHECK(again.json().at("unchanged").size() == 2);
  CHECK(read_file(c.repo("long.txt")) == text);
  CHECK(c.listed().empty());
}

TEST_CASE("patches: a file that others may write stays so", "[e2e][patches]") {
  const coder c("chmod +x run.sh\necho two >> old.txt\n");
  fs::permissions(c.repo("old.txt"), fs::perms(0664));
  fs::permissions(c.repo("run.sh"), fs::perms(0664));
  REQUIRE(c.run().at("status") == "done");
  REQUIRE(c.home.run({"patches", "apply", "last"}).code == 0);
  CHECK(fs::status(c.repo("old.txt")).permissions() == fs::perms(0664));
  CHECK(fs::status(c.repo("run.sh")).permissions() == fs::perms(0775));
  // Equal but for who may read it: there is nothing to change.
  fs::remove(c.listed(true).at(0).at("file").get<std::string>() + ".applied");
  const auto noted = c.home.run({"patches", "apply", "last", "--json"}).json();
  CHECK(noted.at("changed").empty());
}

TEST_CASE("patches: one that was cut is refused, and the branch has all of it", "[e2e][patches]") {
  const coder c("cp \"$(dirname \"$0\")/huge\" huge.txt\necho two >> old.txt\n");
  write_file(c.file("huge"), long_text());
  const auto row = c.run();
  INFO(row.dump(1).substr(0, 4000));
  REQUIRE(row.at("status") == "done");
  const auto output = row.at("output").get<std::string>();
  CHECK_THAT(output, Contains("all of the change is on the branch"));
  REQUIRE(c.listed().size() == 1);
  CHECK(c.listed().at(0).at("state") == "cut");
  const auto refused = c.home.run({"patches", "apply", "last"});
  INFO(refused.err);
  CHECK(refused.code == 1);
  const auto branch = c.listed().at(0).at("branch").get<std::string>();
  CHECK_THAT(refused.err, Contains("the patch is cut") && Contains("git merge --squash " + branch));
  CHECK(read_file(c.repo("old.txt")) == "old\n");
  git(c.repo(), "merge -q --squash " + branch);
  CHECK(read_file(c.repo("old.txt")) == "old\ntwo\n");
  CHECK(read_file(c.repo("huge.txt")) == long_text());
}

TEST_CASE("patches: a torn one is refused", "[e2e][patches]") {
  const coder c("seq 100 >> long.txt\n");
  REQUIRE(c.run().at("status") == "done");
  const auto file = c.listed().at(0).at("file").get<std::string>();
  fs::resize_file(file, fs::file_size(file) - 10);
  const auto refused = c.home.run({"patches", "apply", "last"});
  CHECK(refused.code == 1);
  CHECK_THAT(refused.err, Contains("is not as it was made"));
  CHECK(read_file(c.repo("long.txt")) == numbers(1, 30));
}

TEST_CASE("setup: runs in a fresh worktree before the agent", "[e2e][patches]") {
  const coder c("cat ready >> long.txt\n",
                ", setup: \"pwd > ready; echo $BOYD_AGENT_ID >> ready\"");
  const auto row = c.run();
  INFO(row.dump(1));
  REQUIRE(row.at("status") == "done");
  const auto patch = c.home.run({"patches", "show", "last"}).out;
  CHECK_THAT(patch, Contains("/run/worktrees/") && Contains("+coder"));
}

TEST_CASE("setup: one that fails fails the run, with its output", "[e2e][patches]") {
  const coder c("echo ran > ran\n",
                ", setup: [sh, -c, \"echo no network; echo sorry >&2; exit 3\"]");
  const auto row = c.run();
  INFO(row.dump(1));
  CHECK(row.at("status") == "failed");
  CHECK(row.at("failure_class") == "environment");
  CHECK_THAT(row.at("error").get<std::string>(),
             Contains("the setup command of the worktree failed: exit code 3"));
  CHECK_THAT(row.at("output").get<std::string>(), Contains("no network\nsorry"));
  CHECK(c.listed().empty());
  CHECK(fs::is_empty(c.home.file("run/worktrees")));
  const coder slow("true\n", ", setup: \"exec sleep 600\", setup_timeout: 1s");
  CHECK_THAT(slow.run().at("error").get<std::string>(), Contains("timed out after 1s"));
}

} // namespace boyd::patches_test
