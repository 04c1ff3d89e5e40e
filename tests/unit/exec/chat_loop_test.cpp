#include "boyd/core/sha256.hpp"
#include "chat_talk.hpp"

namespace boyd::chat_loop_test {

using namespace boyd;
using namespace boyd::exec;
using namespace boyd::exec::chat_test;
using Catch::Matchers::Contains;
using nlohmann::json;

TEST_CASE("chat: an answer without tools is the end") {
  conductor c(talk_of());
  c.start();
  CHECK(c.request["model"] == "m");
  CHECK(c.request["messages"].size() == 2);
  const auto end = c.end_with(says("all is well"));
  CHECK(find<effect::talk_over>(end) != nullptr);
  CHECK(c.loop.over());
  CHECK(c.loop.outcome().execution == execution_verdict::succeeded);
  CHECK(c.loop.outcome().text == "all is well");
  const auto* paid = find<effect::settle_spend>(end);
  REQUIRE(paid != nullptr);
  CHECK(paid->what.used.input == 100);
  CHECK(paid->what.used.cached == 40);
  // 60 at full price, 40 at half, 10 at double: 60 + 20 + 20 millionths.
  CHECK(paid->what.used.cost == 100);
  const auto usage = c.loop.usage();
  CHECK(usage.calls == 1);
  CHECK(usage.input_tokens == 100);
  CHECK(usage.cost_microusd == 100);
  const auto* left = find<effect::leave_place>(end);
  REQUIRE(left != nullptr);
  CHECK_FALSE(left->trouble.has_value());
}

TEST_CASE("chat: what its model counted elsewhere corrects the estimate of the first call") {
  conductor plain(talk_of());
  const auto asked = *find<effect::ask_place>(plain.loop.begin());
  const auto first = plain.loop.on_place(asked.call, {}, 1);
  const auto estimate = find<effect::reserve>(first)->what.most.input;
  REQUIRE(estimate > 0);

  conductor c(talk_of());
  const auto begun = c.loop.begin();
  const auto reserving = c.loop.on_place(find<effect::ask_place>(begun)->call, {}, 3);
  CHECK(find<effect::reserve>(reserving)->what.most.input == 3 * estimate);

  conductor whole(talk_of());
  whole.start();
  const auto end = whole.end_with(wants({{"read_file", R"({"path":"a"})"}}));
  const auto* left = find<effect::leave_place>(end);
  REQUIRE(left != nullptr);
  REQUIRE(left->counted.has_value());
  CHECK(left->counted->estimated == estimate);
  CHECK(left->counted->counted == 100);
  // Its own count stands from then on, and is told once.
  const auto more =
      whole.note(whole.loop.on_tool_result(find<effect::run_tool>(end)->step, "text", false));
  const auto again = whole.note(whole.loop.on_place(find<effect::ask_place>(more)->call, {}, 3));
  CHECK(find<effect::reserve>(again)->what.most.input < 200);

  auto poor = talk_of();
  poor.budget.tokens = 2 * estimate + 1000;
  conductor over(std::move(poor));
  const auto place = *find<effect::ask_place>(over.loop.begin());
  const auto refused = over.loop.on_place(place.call, {}, 4000);
  CHECK(find<effect::leave_place>(refused) != nullptr);
  CHECK(find<effect::reserve>(refused) == nullptr);
  CHECK(over.loop.outcome().failure == failure_class::policy);
}

TEST_CASE("chat: tools run one after another, a denied one is answered with its reason") {
  conductor c(talk_of());
  c.start();
  auto next = c.end_with(
      wants({{"read_file", R"({"path":"a"})"}, {"write_file", "{}"}, {"list_dir", "{}"}}));
  const auto* first = find<effect::run_tool>(next);
  REQUIRE(first != nullptr);
  CHECK(first->call.name == "read_file");
  CHECK(c.loop.waits_for_others());
  next = c.note(c.loop.on_tool_result(first->step, "text of a", false));
  const auto* second = find<effect::run_tool>(next);
  REQUIRE(second != nullptr);
  CHECK(second->call.name == "list_dir");
  CHECK(c.loop.on_tool_result(first->step, "late", false).empty());
  c.to_call(c.note(c.loop.on_tool_result(second->step, "no such directory", true)));
  const auto& messages = c.request["messages"];
  REQUIRE(messages.size() == 6);
  CHECK(messages[2]["extra"] == 1); // the provider's own words go back as they came
  CHECK(messages[3]["content"] == "text of a");
  CHECK_THAT(messages[4]["content"].get<std::string>(), Contains("denied: rule of the test"));
  CHECK(messages[5]["tool_call_id"] == "t2");
  c.end_with(says("done"));
  CHECK(c.loop.outcome().execution == execution_verdict::succeeded);
  CHECK(c.loop.acted());
  // The decision stands in the record before anything comes of it.
  CHECK(c.record.at(2)["event"] == "action");
  CHECK(c.record.at(2)["decision"] == "allow");
  CHECK(c.record.at(2)["arguments_sha256"] == sha256_hex(R"({"path":"a"})"));
  CHECK(c.record.at(3)["result"] == "text of a");
  CHECK(c.record.at(4)["decision"] == "deny");
  CHECK(c.record.at(5)["ok"] == false);
  CHECK(c.loop.usage().denied == 1);
}

TEST_CASE("chat: arguments beyond their limit are refused and not sent back") {
  conductor c(talk_of());
  c.start();
  const auto huge = json{{"path", "a"}, {"content", std::string(300u << 10, 'x')}}.dump();
  // No judge is asked, no tool runs.
  c.to_call(c.note(c.end_with(wants({{"read_file", huge}}))));
  const auto& messages = c.request["messages"];
  REQUIRE(messages.size() == 4);
  CHECK(messages[2]["extra"] == 1);
  CHECK(messages[2]["tool_calls"][0]["id"] == "t0");
  const auto sent = messages[2]["tool_calls"][0]["function"]["arguments"].get<std::string>();
  CHECK(sent.size() < 200);
  CHECK(json::parse(sent).is_object());
  CHECK_THAT(messages[3]["content"].get<std::string>(),
             Contains("denied") && Contains(std::to_string(huge.size())) && Contains("262144"));
  c.end_with(says("smaller then"));
  CHECK_FALSE(c.loop.acted());
}

TEST_CASE("chat: a tool that was denied or failed is no action") {
  conductor c(talk_of());
  c.start();
  const auto next = c.end_with(wants({{"write_file", "{}"}, {"read_file", "{}"}}));
  CHECK_FALSE(c.loop.acted());
  c.to_call(
      c.note(c.loop.on_tool_result(find<effect::run_tool>(next)->step, "no such file", true)));
  c.end_with(says("I could not"));
  CHECK_FALSE(c.loop.acted());
}

TEST_CASE("chat: a call that was cut off is not run") {
  conductor c(talk_of());
  c.start();
  auto cut = wants({{"read_file", R"({"path":"a"})"}, {"read_file", R"({"path":"a lon)"}});
  cut["choices"][0]["finish_reason"] = "length";
  const auto next = c.end_with(cut);
  const auto* first = find<effect::run_tool>(next);
  REQUIRE(first != nullptr);
  c.to_call(c.note(c.loop.on_tool_result(first->step, "text", false)));
  CHECK_THAT(c.request["messages"].back()["content"].get<std::string>(), Contains("cut"));
}

TEST_CASE("chat: another provider is not sent what only the first understands") {
  conductor c(talk_of({"first", "second"}));
  c.start();
  auto reasons = wants({{"read_file", "{}"}});
  reasons["choices"][0]["message"]["reasoning_content"] = "hmm";
  auto next = c.end_with(reasons);
  c.to_call(c.note(c.loop.on_tool_result(find<effect::run_tool>(next)->step, "text", false)));
  CHECK(c.request["messages"][2].contains("reasoning_content"));
  for (int i = 0; i < provider_named("first").max_retries; ++i) {
    next = c.end_with(503, overloaded);
    c.to_call(c.note(c.loop.on_repeat(find<effect::wait_repeat>(next)->call)));
  }
  c.to_call(c.end_with(503, overloaded));
  CHECK_FALSE(c.request["messages"][2].contains("reasoning_content"));
}

TEST_CASE("chat: a person's word decides about a tool that asks") {
  const bool approved = GENERATE(true, false);
  conductor c(talk_of());
  c.start();
  auto next = c.end_with(wants({{"run_command", "{}"}}));
  const auto* ask = find<effect::ask_person>(next);
  REQUIRE(ask != nullptr);
  CHECK(find<effect::run_tool>(next) == nullptr);
  next = c.note(c.loop.on_approval(ask->step, approved, "said by ana"));
  if (approved) {
    const auto* run = find<effect::run_tool>(next);
    REQUIRE(run != nullptr);
    c.to_call(c.note(c.loop.on_tool_result(run->step, "ok", false)));
  } else {
    CHECK(find<effect::run_tool>(next) == nullptr);
    c.to_call(next);
    CHECK_THAT(c.request["messages"][3]["content"].get<std::string>(), Contains("said by ana"));
  }
  CHECK(c.loop.on_approval(ask->step, true, "again").empty());
}

TEST_CASE("chat: without a person's word the run may end, and is not tried again") {
  conductor c(talk_of());
  c.start();
  auto next = c.end_with(wants({{"run_command", "{}"}}));
  const auto step = find<effect::ask_person>(next)->step;
  CHECK(c.loop.waits_for_others());
  CHECK(c.loop.on_no_approval(step + 1, "another").empty());
  next = c.note(c.loop.on_no_approval(step, "waits for a person: approval-1"));
  CHECK(find<effect::run_tool>(next) == nullptr);
  CHECK(find<effect::talk_over>(next) != nullptr);
  CHECK(c.loop.outcome().failure == failure_class::policy);
  CHECK(c.loop.outcome().error == "waits for a person: approval-1");
  CHECK(c.loop.outcome().end == chat_end::unapproved);
  CHECK(c.loop.on_approval(step, true, "late").empty());
}

TEST_CASE("chat: trouble that passes is tried again, then the next target") {
  conductor c(talk_of({"first", "second"}));
  c.start();
  for (int i = 0; i < provider_named("first").max_retries; ++i) {
    const auto wait = c.end_with(503, overloaded);
    const auto* again = find<effect::wait_repeat>(wait);
    REQUIRE(again != nullptr);
    CHECK(find<effect::leave_place>(wait)->trouble.has_value());
    c.to_call(c.note(c.loop.on_repeat(again->call)));
  }
  const auto elsewhere = c.end_with(503, overloaded);
  const auto* place = find<effect::ask_place>(elsewhere);
  REQUIRE(place != nullptr);
  CHECK(place->provider_id == "second");
  CHECK(find<effect::warn>(elsewhere) != nullptr);
  c.to_call(elsewhere);
  c.end_with(says("from the second"));
  CHECK(c.loop.usage().provider == "second");
}

TEST_CASE("chat: quota is never tried again and leads nowhere it was not told to") {
  conductor c(talk_of({"first", "second"}));
  c.start();
  const auto end = c.end_with(
      429,
      R"({"error":{"message":"You exceeded your current quota","code":"insufficient_quota"}})");
  CHECK(find<effect::wait_repeat>(end) == nullptr);
  CHECK(find<effect::ask_place>(end) == nullptr);
  CHECK(find<effect::talk_over>(end) != nullptr);
  CHECK(c.loop.outcome().failure == failure_class::environment);
}

TEST_CASE("chat: a context that is too long is told as such") {
  conductor c(talk_of());
  c.start();
  c.end_with(400, R"({"error":{"message":"too many tokens","code":"context_length_exceeded"}})");
  CHECK(c.loop.outcome().too_long);
  CHECK(c.loop.outcome().failure == failure_class::transient);
  CHECK(c.loop.usage().too_long);
}

TEST_CASE("chat: an answer against the schema is returned once") {
  auto talk = talk_of();
  talk.schema_json = R"({"type":"object","required":["n"],"properties":{"n":{"type":"integer"}}})";
  conductor c(std::move(talk));
  c.start();
  c.to_call(c.end_with(says("{\"n\": \"one\"}")));
  CHECK_THAT(c.request["messages"].back()["content"].get<std::string>(),
             Contains("does not follow the JSON Schema"));
  const bool learns = GENERATE(true, false);
  c.end_with(says(learns ? "{\"n\": 1}" : "no"));
  CHECK(c.loop.over());
  CHECK((c.loop.outcome().execution == execution_verdict::succeeded) == learns);
}

TEST_CASE("chat: the run's budget fails closed") {
  auto talk = talk_of();
  talk.budget.tokens = 150;
  conductor c(std::move(talk));
  c.start();
  CHECK(c.request.value("max_tokens", c.request.value("max_completion_tokens", 0)) < 150);
  const auto next = c.end_with(wants({{"read_file", "{}"}}));
  const auto* run = find<effect::run_tool>(next);
  REQUIRE(run != nullptr);
  const auto end = c.note(c.loop.on_tool_result(run->step, std::string(400, 'x'), false));
  CHECK(find<effect::ask_place>(end) == nullptr);
  CHECK(find<effect::talk_over>(end) != nullptr);
  CHECK(c.loop.outcome().failure == failure_class::policy);
  CHECK_THAT(c.loop.outcome().error, Contains("budget"));
}

TEST_CASE("chat: no call without its reservation") {
  conductor c(talk_of());
  const auto begin = c.loop.begin();
  const auto call = find<effect::ask_place>(begin)->call;
  c.loop.on_place(call, {}, 1);
  const bool refused = GENERATE(true, false);
  const result<store::reserve_spend::reply> answer =
      refused
          ? result<store::reserve_spend::reply>(store::reserve_spend::reply{false, "agent:k/a", {}})
          : fail(errc::store_unavailable, "away");
  const auto end = c.loop.on_reserved(call, answer);
  CHECK(find<effect::call_model>(end) == nullptr);
  const auto* left = find<effect::leave_place>(end);
  REQUIRE(left != nullptr);
  CHECK(left->tokens == 0);
  // What nobody heard of may stand all the same.
  CHECK((find<effect::settle_spend>(end) == nullptr) == refused);
  CHECK(c.loop.outcome().failure == (refused ? failure_class::policy : failure_class::transient));
}

TEST_CASE("chat: a day's budget is warned of once") {
  conductor c(talk_of());
  const auto begin = c.loop.begin();
  c.loop.on_place(1, {}, 1);
  CHECK(count<effect::warn>(c.loop.on_reserved(1, granted(900))) == 1);
  c.call = 1;
  const auto next = c.end_with(wants({{"read_file", "{}"}}));
  c.loop.on_tool_result(find<effect::run_tool>(next)->step, "x", false);
  c.loop.on_place(2, {}, 1);
  CHECK(count<effect::warn>(c.loop.on_reserved(2, granted(950))) == 0);
}

TEST_CASE("chat: turns end") {
  auto talk = talk_of();
  talk.max_turns = 3;
  conductor c(std::move(talk));
  c.start();
  for (int i = 0; !c.loop.over(); ++i) {
    REQUIRE(i < 4);
    const auto next = c.end_with(wants({{"read_file", "{}"}}));
    const auto after =
        c.note(c.loop.on_tool_result(find<effect::run_tool>(next)->step, "x", false));
    if (!c.loop.over())
      c.to_call(after);
  }
  CHECK_THAT(c.loop.outcome().error, Contains("max_turns"));
}

TEST_CASE("chat: stopped from outside, it lets go of what it holds") {
  conductor c(talk_of());
  SECTION("waiting for its place") {
    c.loop.begin();
    CHECK(find<effect::drop_place>(c.loop.stop("time is over")) != nullptr);
  }
  SECTION("waiting for the budgets, which may grant it yet") {
    c.loop.begin();
    c.loop.on_place(1, {}, 1);
    const auto end = c.loop.stop("time is over");
    CHECK(find<effect::drop_place>(end) != nullptr);
    const auto* unused = find<effect::settle_spend>(end);
    REQUIRE(unused != nullptr);
    CHECK(unused->what.call_id == "d/7/1");
    CHECK(unused->what.used.tokens() == 0);
  }
  SECTION("during the call") {
    c.start();
    c.loop.on_head(c.call, {200, {{"content-type", "text/event-stream"}}});
    c.loop.on_body(c.call, "data: {\"choices\":[{\"delta\":{\"content\":\"half an ans\"}}]}\n\n");
    const auto end = c.loop.stop("time is over");
    CHECK(find<effect::cancel_call>(end) != nullptr);
    CHECK(find<effect::drop_place>(end) != nullptr);
    const auto* paid = find<effect::settle_spend>(end);
    REQUIRE(paid != nullptr);
    CHECK(paid->what.used.input > 0); // it may have to be paid
    CHECK(c.loop.outcome().text == "half an ans");
    CHECK(c.loop.on_call_end(c.call, {}).empty());
  }
  SECTION("during a tool") {
    c.start();
    c.end_with(wants({{"read_file", "{}"}}));
    const auto end = c.loop.stop("time is over");
    CHECK(find<effect::stop_step>(end) != nullptr);
  }
  CHECK(c.loop.over());
  CHECK(c.loop.stop("again").empty());
}

TEST_CASE("chat: a refusal and a cut answer are no success") {
  conductor c(talk_of());
  c.start();
  SECTION("refusal") {
    c.end_with(answer({{"role", "assistant"}, {"content", nullptr}, {"refusal", "I cannot"}}));
    CHECK_THAT(c.loop.outcome().error, Contains("declined: I cannot"));
  }
  SECTION("length") {
    c.end_with(answer({{"role", "assistant"}, {"content", "once upon"}}, "length"));
    CHECK_THAT(c.loop.outcome().error, Contains("reached its token limit"));
  }
  CHECK(c.loop.outcome().execution == execution_verdict::failed);
  CHECK(c.loop.outcome().failure == failure_class::deterministic);
}

} // namespace boyd::chat_loop_test
