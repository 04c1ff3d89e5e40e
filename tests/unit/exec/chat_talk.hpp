#pragma once

#include "boyd/exec/chat_loop.hpp"
#include "support/pch.hpp"

#include <nlohmann/json.hpp>

#include <string>
#include <utility>
#include <vector>

/// A conversation with a model whose answers the test gives.
namespace boyd::exec::chat_test {

using nlohmann::json;

inline config::provider provider_named(const std::string& id) {
  config::provider p;
  p.provider_id = id;
  p.base_url = "http://127.0.0.1:1/v1";
  p.prices["*"] = {1'000'000, 500'000, 2'000'000};
  return p;
}

inline conversation talk_of(std::vector<std::string> providers = {"first"}) {
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

inline store::reserve_spend::reply granted(std::int64_t tokens = 10) {
  return {true, {}, {{"agent:k/a", tokens, 0}}};
}

inline json answer(const json& message, const std::string& reason = "stop") {
  return {{"id", "c1"},
          {"model", "m-1"},
          {"choices", {{{"index", 0}, {"message", message}, {"finish_reason", reason}}}},
          {"usage",
           {{"prompt_tokens", 100},
            {"completion_tokens", 10},
            {"prompt_tokens_details", {{"cached_tokens", 40}}}}}};
}

inline json says(const std::string& text) {
  return answer({{"role", "assistant"}, {"content", text}});
}

inline json wants(const std::vector<std::pair<std::string, std::string>>& calls) {
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
    const auto reserving = note(loop.on_place(call, {}, 1));
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

inline const std::string overloaded = R"({"error":{"message":"busy","type":"server_error"}})";

} // namespace boyd::exec::chat_test
