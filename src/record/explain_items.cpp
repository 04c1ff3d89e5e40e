#include "explain_internal.hpp"

#include <algorithm>
#include <cmath>
#include <utility>
#include <vector>

/// What was read, what became of it, and what to do with it.
namespace boyd::record {

namespace words {

namespace {

std::string_view origin_in_words(context::origin from) {
  switch (from) {
  case context::origin::declared:
    return "named in the configuration of the agent";
  case context::origin::reference:
    return "named in the instructions";
  case context::origin::buffer:
    return "added for all agents by a person";
  case context::origin::bank:
    return "from the bank: useful in earlier runs";
  case context::origin::memory:
    return "from memory: matches the task";
  case context::origin::tool:
    break;
  }
  return "result of a tool";
}

std::string_view section_in_words(context::section s) {
  return s == context::section::high ? "high" : s == context::section::medium ? "medium" : "low";
}

std::string_view shown_in_words(context::shown_as as) {
  return as == context::shown_as::full      ? "complete"
         : as == context::shown_as::summary ? "shortened"
                                            : "not shown";
}

std::string used_in_words(const execution& e, const context::snapshot_item& i) {
  if (!e.cited || i.key.empty())
    return "–";
  const bool cited = words::names(e.cited->valid, i.id);
  const bool used = words::names(e.cited->used, i.id);
  return cited ? "cited" : used ? "used, not cited" : "not used";
}

const context::snapshot& reading_of(const execution& e) {
  static const context::snapshot none;
  const auto* s = first_snapshot(e);
  return s == nullptr ? none : *s;
}

std::string paths(const std::vector<std::string>& all) {
  std::vector<std::string> shown;
  for (const auto& p : all)
    shown.push_back(code(p));
  return listed(shown);
}

std::string named_list(const std::vector<named_item>& items) {
  std::string lines;
  for (const auto& i : items)
    lines += "  - " + (i.key.empty() ? std::string() : "[" + i.key + "] ") + code(i.path) + "\n";
  return lines;
}

std::string changes_of_stages(const execution& e) {
  std::string lines;
  for (const auto& c : e.stage_changes)
    lines += "- " + c.from + " → " + c.to + ": " + code(c.path) +
             (c.reason.empty() ? "" : " (" + c.reason + ")") + place_of(e, c.id, "managed_by") +
             "\n";
  return lines;
}

} // namespace

std::string skill_suggestions(const execution& e) {
  std::string text = "## Skill Suggestions\n\n";
  std::string lines;
  for (const auto& c : e.stage_changes)
    if (c.to == "skill_candidate")
      lines += "- " + code(c.path) + " was useful often enough to become a skill" +
               (c.reason.empty() ? "" : " (" + c.reason + ")") +
               ". To review it: `boyd skills review`.\n";
  for (const auto& s : e.skills)
    if (s.state != "offered")
      lines += "- The run reported that it followed the skill " + code(s.name) + ".\n";
  if (lines.empty())
    return text + "- (none)\n\n";
  return text +
         "A skill is a text that tells agents how to do something. A text becomes a skill when it "
         "has proved useful in many\nruns and a person approves it.\n\n" +
         lines + "\n";
}

std::string bank_usage(const execution& e) {
  const auto& s = reading_of(e);
  std::string text = "## Context Bank Usage\n\n";
  if (s.items.empty())
    return text + "- (none): the run had nothing to read.\n\n";
  const auto banked =
      std::ranges::count(s.items, context::origin::bank, &context::snapshot_item::from);
  text += "In addition to its instructions, a run reads texts: files, output of commands, memory, "
          "and texts from the *bank*\nthat were useful in earlier runs (here: " +
          std::to_string(banked) +
          "). Importance (high, medium, low) depends on the results of\nearlier runs that used the "
          "text. Tokens (pieces of words) count the part that was shown.\n\n";
  text += "| Key | Text | Importance | Tokens | Shown | In the answer | Why it was there |\n"
          "|---|---|---|---|---|---|---|\n";
  for (const auto& i : s.items)
    text += "| " + (i.key.empty() ? std::string("–") : i.key) + " | " + cell(i.path) + " | " +
            std::string(section_in_words(i.where)) + " | " + std::to_string(i.tokens) + " | " +
            std::string(shown_in_words(i.as)) +
            (i.reason.empty() ? std::string() : ": " + cell(i.reason)) + " | " +
            used_in_words(e, i) + " | " + std::string(origin_in_words(i.from)) + " |\n";
  return text + "\n";
}

std::string evolution(const execution& e) {
  std::string text = "## Context Evolution\n\n";
  const auto* a = last_of(e);
  const auto& s = reading_of(e);
  if (a == nullptr || s.items.empty())
    return text + changes_of_stages(e) + "- (none): the run had nothing to read.\n\n";
  text += "Changes of the texts since the previous run of the agent, and changes of their stage: "
          "*context* is an ordinary\ntext, *bank* a useful text that later runs read again, "
          "*skill_candidate* a text that could become a skill,\n*archived* a text that is no "
          "longer used.\n\n";
  const auto& d = a->turns.front().diff;
  if (!d.added.empty())
    text += "- new: " + paths(d.added) + "\n";
  if (!d.changed.empty())
    text += "- changed: " + paths(d.changed) + "\n";
  if (!d.removed.empty())
    text += "- removed: " + paths(d.removed) + "\n";
  if (d.added.empty() && d.changed.empty() && d.removed.empty())
    text += "- No changes since the previous run.\n";
  return text + changes_of_stages(e) + "\n";
}

namespace {

std::string lesson_of(const execution& e) {
  const auto* a = last_of(e);
  const auto o = a == nullptr ? json() : value(a->outcome);
  const auto failure = text_in(o, "failure");
  const bool of_content = failure.empty() || failure == "none" || failure == "deterministic";
  if (!of_content)
    return "The cause of the failure was not the texts, so nothing was learned about them.";
  if (e.cited->weak)
    return "The answer is weak (see above), so the run does not count for its texts.";
  if (fate_of(e) == fate::done)
    return "The run succeeded, so the texts that it used now count as a little more useful.";
  return "The run failed, so the texts that it used now count as a little less useful.";
}

} // namespace

std::string retrospective(const execution& e) {
  std::string text = "## Citation Retrospective\n\n";
  if (!e.cited)
    return text + "- (none): " +
           (reading_of(e).items.empty() ? "there was nothing to cite."
                                        : "no attempt has finished.") +
           "\n\n";
  text += "An answer should cite the texts that it uses, by key ([C2]) or by name. Boyd checks "
          "this: the run must have read a\ncited text, and a text counts as used if the answer "
          "repeats several of its phrases or an action names it.\nThis does not check whether the "
          "answer is correct.\n\n";
  const auto& c = *e.cited;
  const auto list = [&](const std::string& what, const std::string& lines) {
    text += "- **" + what + ":**" + (lines.empty() ? " (none)\n" : "\n" + lines);
  };
  list("Cited and read", named_list(c.valid));
  std::string invented;
  for (const auto& i : c.invented)
    invented += "  - " + code(i) + "\n";
  list("Cited, but never read", invented);
  list("Used, but not cited", named_list(c.uncited));
  if (c.accuracy)
    text += "- **Accuracy:** " + std::to_string(std::lround(*c.accuracy * 100)) +
            " % of the texts that were cited or used were cited correctly.\n";
  text += c.contract == "enforce"
              ? "- **Rule:** citations are required, and " +
                    std::string(c.weak ? "the answer broke the rule: it is **weak**.\n"
                                       : "the answer followed the rule.\n")
              : "- **Rule:** citations are optional for this agent; they were only recorded.\n";
  return text + "- **Lesson:** " + lesson_of(e) + "\n\n";
}

std::string recommendations(const execution& e) {
  std::string text = "## Lifecycle Recommendations\n\n";
  const auto all = advise(e);
  if (all.empty())
    return text + "- (none): the run had nothing to read.\n\n";
  text +=
      "Suggestions for each text, based on this run and earlier runs. Boyd does not apply them by "
      "itself.\n\n- **keep:** leave it as it is\n- **enhance:** useful; make it shorter, clearer "
      "or easier to cite\n- **archive:** stop showing it to the agent, but keep it\n- **remove:** "
      "delete the reference\n\nRelevance is the importance in this run, quality the results of "
      "checked runs that used the text, trend of use how\noften runs use it.\n\n| Text | "
      "Suggestion | Relevance | Quality | Trend of use | Why |\n|---|---|---|---|---|---|\n";
  for (const auto& a : all)
    text += "| " + cell(a.path) + " | **" + a.action + "** | " + a.relevance + " | " + a.quality +
            " | " + a.trend + " | " + a.reason + " |\n";
  return text + "\n";
}

} // namespace words

namespace {

constexpr double good_rate = 0.6;
constexpr double poor_rate = 0.3;
/// Fewer verified runs say little.
constexpr std::int64_t enough_verified = 3;
constexpr std::int64_t enough_shown = 10;
constexpr double noise = 0.1;
constexpr double half = 0.5;

std::string quality_of(const context::item_statistics& s) {
  const auto verified = s.verified_useful + s.verified_not_useful;
  if (verified == 0)
    return "unknown";
  const auto rate = context::useful_rate(s);
  return rate >= good_rate ? "good" : rate >= poor_rate ? "mixed" : "poor";
}

/// Of its runs before this one, the share that used it.
double share_of(const context::item_statistics& s) {
  return s.injected == 0 ? 0 : static_cast<double>(s.use_count) / static_cast<double>(s.injected);
}

std::string trend_of(const context::item_statistics& s, bool used) {
  if (s.injected == 0)
    return "new";
  if (used)
    return share_of(s) < half ? "rising" : "steady";
  return s.use_count == 0 ? "unused" : "falling";
}

std::string share_in_words(const context::item_statistics& s) {
  return "used in " + std::to_string(s.use_count) + " of " +
         words::counted(s.injected, "earlier run", "earlier runs");
}

/// What to do, and why.
std::pair<std::string, std::string> action_for(const context::snapshot_item& i,
                                               const context::item_statistics& s, bool cited,
                                               bool used, bool judged) {
  if (i.hash.empty())
    return {"remove", "unreadable; fix the path, or remove the reference"};
  if (quality_of(s) == "poor" && s.verified_not_useful >= enough_verified)
    return {"remove", "most runs that used it failed"};
  if (!cited && !used && s.injected >= enough_shown && share_of(s) < noise)
    return {"archive", share_in_words(s)};
  if (used && !cited && judged)
    return {"enhance", "the answer uses it without citing it"};
  if (used && i.as == context::shown_as::summary)
    return {"enhance", "useful, but too large: shorten it, or raise the token budget of the agent"};
  if (i.as == context::shown_as::left_out)
    return {"keep", "left out of this run; no conclusion"};
  if (cited || used)
    return {"keep", "the answer is based on it"};
  return {"keep", s.injected == 0 ? "too new to judge" : share_in_words(s)};
}

} // namespace

std::vector<advice> advise(const execution& e) {
  std::vector<advice> all;
  const auto* a = words::last_of(e);
  const auto* s = words::first_snapshot(e);
  if (a == nullptr || s == nullptr)
    return all;
  for (const auto& i : s->items) {
    if (i.from == context::origin::tool)
      continue;
    const auto* known = words::known_to(*a, i.id);
    const auto counts = known == nullptr ? context::item_statistics{} : known->counts;
    const bool cited = e.cited && words::names(e.cited->valid, i.id);
    const bool used = cited || (e.cited && words::names(e.cited->used, i.id));
    auto [action, reason] = action_for(i, counts, cited, used, e.cited.has_value());
    all.push_back({i.path, std::move(action),
                   used                                ? "high"
                   : i.where == context::section::high ? "medium"
                                                       : "low",
                   quality_of(counts), trend_of(counts, used), std::move(reason)});
  }
  return all;
}

} // namespace boyd::record
