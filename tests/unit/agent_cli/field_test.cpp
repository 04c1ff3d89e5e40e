#include "attempt_bench.hpp"
#include "support.hpp"

#include <csignal>

/// Inputs from the field: what programs printed and how they ended.
namespace boyd::agent_cli_field_test {

using namespace boyd;
using namespace boyd::agent_cli_testing;
using v = execution_verdict;
using f = failure_class;

namespace {

std::string result_event(const std::string& answer) {
  return R"({"type":"result","subtype":"success","is_error":false,"result":")" + answer +
         R"(","total_cost_usd":0.01,"usage":{"input_tokens":7,"output_tokens":3}})";
}

config::cli_adapter parsed_as(config::cli_adapter::parser_t parser) {
  auto adapter = built_in("claude").adapter;
  adapter.parser = parser;
  return adapter;
}

constexpr auto jsonl = config::cli_adapter::parser_t::jsonl;
constexpr auto document = config::cli_adapter::parser_t::json;
constexpr auto plain = config::cli_adapter::parser_t::text;

} // namespace

TEST_CASE("field case 16: done, then ended by its own clean-up, is done", "[agent_cli]") {
  struct ending {
    int code;
    int signal;
    std::string told;
  };
  for (const auto& end :
       {ending{143, 0, "exit code 143: hook failed"}, ending{1, 0, "exit code 1: hook failed"},
        ending{-1, SIGTERM, "killed by signal 15 (Terminated): hook failed"},
        ending{-1, SIGSEGV, "killed by signal 11"}}) {
    for (const auto& adapter : {"claude", "codex", "gemini", "opencode", "goose"}) {
      INFO(adapter << ' ' << end.told);
      attempt_bench b(adapter);
      b.print(transcript(std::string(adapter) + "_success"));
      b.complain("hook failed\n");
      const auto& o = b.exit(end.code, end.signal);
      CHECK(is_success(o));
      CHECK(o.error.empty());
      CHECK(o.usage.ended.starts_with(end.told));
    }
  }
}

TEST_CASE("field case 16: what a program does after its final event does not undo it",
          "[agent_cli]") {
  SECTION("its end is not reported") {
    attempt_bench b("claude");
    b.print(transcript("claude_success"));
    b.take(b.core.on_lost_exit(0));
    REQUIRE(b.outcome);
    CHECK(is_success(*b.outcome));
  }
  SECTION("the event has no line end, and the output stays open") {
    for (const auto parser : {jsonl, document}) {
      attempt_bench b(parsed_as(parser));
      b.print(result_event("ok"));
      b.wait(61s); // 30 s after it was seen
      CHECK(b.signals == std::vector<int>{SIGTERM});
      const auto& o = b.exit(-1, SIGKILL);
      INFO(o.error);
      CHECK(is_success(o));
      CHECK(o.output == "ok");
    }
  }
  SECTION("it comes while the program is ended for being late") {
    attempt_bench b("claude");
    b.print("{\"type\":\"system\"}\n");
    b.wait(121s);
    CHECK(b.signals == std::vector<int>{SIGTERM});
    b.print(result_event("ok") + "\n");
    CHECK(is_success(b.exit(143)));
  }
  SECTION("the node stops") {
    attempt_bench b("claude");
    b.print(result_event("ok") + "\n");
    b.take(b.core.cancel(exec::cancel_reason::shutdown, b.now));
    CHECK(is_success(b.exit(-1, SIGTERM)));
    attempt_bench taken("claude");
    taken.print(result_event("ok") + "\n");
    taken.take(taken.core.cancel(exec::cancel_reason::lease_lost, taken.now));
    CHECK(taken.exit(-1, SIGKILL).execution == v::cancelled);
  }
  SECTION("without a final event the exit code says what happened") {
    attempt_bench b("claude");
    b.print("{\"type\":\"system\"}\n");
    CHECK(b.exit(143).execution == v::indeterminate);
  }
}

TEST_CASE("field case 17: a final event that is no clean JSON is read", "[agent_cli]") {
  const std::string replaced = "\xEF\xBF\xBD";
  const auto good = result_event("A@B");
  const auto with = [&](const std::string& bytes) {
    auto text = good;
    return text.replace(text.find('@'), 1, bytes);
  };
  struct input {
    std::string text;
    std::string answer;
  };
  const std::vector<input> inputs{
      {with("\\ud83d"), "A" + replaced + "B"},
      {with("\\ude00"), "A" + replaced + "B"},
      {with("\\ud83d\\ud83d\\ude00"), "A" + replaced + "😀B"},
      {with("\xE9"), "A" + replaced + "B"},
      {with("\xED\xA0\xBD"), "A" + replaced + replaced + replaced + "B"},
      {with("\t"), "A\tB"},
      {with("\\x"), "A\\xB"},
      {std::string(good).replace(good.find("0.01"), 4, "NaN"), "A@B"},
      {std::string(good).replace(good.find("0.01"), 4, "-Infinity"), "A@B"},
      {"\x1b[32m\x1b]0;title\a" + good + "\x1b[0m", "A@B"},
      {"\xEF\xBB\xBF" + good, "A@B"},
      {good + "\r", "A@B"},
      {"result: " + good + " (done)", "A@B"},
      {"[info] {x} " + good, "A@B"},
      {R"({"type":"system"})" + good, "A@B"}};
  for (const auto parser : {jsonl, document}) {
    for (const auto& one : inputs) {
      INFO(one.text);
      for (const std::string ending : {"\n", "", "\r\n"}) {
        const auto r = read_all(parsed_as(parser), one.text + ending, 5);
        CHECK(r.final);
        CHECK(r.text == one.answer);
        CHECK(r.output == 3);
        CHECK(r.no_json == 0);
      }
    }
  }
  // What is not whole is no event.
  CHECK_FALSE(read_all(parsed_as(jsonl), good.substr(0, good.size() - 1) + "\n").final);
}

TEST_CASE("field case 17: a final event inside of an event that is broken is none", "[agent_cli]") {
  const auto r = read_all(
      parsed_as(jsonl), R"({"type":"relay","event":)" + result_event("fine") + ", \"x\n", 1u << 16);
  CHECK_FALSE(r.final);
}

TEST_CASE("field case 17: long texts are cut, not the event that holds them", "[agent_cli]") {
  for (const auto parser : {jsonl, document}) {
    for (const std::string unit : {"x", "é", "\\\"", "\\ud83d\\ude00"}) {
      INFO(unit);
      if (parser == document && unit != "x")
        continue; // the same reading
      std::string answer;
      while (answer.size() < (1u << 20) + (1u << 18))
        answer += unit;
      const auto r = read_all(parsed_as(parser), result_event(answer) + "\n", 1u << 16);
      CHECK(r.final);
      CHECK(r.output == 3);
      CHECK(r.cut == 1);
      CHECK(r.too_long == 0);
      CHECK(r.text.size() > (100u << 10));
      // Several long texts before it.
      const auto many = R"({"log":")" + answer + R"(","more":")" + answer +
                        R"(","type":"result",)" + R"("result":"short","x":")" + answer + "\"}\n";
      const auto m = read_all(parsed_as(parser), many, 1u << 16);
      CHECK(m.final);
      CHECK(m.text == "short");
    }
  }
  attempt_bench b("claude");
  b.print(result_event(std::string(5u << 20, 'x')) + "\n");
  const auto& o = b.exit(0);
  CHECK(is_success(o));
  CHECK(o.usage.cut_events == 1);
}

TEST_CASE("field case 18: success without a word is none", "[agent_cli]") {
  for (const std::string answer :
       {R"("")", "null", R"(" \n\t")", R"("\u200b\u00a0")", "{}", "[]", R"("\u001b[0m")"}) {
    INFO(answer);
    attempt_bench b("claude");
    b.print(R"({"type":"result","subtype":"success","is_error":false,"result":)" + answer + "}\n");
    const auto& o = b.exit(0);
    CHECK(o.execution == v::failed);
    CHECK(o.failure == f::transient); // as for a chat
    CHECK(o.error == "it ended without an answer");
  }
  const std::vector<std::pair<std::string, std::string>> silent{
      {"claude", R"({"type":"result","subtype":"success","is_error":false})"},
      {"codex", R"({"type":"turn.completed","usage":{"input_tokens":1,"output_tokens":0}})"},
      {"gemini", R"({"type":"result","status":"success","stats":{}})"},
      {"goose", R"({"type":"complete"})"},
      {"opencode", R"({"type":"step_finish","part":{"reason":"stop"}})"}};
  for (const auto& [adapter, event] : silent) {
    INFO(adapter);
    attempt_bench b(adapter);
    b.print(event + "\n");
    CHECK_FALSE(is_success(b.exit(0)));
  }
  attempt_bench b(parsed_as(plain));
  b.print(" \n");
  CHECK_FALSE(is_success(b.exit(0)));
}

} // namespace boyd::agent_cli_field_test
