#include "canary_lab.hpp"

#include <csignal>
#include <filesystem>

namespace boyd::canary_test {

using namespace boyd::test;
using namespace boyd::test::canary_lab;
using Catch::Matchers::Contains;
using nlohmann::json;
namespace fs = std::filesystem;

namespace {

constexpr const char* yaml = R"(version: 1
node: {log_level: debug, sandbox: {readable: ["@VAULT@"]}}
providers:
  - provider_id: local
    base_url: "@BASE@"
    model: test-model
    api_key_file: "@VAULT@/key"
    max_retries: 0
    headers: {X-Team: "${HEADER_TOKEN}"}
kernels:
  - kernel_id: default
    schedule: "0 0 1 1 *"
    system_prompt: "Sign with ${SYSTEM_TOKEN}."
    senses:
      - {name: told, argv: [cat, "@VAULT@/sense"]}
      - {name: fails, argv: [sh, -c, "cat '@VAULT@/sense_error' >&2; exit 1"]}
    agents:
      - agent_id: thinker
        prompt: "Look at {SENSES}"
        executor: {type: chat, provider: local}
        tools: [read_file, write_file, run_command]
        policy: {rules: [{tool: run_command, command: "**", decision: allow}]}
        retry: {max_attempts: 1}
      - agent_id: refused
        prompt: "Think."
        executor: {type: chat, provider: local}
        retry: {max_attempts: 1}
      - agent_id: teller
        prompt: "Use ${PROMPT_TOKEN} and {SENSES}"
        metadata: {note: "with ${META_TOKEN}"}
        executor:
          type: command
          argv: [sh, -c, "cat '@VAULT@/out'; cat '@VAULT@/err' >&2; echo \"$A_TOKEN\"; echo \"BOYD_SUMMARY: $(head -n 1 '@VAULT@/summary')\""]
          env: {A_TOKEN: "${ENV_TOKEN}"}
      - agent_id: writer
        prompt: hi
        executor:
          type: command
          argv: [sh, -c, "cat '@VAULT@/notes' >> '@HOME@/kernel/default/MEMORY.md'; cat '@VAULT@/state' >> '@HOME@/kernel/default/STATE.md'"]
      - agent_id: cut
        prompt: hi
        executor: {type: command, output_bytes: 4KiB, argv: [sh, -c, "x=$(cat '@VAULT@/cut'); i=0; while [ $i -lt 300 ]; do printf '%s ' \"$x\"; i=$((i+1)); done"]}
      - agent_id: gone
        prompt: hi
        executor: {type: command, argv: ["./@GONE@"]}
        retry: {max_attempts: 1}
      - agent_id: checked
        prompt: hi
        executor: {type: command, argv: ["true"]}
        retry: {max_attempts: 1}
        require: [command: [sh, -c, "cat '@VAULT@/check'; exit 1"]]
      - agent_id: waked
        prompt: hi
        executor: {type: command, argv: ["true"]}
        wake: {argv: [sh, -c, "cat '@VAULT@/wake' >&2; exit 3"]}
      - agent_id: answers
        prompt: hi
        executor: {type: script, file: "@VAULT@/answers.yaml"}
        retry: {max_attempts: 1}
)";

} // namespace

TEST_CASE("case 56 secret-in-answer: fifty secrets, every way in, are in no log, no state, no "
          "database, no graph, no commit and no answer",
          "[e2e][canary]") {
  canaries put(20260213);
  const std::set<std::string> database{"boyd.db", "boyd.db-wal"};
  const std::set<std::string> memory{"kernel/default/MEMORY.md", "kernel/default/MEMORY.md.bak"};
  const std::set<std::string> state{"kernel/default/STATE.md", "kernel/default/STATE.md.bak"};
  const std::set<std::string> notes{"kernel/default/notes/keys.md"};

  const home_of_boyd home("version: 1\nkernels:\n  - kernel_id: default\n");
  const auto vault = home.file("../vault");
  fs::create_directories(vault);
  const auto keep = [&](const std::string& name, const std::string& text) {
    write_file(vault + "/" + name, text);
  };
  // Ways in through the configuration, whose values are known.
  const std::map<std::string, std::string> environment{
      {"SYSTEM_TOKEN", put.known("system prompt", {"what models were told"})},
      {"PROMPT_TOKEN", put.known("prompt", database)},
      {"META_TOKEN", put.known("metadata", database)},
      {"ENV_TOKEN", put.known("environment of a command")},
      {"HEADER_TOKEN", put.known("header of a provider")}};
  const auto key = put.known("key file");
  keep("key", key + "\n");
  // Ways in that nobody has told Boyd of.
  keep("sense", put.lines(5, "sense"));
  keep("sense_error", put.lines(2, "sense that fails"));
  keep("out", put.lines(8, "standard output"));
  keep("err", put.lines(3, "standard error"));
  keep("notes", put.lines(4, "memory of an agent", memory));
  keep("state", put.lines(3, "agents' part of STATE.md", state));
  keep("check", put.lines(2, "check of a result"));
  keep("wake", put.lines(2, "wake check"));
  keep("large", std::string(50'000, '.') + "\n" + put.lines(3, "long result of a tool") +
                    std::string(50'000, '.') + "\n");
  keep("summary", put.word("summary") + "\n");
  keep("cut", "at " + put.word("output that was cut") + " ");
  keep("answers.yaml", "- {output: " + json(put.lines(2, "script")).dump() +
                           ", summary: " + json(put.word("summary of a script")).dump() +
                           ", fail: deterministic}\n");
  const auto gone = put.word("error of a start");
  const auto said = put.lines(5, "answer of a model") + key;
  const auto written = put.lines(3, "file that a tool writes", notes);
  const auto complained = put.word("error of a provider");
  std::size_t turn = 0; // asked on the endpoint's thread alone
  model_endpoint endpoint;
  endpoint.handle_with([&](const model_request& r) {
    const bool thinks = r.json.contains("tools");
    if (!thinks)
      return error_answer(401, "Incorrect API key provided: " + complained,
                          "invalid_request_error");
    const auto call = [](const char* tool, const json& arguments) {
      return chat_stream()
          .role()
          .tool_call(0, "a", tool, arguments.dump(), 5)
          .finish("tool_calls")
          .usage()
          .done();
    };
    switch (turn++ % 4) {
    case 0:
      return call("write_file", {{"path", "notes/keys.md"}, {"content", written}});
    case 1:
      return call("read_file", {{"path", "notes/keys.md"}});
    case 2:
      return call("run_command", {{"command", "cat " + vault + "/large " + vault + "/out"}});
    default:
      return stream_answer(said, 20);
    }
  });
  home.write_configuration(filled(yaml, {{"@BASE@", endpoint.base_url()},
                                         {"@VAULT@", vault},
                                         {"@HOME@", home.path()},
                                         {"@GONE@", gone}}));
  REQUIRE(put.all().size() >= 50);

  // One life of a node, with two cycles.
  auto argv = home.node();
  argv.emplace_back("-v");
  program node(argv, environment);
  REQUIRE(node.wait_for_stderr("ready: node "));
  sightings seen;
  const auto run = [&](std::vector<std::string> args) {
    args.insert(args.begin(), {"--home", home.path()});
    const auto done = boyd_run(args, environment);
    seen.emplace_back("answer of " + args[2], done.out + done.err);
    return done;
  };
  CHECK(run({"cycle", "--json"}).code == 3);
  run({"-v", "cycle"});
  for (const auto& question :
       std::vector<std::vector<std::string>>{{"status"},
                                             {"status", "--json"},
                                             {"agents", "--json"},
                                             {"plan", "--prompts"},
                                             {"why", "waked"},
                                             {"state", "show"},
                                             {"state", "log", "--json"},
                                             {"cost", "--json"},
                                             {"state", "show", "--file", "MEMORY.md"},
                                             {"config", "show"},
                                             {"doctor"}})
    run(question);
  const auto listed = run({"dispatches", "ls", "--json"}).json();
  REQUIRE(listed["items"].size() >= 16);
  std::string shown;
  for (const auto& row : listed["items"])
    shown += run({"dispatches", "show", row["dispatch_id"].get<std::string>(), "--json"}).out;
  const auto status = run({"status"}).out;
  node.signal(SIGTERM);
  const auto ended = node.finish();
  CHECK(ended.code == 0);
  seen.emplace_back("the log", ended.out + ended.err);
  look_at_files(home, seen);
  const auto objects = all_objects(home);
  seen.emplace_back("git", objects);
  std::string told_model;
  for (const auto& r : endpoint.requests())
    for (const auto& message : r.json["messages"])
      if (message["role"] != "assistant")
        told_model += message.dump();
  seen.emplace_back("what models were told", told_model);

  for (const auto& c : put.all()) {
    INFO(c.way << ": " << c.secret.name << " is in: " << place_of(c, seen));
    CHECK(place_of(c, seen).empty());
  }
  // Each way was gone.
  CHECK(endpoint.requests().front().header("authorization") == "Bearer " + key);
  CHECK(endpoint.requests().front().header("x-team") == environment.at("HEADER_TOKEN"));
  CHECK_THAT(told_model, Contains("long result") || Contains("bytes omitted"));
  CHECK_THAT(told_model, Contains("it is [redacted]"));
  CHECK_THAT(shown, Contains("it is [redacted]") && Contains("bytes not stored"));
  CHECK_THAT(read_file(home.file("kernel/default/STATE.md")), Contains("it is "));
  for (const auto& c : put.all())
    for (const auto& file : c.files)
      if (file.ends_with(".md"))
        CHECK(shows_part_of(read_file(home.file(file)), c.secret.core));
  CHECK_THAT(objects, Contains("it is [redacted]"));
  CHECK_THAT(status, Contains("seems to contain a secret"));
}

} // namespace boyd::canary_test
