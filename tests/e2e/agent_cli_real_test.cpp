#include "program.hpp"
#include "support/model_answers.hpp"
#include "support/pch.hpp"

#include <cstdlib>
#include <filesystem>

namespace boyd::agent_cli_real_test {

using namespace boyd::test;
using nlohmann::json;
namespace fs = std::filesystem;

// The real programs, when the environment names them (BOYD_REAL_CLAUDE, BOYD_REAL_CODEX,
// BOYD_REAL_GEMINI, BOYD_REAL_OPENCODE), against an endpoint on loopback. `npm install
// @anthropic-ai/claude-code @openai/codex @google/gemini-cli opencode-ai` brings them.

namespace {

std::string event(const json& data) {
  return "event: " + data["type"].get<std::string>() + "\ndata: " + data.dump() + "\n\n";
}

model_answer stream_of(const std::vector<json>& events) {
  model_answer out;
  out.header("content-type", "text/event-stream");
  for (const auto& e : events)
    out.send(event(e));
  return out;
}

/// Whether the newest message has the result of a tool.
bool has_result(const json& body, const char* list, const char* word) {
  return body.contains(list) && body[list].is_array() && !body[list].empty() &&
         body[list].back().dump().find(word) != std::string::npos;
}

/// The dialect of claude: it is told to write hello.txt, then that it is done.
model_answer messages(const model_request& request, const std::string& path) {
  const bool done = has_result(request.json, "messages", "tool_result");
  const json block = done ? json{{"type", "text"}, {"text", ""}}
                          : json{{"type", "tool_use"},
                                 {"id", "toolu_1"},
                                 {"name", "Write"},
                                 {"input", json::object()}};
  const json input{{"file_path", path}, {"content", "hello\n"}};
  const json delta = done ? json{{"type", "text_delta"}, {"text", "Done: hello.txt is written."}}
                          : json{{"type", "input_json_delta"}, {"partial_json", input.dump()}};
  return stream_of(
      {{{"type", "message_start"},
        {"message",
         {{"id", "msg_1"},
          {"type", "message"},
          {"role", "assistant"},
          {"model", request.json.value("model", "m")},
          {"content", json::array()},
          {"stop_reason", nullptr},
          {"stop_sequence", nullptr},
          {"usage",
           {{"input_tokens", 120}, {"cache_read_input_tokens", 40}, {"output_tokens", 1}}}}}},
       {{"type", "content_block_start"}, {"index", 0}, {"content_block", block}},
       {{"type", "content_block_delta"}, {"index", 0}, {"delta", delta}},
       {{"type", "content_block_stop"}, {"index", 0}},
       {{"type", "message_delta"},
        {"delta", {{"stop_reason", done ? "end_turn" : "tool_use"}, {"stop_sequence", nullptr}}},
        {"usage", {{"output_tokens", 12}}}},
       {{"type", "message_stop"}}});
}

/// The dialect of codex.
model_answer responses(const model_request& request) {
  const bool done = has_result(request.json, "input", "function_call_output");
  const json call{{"type", "function_call"},
                  {"id", "fc_1"},
                  {"call_id", "call_1"},
                  {"name", "exec_command"},
                  {"arguments", json{{"cmd", "printf 'hello\\n' > hello.txt"}}.dump()}};
  const json text{{"type", "message"},
                  {"role", "assistant"},
                  {"id", "m_1"},
                  {"content", json::array({{{"type", "output_text"},
                                            {"text", "Done: hello.txt is written."}}})}};
  return stream_of(
      {{{"type", "response.created"}, {"response", {{"id", "resp_1"}}}},
       {{"type", "response.output_item.done"}, {"output_index", 0}, {"item", done ? text : call}},
       {{"type", "response.completed"},
        {"response",
         {{"id", "resp_1"},
          {"usage",
           {{"input_tokens", 120},
            {"input_tokens_details", {{"cached_tokens", 40}}},
            {"output_tokens", 12},
            {"output_tokens_details", {{"reasoning_tokens", 5}}},
            {"total_tokens", 132}}}}}}});
}

/// The dialect of gemini.
model_answer contents(const model_request& request, const std::string& path) {
  const bool done = has_result(request.json, "contents", "functionResponse");
  const json part = done ? json{{"text", "Done: hello.txt is written."}}
                         : json{{"functionCall",
                                 {{"name", "write_file"},
                                  {"args", {{"file_path", path}, {"content", "hello\n"}}}}}};
  const json answer{
      {"candidates",
       json::array({{{"index", 0},
                     {"finishReason", "STOP"},
                     {"content", {{"role", "model"}, {"parts", json::array({part})}}}}})},
      {"usageMetadata",
       {{"promptTokenCount", 120},
        {"cachedContentTokenCount", 40},
        {"candidatesTokenCount", 12},
        {"totalTokenCount", 132}}}};
  if (request.path.find(":streamGenerateContent") == std::string::npos)
    return json_answer(answer);
  model_answer out;
  out.header("content-type", "text/event-stream");
  return out.send("data: " + answer.dump() + "\r\n\r\n");
}

/// Chat completions, as opencode asks for them; without tools it wants a title.
model_answer completions(const model_request& request, const std::string& path) {
  const token_figures used{.prompt = 120, .completion = 12, .cached = 40, .reasoning = 5};
  if (!request.json.contains("tools"))
    return stream_answer("A title", 1, used);
  if (request.json["messages"].back()["role"] == "tool")
    return stream_answer("Done: hello.txt is written.", 3, used);
  return chat_stream()
      .role()
      .tool_call(0, "call_1", "write", json{{"filePath", path}, {"content", "hello\n"}}.dump(), 2)
      .finish("tool_calls")
      .usage(used)
      .done();
}

/// Lets a program that was installed somewhere read what belongs to it.
std::string readable_modules(const std::string& program) {
  return "        sandbox: {readable: [\"" +
         fs::path(program).parent_path().parent_path().string() + "\"]}\n";
}

std::string real(const char* variable) {
  const char* path = std::getenv(variable);
  if (path == nullptr)
    WARN(variable << " is not set: the real program is not run");
  return path == nullptr ? std::string() : std::string(path);
}

/// One cycle of a node with this executor; the dispatch.
json run(const home_of_boyd& home, const std::string& executor) {
  home.write_configuration("version: 1\nkernels:\n  - schedule: \"0 0 1 1 *\"\n    agents:\n"
                           "      - agent_id: coder\n        prompt: Write hello.txt\n"
                           "        timeout: 80s\n        retry: {max_attempts: 1}\n"
                           "        executor:\n" +
                           executor);
  const auto cycle = home.run({"cycle"});
  INFO(cycle.err);
  const auto all = home.run({"dispatches", "ls", "--json"}).json();
  REQUIRE_FALSE(all["items"].empty());
  const std::string id = all["items"][0]["dispatch_id"];
  return home.run({"dispatches", "show", id, "--json"}).json()["dispatch"];
}

/// The next run goes on with the session of the run of `row`.
void check_resumed(const home_of_boyd& home, const std::string& executor, const json& row) {
  const auto again = run(home, executor);
  INFO(again.dump(1));
  CHECK(again["status"] == "done");
  CHECK(again["usage"]["session_id"] == row["usage"]["session_id"]);
}

} // namespace

TEST_CASE("agent CLI: the real claude", "[e2e][agent_cli][real]") {
  const auto program = real("BOYD_REAL_CLAUDE");
  if (program.empty())
    return;
  const temp_dir work;
  fs::create_directories(work.file("repo"));
  model_endpoint endpoint([&](const model_request& r) {
    if (r.method != "POST" || r.path.find("/v1/messages") == std::string::npos ||
        r.path.find("count_tokens") != std::string::npos)
      return json_answer({{"input_tokens", 10}}, r.method == "POST" ? 200 : 404);
    return messages(r, work.file("repo/hello.txt"));
  });
  const home_of_boyd home("version: 1\nkernels: [{agents: []}]\n");
  const auto executor =
      "          type: agent_cli\n          adapter: claude\n          program: " + program +
      "\n          model: claude-sonnet-4-5\n" +
      "          permission: acceptEdits\n          resume: agent\n          cwd: " +
      work.file("repo") + "\n          env:\n            HOME: " + work.path() +
      "\n            ANTHROPIC_BASE_URL: " + endpoint.origin() +
      "\n            ANTHROPIC_API_KEY: sk-nothing\n" +
      "            CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC: 1\n";
  const auto row = run(home, executor);
  INFO(row.dump(1));
  CHECK(row["status"] == "done");
  CHECK(row["output"] == "Done: hello.txt is written.");
  CHECK(row["usage"]["input_tokens"] == 320);
  CHECK(row["usage"]["cached_tokens"] == 80);
  CHECK(read_file(work.file("repo/hello.txt")) == "hello\n");
  check_resumed(home, executor, row);
}

TEST_CASE("agent CLI: the real codex", "[e2e][agent_cli][real]") {
  const auto program = real("BOYD_REAL_CODEX");
  if (program.empty())
    return;
  const temp_dir work;
  fs::create_directories(work.file("repo"));
  model_endpoint endpoint([&](const model_request& r) {
    return r.path.find("/responses") == std::string::npos ? json_answer(json::object(), 404)
                                                          : responses(r);
  });
  fs::create_directories(work.file(".codex"));
  write_file(work.file(".codex/config.toml"),
             "model = \"gpt-5\"\nmodel_provider = \"local\"\n[model_providers.local]\n"
             "name = \"local\"\nbase_url = \"" +
                 endpoint.base_url() +
                 "\"\nwire_api = \"responses\"\nenv_key = \"LOCAL_KEY\"\n"
                 "request_max_retries = 0\nstream_max_retries = 0\n");
  const home_of_boyd home("version: 1\nkernels: [{agents: []}]\n");
  const auto executor =
      "          type: agent_cli\n          adapter: codex\n          program: " + program +
      "\n          permission: danger-full-access\n" +
      "          resume: agent\n          cwd: " + work.file("repo") +
      "\n          env:\n            HOME: " + work.path() +
      "\n            LOCAL_KEY: k\n"
      // Its own sandbox does not work inside of another one.
      "        sandbox: {mode: auto}\n";
  const auto row = run(home, executor);
  INFO(row.dump(1));
  CHECK(row["status"] == "done");
  CHECK(row["summary"] == "Done: hello.txt is written.");
  CHECK(row["usage"]["input_tokens"] == 240);
  CHECK(row["usage"]["reasoning_tokens"] == 10);
  CHECK(read_file(work.file("repo/hello.txt")) == "hello\n");
  check_resumed(home, executor, row);
}

TEST_CASE("agent CLI: the real gemini", "[e2e][agent_cli][real]") {
  const auto program = real("BOYD_REAL_GEMINI");
  if (program.empty())
    return;
  const temp_dir work;
  fs::create_directories(work.file("repo"));
  fs::create_directories(work.file(".gemini"));
  write_file(work.file(".gemini/settings.json"),
             R"({"security":{"auth":{"selectedType":"gemini-api-key"}},)"
             R"("privacy":{"usageStatisticsEnabled":false},"general":{"enableAutoUpdate":false}})");
  model_endpoint endpoint([&](const model_request& r) {
    return r.path.find("enerateContent") == std::string::npos
               ? json_answer(json::object(), 404)
               : contents(r, work.file("repo/hello.txt"));
  });
  const home_of_boyd home("version: 1\nkernels: [{agents: []}]\n");
  const auto executor =
      "          type: agent_cli\n          adapter: gemini\n          program: " + program +
      "\n          model: gemini-2.5-pro\n          permission: auto_edit\n" +
      "          resume: agent\n          cwd: " + work.file("repo") +
      "\n          env:\n            HOME: " + work.path() +
      "\n            GEMINI_API_KEY: k\n            GOOGLE_GEMINI_BASE_URL: " + endpoint.origin() +
      "\n" + readable_modules(program);
  const auto row = run(home, executor);
  INFO(row.dump(1));
  CHECK(row["status"] == "done");
  CHECK(row["summary"] == "Done: hello.txt is written.");
  CHECK(row["usage"]["input_tokens"] == 240);
  CHECK(row["usage"]["cached_tokens"] == 80);
  CHECK(row["usage"]["output_tokens"] == 24);
  CHECK(row["usage"]["model"] == "gemini-2.5-pro");
  CHECK(read_file(work.file("repo/hello.txt")) == "hello\n");
  check_resumed(home, executor, row);
}

TEST_CASE("agent CLI: the real opencode", "[e2e][agent_cli][real]") {
  const auto program = real("BOYD_REAL_OPENCODE");
  if (program.empty())
    return;
  const bool asks = GENERATE(false, true);
  const temp_dir work;
  fs::create_directories(work.file("repo"));
  model_endpoint endpoint([&](const model_request& r) {
    return r.path.find("/chat/completions") == std::string::npos
               ? json_answer(json::object(), 404)
               : completions(r, work.file("repo/hello.txt"));
  });
  json settings{{"autoupdate", false},
                {"share", "disabled"},
                {"provider",
                 {{"local",
                   {{"npm", "@ai-sdk/openai-compatible"},
                    {"options", {{"baseURL", endpoint.base_url()}, {"apiKey", "k"}}},
                    {"models", {{"m", {{"name", "m"}}}}}}}}}};
  if (asks)
    settings["permission"] = {{"edit", "ask"}};
  fs::create_directories(work.file(".config/opencode"));
  write_file(work.file(".config/opencode/opencode.json"), settings.dump());
  const home_of_boyd home("version: 1\nkernels: [{agents: []}]\n");
  const auto executor =
      "          type: agent_cli\n          adapter: opencode\n          program: " + program +
      "\n          model: local/m\n          resume: agent\n          cwd: " + work.file("repo") +
      "\n          env:\n            HOME: " + work.path() +
      "\n            OPENCODE_DISABLE_MODELS_FETCH: 1\n" + readable_modules(program);
  const auto row = run(home, executor);
  INFO(row.dump(1));
  if (asks) {
    CHECK(row["status"] == "failed");
    CHECK(row["failure_class"] == "policy");
    CHECK_FALSE(fs::exists(work.file("repo/hello.txt")));
    return;
  }
  CHECK(row["status"] == "done");
  CHECK(row["output"] == "Done: hello.txt is written.");
  CHECK(row["usage"]["input_tokens"] == 240);
  CHECK(row["usage"]["cached_tokens"] == 80);
  CHECK(row["usage"]["reasoning_tokens"] == 10);
  CHECK(read_file(work.file("repo/hello.txt")) == "hello\n");
  check_resumed(home, executor, row);
}

} // namespace boyd::agent_cli_real_test
