#include "boyd/exec/chat_loop.hpp"
#include "support/pch.hpp"

#include <nlohmann/json.hpp>

using namespace boyd;
using namespace boyd::exec;
using Catch::Matchers::Contains;
using nlohmann::json;

namespace {

config::provider provider_named(const std::string& id) {
  config::provider p;
  p.provider_id = id;
  p.base_url = "http://127.0.0.1:1/v1";
  p.prices["*"] = {1'000'000, 500'000, 2'000'000};
  return p;
}

conversation talk_of(std::vector<std::string> providers = {"first"}) {
  conversation c;
  for (const auto& id : providers)
    c.targets.push_back({provider_named(id), "m", "", {}});
  c.messages = {model::system_message("be brief"), model::user_message("what is up?")};
  c.dispatch_id = "d";
  c.kernel_id = "k";
  c.agent_id = "a";
  c.fence = 7;
  c.scopes = {{"agent:k/a", 1000, 0}};
  c.judge = [](const model::tool_call& t) {
    judgement j;
    j.decision = t.name == "write_file"    ? config::policy_decision::deny
                 : t.name == "run_command" ? config::policy_decision::ask
                                           : config::policy_decision::allow;
    j.reason = "rule of the test";
    return j;
  };
  c.unit = [] { return 0.0; };
  return c;
}

template <class Effect>
const Effect* find(const chat_effects& effects) {
  for (const auto& e : effects)
    if (const auto* found = std::get_if<Effect>(&e))
      return found;
  return nullptr;
}

template <class Effect>
std::size_t count(const chat_effects& effects) {
  return static_cast<std::size_t>(std::ranges::count_if(
      effects, [](const auto& e) { return std::holds_alternative<Effect>(e); }));
}

store::reserve_spend::reply granted(std::int64_t tokens = 10) {
  return {true, {}, {{"agent:k/a", tokens, 0}}};
}

json answer(const json& message, const std::string& reason = "stop") {
  return {{"id", "c1"},
          {"model", "m-1"},
          {"choices", {{{"index", 0}, {"message", message}, {"finish_reason", reason}}}},
          {"usage",
           {{"prompt_tokens", 100},
            {"completion_tokens", 10},
            {"prompt_tokens_details", {{"cached_tokens", 40}}}}}};
}

json says(const std::string& text) {
  return answer({{"role", "assistant"}, {"content", text}});
}

json wants(const std::vector<std::pair<std::string, std::string>>& calls) {
  json all = json::array();
  for (std::size_t i = 0; i < calls.size(); ++i)
    all.push_back({{"id", "t" + std::to_string(i)},
                   {"type", "function"},
                   {"function", {{"name", calls[i].first}, {"arguments", calls[i].second}}}});
  return answer({{"role", "assistant"}, {"content", nullptr}, {"tool_calls", all}, {"extra", 1}},
                "tool_calls");
}

/// Leads a loop through place and reservation to the call of the model.
struct conductor {
  chat_loop loop;
  std::uint64_t call = 0;
  json request;
  std::vector<json> record;

  explicit conductor(conversation c) : loop(std::move(c)) {}

  chat_effects note(chat_effects effects) {
    for (const auto& e : effects)
      if (const auto* line = std::get_if<effect::note_turn>(&e))
        record.push_back(json::parse(line->json));
    return effects;
  }
  /// From a wanted place to the request.
  void to_call(const chat_effects& effects) {
    const auto* place = find<effect::ask_place>(effects);
    REQUIRE(place != nullptr);
    call = place->call;
    const auto reserving = note(loop.on_place(call, {}));
    const auto* reserve = find<effect::reserve>(reserving);
    REQUIRE(reserve != nullptr);
    CHECK(reserve->what.call_id == "d/7/" + std::to_string(call));
    const auto calling = note(loop.on_reserved(call, granted()));
    const auto* c = find<effect::call_model>(calling);
    REQUIRE(c != nullptr);
    request = json::parse(c->request.body);
  }
  void start() { to_call(note(loop.begin())); }
  chat_effects end_with(int status, const std::string& body) {
    loop.on_head(call, {status, {{"content-type", "application/json"}}});
    loop.on_body(call, body);
    return note(loop.on_call_end(call, {}));
  }
  chat_effects end_with(const json& body) { return end_with(200, body.dump()); }
};

const std::string overloaded = R"({"error":{"message":"busy","type":"server_error"}})";

} // namespace

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
  const auto usage = json::parse(c.loop.usage_json());
  CHECK(usage["calls"] == 1);
  CHECK(usage["input_tokens"] == 100);
  CHECK(usage["cost_microusd"] == 100);
  const auto* left = find<effect::leave_place>(end);
  REQUIRE(left != nullptr);
  CHECK_FALSE(left->trouble.has_value());
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
  CHECK(c.loop.acted("read_*"));
  CHECK(c.loop.acted(""));
  CHECK_FALSE(c.loop.acted("list_dir")); // it failed
  CHECK_FALSE(c.loop.acted("write_file"));
  // The decision stands in the record before anything comes of it.
  CHECK(c.record.at(2)["event"] == "action");
  CHECK(c.record.at(2)["decision"] == "allow");
  CHECK(c.record.at(3)["result"] == "text of a");
  CHECK(c.record.at(4)["decision"] == "deny");
  CHECK(c.record.at(5)["ok"] == false);
  CHECK(json::parse(c.loop.usage_json())["denied"] == 1);
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
  CHECK(json::parse(c.loop.usage_json())["provider"] == "second");
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
  CHECK(json::parse(c.loop.usage_json())["too_long"] == true);
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
  c.loop.on_place(call, {});
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
  CHECK(c.loop.outcome().failure == (refused ? failure_class::policy : failure_class::transient));
}

TEST_CASE("chat: a day's budget is warned of once") {
  conductor c(talk_of());
  const auto begin = c.loop.begin();
  c.loop.on_place(1, {});
  CHECK(count<effect::warn>(c.loop.on_reserved(1, granted(900))) == 1);
  c.call = 1;
  const auto next = c.end_with(wants({{"read_file", "{}"}}));
  c.loop.on_tool_result(find<effect::run_tool>(next)->step, "x", false);
  c.loop.on_place(2, {});
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
    CHECK_THAT(c.loop.outcome().error, Contains("cut at its limit"));
  }
  CHECK(c.loop.outcome().execution == execution_verdict::failed);
  CHECK(c.loop.outcome().failure == failure_class::deterministic);
}
