#include "boyd/core/text.hpp"
#include "boyd/improve/cycle_state.hpp"

#include <algorithm>
#include <tuple>

namespace boyd::improve {

namespace {

constexpr std::size_t title_characters = 120;
constexpr int warning_priority = 4;

int priority_of(const finding& f) {
  switch (f.from) {
  case finding_source::lint:
    return f.is_warning ? warning_priority : 1;
  case finding_source::test:
    return 2;
  case finding_source::hygiene:
    break;
  }
  return 3;
}

std::string place_of(const finding& f) {
  return f.path + (f.line > 0 ? ":" + std::to_string(f.line) : "");
}

std::string title_of(const finding& f) {
  std::string title;
  if (f.from == finding_source::test)
    title = f.test.empty() ? f.scanner + " fails" : f.test + " fails";
  else
    title = (f.rule.empty() ? f.scanner : f.rule) + (f.path.empty() ? "" : " in " + place_of(f));
  return std::string(cut_characters(title, title_characters));
}

bool holds(const std::vector<std::string>& list, const std::string& id) {
  return std::ranges::find(list, id) != list.end();
}

} // namespace

std::vector<candidate> candidates_of(const std::vector<finding>& findings, const cycle_state& s) {
  const auto ids = ids_of(findings);
  std::vector<candidate> all;
  for (std::size_t i = 0; i < findings.size(); ++i) {
    const auto& f = findings[i];
    candidate c;
    c.task_id = ids[i];
    c.what = f;
    c.priority = priority_of(f);
    c.title = title_of(f);
    c.description = (f.path.empty() ? "" : place_of(f) + ": ") + f.message;
    c.effort = f.from == finding_source::test ? "medium" : "small";
    c.blocked = f.unfixable;
    if (c.blocked.empty() && (f.path.starts_with('/') || f.path.starts_with("../")))
      c.blocked = "it lies outside of the repository";
    const auto failed = std::ranges::count_if(
        s.failure_log, [&](const failure_entry& e) { return e.task_id == c.task_id; });
    c.failures = static_cast<int>(failed);
    all.push_back(std::move(c));
  }
  std::ranges::stable_sort(all, [](const candidate& a, const candidate& b) {
    return std::tie(a.priority, a.failures, a.what.path, a.what.line, a.task_id) <
           std::tie(b.priority, b.failures, b.what.path, b.what.line, b.task_id);
  });
  return all;
}

std::string why_passed_over(const candidate& c, const cycle_state& s) {
  if (!c.blocked.empty())
    return "blocked: " + c.blocked;
  if (holds(s.paused_tasks, c.task_id))
    return "paused after " + std::to_string(strikes_that_pause) + " failures";
  if (holds(s.quarantined, c.task_id))
    return "quarantined: it fails only sometimes";
  return {};
}

const candidate* choose(const cycle_state& s) {
  const auto it = std::ranges::find_if(
      s.candidates, [&](const candidate& c) { return why_passed_over(c, s).empty(); });
  return it == s.candidates.end() ? nullptr : &*it;
}

} // namespace boyd::improve
