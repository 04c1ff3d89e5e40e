#include "boyd/exec/turn_words.hpp"

#include "../core/json_values.hpp"

#include <nlohmann/json.hpp>

namespace boyd::exec {

namespace {

using nlohmann::json;

/// Of an approval's id: they begin with the time, to the millisecond.
constexpr std::size_t shown_id = 18;

std::string with_reason(std::string text, const json& event, const char* key) {
  const auto why = text_in(event, key);
  return why.empty() ? text : text + ": " + why;
}

std::string turn_of(const json& event) {
  const auto turn = number_in(event, "turn");
  return turn > 0 ? "turn " + std::to_string(turn) + ": " : std::string();
}

turn_words of_action(const json& event) {
  const auto tool = turn_of(event) + text_in(event, "tool");
  const auto decision = text_in(event, "decision");
  if (decision == "deny")
    return {with_reason(tool + " denied", event, "reason")};
  return {decision == "ask" ? std::string() : tool}; // who is asked is told with the request's id
}

turn_words of_approval(const json& event) {
  const auto what = text_in(event, "what");
  if (what == "asked")
    return {"needs approval: boyd approvals approve " +
                text_in(event, "approval_id").substr(0, shown_id),
            true};
  if (what == "denied" || what == "unanswered")
    return {with_reason("approval " + what, event, "reason")};
  return {what == "approved" ? what : std::string()};
}

} // namespace

turn_words turn_in_words(std::string_view line) {
  const auto event = json::parse(line, nullptr, false);
  if (!event.is_object())
    return {};
  const auto kind = text_in(event, "event");
  if (kind == "action")
    return of_action(event);
  if (kind == "approval")
    return of_approval(event);
  if (kind == "result" && !flag_in(event, "ok", true))
    return {turn_of(event) + text_in(event, "tool") + " failed"};
  if (kind == "trouble")
    return {with_reason(text_in(event, "provider") + ": " + text_in(event, "kind"), event, "what") +
                "; " + text_in(event, "next"),
            true};
  return {kind == "stopped" ? with_reason("stopped", event, "why") : std::string()};
}

} // namespace boyd::exec
