#include "boyd/record/explain.hpp"

#include "../core/json_values.hpp"
#include "boyd/core/text.hpp"
#include "explain_internal.hpp"

#include <algorithm>
#include <array>
#include <utility>

namespace boyd::record {

namespace words {

namespace {

constexpr std::size_t longest_code = 300;

/// On one line; control characters become blanks.
std::string flat(std::string_view text) {
  auto line = sanitize_utf8(text);
  std::ranges::replace_if(
      line,
      [](char c) {
        constexpr char deleted = 0x7F;
        return (c >= 0 && c < ' ') || c == deleted;
      },
      ' ');
  return line;
}

std::size_t longest_run_of_backticks(std::string_view text) {
  std::size_t longest = 0;
  std::size_t run = 0;
  for (const char c : text) {
    run = c == '`' ? run + 1 : 0;
    longest = std::max(longest, run);
  }
  return longest;
}

std::string in_code(std::string_view line) {
  const std::string fence(longest_run_of_backticks(line) + 1, '`');
  const bool padded = line.starts_with('`') || line.ends_with('`');
  return fence + (padded ? " " : "") + std::string(line) + (padded ? " " : "") + fence;
}

} // namespace

std::string code(std::string_view text) {
  const auto line = flat(text);
  if (trim(line).empty())
    return "(nothing)";
  const auto shown = cut_characters(line, longest_code);
  const auto missing = count_characters(line) - count_characters(shown);
  return in_code(shown) + (missing == 0 ? std::string()
                                        : " (and " +
                                              counted(static_cast<std::int64_t>(missing),
                                                      "more character", "more characters") +
                                              ")");
}

std::string cell(std::string_view text) {
  auto shown = code(text);
  for (std::size_t at = shown.find('|'); at != shown.npos; at = shown.find('|', at + 2))
    shown.insert(at, 1, '\\');
  return shown;
}

std::string moment(utc_time t) {
  auto text = format_rfc3339(t);
  if (const auto at = text.find('T'); at != text.npos)
    text[at] = ' ';
  if (text.ends_with('Z'))
    text.replace(text.size() - 1, 1, " UTC");
  return text;
}

std::string counted(std::int64_t n, std::string_view one, std::string_view more) {
  return std::to_string(n) + " " + std::string(n == 1 ? one : more);
}

std::string listed(const std::vector<std::string>& all) {
  std::string text;
  for (std::size_t i = 0; i < all.size(); ++i)
    text += (i == 0 ? "" : i + 1 == all.size() ? " and " : ", ") + all[i];
  return text;
}

json value(const std::string& text) {
  auto v = text.empty() ? json() : json::parse(text, nullptr, false);
  return v.is_discarded() ? json() : v;
}

const attempt* last_of(const execution& e) {
  return e.attempts.empty() ? nullptr : &e.attempts.back();
}

const context::snapshot* first_snapshot(const execution& e) {
  const auto* a = last_of(e);
  return a == nullptr || a->turns.empty() ? nullptr : &a->turns.front().snapshot;
}

bool names(const std::vector<named_item>& items, std::string_view id) {
  return std::ranges::find(items, id, &named_item::id) != items.end();
}

std::string use_of(const execution& e, std::string_view id) {
  if (e.cited && names(e.cited->valid, id))
    return "cited";
  return e.cited && names(e.cited->used, id) ? "used" : "given";
}

std::vector<const context::snapshot_item*> items_by_use(const execution& e) {
  std::vector<const context::snapshot_item*> all;
  const auto* s = first_snapshot(e);
  if (s == nullptr)
    return all;
  for (const auto& i : s->items)
    all.push_back(&i);
  const auto rank = [&](const context::snapshot_item& i) {
    const auto use = use_of(e, i.id);
    return use == "cited" ? 0 : use == "used" ? 1 : i.key.empty() ? 3 : 2;
  };
  std::ranges::stable_sort(all, [&](const auto* l, const auto* r) { return rank(*l) < rank(*r); });
  return all;
}

std::string with_key(const context::snapshot_item& i) {
  return (i.key.empty() ? std::string() : i.key + " ") + code(i.path);
}

const known_item* known_to(const attempt& a, std::string_view id) {
  const auto it = std::ranges::find(a.known, id, &known_item::id);
  return it == a.known.end() ? nullptr : &*it;
}

} // namespace words

fate fate_of(const execution& e) {
  const auto* a = words::last_of(e);
  if (a == nullptr || !a->ended_at)
    return fate::unfinished;
  const auto o = words::value(a->outcome);
  const bool good = text_in(o, "execution") == "succeeded" && text_in(o, "claim") != "failed" &&
                    text_in(o, "verification") != "failed";
  return good ? fate::done : fate::failed;
}

std::string_view name_of(fate f) noexcept {
  constexpr std::array<std::string_view, 3> all{"done", "failed", "unfinished"};
  return all.at(static_cast<std::size_t>(f));
}

std::string explain(const execution& e, const explain_options& options) {
  const bool all = !options.context && !options.lifecycle;
  const auto* a = words::last_of(e);
  auto text = "# Run of " + words::code(e.agent_id) +
              (a == nullptr ? std::string() : ", " + words::moment(a->started_at)) + "\n\n" +
              words::code(e.agent_id) + " is " + words::what_it_is(a) +
              " that Boyd runs. This page explains one run of it, from Boyd's record of this "
              "run,\nwhich also has what was known of earlier runs.\n\n";
  text += words::summary(e);
  if (all)
    text += words::skill_suggestions(e);
  if (all || options.context)
    text += words::bank_usage(e) + words::evolution(e) + words::retrospective(e);
  if (all || options.lifecycle)
    text += words::recommendations(e);
  if (all)
    text += words::turn_by_turn(e);
  if (options.facts && (all || options.graph))
    text += words::provenance(e, options.graph);
  while (text.ends_with("\n\n"))
    text.pop_back();
  return text;
}

} // namespace boyd::record
