#include "boyd/core/text.hpp"
#include "boyd/queue/usage_json.hpp"
#include "support.hpp"

#include <nlohmann/json.hpp>
#include <rapidcheck.h>

namespace boyd::reader_test {

using namespace boyd;
using namespace boyd::agent_cli_testing;

TEST_CASE("claude: a recorded run is read whole", "[agent_cli]") {
  const auto r = read_all(built_in("claude").adapter, transcript("claude_success"));
  CHECK(r.final);
  CHECK_FALSE(r.failed);
  CHECK(r.text == "Done: hello.txt is written.");
  CHECK(r.session == "9344e76b-949a-40ba-953c-5100146a9cae");
  CHECK(r.model == "claude-sonnet-4-5");
  CHECK(r.cost == 1374);
  CHECK(r.turns == 2);
  CHECK(r.input == 320); // with the 80 that came from the cache
  CHECK(r.cached == 80);
  CHECK(r.output == 42);
  CHECK(r.denied == 0);
  CHECK(r.no_json == 0);
}

TEST_CASE("claude: denials and errors are read beside the answer", "[agent_cli]") {
  const auto adapter = built_in("claude").adapter;
  const auto denied = read_all(adapter, transcript("claude_denied"));
  CHECK(denied.final);
  CHECK_FALSE(denied.failed);
  CHECK(denied.denied == 1);
  CHECK(denied.denials == std::vector<std::string>{"Bash"});
  const auto failed = read_all(adapter, transcript("claude_error"));
  CHECK(failed.final);
  CHECK(failed.failed); // though its subtype is success
  CHECK(failed.error == "API Error: 400 the local endpoint refuses");
  CHECK_FALSE(failed.failure);
  const auto limit =
      read_all(adapter, R"({"type":"result","subtype":"error_max_turns","is_error":false})"
                        "\n");
  CHECK(limit.failed);
  CHECK(limit.error == "error_max_turns");
  const auto busy = read_all(
      adapter, R"({"type":"result","is_error":true,"api_error_status":529,"result":"Overloaded"})");
  CHECK(busy.failure == failure_class::transient);
}

TEST_CASE("claude: repeating a call is no progress, and no end", "[agent_cli]") {
  const auto adapter = built_in("claude").adapter;
  exec::cli_reader reader(adapter);
  CHECK_FALSE(reader.append(
      R"({"type":"system","subtype":"api_retry","attempt":1,"error":"authentication_failed"})"
      "\n"));
  CHECK_FALSE(reader.has_begun());
  CHECK(reader.append("{\"type\":\"assistant\"}\n"));
  CHECK(reader.has_begun());
  const auto r = read_all(adapter, transcript("claude_retrying"));
  CHECK_FALSE(r.final);
  CHECK(r.error == "authentication_failed");
}

TEST_CASE("codex: recorded runs are read whole", "[agent_cli]") {
  const auto adapter = built_in("codex").adapter;
  const auto r = read_all(adapter, transcript("codex_success"));
  CHECK(r.final);
  CHECK_FALSE(r.failed);
  CHECK(r.text == "Done: hello.txt is written.");
  CHECK(r.session == "01a2048b-9cb9-7732-a77e-4c3034aef391");
  CHECK(r.input == 240);
  CHECK(r.cached == 80);
  CHECK(r.output == 24);
  CHECK(r.reasoning == 10);
  const auto failed = read_all(adapter, transcript("codex_error"));
  CHECK(failed.final);
  CHECK(failed.failed);
  CHECK(failed.error.find("the local endpoint refuses") != std::string::npos);
  const auto closed = read_all(adapter, transcript("codex_unauthorized"));
  CHECK(closed.failure == failure_class::environment);
}

TEST_CASE("gemini, goose, opencode: parts of an answer are put together", "[agent_cli]") {
  const std::string answer = "Done: hello.txt is written.";
  const auto gemini = read_all(built_in("gemini").adapter, transcript("gemini_success"));
  CHECK(gemini.final);
  CHECK(gemini.text == answer);
  CHECK(gemini.model == "gemini-2.5-pro");
  CHECK(gemini.input == 240);
  CHECK(gemini.cached == 80);
  const auto no_key = read_all(built_in("gemini").adapter, transcript("gemini_error"));
  CHECK(no_key.failed);
  CHECK(no_key.error == "no credentials");
  const auto goose = read_all(built_in("goose").adapter, transcript("goose_success"));
  CHECK(goose.final);
  CHECK(goose.text == answer);
  CHECK(goose.output == 12);
  const auto refused = read_all(built_in("goose").adapter, transcript("goose_error"));
  CHECK(refused.failed);
  CHECK_FALSE(refused.final);
  const auto opencode = read_all(built_in("opencode").adapter, transcript("opencode_success"));
  CHECK(opencode.final);
  CHECK(opencode.text == answer);
  CHECK(opencode.session == "ses_0001");
  CHECK(opencode.cost == 1500); // its steps tell their own alone
  CHECK(opencode.input == 240);
  CHECK(opencode.cached == 80);
  CHECK(opencode.output == 42);
  CHECK(opencode.reasoning == 5);
  const auto rejected = read_all(built_in("opencode").adapter, transcript("opencode_denied"));
  CHECK(rejected.denials == std::vector<std::string>{"bash"});
  const auto ended = read_all(built_in("opencode").adapter, transcript("opencode_rejected"));
  CHECK(ended.denials == std::vector<std::string>{"write"});
  CHECK_FALSE(ended.final);
}

TEST_CASE("a transcript without its last line has no final event", "[agent_cli]") {
  for (const std::string name : {"claude", "codex", "gemini", "goose"}) {
    INFO(name);
    auto text = transcript(name + "_success");
    text.pop_back();
    text.resize(text.rfind('\n') + 1);
    CHECK_FALSE(read_all(built_in(name).adapter, text).final);
  }
}

TEST_CASE("portions play no part", "[agent_cli]") {
  for (const std::string name : {"claude", "codex", "gemini", "goose", "opencode"}) {
    const auto adapter = built_in(name).adapter;
    const auto text = transcript(name + "_success");
    const auto whole = exec::usage_of(read_all(adapter, text, text.size()), name);
    for (const std::size_t step : {std::size_t{1}, std::size_t{13}, std::size_t{4096}})
      CHECK(exec::usage_of(read_all(adapter, text, step), name) == whole);
  }
}

TEST_CASE("lines that are no events are counted and passed over", "[agent_cli]") {
  const auto adapter = built_in("codex").adapter;
  std::string text = "a warning\n{\"half\": \n[1,2]\n\n\xff\xfe\n" + std::string(300, '[') + "\n";
  text += std::string(10u << 20, 'x') + "\n";
  text += transcript("codex_success");
  const auto r = read_all(adapter, text, 64u << 10);
  CHECK(r.final);
  CHECK(r.no_json == 5);
  CHECK(r.too_long == 1);
  exec::cli_reader reader(adapter);
  CHECK_FALSE(reader.append("no event\n"));
  CHECK(reader.append(std::string(exec::event_most_bytes + 1, 'x'))); // something moves on
}

TEST_CASE("a final event in a line too long to look into is none", "[agent_cli]") {
  std::string line = R"({"type":"result","result":[1)";
  while (line.size() <= exec::event_most_bytes)
    line += ",1111111111111111111111111111111111111111111111111111111111111111";
  const auto r = read_all(built_in("claude").adapter, line + "]}\n", 64u << 10);
  CHECK_FALSE(r.final);
  CHECK(r.too_long == 1);
}

TEST_CASE("what is kept is bounded", "[agent_cli]") {
  const auto adapter = built_in("gemini").adapter;
  exec::cli_reader reader(adapter);
  const auto part = R"({"type":"message","role":"assistant","content":")" +
                    std::string(512u << 10, 'y') + "\"}\n";
  for (int i = 0; i < 4; ++i)
    reader.append(part);
  reader.finish();
  CHECK(reader.report().text.size() == exec::event_text_bytes);
  CHECK(reader.report().text_cut);
  std::string denials = R"({"type":"result","permission_denials":[)";
  for (int i = 0; i < 100; ++i)
    denials += (i > 0 ? "," : "") + (R"({"tool_name":"T)" + std::to_string(i) + "\"}");
  const auto r = read_all(built_in("claude").adapter, denials + "]}");
  CHECK(r.denied == 100);
  CHECK(r.denials.size() == exec::denial_names);
}

TEST_CASE("numbers that are none change nothing", "[agent_cli]") {
  const auto adapter = built_in("claude").adapter;
  const auto r = read_all(
      adapter,
      R"({"type":"result","total_cost_usd":"much","num_turns":-3,"usage":{"input_tokens":1e9,)"
      R"("cache_read_input_tokens":18446744073709551615,"output_tokens":null}})");
  CHECK(r.final);
  CHECK(r.cost == 0);
  CHECK(r.turns == 0);
  CHECK(r.output == 0);
  CHECK(r.input == r.cached);
  const auto huge = read_all(adapter, R"({"type":"result","total_cost_usd":1e300})");
  CHECK(huge.cost == 0);
  CHECK_FALSE(huge.told_figures);
  CHECK(read_all(adapter, R"({"type":"result","total_cost_usd":9000})").told_figures);
}

TEST_CASE("one JSON document, and plain text", "[agent_cli]") {
  const auto mine = [](const std::string& parser, const std::string& events) {
    return executor_of(
               load_text(with_executor("{type: agent_cli, adapter: mine}",
                                       "adapters:\n  - name: mine\n    argv: [x]\n    parser: " +
                                           parser + "\n" + events)))
        .adapter;
  };
  const auto json = mine("json", "    events:\n      - when: {/ok: true}\n        final: true\n"
                                 "        text: [/a~1b/1]\n");
  const auto r = read_all(json, "a warning\n{\"ok\": true,\n \"a/b\": [0, \"yes\"]}\n");
  CHECK(r.final);
  CHECK(r.text == "yes");
  CHECK_FALSE(read_all(json, "{\"ok\": true").final);
  CHECK_FALSE(read_all(json, "").final);
  CHECK_FALSE(read_all(json, "\n").final);
  const auto flood = read_all(json, std::string(exec::event_most_bytes + 1, ' '), 1u << 16);
  CHECK(flood.too_long == 1);
  const auto text = mine("text", "");
  exec::cli_reader reader(text);
  CHECK_FALSE(reader.has_begun());
  CHECK(reader.append("x"));
  CHECK(reader.has_begun());
}

TEST_CASE("any bytes are read", "[agent_cli][property]") {
  std::vector<config::cli_adapter> all;
  for (const std::string name : {"claude", "codex", "gemini", "goose", "opencode"})
    all.push_back(built_in(name).adapter);
  const auto base = transcript("claude_success");
  CHECK(rc::check("a transcript with bytes changed", [&] {
    auto text = base;
    const auto changes = *rc::gen::inRange(0, 20);
    for (int i = 0; i < changes; ++i)
      text[*rc::gen::inRange<std::size_t>(0, text.size())] = *rc::gen::arbitrary<char>();
    for (const auto& adapter : all) {
      const auto r = read_all(adapter, text, 97);
      RC_ASSERT(r.cost >= 0 && r.input >= 0 && r.output >= 0);
      RC_ASSERT(sanitize_utf8(r.text) == r.text);
      RC_ASSERT(nlohmann::json::accept(queue::usage_json(exec::usage_of(r, "x"))));
    }
  }));
}

} // namespace boyd::reader_test
