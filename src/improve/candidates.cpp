#include "boyd/core/text.hpp"
#include "boyd/improve/cycle_state.hpp"

#include <algorithm>
#include <set>
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
    const auto failed = std::ranges::count_if(s.failure_log, [&](const failure_entry& e) {
      return e.task_id == c.task_id && e.kind != failure_kind::environment;
    });
    c.failures = static_cast<int>(failed);
    all.push_back(std::move(c));
  }
  std::ranges::stable_sort(all, [](const candidate& a, const candidate& b) {
    return std::tie(a.priority, a.failures, a.what.path, a.what.line, a.task_id) <
           std::tie(b.priority, b.failures, b.what.path, b.what.line, b.task_id);
  });
  return all;
}

std::string kind_of_task(const candidate& c) {
  return std::string(name_of(c.what.from)) + (c.what.rule.empty() ? "" : ":" + c.what.rule);
}

result<std::string> take_up(cycle_state& s, const std::string& task) {
  std::set<std::string> found;
  for (const auto* list : {&s.paused_tasks, &s.quarantined})
    for (const auto& id : *list)
      if (id == task || (!task.empty() && id.starts_with(task)))
        found.insert(id);
  const auto waiting = s.awaits_approval() && s.selected ? s.selected->task_id : std::string();
  if (!waiting.empty() && !task.empty() && waiting.starts_with(task))
    found.insert(waiting);
  if (found.contains(task))
    found = {task};
  if (found.empty())
    return fail(errc::not_found,
                "no task of this name is paused, quarantined or waits for approval", task,
                "see them: boyd improve report");
  if (found.size() > 1)
    return fail(errc::invalid_argument, "several tasks begin like this", task,
                "give more of it: " + *found.begin());
  const auto id = *found.begin();
  std::erase(s.paused_tasks, id);
  std::erase(s.quarantined, id);
  s.strikes.erase(id);
  s.set_aside.erase(id);
  if (id == waiting) {
    s.execution.patch.reset();
    s.reason = "the patch that waited for a person was dropped";
  }
  return id;
}

void take_up_changed(cycle_state& s, const std::vector<finding>& findings) {
  const auto ids = ids_of(findings);
  for (std::size_t i = 0; i < findings.size(); ++i) {
    const auto was = s.set_aside.find(ids[i]);
    const auto& now = findings[i].file_hash;
    if (was != s.set_aside.end() && !now.empty() && now != was->second)
      static_cast<void>(take_up(s, ids[i]));
  }
}

std::string why_passed_over(const candidate& c, const cycle_state& s) {
  if (!c.blocked.empty())
    return "blocked: " + c.blocked;
  if (holds(s.paused_tasks, c.task_id))
    return s.strikes.contains(c.task_id)
               ? "paused after " + std::to_string(strikes_that_pause) + " failures"
               : "paused: with its patch nothing could be checked";
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
