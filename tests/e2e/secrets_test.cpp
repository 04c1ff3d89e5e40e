#include "program.hpp"
#include "support/pch.hpp"

#include <csignal>
#include <filesystem>

namespace boyd::secrets_test {

using namespace boyd::test;
using Catch::Matchers::Contains;

namespace {

/// Every one stands somewhere else; `canary` is in all of them, for the search.
const std::map<std::string, std::string> secrets{{"SYSTEM_TOKEN", "canary-system-1"},
                                                 {"PROMPT_TOKEN", "canary-prompt-2"},
                                                 {"META_TOKEN", "canary-metadata-3"},
                                                 {"ARGV_TOKEN", "canary-argv-4"},
                                                 {"EXEC_TOKEN", "canary-exec-5"},
                                                 {"ENV_TOKEN", "canary-env-6"},
                                                 {"SENSE_TOKEN", "canary-sense-7"},
                                                 {"WAKE_TOKEN", "canary-wake-8"},
                                                 {"LINES_KEY", "canary-line-9\ncanary-line-10\n"},
                                                 {"SCRIPT_TOKEN", "canary-script-11"},
                                                 {"CHECK_TOKEN", "canary-check-12"},
                                                 {"ARTIFACT_TOKEN", "canary-artifact-13"},
                                                 {"LONG_TOKEN", "canary-long-14"}};

const char* canary_yaml = R"(version: 1
node: {log_level: debug}
kernels:
  - kernel_id: default
    schedule: "0 0 1 1 *"
    system_prompt: "Sign with ${SYSTEM_TOKEN}."
    senses:
      - {name: gone, argv: ["./${SENSE_TOKEN}"]}
      - {name: told, argv: ["echo", "${SENSE_TOKEN}"]}
    agents:
      - agent_id: teller
        prompt: "Use ${PROMPT_TOKEN} and {SENSES}"
        metadata: {api_token: "${META_TOKEN}", note: "with ${META_TOKEN}"}
        executor:
          type: command
          argv: [sh, -c, 'cat; echo "$0 $A_TOKEN"; echo "$B_KEY"; echo "${PROMPT_TOKEN}" >&2', "${ARGV_TOKEN}"]
          env: {A_TOKEN: "${ENV_TOKEN}", B_KEY: "${LINES_KEY}"}
      - agent_id: claims
        prompt: hi
        executor: {type: command, argv: [sh, -c, 'echo "BOYD_SUMMARY: $0 postgres://u:canary-uri@db/x"', "${ARGV_TOKEN}"]}
      - agent_id: gone
        prompt: hi
        executor: {type: command, argv: ["./x${EXEC_TOKEN}.sh"]}
        retry: {max_attempts: 1}
      - agent_id: checked
        prompt: hi
        executor: {type: command, argv: ["true"]}
        retry: {max_attempts: 1}
        require: [artifact: "${ARTIFACT_TOKEN}", command: [sh, -c, "echo ${CHECK_TOKEN}; exit 1"]]
      - agent_id: waked
        prompt: hi
        executor: {type: command, argv: ["true"]}
        wake: {argv: ["./${WAKE_TOKEN}"]}
      - agent_id: answers
        prompt: hi
        executor:
          type: script
          answers: [{output: "it is ${SCRIPT_TOKEN}", summary: "for ${SCRIPT_TOKEN}", fail: deterministic}]
        retry: {max_attempts: 1}
      - agent_id: long
        prompt: hi
        executor:
          type: command
          output_bytes: 4KiB
          argv: [sh, -c, 'i=0; while [ $i -lt 1200 ]; do printf %s "$0"; i=$((i+1)); done', "${LONG_TOKEN}"]
)";

/// Every object of a repository, whole, on standard output.
finished all_objects(const std::string& repository) {
  program git({"/bin/sh", "-c", "git -C \"$0\" cat-file --batch --batch-all-objects", repository});
  return git.finish();
}

} // namespace

TEST_CASE("a secret is in no file of the home, no log and no answer", "[e2e]") {
  const home_of_boyd home("version: 1\nkernels:\n  - kernel_id: default\n");
  home.write_configuration(canary_yaml);
  const auto run = [&](std::vector<std::string> args) {
    std::vector<std::string> all{"--home", home.path()};
    all.insert(all.end(), args.begin(), args.end());
    return boyd_run(all, secrets);
  };
  std::vector<std::pair<std::string, std::string>> seen;
  const auto look = [&](const std::string& what, const finished& r) {
    seen.emplace_back(what, r.out);
    seen.emplace_back(what + ", standard error", r.err);
    return r;
  };
  REQUIRE(look("cycle", run({"-v", "cycle", "--json"})).code == 3);
  look("second cycle", run({"-v", "cycle"}));
  look("status", run({"status"}));
  look("status as JSON", run({"status", "--json"}));
  look("agents", run({"agents", "--json"}));
  look("plan", run({"plan", "--prompts"}));
  look("why", run({"why", "waked"}));
  look("log", run({"state", "log"}));
  look("doctor", run({"doctor"}));
  const auto listed = look("dispatches", run({"dispatches", "ls", "--json"})).json();
  REQUIRE(listed["items"].size() == 14);
  std::string shown;
  for (const auto& row : listed["items"]) {
    const auto id = row["dispatch_id"].get<std::string>();
    shown += look("dispatch", run({"dispatches", "show", id, "--json"})).out;
    look("dispatch as text", run({"dispatches", "show", id}));
  }
  const auto objects = all_objects(home.file("kernel/default"));
  CHECK_THAT(objects.out, Contains("Sign with [redacted]."));
  seen.emplace_back("git", objects.out);
  for (const auto* file :
       {"kernel/default/STATE.md", "kernel/default/STATE.md.bak", "kernel/default/INIT.md",
        "kernel/default/SYSTEM_PROMPT.md", "knowledge/graph.jsonl"})
    seen.emplace_back(file, read_file(home.file(file)));

  for (const auto& [what, text] : seen) {
    const auto at = text.find("canary");
    const auto around = at == std::string::npos
                            ? std::string{}
                            : text.substr(at < 80 ? 0 : at - 80, at < 80 ? at + 30 : 110);
    INFO(what << ": …" << around);
    CHECK(at == std::string::npos);
  }
  // Each one was there to be found.
  CHECK_THAT(shown, Contains("cannot execute ./x[redacted].sh"));
  CHECK_THAT(shown, Contains("Use [redacted] and "));
  CHECK_THAT(shown, Contains("with [redacted]"));
  CHECK_THAT(shown, Contains("it is [redacted]"));
  CHECK_THAT(shown, Contains("postgres://u:[redacted]@db/x"));
  CHECK_THAT(shown, Contains("bytes not stored"));
  // What runs has its secrets.
  CHECK_THAT(read_file(home.file("boyd.db")) + read_file(home.file("boyd.db-wal")),
             Contains("canary-prompt-2"));
}

TEST_CASE("a secret that a reload has added stands in no commit, whoever wrote it to STATE.md",
          "[e2e]") {
  const auto yaml_of = [](const std::string& more) {
    return "version: 1\nkernels:\n  - kernel_id: default\n    schedule: \"0 0 1 1 *\"\n"
           "    agents:\n      - agent_id: teller\n        prompt: hi\n"
           "        executor: {type: command, argv: [sh, -c, 'echo \"BOYD_SUMMARY: uses "
           "canary-added-1\"']" +
           more + "}\n";
  };
  const home_of_boyd home(yaml_of(""));
  program node(home.node(), {{"ADDED", "canary-added-1"}});
  REQUIRE(node.wait_for_stderr("ready: node "));
  home.write_configuration(yaml_of(", env: {ADDED_TOKEN: \"${ADDED}\"}"));
  node.signal(SIGHUP);
  REQUIRE(node.wait_for_stderr("configuration reloaded"));
  const auto state = home.file("kernel/default/STATE.md");
  write_file(state, read_file(state) + "\nA person's line: canary-added-1 opens it.\n");
  CHECK(home.run({"cycle"}).code == 0);
  CHECK_THAT(home.run({"status"}).out, !Contains("canary-added-1"));
  node.signal(SIGTERM);
  CHECK(node.finish().code == 0);
  const auto objects = all_objects(home.file("kernel/default"));
  CHECK_THAT(objects.out, Contains("A person's line: [redacted] opens it."));
  CHECK_THAT(objects.out, !Contains("canary-added-1"));
}

} // namespace boyd::secrets_test
