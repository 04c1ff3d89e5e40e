#include "boyd/graph/evidence.hpp"

#include "../core/json_values.hpp"
#include "boyd/graph/learned_skills.hpp"
#include "boyd/graph/links.hpp"
#include "inspector_internal.hpp"

#include <algorithm>
#include <iterator>
#include <set>
#include <utility>

namespace boyd::graph {

namespace {

/// Of the newest decisions and promotions of the log: those of a cycle are asked for when they have
/// just been written.
constexpr std::size_t most_lessons = 2000;

record::evidence_line line_of(const cited_fact& f) {
  return {f.fact.from, f.fact.to, f.fact.type, f.place};
}

/// Facts about items that the rules have drawn from the cycle: changes of stage, and promotions.
result<std::vector<cited_fact>> lessons_of_cycle(fact_source& source,
                                                 const evidence_question& question) {
  std::vector<cited_fact> lessons;
  for (const auto* type : {"managed_by", "promoted_to"}) {
    auto facts = source.facts_of(type_node(type), most_lessons);
    if (!facts)
      return fail(std::move(facts.error()));
    std::ranges::copy_if(*facts, std::back_inserter(lessons), [&](const cited_fact& f) {
      return f.fact.timestamp == question.at &&
             (f.fact.type == "promoted_to" || f.fact.to == "decision_" + question.cycle_id);
    });
  }
  std::ranges::sort(lessons, {}, &cited_fact::line);
  return lessons;
}

void take_lesson(const cited_fact& f, record::execution_facts& to) {
  const auto meta = meta_of(f);
  if (text_in(meta, "action") == "stage")
    to.stage_changes.push_back({f.fact.from, text_in(meta, "path"), text_in(meta, "from"),
                                text_in(meta, "to"), text_in(meta, "reason")});
  to.evidence.push_back(line_of(f));
}

/// Whether it is one that its cycle has recorded.
bool is_of_run(const cited_fact& f, const std::string& execution) {
  if (f.fact.type == "used_in")
    return f.fact.to == execution;
  return f.fact.from == execution &&
         (f.fact.type == "resulted_in" || f.fact.type == "validated_by" ||
          (f.fact.type == "decided_by" && text_in(meta_of(f), "kind") != "reevaluation"));
}

} // namespace

result<std::vector<record::execution_facts>> evidence_of(fact_source& source,
                                                         const evidence_question& question) {
  const auto lessons = lessons_of_cycle(source, question);
  if (!lessons)
    return fail(lessons.error());
  std::vector<record::execution_facts> all;
  for (const auto& id : question.executions) {
    const auto execution = "exec_" + id;
    auto facts = source.facts_of(execution, most_facts);
    if (!facts)
      return fail(std::move(facts.error()));
    auto& run = all.emplace_back();
    run.dispatch_id = id;
    std::set<std::string> items;
    for (auto f = facts->rbegin(); f != facts->rend(); ++f) {
      if (!is_of_run(*f, execution))
        continue;
      run.evidence.push_back(line_of(*f));
      if (f->fact.type == "used_in")
        items.insert(f->fact.from);
      if (f->fact.type == "validated_by" && flag_in(meta_of(*f), "success"))
        if (const auto skill = names_in_skill_id(f->fact.to))
          run.validated.push_back(skill->second);
    }
    for (const auto& f : *lessons)
      if (items.contains(f.fact.from))
        take_lesson(f, run);
  }
  return all;
}

} // namespace boyd::graph
