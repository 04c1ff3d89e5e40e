#include "chat_home.hpp"
#include "program.hpp"
#include "support/model_answers.hpp"
#include "support/pch.hpp"
#include "support/wait.hpp"
#include "working_home.hpp"

#include <csignal>
#include <filesystem>
#include <sys/stat.h>

namespace boyd::kernel_files_test {

using namespace boyd::test;
using namespace boyd::test::chat_homes;
using Catch::Matchers::Contains;
using nlohmann::json;
namespace fs = std::filesystem;

namespace {

std::string kernel_with(const std::string& agents, const std::string& more = {}) {
  return "version: 1\n"
         "kernels:\n"
         "  - kernel_id: default\n"
         "    schedule: \"0 0 1 1 *\"\n" +
         more + "    agents:\n" + agents;
}

model_answer call(const char* name, const json& arguments) {
  return chat_stream()
      .role()
      .tool_call(0, "call", name, arguments.dump())
      .finish("tool_calls")
      .usage()
      .done();
}

json dispatch_of(const home_of_boyd& home, const std::string& agent) {
  const auto all = home.run({"dispatches", "ls", "--json"}).json();
  for (const auto& row : all["items"])
    if (row["agent_id"] == agent)
      return home.run({"dispatches", "show", row["dispatch_id"], "--json"}).json()["dispatch"];
  return {};
}

std::string doctor_says(const home_of_boyd& home) {
  return home.run({"doctor"}).out;
}

} // namespace

TEST_CASE("case R10: a kernel's file that cannot be read is named, not taken for an empty one",
          "[e2e]") {
  const home_of_boyd home(kernel_with("      - agent_id: reader\n"
                                      "        prompt: \"Goal: {GOAL} Memory: {MEMORY}\"\n"
                                      "        executor: {type: command, argv: [cat]}\n"));
  const auto goal = home.file("kernel/default/GOAL.md");
  write_file(home.file("kernel/default/MEMORY.md"), "we remember\n");
  fs::remove(goal);
  SECTION("a link") {
    write_file(home.file("elsewhere"), "a goal\n");
    fs::create_symlink(home.file("elsewhere"), goal);
  }
  SECTION("a link to nothing") {
    fs::create_symlink("nowhere", goal);
  }
  SECTION("a directory") {
    fs::create_directory(goal);
  }
  SECTION("too large") {
    write_file(goal, "x");
    fs::resize_file(goal, std::uintmax_t{65} << 20);
    write_file(home.file("kernel/default/.gitignore"), "GOAL.md\n");
  }
  home.run({"cycle"});
  const auto output = dispatch_of(home, "reader")["output"].get<std::string>();
  CHECK_THAT(output, Contains("GOAL.md exists, but cannot be read") && Contains("we remember"));
  CHECK_THAT(home.run({"status"}).out, Contains("GOAL.md cannot be read"));
  fs::remove_all(goal);
  write_file(goal, "a goal\n");
  CHECK(home.run({"cycle"}).code == 0);
  CHECK_THAT(home.run({"status"}).out, !Contains("cannot be read"));
}

TEST_CASE("case R10: a link in the place of GOAL.md leads no file into a system message", "[e2e]") {
  model_endpoint endpoint;
  endpoint.then(stream_answer("ok"));
  const home_of_boyd home(yaml_of(endpoint));
  const auto goal = home.file("kernel/default/GOAL.md");
  const std::string to = GENERATE("../../boyd.yaml", "/etc/passwd", "/proc/self/environ");
  fs::remove(goal);
  fs::create_symlink(to, goal);
  home.run({"cycle"});
  const auto system = endpoint.requests().at(0).json["messages"][0].dump();
  CHECK_THAT(system, Contains("GOAL.md exists, but cannot be read"));
  CHECK_THAT(system, !Contains("provider_id") && !Contains("root:") && !Contains("PATH="));
}

TEST_CASE("case R10: protected files are written by no tool and no command", "[e2e]") {
  model_endpoint endpoint;
  const home_of_boyd home(working_yaml(endpoint));
  CHECK_THAT(doctor_says(home),
             Contains("contains SOUL.md and GOAL.md, which these agents can change: worker"));
  home.write_configuration(working_yaml(endpoint, {}, "    protected_files: [SOUL.md, GOAL.md]\n"));
  CHECK_THAT(doctor_says(home), !Contains("which these agents can change"));
  const auto goal = home.file("kernel/default/GOAL.md");
  write_file(goal, "the goal\n");
  endpoint.then(call("write_file", {{"path", "GOAL.md"}, {"content", "mine"}}))
      .then(call("run_command", {{"command", "echo mine > GOAL.md; rm -f GOAL.md; mv GOAL.md g; "
                                             "echo fine > other"}}))
      .then(stream_answer("done"));
  home.run({"cycle"});
  CHECK(read_file(home.file("kernel/default/other")) == "fine\n");
  const auto asked = endpoint.requests();
  REQUIRE(asked.size() == 3);
  CHECK_THAT(asked[1].json["messages"].back().dump(), Contains("protected_files"));
  const auto sandbox = dispatch_of(home, "worker")["usage"]["sandbox"];
  if (sandbox["mode"] != "limits" && sandbox.dump().find("can be written") == std::string::npos)
    CHECK(read_file(goal) == "the goal\n");
}

TEST_CASE("case R6: a run whose commands all failed to start is no success", "[e2e]") {
  model_endpoint endpoint;
  const home_of_boyd home(working_yaml(endpoint));
  const json nowhere{{"command", "echo hello"}, {"cwd", "nowhere"}};
  endpoint.then(call("run_command", nowhere));
  bool one_starts = false;
  SECTION("none") {}
  SECTION("one of two") {
    one_starts = true;
    endpoint.then(call("run_command", {{"command", "exit 3"}}));
  }
  endpoint.then(stream_answer("All is well."));
  home.run({"cycle"});
  const auto row = dispatch_of(home, "worker");
  CHECK(row["status"] == (one_starts ? "done" : "failed"));
  if (one_starts) {
    CHECK_FALSE(row["usage"]["sandbox"].contains("in_force"));
  } else {
    CHECK_THAT(row["error"].get<std::string>(), Contains("none of its commands could be started"));
    CHECK(row["usage"]["sandbox"]["in_force"] == false);
  }
}

TEST_CASE("case R10: a command in a directory that is a link out of the workspace does not begin",
          "[e2e]") {
  const temp_dir outside;
  model_endpoint endpoint;
  const home_of_boyd home(working_yaml(endpoint));
  const auto kernel = home.file("kernel/default");
  fs::create_directory_symlink(outside.path(), kernel + "/out");
  endpoint.then(call("run_command", {{"command", "pwd -P; echo x > made"}, {"cwd", "out"}}))
      .then(stream_answer("done"));
  home.run({"cycle"});
  CHECK_FALSE(fs::exists(outside.file("made")));
  CHECK_THAT(endpoint.requests().back().json["messages"].back().dump(),
             Contains("leads out of the workspace"));
  // The same for a command executor whose directory lies below the kernel's home.
  home.write_configuration(kernel_with("      - agent_id: worker\n"
                                       "        prompt: x\n"
                                       "        retry: {max_attempts: 1}\n"
                                       "        executor: {type: command, cwd: \"" +
                                       kernel + "/out\", shell: \"echo x > made\"}\n"));
  home.run({"cycle"});
  CHECK_FALSE(fs::exists(outside.file("made")));
}

TEST_CASE("case R10: an agent that kills the process host fails nobody but itself", "[e2e]") {
  // The victim hangs in its first run, and the killer does it once.
  const home_of_boyd home(kernel_with(
      "      - agent_id: killer\n"
      "        prompt: x\n"
      "        retry: {max_attempts: 1}\n"
      "        executor: {type: command, shell: \"while [ ! -e log ]; do sleep 0.05; done; "
      "[ -e killed ] || { : > killed; kill -9 $PPID; sleep 60; }; echo calm\"}\n"
      "      - agent_id: victim\n"
      "        prompt: x\n"
      "        retry: {max_attempts: 1}\n"
      "        executor: {type: command, shell: \"echo run >> log; "
      "[ $(wc -l < log) -gt 1 ] || sleep 600; echo fine\"}\n"));
  const auto cycle = home.run({"cycle"});
  INFO(cycle.err);
  CHECK(cycle.code == 0);
  const auto victim = dispatch_of(home, "victim");
  CHECK(victim["status"] == "done");
  CHECK(victim["attempt"] == 1);
  CHECK(read_file(home.file("kernel/default/log")) == "run\nrun\n");
}

TEST_CASE("case R3: a running node tells of modes of its home that were changed", "[e2e]") {
  const home_of_boyd home(kernel_with("      - agent_id: one\n"
                                      "        prompt: x\n"
                                      "        executor: {type: command, argv: [\"true\"]}\n"));
  program node(home.node());
  REQUIRE(node.wait_for_stderr("ready: node "));
  const auto status = [&] { return home.run({"status"}).out; };
  CHECK_THAT(status(), !Contains("has mode"));
  REQUIRE(::chmod(home.path().c_str(), 0777) == 0);
  REQUIRE(::chmod(home.file("boyd.db").c_str(), 0666) == 0);
  CHECK(wait_until([&] {
    const auto text = status();
    return text.find("has mode 0777") != std::string::npos &&
           text.find("boyd.db has mode 0666 and is accessible to other users") != std::string::npos;
  }));
  REQUIRE(::chmod(home.file("boyd.db").c_str(), 0) == 0);
  CHECK(wait_until([&] {
    return status().find("boyd.db has mode 0000 and is not accessible") != std::string::npos;
  }));
  REQUIRE(::chmod(home.file("boyd.db").c_str(), 0600) == 0);
  REQUIRE(::chmod(home.path().c_str(), 0700) == 0);
  CHECK(wait_until([&] { return status().find("has mode") == std::string::npos; }));
  node.signal(SIGTERM);
  CHECK(node.finish().code == 0);
}

} // namespace boyd::kernel_files_test
