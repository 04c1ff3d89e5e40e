#include "program.hpp"
#include "support/pch.hpp"

#include <cstdlib>
#include <filesystem>

namespace boyd::program_context_test {

using namespace boyd::test;
using Catch::Matchers::Contains;
using nlohmann::json;
namespace fs = std::filesystem;

namespace {

/// A program whose attempts all fail, each after writing its prompt to the next of p0, p1, p2.
std::string yaml_of(const std::string& directory, const std::string& agent) {
  return "version: 1\n"
         "node: {sandbox: {writable: [" +
         directory +
         "]}}\n"
         "kernels:\n"
         "  - kernel_id: default\n"
         "    schedule: \"0 0 1 1 *\"\n"
         "    agents:\n"
         "      - agent_id: worker\n"
         "        prompt: \"The task. {MEMORY} {STATE}\"\n"
         "        retry: {max_attempts: 3, base: 1ms, cap: 1ms}\n" +
         agent;
}

std::string keep_prompt(const std::string& directory) {
  return "cat > " + directory + "/p$(ls " + directory + " | grep -c ^p); ";
}

/// What it is told by an endpoint, as the program itself printed it once.
std::string too_long_transcript(const std::string& path) {
  const auto* top = std::getenv("BOYD_SOURCE_DIR");
  REQUIRE(top != nullptr);
  auto text = read_file(std::string(top) + "/tests/data/agent_cli/claude_error.jsonl");
  const std::string refusal = "the local endpoint refuses";
  REQUIRE(text.find(refusal) != std::string::npos);
  for (auto at = text.find(refusal); at != std::string::npos; at = text.find(refusal))
    text.replace(at, refusal.size(), "Prompt is too long");
  write_file(path, text);
  return path;
}

} // namespace

TEST_CASE("programs: after an attempt that took too long or was too long the next has less in it",
          "[e2e][agent_cli]") {
  const bool of_size = GENERATE(true, false);
  const temp_dir seen;
  const temp_dir beside;
  std::string agent;
  if (of_size) {
    const auto script = beside.file("agent");
    write_file(script, "#!/bin/sh\n" + keep_prompt(seen.path()) + "cat '" +
                           too_long_transcript(seen.file("told")) + "'; exit 1\n");
    fs::permissions(script, fs::perms::owner_all);
    agent = "        executor: {type: agent_cli, adapter: claude, program: " + script + "}\n";
  } else {
    agent = "        timeout: 300ms\n"
            "        executor: {type: command, shell: \"" +
            keep_prompt(seen.path()) + "exec sleep 600\"}\n";
  }
  const home_of_boyd home(yaml_of(seen.path(), agent));
  write_file(home.file("kernel/default/MEMORY.md"), "long memories\n");
  const auto cycle = home.run({"cycle"});
  INFO(cycle.err);
  const auto first = read_file(seen.file("p0"));
  const auto second = read_file(seen.file("p1"));
  const auto third = read_file(seen.file("p2"));
  CHECK_THAT(first, Contains("The task.") && Contains("long memories") && Contains("## identity"));
  CHECK_THAT(second, Contains("The task.") && Contains("left out") && !Contains("long memories") &&
                         Contains("## identity"));
  CHECK_THAT(third, Contains("The task.") && !Contains("## identity"));
  const auto all = home.run({"dispatches", "ls", "--json"}).json();
  const std::string id = all["items"][0]["dispatch_id"];
  const auto row = home.run({"dispatches", "show", id, "--json"}).json()["dispatch"];
  INFO(row.dump(1));
  CHECK(row["attempt"] == 3);
  CHECK(row["usage"]["context"] == "minimal");
}

} // namespace boyd::program_context_test
