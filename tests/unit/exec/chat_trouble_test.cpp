#include "boyd/exec/chat_targets.hpp"
#include "chat_talk.hpp"

namespace boyd::chat_trouble_test {

using namespace boyd;
using namespace boyd::exec;
using namespace boyd::exec::chat_test;
using Catch::Matchers::Contains;
using nlohmann::json;

namespace {

model::trouble of(model::trouble_kind kind, std::optional<milliseconds> wait = std::nullopt) {
  model::trouble t;
  t.kind = kind;
  t.what = "it is " + std::string(model::name_of(kind));
  t.retry_after = wait;
  return t;
}

} // namespace

TEST_CASE("chat: who is refused a place goes elsewhere at once, when there is somewhere") {
  const bool has_fallback = GENERATE(true, false);
  conductor c(has_fallback ? talk_of({"first", "second"}) : talk_of());
  const auto wanted = c.loop.begin();
  const auto refused = c.loop.on_place(find<effect::ask_place>(wanted)->call,
                                       of(model::trouble_kind::unavailable, 30s), 1);
  if (has_fallback) {
    REQUIRE(find<effect::ask_place>(refused) != nullptr);
    CHECK(find<effect::ask_place>(refused)->provider_id == "second");
    CHECK(find<effect::wait_repeat>(refused) == nullptr);
  } else {
    REQUIRE(find<effect::wait_repeat>(refused) != nullptr);
    CHECK(find<effect::wait_repeat>(refused)->delay == 30s);
  }
}

TEST_CASE("chat: a refused place leads only where the trouble is named") {
  auto talk = talk_of({"first", "second"});
  talk.targets[1].on = {"quota", "bad_answer"};
  conductor c(std::move(talk));
  const auto call = find<effect::ask_place>(c.loop.begin())->call;
  SECTION("one that is not") {
    CHECK(find<effect::wait_repeat>(
              c.loop.on_place(call, of(model::trouble_kind::unavailable), 1)) != nullptr);
  }
  SECTION("answers that cannot be read") {
    const auto next = c.loop.on_place(call, of(model::trouble_kind::bad_answer, 30s), 1);
    REQUIRE(find<effect::ask_place>(next) != nullptr);
    CHECK(find<effect::ask_place>(next)->provider_id == "second");
  }
}

TEST_CASE("chat: a wrong key leads to the fallback that names it") {
  auto talk = talk_of({"first", "second"});
  talk.targets[1].on = {"unauthorized"};
  conductor c(std::move(talk));
  c.start();
  const auto next = c.end_with(401, R"({"error":{"message":"no such key"}})");
  REQUIRE(find<effect::ask_place>(next) != nullptr);
  CHECK(find<effect::ask_place>(next)->provider_id == "second");
}

TEST_CASE("chat: the pause that a provider asks for stands in the usage") {
  conductor c(talk_of());
  // More than is waited for inside of a run.
  c.loop.on_place(find<effect::ask_place>(c.loop.begin())->call,
                  of(model::trouble_kind::rate_limited, 5min), 1);
  REQUIRE(c.loop.over());
  const auto usage = c.loop.usage();
  CHECK(usage.retry_after_ms == 300'000);
  // Whose place was refused is known, although nothing was called.
  CHECK(usage.provider == "first");
  CHECK(usage.model == "m");
  CHECK(usage.calls == 0);
}

TEST_CASE("chat: a fallback without tools is left out of a run that needs them, and it is said") {
  auto talk = talk_of({"first", "plain", "second"});
  talk.targets[1].provider.capabilities.tools = false;
  const bool needs_tools = GENERATE(true, false);
  if (needs_tools)
    talk.tools_json = R"([{"type":"function","function":{"name":"read_file"}}])";
  conductor c(std::move(talk));
  const auto begin = c.note(c.loop.begin());
  CHECK(count<effect::warn>(begin) == (needs_tools ? 1 : 0));
  const auto next = c.note(c.loop.on_place(find<effect::ask_place>(begin)->call,
                                           of(model::trouble_kind::unavailable), 1));
  const auto* place = find<effect::ask_place>(next);
  REQUIRE(place != nullptr);
  CHECK(place->provider_id == (needs_tools ? "second" : "plain"));
  if (!needs_tools)
    return;
  CHECK(c.record.at(1)["event"] == "left_out");
  CHECK(c.record.at(1)["provider"] == "plain");
  c.loop.on_place(place->call, of(model::trouble_kind::quota), 1);
  CHECK_THAT(c.loop.outcome().error, Contains("fallback plain/m was skipped"));
}

TEST_CASE("chat: an empty answer is asked for once more, and is no success") {
  conductor c(talk_of());
  c.start();
  const auto* const nothing = GENERATE("", " \n ");
  c.to_call(c.end_with(says(nothing)));
  // What is empty is not sent back.
  REQUIRE(c.request["messages"].size() == 3);
  CHECK(c.request["messages"][2]["role"] == "user");
  CHECK_THAT(c.request["messages"][2]["content"].get<std::string>(), Contains("empty"));
  SECTION("then there is one") {
    c.end_with(says("all is well"));
    CHECK(c.loop.outcome().execution == execution_verdict::succeeded);
    CHECK(c.loop.outcome().text == "all is well");
  }
  SECTION("or not") {
    c.end_with(says(nothing));
    REQUIRE(c.loop.over());
    CHECK(c.loop.outcome().execution == execution_verdict::failed);
    CHECK(c.loop.outcome().failure == failure_class::transient);
    CHECK(c.loop.outcome().end == chat_end::bad_answer);
    CHECK_THAT(c.loop.outcome().error, Contains("empty"));
  }
}

TEST_CASE("chat: what the provider counts stands for what was estimated") {
  auto talk = talk_of();
  talk.budget.tokens = 9000;
  conductor c(std::move(talk));
  c.start();
  // Some words for us, 4,000 tokens for the provider.
  auto dear = wants({{"read_file", "{}"}});
  dear["usage"] = {{"prompt_tokens", 4000}, {"completion_tokens", 100}};
  auto next = c.end_with(dear);
  c.to_call(c.note(c.loop.on_tool_result(find<effect::run_tool>(next)->step, "x", false)));
  CHECK(c.request.value("max_tokens", c.request.value("max_completion_tokens", 0)) < 900);
  next = c.end_with(dear);
  const auto end = c.note(c.loop.on_tool_result(find<effect::run_tool>(next)->step, "x", false));
  CHECK(find<effect::ask_place>(end) == nullptr);
  CHECK(c.loop.outcome().end == chat_end::budget);
  CHECK(c.loop.usage().input_tokens == 8000);
}

TEST_CASE("chat: a run is warned of its budget of turns") {
  auto talk = talk_of();
  talk.budget.turns = 5;
  conductor c(std::move(talk));
  c.start();
  for (int turn = 1; turn <= 4; ++turn) {
    const auto next = c.end_with(wants({{"read_file", "{}"}}));
    const auto* warning = find<effect::warn>(next);
    REQUIRE((warning != nullptr) == (turn == 4));
    if (warning != nullptr)
      CHECK(warning->text == "the budget of the run (turns) is used up to 80 %");
    c.to_call(c.note(c.loop.on_tool_result(find<effect::run_tool>(next)->step, "x", false)));
  }
}

TEST_CASE("chat: a cut answer names the limit that cut it") {
  auto talk = talk_of();
  std::string wanted;
  SECTION("none was set") {
    wanted = "8192 (max_output_tokens is not set)";
  }
  SECTION("the executor's") {
    talk.max_output_tokens = 300;
    wanted = "300 (max_output_tokens)";
  }
  SECTION("the budget's") {
    talk.budget.tokens = 150;
    wanted = "(the rest of budget.run.tokens)";
  }
  conductor c(std::move(talk));
  c.start();
  c.end_with(answer({{"role", "assistant"}, {"content", "once upon"}}, "length"));
  CHECK_THAT(c.loop.outcome().error, Contains(wanted));
}

TEST_CASE("chat: what it waits for is told in words") {
  conductor c(talk_of());
  CHECK(c.loop.doing().empty());
  const auto begin = c.loop.begin();
  CHECK(c.loop.waits_for_place());
  CHECK(c.loop.doing() == "waiting for provider first");
  c.loop.on_place(1, {}, 1);
  CHECK_FALSE(c.loop.waits_for_place());
  CHECK(c.loop.doing() == "waiting for the budgets");
  c.loop.on_reserved(1, granted());
  c.call = 1;
  CHECK(c.loop.doing() == "waiting for an answer from m at provider first");
  c.loop.on_head(1, {200, {{"content-type", "application/json"}}});
  CHECK(c.loop.doing() == "in an answer of m at provider first");
  const bool asks = GENERATE(true, false);
  c.end_with(wants({{asks ? "run_command" : "read_file", "{}"}}));
  CHECK(c.loop.doing() == (asks ? "no approval yet for run_command" : "in the tool read_file"));
  c.loop.stop("time is over");
  CHECK(c.loop.doing().empty());
}

TEST_CASE("chat: an answer that is no JSON is said once to be none") {
  auto talk = talk_of();
  talk.schema_json = R"({"type":"object"})";
  conductor c(std::move(talk));
  c.start();
  c.to_call(c.end_with(says("plain words")));
  CHECK_THAT(c.request["messages"].back()["content"].get<std::string>(),
             Contains("the answer is not JSON: the text has no JSON value"));
}

TEST_CASE("field case 07: the one JSON value behind reasoning or in a fence is the answer") {
  for (const auto* text : {"<think>hm {\"verdict\":\"red\"}</think>\n{\"verdict\":\"green\"}",
                           "```json\n{\"verdict\":\"green\"}\n```"}) {
    auto talk = talk_of();
    talk.schema_json = R"({"type":"object","required":["verdict"]})";
    conductor c(std::move(talk));
    c.start();
    c.end_with(says(text));
    const auto& over = c.loop.outcome();
    CHECK(over.execution == execution_verdict::succeeded);
    CHECK(over.text == R"({"verdict":"green"})");
  }
}

TEST_CASE("a chat that announces a tool call and makes none is no success") {
  for (const auto* text :
       {"<tool_call>{\"name\":\"read_file\",\"arguments\":{}}</tool_call>",
        "```json\n{\"name\":\"read_file\",\"arguments\":{\"path\":\"a\"}}\n```"}) {
    auto talk = talk_of();
    talk.tools_json = "[]";
    conductor c(std::move(talk));
    c.start();
    c.to_call(c.end_with(says(text)));
    c.end_with(says(text));
    const auto& over = c.loop.outcome();
    CHECK(over.execution == execution_verdict::failed);
    CHECK_THAT(over.error, Contains("tool call written as text"));
  }
}

TEST_CASE("case W4: usage beyond what a call can have used is capped, and said") {
  for (const double claimed : {1e30, 1e12, 5e6}) {
    conductor c(talk_of());
    c.start();
    auto body = says("fine");
    body["usage"]["completion_tokens"] = claimed;
    body["usage"]["prompt_tokens"] = claimed;
    const auto end = c.end_with(body);
    const auto* settled = find<effect::settle_spend>(end);
    REQUIRE(settled != nullptr);
    CHECK(settled->what.used.input < 100'000);
    CHECK(settled->what.used.output <= 1'000'000);
    const auto* warning = find<effect::warn>(end);
    REQUIRE(warning != nullptr);
    CHECK_THAT(warning->text, Contains("more than the call can have used"));
    CHECK(c.loop.outcome().execution == execution_verdict::succeeded);
  }
}

TEST_CASE("case W11: a key is the first line of its file") {
  CHECK(key_in("sk-1\n# of March\n") == "sk-1");
  CHECK(key_in("\n  sk-1  \r\nsecond") == "sk-1");
  CHECK(key_in("").empty());
}

TEST_CASE("chat: what is to be mended in an answer is told once") {
  auto talk = talk_of();
  int asked = 0;
  talk.correct = [&](const std::string& answer) {
    ++asked;
    return answer == "first" ? std::string("mend it") : std::string();
  };
  conductor c(std::move(talk));
  c.start();
  c.to_call(c.end_with(says("first")));
  CHECK(c.request["messages"].back()["content"] == "mend it");
  c.end_with(says("second"));
  CHECK(c.loop.outcome().execution == execution_verdict::succeeded);
  CHECK(c.loop.outcome().text == "second");
  CHECK(asked == 1);
}

TEST_CASE("chat: a sound answer stands where no corrected one comes") {
  auto talk = talk_of();
  talk.correct = [](const std::string&) { return std::string("mend it"); };
  conductor c(std::move(talk));
  c.start();
  c.to_call(c.end_with(says("first")));
  const auto end = c.end_with(400, R"({"error":{"message":"no"}})");
  CHECK(find<effect::talk_over>(end) != nullptr);
  CHECK(c.loop.outcome().execution == execution_verdict::succeeded);
  CHECK(c.loop.outcome().failure == failure_class::none);
  CHECK(c.loop.outcome().text == "first");
  CHECK(c.record.back()["event"] == "kept");
}

} // namespace boyd::chat_trouble_test
