#include "boyd/record/execution.hpp"

#include <algorithm>
#include <utility>

namespace boyd::record {

context::snapshot latest_snapshot(const execution& e) {
  for (auto a = e.attempts.rbegin(); a != e.attempts.rend(); ++a)
    if (!a->turns.empty())
      return a->turns.back().snapshot;
  return {};
}

void begin_attempt(execution& e, attempt begun, const context::snapshot& last) {
  std::erase_if(e.attempts, [&](const attempt& a) { return a.fence == begun.fence; });
  const auto before = e.attempts.empty() ? last : latest_snapshot(e);
  // A run that reads nothing is not compared: its agent may read again some day.
  if (!begun.turns.empty() && !begun.turns.front().snapshot.items.empty())
    begun.turns.front().diff = context::diff_of(before, begun.turns.front().snapshot);
  e.explanation.clear();
  e.attempts.push_back(std::move(begun));
}

namespace {

/// `turns` stand for the attempt's first one, whose snapshot and diff stay, and those after it.
void put_turns(attempt& a, std::vector<turn> turns) {
  for (std::size_t i = 0; i < turns.size(); ++i) {
    auto& t = turns[i];
    if (i == 0 && !a.turns.empty()) {
      t.snapshot = std::move(a.turns.front().snapshot);
      t.diff = std::move(a.turns.front().diff);
    } else if (i > 0) {
      t.diff = context::diff_of(turns[i - 1].snapshot, t.snapshot);
    }
  }
  if (!turns.empty())
    a.turns = std::move(turns);
}

} // namespace

bool go_on(execution& e, std::int64_t fence, std::vector<turn> turns) {
  const auto it = std::ranges::find(e.attempts, fence, &attempt::fence);
  if (it == e.attempts.end())
    return false;
  put_turns(*it, std::move(turns));
  return true;
}

bool end_attempt(execution& e, attempt_end end) {
  const auto it = std::ranges::find(e.attempts, end.fence, &attempt::fence);
  if (it == e.attempts.end())
    return false;
  put_turns(*it, std::move(end.turns));
  it->ended_at = end.at;
  it->outcome = std::move(end.outcome);
  it->answer = std::move(end.answer);
  const bool is_newest = std::ranges::none_of(
      e.attempts, [&](const attempt& a) { return a.fence > end.fence && a.ended_at; });
  if (is_newest) {
    e.cited = std::move(end.cited);
    e.skills = std::move(end.skills);
  }
  return true;
}

void add_facts(execution& e, const execution_facts& told) {
  for (const auto& change : told.stage_changes)
    if (std::ranges::find(e.stage_changes, change) == e.stage_changes.end())
      e.stage_changes.push_back(change);
  for (const auto& line : told.evidence)
    if (std::ranges::find(e.evidence, line) == e.evidence.end())
      e.evidence.push_back(line);
  for (auto& s : e.skills)
    if (std::ranges::find(told.validated, s.name) != told.validated.end())
      s.state = "validated";
}

citations judge(const run_words& run, const std::vector<context::citable>& items, bool enforced) {
  const auto used =
      context::find_used(run.answer + "\n" + run.wrote, run.rest_of_prompt, items, run.paths);
  const auto report = context::judge_citations(context::find_citations(run.answer, items), used);
  citations c;
  c.contract = enforced ? "enforce" : "observe";
  const auto named = [&](const std::vector<std::size_t>& indices) {
    std::vector<named_item> all;
    for (const auto i : indices)
      all.push_back({items.at(i).key, items.at(i).id, items.at(i).path});
    return all;
  };
  c.valid = named(report.valid);
  c.invented = report.invented;
  c.uncited = named(report.uncited);
  c.used = named(used);
  c.accuracy = report.accuracy;
  c.weak = enforced && report.is_weak();
  return c;
}

std::vector<context::citable> citables_of(const std::vector<context::offered_item>& items,
                                          const context::context_block& block) {
  std::vector<context::citable> all;
  for (const auto& p : block.placed) {
    if (p.key.empty())
      continue;
    const auto& i = items.at(p.offered);
    all.push_back(
        {p.key, i.id, i.path, p.as == context::shown_as::summary ? p.summary : i.content});
  }
  return all;
}

} // namespace boyd::record
