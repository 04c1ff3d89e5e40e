#include "boyd/plan/next_run.hpp"

#include <algorithm>

namespace boyd::plan {

namespace {

/// Slots that are looked at; a schedule that is quiet for longer has no next time worth telling.
constexpr int slots_looked_at = 1000;

} // namespace

std::optional<utc_time> next_run(const config::kernel& kernel, const config::agent& agent,
                                 const plan_input& in, const schedule_rule& cycles,
                                 const std::vector<quiet_rule>& quiet,
                                 std::optional<utc_time> wake_due_at) {
  const auto ready = ready_at(kernel, agent, in);
  if (!ready)
    return std::nullopt;
  // A slot at the very moment at which it is ready will do.
  auto after = std::max(in.now, std::max(*ready, wake_due_at.value_or(in.now)) - milliseconds{1});
  for (int looked_at = 0; looked_at < slots_looked_at; ++looked_at) {
    const auto slot = cycles.next_after(after);
    if (!slot)
      return std::nullopt;
    const auto hours = is_quiet(quiet, *slot);
    if (!hours)
      return slot;
    after = std::max(*slot, hours->until - milliseconds{1});
  }
  return std::nullopt;
}

} // namespace boyd::plan
