#include "boyd/exec/immediate.hpp"

#include "boyd/exec/script.hpp"

#include <algorithm>
#include <utility>

namespace boyd::exec {

bool is_immediate(const config::script_executor::answer& answer,
                  const std::vector<config::requirement>& require) {
  using kind_t = config::requirement::kind_t;
  return answer.delay <= 0ms && std::ranges::all_of(require, [](const config::requirement& r) {
           return r.kind == kind_t::exit_zero || r.kind == kind_t::no_question ||
                  r.kind == kind_t::tool_action;
         });
}

const config::script_executor::answer* immediate_answer(const config::agent& agent,
                                                        std::uint64_t earlier_runs) {
  const auto* script = std::get_if<config::script_executor>(&agent.run);
  if (script == nullptr || !script->file.empty())
    return nullptr;
  const auto* answer = pick_answer(script->answers, earlier_runs);
  return answer != nullptr && is_immediate(*answer, agent.require) ? answer : nullptr;
}

result<run_outcome> run_immediate(attempt_options options, steady_time now) {
  attempt_core core(std::move(options));
  core.begin(now);
  for (auto& any : core.on_timer(timer_kind::answer, now))
    if (auto* done = std::get_if<effect::finish>(&any))
      return std::move(done->outcome);
  return fail(errc::bug, "the attempt is not over in the moment it begins");
}

} // namespace boyd::exec
