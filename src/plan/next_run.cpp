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

std::vector<fire_time> fire_times(const config::kernel& kernel, const config::agent* agent,
                                  const schedule_rule& cycles, const schedule_rule* own,
                                  utc_time now, std::size_t count) {
  std::vector<fire_time> times;
  const auto start_of = [&](utc_time slot) { return cycles.due_at(kernel.kernel_id, slot); };
  // What was due since the last cycle runs in the next one.
  auto last = cycles.latest_at_or_before(now);
  if (last && start_of(*last) > now)
    last = cycles.latest_at_or_before(*last - milliseconds{1});
  auto slot = last ? cycles.next_after(*last) : cycles.next_after(now);
  auto since = last.value_or(now);
  for (int looked_at = 0; slot && times.size() < count && looked_at < slots_looked_at;
       ++looked_at) {
    utc_time due{};
    if (own != nullptr) {
      const auto wanted = own->next_after(since);
      if (!wanted)
        break;
      due = own->due_at(kernel.kernel_id + "/" + agent->agent_id, *wanted);
      // The slot at that very moment will do.
      slot = std::max(*slot, cycles.latest_at_or_before(due).value_or(*slot));
      while (slot && start_of(*slot) < due)
        slot = cycles.next_after(*slot);
      if (!slot)
        break;
    }
    const auto start = start_of(*slot);
    times.push_back({start, own != nullptr ? due : start});
    since = *slot;
    slot = cycles.next_after(*slot);
  }
  return times;
}

} // namespace boyd::plan
