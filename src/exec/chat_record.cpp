#include "chat_record.hpp"

#include "../core/enum_names.hpp"
#include "../core/json_values.hpp"
#include "boyd/core/sha256.hpp"

#include <array>

namespace boyd::exec {

using nlohmann::json;

namespace {

constexpr std::array<std::string_view, 3> decision_names{"allow", "deny", "ask"};
constexpr std::array<std::string_view, 5> stop_names{"stop", "tool_calls", "length",
                                                     "content_filter", "other"};

json usage_of(const model::usage& u) {
  return {{"input_tokens", u.input},
          {"cached_tokens", u.cached},
          {"output_tokens", u.output},
          {"reasoning_tokens", u.reasoning},
          {"reported", u.reported}};
}

/// Text that we made or checked ourselves, as a value; anything else as text.
json value_of(const std::string& text) {
  auto value = json::parse(text, nullptr, false);
  return value.is_discarded() ? json(text) : value;
}

} // namespace

std::string beginning_json(const conversation& c) {
  json messages = json::array();
  for (const auto& m : c.messages)
    messages.push_back(value_of(m));
  return dump({{"event", "begin"},
               {"context", c.context_level},
               {"messages", std::move(messages)},
               {"tools", c.tools_json.empty() ? json::array() : value_of(c.tools_json)},
               {"schema", c.schema_json.empty() ? json() : value_of(c.schema_json)}});
}

std::string answer_json(const chat_target& target, const model::chat_answer& a, int turn,
                        std::int64_t cost) {
  return dump({{"event", "turn"},
               {"turn", turn},
               {"provider", target.provider.provider_id},
               {"model", target.model},
               {"answered_by", a.model},
               {"completion", a.id},
               {"stop", detail::name_in(stop_names, a.stop)},
               {"usage", usage_of(a.used)},
               {"cost_microusd", cost},
               {"message", value_of(a.message)}});
}

std::string action_json(const model::tool_call& call, int turn, std::uint64_t step,
                        const judgement& j) {
  return dump({{"event", "action"},
               {"turn", turn},
               {"step", step},
               {"id", call.id},
               {"tool", call.name},
               // Of the bytes as they came: the message that holds them is redacted.
               {"arguments_sha256", sha256_hex(call.arguments)},
               {"decision", detail::name_in(decision_names, j.decision)},
               {"reason", j.reason}});
}

std::string result_json(const model::tool_call& call, int turn, std::uint64_t step,
                        const std::string& text, bool is_error) {
  return dump({{"event", "result"},
               {"turn", turn},
               {"step", step},
               {"tool", call.name},
               {"ok", !is_error},
               {"result", text}});
}

std::string trouble_json(const chat_target& target, std::uint64_t call, const model::trouble& t,
                         const std::string& next) {
  return dump({{"event", "trouble"},
               {"call", call},
               {"provider", target.provider.provider_id},
               {"model", target.model},
               {"kind", model::name_of(t.kind)},
               {"status", t.status},
               {"code", t.code},
               {"what", t.what},
               {"next", next}});
}

std::string left_out_json(const chat_target& target, const std::string& why) {
  return dump({{"event", "left_out"},
               {"provider", target.provider.provider_id},
               {"model", target.model},
               {"why", why}});
}

} // namespace boyd::exec
