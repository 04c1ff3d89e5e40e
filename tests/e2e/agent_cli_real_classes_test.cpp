#include "program.hpp"
#include "support/model_answers.hpp"
#include "support/pch.hpp"

#include <cstdlib>
#include <filesystem>

namespace boyd::agent_cli_real_classes_test {

using namespace boyd::test;
using nlohmann::json;
namespace fs = std::filesystem;

// What goes wrong with the real programs, when the environment names them (docs/agent-clis.md).

namespace {

std::string real(const char* variable) {
  const char* path = std::getenv(variable);
  if (path == nullptr)
    WARN(variable << " is not set: the real program is not run");
  return path == nullptr ? std::string() : std::string(path);
}

model_answer stream_of(const std::vector<json>& events) {
  model_answer out;
  out.header("content-type", "text/event-stream");
  for (const auto& e : events)
    out.send("event: " + e["type"].get<std::string>() + "\ndata: " + e.dump() + "\n\n");
  return out;
}

/// What codex's model says: a command, then that it is done.
model_answer orders(const model_request& request, const std::string& command) {
  const bool done =
      request.json["input"].back().dump().find("function_call_output") != std::string::npos;
  const json call{{"type", "function_call"},
                  {"id", "fc_1"},
                  {"call_id", "call_1"},
                  {"name", "exec_command"},
                  {"arguments", json{{"cmd", command}}.dump()}};
  const json text{{"type", "message"},
                  {"role", "assistant"},
                  {"id", "m_1"},
                  {"content", json::array({{{"type", "output_text"}, {"text", "Done."}}})}};
  const json used{{"input_tokens", 12},
                  {"input_tokens_details", {{"cached_tokens", 0}}},
                  {"output_tokens", 2},
                  {"output_tokens_details", {{"reasoning_tokens", 0}}},
                  {"total_tokens", 14}};
  return stream_of(
      {{{"type", "response.created"}, {"response", {{"id", "r"}}}},
       {{"type", "response.output_item.done"}, {"output_index", 0}, {"item", done ? text : call}},
       {{"type", "response.completed"}, {"response", {{"id", "r"}, {"usage", used}}}}});
}

model_answer codex_failure(const std::string& code, const std::string& message) {
  return stream_of(
      {{{"type", "response.created"}, {"response", {{"id", "r"}}}},
       {{"type", "response.failed"},
        {"response", {{"id", "r"}, {"error", {{"code", code}, {"message", message}}}}}}});
}

/// What gemini's model says: one call of a tool, then that it is done.
model_answer calls(const model_request& request, const std::string& tool) {
  const bool done =
      request.json["contents"].back().dump().find("functionResponse") != std::string::npos;
  const json part = done ? json{{"text", "Done."}}
                         : json{{"functionCall", {{"name", tool}, {"args", json::object()}}}};
  const json answer{
      {"candidates",
       json::array({{{"index", 0},
                     {"finishReason", "STOP"},
                     {"content", {{"role", "model"}, {"parts", json::array({part})}}}}})},
      {"usageMetadata",
       {{"promptTokenCount", 10}, {"candidatesTokenCount", 2}, {"totalTokenCount", 12}}}};
  if (request.path.find(":streamGenerateContent") == std::string::npos)
    return json_answer(answer);
  model_answer out;
  out.header("content-type", "text/event-stream");
  return out.send("data: " + answer.dump() + "\r\n\r\n");
}

/// A node that runs one of the programs against an endpoint on loopback.
class lab {
 public:
  lab(std::string adapter, std::string program, model_handler handler)
      : adapter_(std::move(adapter)), program_(std::move(program)), endpoint_(std::move(handler)) {
    fs::create_directories(work.file("repo"));
    fs::create_directories(work.file("tmp"));
    put(".codex/config.toml",
        "model = \"gpt-5\"\nmodel_provider = \"local\"\n[model_providers.local]\n"
        "name = \"local\"\nbase_url = \"" +
            endpoint_.base_url() +
            "\"\nwire_api = \"responses\"\nenv_key = \"LOCAL_KEY\"\n"
            "request_max_retries = 0\nstream_max_retries = 0\n");
    put(".gemini/settings.json",
        R"({"security":{"auth":{"selectedType":"gemini-api-key"}},)"
        R"("privacy":{"usageStatisticsEnabled":false},)"
        R"("general":{"enableAutoUpdate":false,"maxAttempts":1,"retryFetchErrors":false}})");
    put(".config/opencode/opencode.json",
        json{{"autoupdate", false},
             {"share", "disabled"},
             {"provider",
              {{"local",
                {{"npm", "@ai-sdk/openai-compatible"},
                 {"options", {{"baseURL", endpoint_.base_url()}, {"apiKey", "k"}}},
                 {"models", {{"m", {{"name", "m"}}}}}}}}}}
            .dump());
  }

  void put(const std::string& name, const std::string& text) const {
    fs::create_directories(fs::path(work.file(name)).parent_path());
    write_file(work.file(name), text);
  }

  /// One cycle; the dispatch. `executor` and `env`: more lines.
  json run(const std::string& executor = {}, const std::string& env = {}) const {
    const std::string model = adapter_ == "gemini"     ? "gemini-2.5-pro"
                              : adapter_ == "opencode" ? "local/m"
                                                       : "gpt-5";
    // What it was installed with is read by it.
    const auto readable = adapter_ == "codex"
                              ? std::string()
                              : "        sandbox: {readable: [\"" +
                                    fs::path(program_).parent_path().parent_path().string() +
                                    "\"]}\n";
    home.write_configuration(
        "version: 1\nkernels:\n  - schedule: \"0 0 1 1 *\"\n    agents:\n"
        "      - agent_id: coder\n        prompt: Do it\n        timeout: 80s\n"
        "        retry: {max_attempts: 1}\n" +
        readable + "        executor:\n          type: agent_cli\n          adapter: " + adapter_ +
        "\n          program: " + program_ + "\n          model: " + model + "\n          cwd: " +
        work.file("repo") + "\n" + executor + "          env:\n            HOME: " + work.path() +
        "\n            LOCAL_KEY: k\n            GEMINI_API_KEY: k\n"
        "            GOOGLE_GEMINI_BASE_URL: " +
        endpoint_.origin() + "\n            OPENCODE_DISABLE_MODELS_FETCH: 1\n" + env);
    const auto cycle = home.run({"cycle"});
    INFO(cycle.err);
    const auto all = home.run({"dispatches", "ls", "--json"}).json();
    REQUIRE_FALSE(all["items"].empty());
    const std::string id = all["items"][0]["dispatch_id"];
    return home.run({"dispatches", "show", id, "--json"}).json()["dispatch"];
  }

  const temp_dir work;
  const home_of_boyd home{"version: 1\nkernels: [{agents: []}]\n"};

 private:
  std::string adapter_;
  std::string program_;
  model_endpoint endpoint_;
};

/// The class of a run of which every call of the model has this answer.
std::string class_of(const std::string& adapter, const std::string& program,
                     const model_answer& answer) {
  const lab l(adapter, program, [&](const model_request& r) {
    return r.method == "POST" ? answer : json_answer(json::object(), 404);
  });
  const auto row = l.run(adapter == "gemini" ? "          permission: auto_edit\n" : std::string());
  UNSCOPED_INFO(row.dump(1));
  CHECK(row["status"] == "failed");
  return row["failure_class"];
}

} // namespace

TEST_CASE("case W6: the real codex in workspace-write leaves a home below /tmp alone",
          "[e2e][agent_cli][real]") {
  const auto program = real("BOYD_REAL_CODEX");
  if (program.empty())
    return;
  std::string configuration;
  const lab l("codex", program, [&](const model_request& r) {
    return r.path.find("/responses") == std::string::npos
               ? json_answer(json::object(), 404)
               : orders(r, "touch here; echo x >> '" + configuration +
                               "'; touch /tmp/boyd-case-w6; touch \"$TMPDIR/there\"; true");
  });
  configuration = l.home.file("boyd.yaml");
  // Below its temporary directory codex makes no sandbox.
  const auto row = l.run("          permission: workspace-write\n",
                         "            TMPDIR: " + l.work.file("tmp") + "\n");
  INFO(row.dump(1));
  CHECK(row["status"] == "done");
  CHECK(fs::exists(l.work.file("repo/here")));
  CHECK_FALSE(fs::exists("/tmp/boyd-case-w6"));
  CHECK_FALSE(fs::exists(l.work.file("tmp/there")));
  CHECK(read_file(configuration).find("\nx\n") == std::string::npos);
}

TEST_CASE("case W7: the real codex may not run a command, or cannot", "[e2e][agent_cli][real]") {
  const auto program = real("BOYD_REAL_CODEX");
  if (program.empty())
    return;
  const bool forbidden = GENERATE(true, false);
  const lab l("codex", program, [&](const model_request& r) {
    return r.path.find("/responses") == std::string::npos ? json_answer(json::object(), 404)
                                                          : orders(r, "rm -rf x");
  });
  if (forbidden)
    l.put(".codex/rules/default.rules", "prefix_rule(pattern=[\"rm\"], decision=\"forbidden\")\n");
  // Its sandbox fails where its home is below the temporary directory.
  const auto row = l.run(forbidden ? "          permission: danger-full-access\n"
                                   : "          permission: workspace-write\n",
                         forbidden ? std::string() : "            TMPDIR: /tmp\n");
  INFO(row.dump(1));
  CHECK(row["status"] == "failed");
  CHECK(row["failure_class"] == "policy");
  CHECK(row["usage"]["denied"].get<int>() >= 1);
}

TEST_CASE("case W7: the real gemini calls a tool that it does not have", "[e2e][agent_cli][real]") {
  const auto program = real("BOYD_REAL_GEMINI");
  if (program.empty())
    return;
  const lab l("gemini", program, [&](const model_request& r) {
    return r.path.find("enerateContent") == std::string::npos ? json_answer(json::object(), 404)
                                                              : calls(r, "run_shell_command");
  });
  const auto row = l.run("          permission: auto_edit\n");
  INFO(row.dump(1));
  CHECK(row["status"] == "failed");
  CHECK(row["failure_class"] == "policy");
  CHECK(row["usage"]["denials"] == json::array({"tool_not_registered"}));
}

TEST_CASE("case W8: the real gemini, and a service that does not serve", "[e2e][agent_cli][real]") {
  const auto program = real("BOYD_REAL_GEMINI");
  if (program.empty())
    return;
  const auto failed = [](int code, const std::string& status, const std::string& message) {
    return json_answer({{"error", {{"code", code}, {"status", status}, {"message", message}}}},
                       code);
  };
  CHECK(class_of("gemini", program,
                 failed(429, "RESOURCE_EXHAUSTED", "Resource has been exhausted.")) == "transient");
  CHECK(class_of("gemini", program, failed(500, "INTERNAL", "Internal error")) == "transient");
  CHECK(class_of("gemini", program, failed(401, "UNAUTHENTICATED", "no")) == "environment");
  model_answer cut;
  cut.end = framing::length;
  cut.header("content-type", "text/event-stream").send("data: {\"candi").hang_up().send("dates\"}");
  CHECK(class_of("gemini", program, cut) == "transient");
}

TEST_CASE("case W8: the real opencode without a valid key", "[e2e][agent_cli][real]") {
  const auto program = real("BOYD_REAL_OPENCODE");
  if (program.empty())
    return;
  CHECK(class_of("opencode", program,
                 json_answer({{"error", {{"message", "Invalid API key"}}}}, 401)) == "environment");
}

TEST_CASE("case W8: the real codex, and a model at capacity or a limit", "[e2e][agent_cli][real]") {
  const auto program = real("BOYD_REAL_CODEX");
  if (program.empty())
    return;
  CHECK(class_of("codex", program,
                 codex_failure("server_is_overloaded", "Selected model is at capacity.")) ==
        "transient");
  CHECK(class_of("codex", program,
                 json_answer({{"error", {{"code", "insufficient_quota"}, {"message", "no"}}}},
                             429)) == "environment");
  CHECK(class_of("codex", program,
                 json_answer({{"error",
                               {{"type", "usage_limit_reached"},
                                {"message", "The usage limit has been reached"},
                                {"resets_in_seconds", 3600}}}},
                             429)) == "transient");
}

TEST_CASE("field case 20: the real claude is told of a limit", "[e2e][agent_cli][real]") {
  const auto program = real("BOYD_REAL_CLAUDE");
  if (program.empty())
    return;
  const temp_dir work;
  model_endpoint endpoint([](const model_request& r) {
    return r.method == "POST"
               ? json_answer(
                     {{"type", "error"},
                      {"error", {{"type", "rate_limit_error"}, {"message", "Rate limit reached"}}}},
                     429)
                     .header("x-should-retry", "false")
               : json_answer(json::object(), 404);
  });
  const home_of_boyd home("version: 1\nkernels: [{agents: []}]\n");
  home.write_configuration(
      "version: 1\nkernels:\n  - schedule: \"0 0 1 1 *\"\n    agents:\n"
      "      - agent_id: coder\n        prompt: Do it\n        timeout: 80s\n"
      "        retry: {max_attempts: 1}\n        executor:\n          type: agent_cli\n"
      "          adapter: claude\n          program: " +
      program + "\n          model: claude-sonnet-4-5\n          cwd: " + work.path() +
      "\n          env:\n            HOME: " + work.path() +
      "\n            ANTHROPIC_BASE_URL: " + endpoint.origin() +
      "\n            ANTHROPIC_API_KEY: sk-nothing\n"
      "            CLAUDE_CODE_MAX_RETRIES: 1\n"
      "            CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC: 1\n");
  home.run({"cycle"});
  const auto all = home.run({"dispatches", "ls", "--json"}).json();
  REQUIRE_FALSE(all["items"].empty());
  INFO(all.dump(1));
  CHECK(all["items"][0]["status"] == "failed");
  CHECK(all["items"][0]["failure_class"] == "transient");
}

} // namespace boyd::agent_cli_real_classes_test
