#include "boyd/queue/end_in_words.hpp"

#include "boyd/core/text.hpp"
#include "boyd/plan/human_time.hpp"

#include <string_view>

namespace boyd::queue {

namespace {

constexpr std::size_t told_characters = 300;

/// Text of agents must not begin a line of its own in the log.
std::string on_one_line(std::string_view text) {
  auto clean = sanitize_utf8(trim(text));
  for (auto& c : clean)
    if (static_cast<unsigned char>(c) < ' ' || c == '\x7F')
      c = ' ';
  if (count_characters(clean) <= told_characters)
    return clean;
  return std::string(cut_characters(clean, told_characters)) + "…";
}

std::string fate_of(const settlement& end) {
  switch (end.to) {
  case settle_to::done:
    return "done";
  case settle_to::failed:
    return "failed (" + std::string(name_of(end.outcome.failure)) + ")";
  case settle_to::cancelled:
    return "cancelled";
  case settle_to::retry:
    return "failed, next attempt in " + plan::show_length(end.delay);
  case settle_to::release:
    break;
  }
  return "returned to the queue";
}

} // namespace

std::string end_in_words(const settlement& end) {
  auto line = fate_of(end);
  if (const auto& wall = end.outcome.usage.wall_ms)
    line += " after " + plan::show_length(milliseconds{*wall});
  const bool is_done = end.to == settle_to::done;
  const auto& why = is_done || end.outcome.error.empty() ? end.outcome.summary : end.outcome.error;
  return why.empty() ? line : line + ": " + on_one_line(why);
}

} // namespace boyd::queue
