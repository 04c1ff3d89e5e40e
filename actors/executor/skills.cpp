#include "actors/executor/parts.hpp"
#include "actors/support/ask.hpp"
#include "boyd/skills/skill.hpp"

#include <algorithm>
#include <string>
#include <utility>

namespace boyd::executing {

namespace {

/// Why a run is not given the text of a skill; empty: it is.
std::string why_not(const skill_view& v) {
  if (v.state == skills::name_of(skills::skill_state::enabled) ||
      v.state == skills::name_of(skills::skill_state::degraded))
    return {};
  return "the skill " + v.name + " cannot be used: " + v.state;
}

} // namespace

void read_skill(self_pointer self, const tools::read_skill_call& call,
                std::function<void(std::string, bool)> done) {
  look_at_skills what;
  what.kernel_id = self->state.order.work->row.kernel_id;
  what.name = call.name;
  knowledge_request request;
  request.what = std::move(what);
  ask<knowledge_reply>(self, self->state.order.services.knows(), std::move(request),
                       [self, done = std::move(done)](result<knowledge_reply> r) {
                         if (!r)
                           return done("error: " + to_string(r.error()), true);
                         const auto& v = r->skills.front();
                         if (const auto why = why_not(v); !why.empty())
                           return done("error: " + why, true);
                         // It may have been approved since the run began.
                         auto& names = self->state.skill_names;
                         if (std::ranges::find(names, v.name) == names.end())
                           names.push_back(v.name);
                         done(v.text, false);
                       });
}

void tell_skills(const executor_state& s, run_outcome& outcome) {
  if (s.skill_names.empty())
    return;
  const auto said = s.record ? s.record->said : std::string();
  for (auto& name : skills::declared_skills(said + "\n" + outcome.output))
    if (std::ranges::find(s.skill_names, name) != s.skill_names.end())
      outcome.usage.skills.push_back(std::move(name));
}

} // namespace boyd::executing
