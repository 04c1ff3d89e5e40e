#include "chat_home.hpp"
#include "program.hpp"
#include "support/model_answers.hpp"
#include "support/pch.hpp"
#include "support/wait.hpp"
#include "working_home.hpp"

#include <csignal>
#include <cstdlib>
#include <filesystem>

namespace boyd::repository_test {

using namespace boyd::test;
using namespace boyd::test::chat_homes;
using Catch::Matchers::Contains;
using nlohmann::json;
namespace fs = std::filesystem;

namespace {

std::string command_agent(const std::string& script) {
  return "version: 1\n"
         "kernels:\n"
         "  - kernel_id: default\n"
         "    schedule: \"0 0 1 1 *\"\n"
         "    agents:\n"
         "      - agent_id: worker\n"
         "        prompt: Do it.\n"
         "        retry: {max_attempts: 1}\n"
         "        executor: {type: command, shell: '" +
         script + "'}\n";
}

bool shell(const std::string& command) {
  return std::system(command.c_str()) == 0;
}

std::string shelled(const std::string& command, const std::string& into) {
  CHECK(shell(command + " > " + into + " 2>&1"));
  return read_file(into);
}

/// What the doctor says of the kernel.
std::string doctor_of_kernel(const home_of_boyd& home) {
  std::string text;
  const auto all = home.run({"doctor", "--json"}).json();
  for (const auto& c : all["checks"])
    if (c["name"] == "kernel default")
      text += c.dump();
  return text;
}

} // namespace

TEST_CASE("case R4: a command that makes links of parts of .git leads no write out of the home",
          "[e2e]") {
  const temp_dir outside;
  // The agent has no sandbox: it can do all that the node's user can.
  const home_of_boyd home(command_agent(
      "[ -L .git/refs ] || { mkdir -p " + outside.file("o") + " && mv .git/refs " +
      outside.file("o/refs") + " && ln -s " + outside.file("o/refs") + " .git/refs; }; echo done"));
  const auto cycle = home.run({"cycle"});
  INFO(cycle.err);
  const auto pictured = "find " + outside.file("o") + " -printf '%p %s %T@\\n' | sort";
  const auto before = shelled(pictured, outside.file("before"));
  home.run({"cycle"});
  CHECK(shelled(pictured, outside.file("after")) == before);
  const auto status = home.run({"status"});
  CHECK_THAT(status.out,
             Contains("history is off") && Contains("symbolic link") && Contains(".git/refs"));
  CHECK_THAT(doctor_of_kernel(home), Contains("fail") && Contains("symbolic link"));
  // What a person puts right is used again, and has everything.
  REQUIRE(shell("rm " + home.file("kernel/default/.git/refs") + " && mv " + outside.file("o/refs") +
                " " + home.file("kernel/default/.git/refs")));
  home.write_configuration(command_agent("echo quiet"));
  CHECK(home.run({"cycle"}).code == 0);
  CHECK_THAT(home.run({"status"}).out, !Contains("history is off"));
  CHECK(shell("git -c safe.directory='*' -C " + home.file("kernel/default") +
              " fsck --strict --no-dangling"));
}

TEST_CASE("case R4: a model's command cannot write into .git of the kernel's home", "[e2e]") {
  model_endpoint endpoint;
  const home_of_boyd home(working_yaml(endpoint, {}, {}, "{decision: allow}"));
  const auto call = [](const char* name, const json& arguments) {
    return chat_stream()
        .role()
        .tool_call(0, "call", name, arguments.dump())
        .finish("tool_calls")
        .usage()
        .done();
  };
  endpoint
      .then(call("run_command",
                 {{"command", "mv .git/refs .git/r; mv .git g; ln -s /tmp .git/objects/zz; "
                              "echo x > .git/hooks/post-commit; echo y > out; cat .git/HEAD"}}))
      .then(call("write_file", {{"path", ".git/config"}, {"content", "x"}}))
      .then(stream_answer("done"));
  home.run({"cycle"});
  const auto kernel = home.file("kernel/default");
  const auto report = home.run({"dispatches", "ls", "--json"}).json()["items"][0];
  const auto usage =
      home.run({"dispatches", "show", report["dispatch_id"], "--json"}).json()["dispatch"]["usage"];
  if (usage["sandbox"].dump().find(".git can be written") != std::string::npos ||
      usage["sandbox"]["mode"] == "limits")
    return; // this machine cannot, and the record says so
  CHECK(fs::is_directory(fs::symlink_status(kernel + "/.git/refs")));
  CHECK_FALSE(fs::exists(kernel + "/.git/hooks/post-commit"));
  CHECK(read_file(kernel + "/out") == "y\n");
  CHECK(home.run({"state", "log"}).code == 0);
  CHECK_THAT(home.run({"status"}).out, !Contains("history is off"));
}

TEST_CASE("case A7: a lost branch is told by status and doctor, and no history is begun instead",
          "[e2e]") {
  const home_of_boyd home(command_agent("echo fine"));
  REQUIRE(home.run({"cycle"}).code == 0);
  const auto kernel = home.file("kernel/default");
  const auto git = "git -c safe.directory='*' -C " + kernel;
  const temp_dir scratch;
  auto newest = shelled(git + " rev-parse HEAD", scratch.file("head"));
  newest.pop_back();
  SECTION("its file") {
    fs::remove(kernel + "/.git/refs/heads/main");
  }
  SECTION("packed-refs") {
    REQUIRE(shell(git + " pack-refs --all"));
    fs::remove(kernel + "/.git/packed-refs");
  }
  SECTION("in a running node") {
    program node(home.node());
    REQUIRE(node.wait_for_stderr("ready: node "));
    fs::remove(kernel + "/.git/refs/heads/main");
    home.run({"cycle"});
    CHECK_THAT(home.run({"status"}).out,
               Contains("history is off") && Contains("main is missing") && Contains(newest));
    node.signal(SIGTERM);
    CHECK(node.finish().code == 0);
  }
  home.run({"cycle"});
  CHECK_FALSE(fs::exists(kernel + "/.git/refs/heads/main"));
  CHECK_THAT(home.run({"status"}).out,
             Contains("history is off") && Contains("main is missing") && Contains("update-ref"));
  CHECK_THAT(doctor_of_kernel(home), Contains("fail") && Contains(newest));
  CHECK_THAT(home.run({"init", "--no-input"}).err, Contains("main is missing"));
  REQUIRE(shell(git + " update-ref refs/heads/main " + newest));
  CHECK(home.run({"cycle"}).code == 0);
  CHECK_THAT(home.run({"status"}).out, !Contains("history is off"));
  CHECK(shell(git + " merge-base --is-ancestor " + newest + " main"));
}

TEST_CASE("case A7: doctor and status name a detached HEAD, a damaged HEAD and another format",
          "[e2e]") {
  const home_of_boyd home(command_agent("echo fine"));
  REQUIRE(home.run({"cycle"}).code == 0);
  const auto kernel = home.file("kernel/default");
  const auto git = "git -c safe.directory='*' -C " + kernel;
  SECTION("detached") {
    REQUIRE(shell(git + " checkout -q --detach"));
    CHECK_THAT(doctor_of_kernel(home), Contains("detached"));
    CHECK_THAT(home.run({"status"}).out, Contains("detached"));
  }
  SECTION("damaged") {
    write_file(kernel + "/.git/HEAD", "nonsense");
    CHECK_THAT(doctor_of_kernel(home), Contains("fail") && Contains("HEAD is damaged"));
    CHECK_THAT(home.run({"status"}).out, Contains("HEAD is damaged"));
  }
  SECTION("sha256") {
    fs::remove_all(kernel + "/.git");
    REQUIRE(shell("git init -q --object-format=sha256 " + kernel));
    CHECK_THAT(doctor_of_kernel(home), Contains("fail") && Contains("sha256"));
    CHECK_THAT(home.run({"status"}).out, Contains("sha256"));
    CHECK_THAT(home.run({"init", "--no-input"}).err, Contains("sha256"));
  }
}

} // namespace boyd::repository_test
