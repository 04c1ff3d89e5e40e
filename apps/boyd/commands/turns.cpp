#include "turns.hpp"

#include "../time_view.hpp"
#include "boyd/core/text.hpp"

#include <algorithm>
#include <string>
#include <vector>

namespace boyd::app {

namespace {

/// Of a result of a tool.
constexpr std::size_t result_lines = 12;
/// Of a system message.
constexpr std::size_t system_lines = 6;
constexpr std::size_t argument_characters = 2000;
constexpr std::size_t all_lines = 100'000;

/// Indented, at most so many lines.
std::string block(std::string_view text, std::size_t most) {
  const auto clean = printable(trim(text));
  if (clean.empty())
    return {};
  const auto lines = split(clean, '\n');
  std::string out;
  for (std::size_t i = 0; i < std::min(most, lines.size()); ++i)
    out += "    " + std::string(lines[i]) + "\n";
  if (lines.size() > most)
    out += "    … " + std::to_string(lines.size() - most) + " more lines (all with --json)\n";
  return out;
}

/// A message's text: as it is, or in parts.
std::string content_of(const json& message) {
  const auto it = message.find("content");
  if (it == message.end() || !it->is_array())
    return text_of(message, "content");
  std::string all;
  for (const auto& part : *it)
    all += part.is_object() ? text_of(part, "text") : std::string{};
  return all;
}

std::string head(const json& item, const terminal& t, const std::string& text) {
  return t.paint(colour::faint, clock_of(item, "at")) + " " + text + "\n";
}

std::string beginning(const json& item, const terminal& t) {
  auto out = head(item, t, t.paint(colour::bold, "begins"));
  for (const auto& m : rows_of(item, "messages")) {
    const auto role = text_of(m, "role");
    out += "  " + t.paint(colour::faint, role.empty() ? "message" : role) + "\n" +
           block(content_of(m), role == "system" ? system_lines : all_lines);
  }
  return out;
}

std::string answer(const json& item, const terminal& t) {
  const auto usage = part_of(item, "usage");
  const auto message = part_of(item, "message");
  auto out = head(item, t,
                  t.paint(colour::bold, "turn " + text_of(item, "turn")) + "  " +
                      one_line(text_of(item, "model"), 64) + ", " + text_of(usage, "input_tokens") +
                      " tokens in, " + text_of(usage, "output_tokens") + " out");
  out += block(content_of(message), all_lines);
  for (const auto& call : rows_of(message, "tool_calls")) {
    const auto f = part_of(call, "function");
    out += "  -> " + one_line(text_of(f, "name"), 64) + " " +
           one_line(text_of(f, "arguments"), argument_characters) + "\n";
  }
  return out;
}

std::string tool_result(const json& item, const terminal& t) {
  const bool ok = flag_in(item, "ok", true);
  return head(item, t,
              "<- " + one_line(text_of(item, "tool"), 64) +
                  (ok ? "" : t.paint(colour::bad, " failed"))) +
         block(text_of(item, "result"), result_lines);
}

/// Only what was not simply let through.
std::string action(const json& item, const terminal& t) {
  const auto decision = text_of(item, "decision");
  if (decision == "allow")
    return {};
  return head(item, t,
              one_line(text_of(item, "tool"), 64) + ": " +
                  t.paint(colour::warn, decision == "ask" ? "waits for approval" : "denied") +
                  ": " + one_line(text_of(item, "reason"), argument_characters));
}

std::string trouble(const json& item, const terminal& t) {
  auto what = text_of(item, "kind");
  if (const auto said = text_of(item, "what"); !said.empty())
    what += ": " + said;
  return head(item, t,
              t.paint(colour::warn, "trouble") + " with " + text_of(item, "provider") + ": " +
                  one_line(what, argument_characters) + "; " +
                  one_line(text_of(item, "next"), argument_characters));
}

/// Any other event: its name and what it says.
std::string other(const json& item, const terminal& t) {
  std::string said;
  for (const char* key : {"what", "approval_id", "reason", "why", "note"})
    if (const auto text = text_of(item, key); !text.empty())
      said += (said.empty() ? "" : ", ") + text;
  if (said.empty())
    return {};
  const auto event = text_of(item, "event");
  return head(item, t,
              (event.empty() ? "note" : event) + ": " + one_line(said, argument_characters));
}

} // namespace

std::string turn_as_text(const json& item, const terminal& t) {
  const auto event = text_of(item, "event");
  if (event == "begin")
    return beginning(item, t);
  if (event == "turn")
    return answer(item, t);
  if (event == "action")
    return action(item, t);
  if (event == "result")
    return tool_result(item, t);
  return event == "trouble" ? trouble(item, t) : other(item, t);
}

} // namespace boyd::app
