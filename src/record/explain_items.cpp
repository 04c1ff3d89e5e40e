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
    return "the agent's configuration names it";
  case context::origin::reference:
    return "its instructions name it";
  case context::origin::buffer:
    return "a person added it for all agents";
  case context::origin::bank:
    return "the bank: it was useful before";
  case context::origin::memory:
    return "the agents' memory: it fits the question";
  case context::origin::tool:
    break;
  }
  return "a tool answered it";
}

std::string_view section_in_words(context::section s) {
  return s == context::section::high ? "high" : s == context::section::medium ? "medium" : "low";
}

std::string_view shown_in_words(context::shown_as as) {
  return as == context::shown_as::full      ? "in full"
         : as == context::shown_as::summary ? "shortened"
                                            : "not at all";
}

std::string used_in_words(const execution& e, const context::snapshot_item& i) {
  if (!e.cited || i.key.empty())
    return "–";
  const bool cited = words::names(e.cited->valid, i.id);
  const bool used = words::names(e.cited->used, i.id);
  return cited ? "named as a source" : used ? "used without being named" : "not used";
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
             (c.reason.empty() ? "" : " (" + c.reason + ")") + "\n";
  return lines;
}

} // namespace

std::string skill_suggestions(const execution& e) {
  std::string text = "## Skill Suggestions\n\n";
  std::string lines;
  for (const auto& c : e.stage_changes)
    if (c.to == "skill_candidate")
      lines += "- " + code(c.path) + " was useful often enough to be suggested" +
               (c.reason.empty() ? "" : " (" + c.reason + ")") +
               ". `boyd skills review` shows it.\n";
  for (const auto& s : e.skills)
    if (s.state != "offered")
      lines += "- The run said that it followed the skill " + code(s.name) + ".\n";
  if (lines.empty())
    return text + "- (none)\n\n";
  return text +
         "A skill is a text that tells agents how to do something. One comes about when a text has "
         "proved useful in many\nruns and a person approves it; nothing becomes a skill by "
         "itself.\n\n" +
         lines + "\n";
}

std::string bank_usage(const execution& e) {
  const auto& s = reading_of(e);
  std::string text = "## Context Bank Usage\n\n";
  if (s.items.empty())
    return text + "- (none): the run was given nothing to read.\n\n";
  const auto banked =
      std::ranges::count(s.items, context::origin::bank, &context::snapshot_item::from);
  text +=
      "Beside its instructions a run is given texts to read: files, output of commands, memory, "
      "and from the *bank* those\nthat were useful in earlier runs (here: " +
      std::to_string(banked) +
      "). Importance (high, medium, low) comes from how earlier runs went\nthat used the text; "
      "the tokens (pieces of words) are those of what was shown.\n\n";
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
    return text + changes_of_stages(e) + "- (none): the run was given nothing to read.\n\n";
  text += "How the texts differ from those of the agent's run before, and what became "
          "of their standing: *context* is an\nordinary text, *bank* one that was "
          "useful and is offered again, *skill_candidate* one that could become a "
          "skill,\n*archived* one that is not offered any more.\n\n";
  const auto& d = a->turns.front().diff;
  if (!d.added.empty())
    text += "- new: " + paths(d.added) + "\n";
  if (!d.changed.empty())
    text += "- with another content: " + paths(d.changed) + "\n";
  if (!d.removed.empty())
    text += "- gone: " + paths(d.removed) + "\n";
  if (d.added.empty() && d.changed.empty() && d.removed.empty())
    text += "- The texts are the same as before.\n";
  return text + changes_of_stages(e) + "\n";
}

namespace {

std::string lesson_of(const execution& e) {
  const auto* a = last_of(e);
  const auto o = a == nullptr ? json() : value(a->outcome);
  const auto failure = text_in(o, "failure");
  const bool of_content = failure.empty() || failure == "none" || failure == "deterministic";
  if (!of_content)
    return "The run failed for a reason outside of what it read, so nothing was learned about "
           "the texts.";
  if (e.cited->weak)
    return "The answer is weak (above), so its texts earn nothing, whatever the run achieved.";
  if (fate_of(e) == fate::done)
    return "The run counts as a success, so the texts that it used count as a little more useful "
           "from now on.";
  return "The run counts as a failure, so the texts that it used count as a little less useful "
         "from now "
         "on.";
}

} // namespace

std::string retrospective(const execution& e) {
  std::string text = "## Citation Retrospective\n\n";
  if (!e.cited)
    return text + "- (none): " +
           (reading_of(e).items.empty() ? "there was nothing to name."
                                        : "no attempt has ended yet.") +
           "\n\n";
  text += "An answer is to name the texts that it rests on, by a key ([C2]) or by name. Whether it "
          "did is checked: a named text\nmust have been given, and a text counts as used when the "
          "answer repeats several of its phrases or an action names it.\nWhether the answer is "
          "right is not looked at here.\n\n";
  const auto& c = *e.cited;
  const auto list = [&](const std::string& what, const std::string& lines) {
    text += "- **" + what + ":**" + (lines.empty() ? " (none)\n" : "\n" + lines);
  };
  list("Named, and given", named_list(c.valid));
  std::string invented;
  for (const auto& i : c.invented)
    invented += "  - " + code(i) + "\n";
  list("Named, but never given", invented);
  list("Used, but not named", named_list(c.uncited));
  if (c.accuracy)
    text += "- **Accuracy:** " + std::to_string(std::lround(*c.accuracy * 100)) +
            " % of what was named or used was named rightly.\n";
  text += c.contract == "enforce"
              ? "- **Rule:** naming sources was required, and " +
                    std::string(c.weak ? "the answer broke the rule: it is **weak**.\n"
                                       : "the answer kept to it.\n")
              : "- **Rule:** the agent need not name its sources; whether it did was only "
                "noted.\n";
  return text + "- **What was learned:** " + lesson_of(e) + "\n\n";
}

std::string recommendations(const execution& e) {
  std::string text = "## Lifecycle Recommendations\n\n";
  const auto all = advise(e);
  if (all.empty())
    return text + "- (none): the run was given nothing to read.\n\n";
  text +=
      "What a person could do with each text, judged by this run and those before it. Nothing of "
      "it is done by itself.\n\n"
      "- **keep:** leave it as it is\n"
      "- **enhance:** it helps; make it shorter, clearer or easier to name\n"
      "- **archive:** stop giving it to the agent, but keep it\n"
      "- **remove:** take it out\n\n"
      "Relevance is about this run, quality about how checked runs ended that used the text, "
      "the trend about how often runs\nuse it.\n\n"
      "| Text | Suggestion | Relevance | Quality | Trend of use | Why |\n"
      "|---|---|---|---|---|---|\n";
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
         words::counted(s.injected, "run", "runs") + " before";
}

/// What to do, and why.
std::pair<std::string, std::string> action_for(const context::snapshot_item& i,
                                               const context::item_statistics& s, bool cited,
                                               bool used, bool judged) {
  if (i.hash.empty())
    return {"remove", "it could not be read; correct its path, or take it out"};
  if (quality_of(s) == "poor" && s.verified_not_useful >= enough_verified)
    return {"remove", "runs that used it failed more often than not"};
  if (!cited && !used && s.injected >= enough_shown && share_of(s) < noise)
    return {"archive", share_in_words(s)};
  if (used && !cited && judged)
    return {"enhance", "the answer uses it without naming it"};
  if (used && i.as == context::shown_as::summary)
    return {"enhance", "it is of use and does not fit: shorten it, or give the agent a larger "
                       "budget"};
  if (i.as == context::shown_as::left_out)
    return {"keep", "it was left out of this run, which says nothing about it"};
  if (cited || used)
    return {"keep", "the answer rests on it"};
  return {"keep", s.injected == 0 ? "too new to be judged" : share_in_words(s)};
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
