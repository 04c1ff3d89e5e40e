#include "program.hpp"
#include "support/model_answers.hpp"
#include "support/pch.hpp"

#include <cstdlib>
#include <filesystem>

using namespace boyd::test;
using nlohmann::json;
namespace fs = std::filesystem;

// The real programs, when the environment names them (BOYD_REAL_CLAUDE, BOYD_REAL_CODEX), against
// an endpoint on loopback. `npm install @anthropic-ai/claude-code @openai/codex` brings them.

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
  const auto again = run(home, executor);
  INFO(again.dump(1));
  CHECK(again["status"] == "done");
  CHECK(again["usage"]["session_id"] == row["usage"]["session_id"]);
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
  const auto again = run(home, executor);
  INFO(again.dump(1));
  CHECK(again["status"] == "done");
  CHECK(again["usage"]["session_id"] == row["usage"]["session_id"]);
}
