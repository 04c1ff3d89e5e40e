#include "explain_internal.hpp"

#include <algorithm>
#include <array>
#include <utility>
#include <vector>

/// What was given, what became of it, and what to do with it.
namespace boyd::record {

namespace {

/// Fewer runs say little about a text.
constexpr std::int64_t enough_runs = 3;

} // namespace

namespace words {

namespace {

std::string_view origin_in_words(context::origin from) {
  switch (from) {
  case context::origin::declared:
    return "named in the agent's configuration";
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
  const auto use = use_of(e, i.id);
  return use == "given" ? "no use noticed" : use == "used" ? "used, not cited" : use;
}

/// As no run has measured it.
constexpr std::string_view not_known = "not known yet";

std::string rating(const std::string& found) {
  return found == "unknown" ? std::string(not_known) : found;
}

/// What earlier runs say of it; a text's first place in a prompt is no rating.
std::string importance_before(const execution& e, const context::snapshot_item& i) {
  const auto* a = last_of(e);
  const auto* known = a == nullptr ? nullptr : known_to(*a, i.id);
  return std::string(known == nullptr || known->counts.use_count == 0 ? not_known
                                                                      : section_in_words(i.where));
}

struct column {
  std::string head;
  std::vector<std::string> cells;
  bool may_go = true; ///< what all cells say may stand above the table instead
};

/// A table with `explained` above it, and what is the same in all of its rows.
std::string table(std::vector<column> all, std::string explained) {
  std::vector<column> columns;
  std::string common;
  for (auto& c : all) {
    const bool is_same = c.cells.size() > 1 && std::ranges::count(c.cells, c.cells.front()) ==
                                                   static_cast<std::ptrdiff_t>(c.cells.size());
    if (is_same && c.may_go)
      common += "- " + c.head + ": " + c.cells.front() + "\n";
    else
      columns.push_back(std::move(c));
  }
  if (!common.empty())
    explained += "The same for all of them:\n\n" + common + "\n";
  std::string rule;
  for (const auto& c : columns) {
    explained += "| " + c.head + " ";
    rule += "|---";
  }
  explained += "|\n" + rule + "|\n";
  for (std::size_t row = 0; row < columns.front().cells.size(); ++row) {
    for (const auto& c : columns)
      explained += "| " + c.cells.at(row) + " ";
    explained += "|\n";
  }
  return explained + "\n";
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

namespace {

/// The tokens that the texts of an attempt may have; 0: not on record.
std::int64_t budget_of(const attempt& a) {
  using context::depth;
  const auto level = a.level == "focused"   ? depth::focused
                     : a.level == "minimal" ? depth::minimal
                                            : depth::full;
  return context::budget_of(
      {number_in(value(a.executor), "budget_tokens"), context::order::ranked, level});
}

std::string who_shortened(const std::vector<context::snapshot_item>& items) {
  const auto by = [&](std::string_view whom) {
    return std::ranges::count_if(items, [&](const context::snapshot_item& i) {
      return i.as == context::shown_as::summary && i.shortened_by == whom;
    });
  };
  std::string text;
  if (const auto n = by("rules"); n > 0)
    text += "Boyd shortened " + counted(n, "text", "texts") +
            " by rules: to the beginning, the headings or declarations, and the end.\n";
  if (const auto n = by("model"); n > 0)
    text += "A model shortened " + counted(n, "text", "texts") + ".\n";
  return text;
}

/// What the texts take of the budget.
std::string budget_in_words(const attempt& a, const std::vector<context::snapshot_item>& items) {
  const auto budget = budget_of(a);
  std::int64_t taken = 0;
  for (const auto& i : items)
    taken += i.tokens;
  auto text = "The texts take " + std::to_string(taken);
  if (budget == 0)
    return text + " tokens.\n";
  text += " of the " + std::to_string(budget) + " tokens that they may have";
  const auto is_short = [](const context::snapshot_item& i) {
    return i.as != context::shown_as::full && !i.hash.empty();
  };
  const auto unused = budget - taken;
  if (unused > 0 && std::ranges::any_of(items, is_short)) {
    text += "; the other " + std::to_string(unused) + " stayed unused";
    if (std::ranges::all_of(items, [&](const context::snapshot_item& i) {
          return !is_short(i) || i.whole - i.tokens > unused;
        }))
      text += ", too few to show another text whole";
  }
  return text + ".\n";
}

/// Why it is there in this form.
std::string shown_cell(const context::snapshot_item& i) {
  const bool is_usual = i.as == context::shown_as::summary && i.reason.starts_with("summarized to");
  return std::string(shown_in_words(i.as)) +
         (i.reason.empty() || is_usual ? std::string() : ": " + cell(i.reason));
}

std::string tokens_cell(const context::snapshot_item& i) {
  return std::to_string(i.tokens) + (i.whole > 0 ? " of " + std::to_string(i.whole) : "");
}

} // namespace

std::string bank_usage(const execution& e) {
  const auto& s = reading_of(e);
  std::string text = "## Context Bank Usage\n\n";
  if (s.items.empty())
    return text + "- (none): the run was given nothing but its instructions.\n\n";
  const auto banked =
      std::ranges::count(s.items, context::origin::bank, &context::snapshot_item::from);
  text += "In addition to its instructions, the run was given these texts, " +
          (banked == 0 ? std::string("none") : std::to_string(banked)) +
          " of them from the *bank* (texts that were useful in earlier runs).\n" +
          budget_in_words(*last_of(e), s.items) + who_shortened(s.items) +
          "Tokens are pieces of words; they count what was shown of a text, with its heading.\n";
  std::vector<column> columns{{"Key", {}, false},      {"Text", {}, false},
                              {"In the answer", {}},   {"Importance before this run", {}},
                              {"Tokens", {}, false},   {"Shown", {}},
                              {"Why it was there", {}}};
  bool is_known = false;
  for (const auto* i : items_by_use(e)) {
    const auto importance = importance_before(e, *i);
    is_known = is_known || importance != not_known;
    std::size_t at = 0;
    for (auto& text_of_cell :
         {i->key.empty() ? std::string("–") : i->key, cell(i->path), used_in_words(e, *i),
          importance, tokens_cell(*i), shown_cell(*i), std::string(origin_in_words(i->from))})
      columns[at++].cells.push_back(text_of_cell);
  }
  if (is_known)
    text += "Importance (high, medium, low) is what the results of earlier runs say of a text.\n";
  if (e.cited)
    text +=
        "A use is noticed where the answer cites a text or repeats several of its phrases, or an "
        "action names it.\n";
  return table(std::move(columns), text + "\n");
}

std::string evolution(const execution& e) {
  std::string text = "## Context Evolution\n\n";
  const auto* a = last_of(e);
  const auto& s = reading_of(e);
  if (a == nullptr || s.items.empty())
    return text + changes_of_stages(e) +
           "- (none): the run was given nothing but its instructions.\n\n";
  text += "Changes of the texts since the previous run of the agent";
  if (!e.stage_changes.empty())
    text += ", and changes of their stage: *context* is an ordinary\ntext, *bank* a useful text "
            "that later runs are given again, *skill_candidate* a text that could become a "
            "skill,\n*archived* a text that is no longer used";
  text += ".\n\n";
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
  if (e.cited->valid.empty() && e.cited->used.empty())
    return "No use of a text was noticed, so nothing was learned about their usefulness.";
  if (fate_of(e) == fate::unfinished)
    return "The run has not finished, so nothing was learned yet.";
  if (fate_of(e) == fate::failed)
    return "The run failed, so the texts that it used now count as a little less useful.";
  const auto& checks = part_in(o, "requirements");
  const std::string passed = text_in(o, "verification") != "passed"    ? "ended without an error"
                             : checks.is_array() && checks.size() == 1 ? "passed its check"
                                                                       : "passed its checks";
  return "The run " + passed + ", so the texts that it used now count as a little more useful.";
}

/// An example of a key that stands on the page; empty: there is none.
std::string key_of(const execution& e) {
  for (const auto* i : items_by_use(e))
    if (!i->key.empty())
      return i->key;
  return {};
}

} // namespace

std::string retrospective(const execution& e) {
  std::string text = "## Citation Retrospective\n\n";
  if (!e.cited)
    return text + "- (none): " +
           (reading_of(e).items.empty() ? "there was nothing to cite."
                                        : "no attempt has finished.") +
           "\n\n";
  const auto key = key_of(e);
  text += "An answer should cite the texts that it uses, " +
          (key.empty() ? std::string() : "by key ([" + key + "]) or ") +
          "by name. *Cited*: the answer names a text that it was\ngiven, or that a tool returned. "
          "*Used*: the answer repeats several of its phrases, or an action names it.\n\n";
  const auto& c = *e.cited;
  const auto list = [&](const std::string& what, const std::string& lines) {
    text += "- **" + what + ":**" + (lines.empty() ? " (none)\n" : "\n" + lines);
  };
  list("Cited correctly", named_list(c.valid));
  std::string invented;
  for (const auto& i : c.invented)
    invented += "  - " + code(i) + "\n";
  list("Cited, but never given", invented);
  list("Used, but not cited", named_list(c.uncited));
  if (c.accuracy)
    text += "- **Correct citations:** " + std::to_string(c.valid.size()) + " of " +
            std::to_string(c.valid.size() + c.invented.size() + c.uncited.size()) +
            (c.uncited.empty() ? "" : ", missing ones included") +
            " (this says nothing about whether the answer is right)\n";
  text += c.contract == "enforce"
              ? "- **Rule:** citations are required, and " +
                    std::string(c.weak ? "the answer broke the rule: it is **weak**.\n"
                                       : "the answer followed the rule.\n")
              : "- **Rule:** citations are optional for this agent; they were only recorded.\n";
  return text + "- **Lesson:** " + lesson_of(e) + "\n\n";
}

namespace {

std::string actions_in_words(const std::vector<advice>& all) {
  constexpr std::array<std::pair<std::string_view, std::string_view>, 4> meanings{
      {{"keep", "leave it as it is"},
       {"enhance", "useful; make it shorter, clearer or easier to cite"},
       {"archive", "stop showing it to the agent, but keep it"},
       {"remove", "delete the reference"}}};
  std::string lines;
  for (const auto& [action, meaning] : meanings)
    if (std::ranges::find(all, action, &advice::action) != all.end())
      lines += "- **" + std::string(action) + ":** " + std::string(meaning) + "\n";
  return lines;
}

std::string ratings_in_words(const std::vector<advice>& all) {
  const bool is_known = std::ranges::any_of(
      all, [](const advice& a) { return a.quality != "unknown" || a.trend != "unknown"; });
  return "Relevance to this run is high for what the answer cited or used, else medium or low by "
         "its importance before this run.\n" +
         std::string(is_known
                         ? "Quality is how the checked runs ended that used the text, trend of "
                           "use whether runs use it more or less often.\n"
                         : "") +
         "Quality and trend of use are known from " + std::to_string(enough_runs) + " runs on.\n\n";
}

} // namespace

std::string recommendations(const execution& e) {
  std::string text = "## Lifecycle Recommendations\n\n";
  auto all = advise(e);
  if (all.empty())
    return text + "- (none): the run was given nothing but its instructions.\n\n";
  // As in the other lists: what the answer named or used comes first.
  std::stable_partition(all.begin(), all.end(),
                        [](const advice& a) { return a.relevance == "high"; });
  std::vector<column> columns{
      {"Key", {}, false},  {"Text", {}, false},           {"Suggestion", {}},
      {"Why", {}},         {"Relevance to this run", {}}, {"Quality", {}},
      {"Trend of use", {}}};
  for (const auto& a : all) {
    std::size_t at = 0;
    for (auto& text_of_cell :
         {a.key.empty() ? std::string("–") : a.key, cell(a.path), "**" + a.action + "**", a.reason,
          rating(a.relevance), rating(a.quality), rating(a.trend)})
      columns[at++].cells.push_back(text_of_cell);
  }
  return table(
      std::move(columns),
      text +
          "Suggestions for each text, based on this run and earlier runs. Boyd does not "
          "apply them by itself. A text that is cited often becomes a skill candidate "
          "by itself; a skill is used only after its approval (`boyd skills approve`).\n\n" +
          actions_in_words(all) + "\n" + ratings_in_words(all));
}

} // namespace words

namespace {

constexpr double good_rate = 0.6;
constexpr double poor_rate = 0.3;
constexpr std::int64_t enough_shown = 10;
constexpr double noise = 0.1;
constexpr double half = 0.5;

/// To a run that used it, or did not.
std::string relevance_of(const context::snapshot_item& i, const context::item_statistics& s,
                         bool used) {
  if (used)
    return "high";
  if (s.use_count == 0)
    return "unknown";
  return i.where == context::section::high ? "medium" : "low";
}

std::string quality_of(const context::item_statistics& s) {
  const auto verified = s.verified_useful + s.verified_not_useful;
  if (verified < enough_runs)
    return "unknown";
  const auto rate = context::useful_rate(s);
  return rate >= good_rate ? "good" : rate >= poor_rate ? "mixed" : "poor";
}

/// Of its runs before this one, the share that used it.
double share_of(const context::item_statistics& s) {
  return s.injected == 0 ? 0 : static_cast<double>(s.use_count) / static_cast<double>(s.injected);
}

std::string trend_of(const context::item_statistics& s, bool used) {
  if (s.injected < enough_runs)
    return "unknown";
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
  if (quality_of(s) == "poor" && s.verified_not_useful >= enough_runs)
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
    return {"keep", cited ? "the answer cites it" : "the answer uses it"};
  return {"keep", s.injected < enough_runs ? "too few runs to judge" : share_in_words(s)};
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
    all.push_back({i.path, std::move(action), relevance_of(i, counts, used), quality_of(counts),
                   trend_of(counts, used), std::move(reason), i.key});
  }
  return all;
}

} // namespace boyd::record
