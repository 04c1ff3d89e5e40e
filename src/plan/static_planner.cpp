#include "boyd/plan/static_planner.hpp"

#include "boyd/core/limits.hpp"
#include "boyd/plan/agent_prompt.hpp"

#include <algorithm>
#include <charconv>
#include <optional>
#include <utility>

namespace boyd::plan {
namespace {

/// Why an agent does not run; the names are those of agent_decision::reason.
struct hold {
  std::string reason;
  std::string detail;
};

template <class Map>
const typename Map::mapped_type* find(const Map& map, const std::string& key) {
  const auto at = map.find(key);
  return at == map.end() ? nullptr : &at->second;
}

std::optional<hold> held_by_pause(const std::string& kernel_id, const std::string& agent_id,
                                  const plan_input& in) {
  for (const pause_record& p : in.pauses) {
    if (p.kernel_id != kernel_id || (!p.agent_id.empty() && p.agent_id != agent_id))
      continue;
    return hold{"paused", std::string{p.agent_id.empty() ? "the kernel, " : ""} + "since " +
                              format_rfc3339(p.since) + (p.reason.empty() ? "" : ": " + p.reason)};
  }
  return std::nullopt;
}

std::optional<hold> held_by_quiet_hours(const plan_input& in) {
  if (!in.quiet)
    return std::nullopt;
  return hold{"paused", in.quiet->reason + " until " + format_rfc3339(in.quiet->until)};
}

std::optional<hold> held_by_run(const std::string& agent_id, const plan_input& in) {
  for (const dispatch& d : in.latest)
    if (d.agent_id == agent_id && !is_final(d.status))
      return hold{"running", "run " + d.dispatch_id + " of cycle " + d.cycle_id +
                                 (d.status == dispatch_status::pending ? " has not started"
                                  : d.fence > 1                        ? " is running again"
                                                                       : " is running")};
  return std::nullopt;
}

/// A time further ahead came from a clock that was wrong, and is not waited for.
bool is_believable(utc_time recorded, utc_time now) {
  return recorded <= now + limits::clock_step;
}

/// When the agent has cooled down. A dispatch from a time that is yet to come, by more than the
/// clocks of two nodes differ, was recorded before the clock was set back: it is not waited for.
utc_time cooled_at(const config::agent& agent, const plan_input& in) {
  constexpr milliseconds clocks_differ = std::chrono::minutes{1};
  const utc_time* last = find(in.last_dispatched_at, agent.agent_id);
  const bool counts = last && agent.cooldown > milliseconds{0} && *last <= in.now + clocks_differ;
  return counts ? *last + agent.cooldown : utc_time{};
}

/// Slots up to here are used up.
utc_time base_of(const std::string& agent_id, const plan_input& in) {
  const utc_time* used = find(in.agent_slots, agent_id);
  if (used && is_believable(*used, in.now))
    return *used;
  return is_believable(in.since, in.now) ? in.since : utc_time{};
}

/// An agent's own schedule: the newest slot that is due and not used up, or when the next is.
struct agent_slot {
  std::optional<utc_time> due;
  std::optional<utc_time> next;
};

agent_slot slot_of(const schedule_rule& rule, const std::string& owner, const std::string& agent_id,
                   const plan_input& in) {
  const utc_time base = base_of(agent_id, in);
  auto slot = rule.latest_at_or_before(in.now);
  // Jitter keeps the order of slots, so only the newest can still be waiting for its start.
  if (slot && rule.due_at(owner, *slot) > in.now)
    slot = rule.latest_at_or_before(*slot - milliseconds{1});
  if (slot && *slot > base)
    return {slot, std::nullopt};
  const auto next = rule.next_after(base);
  return {std::nullopt, next ? std::optional{rule.due_at(owner, *next)} : std::nullopt};
}

/// Reasons 4 and 5.
std::optional<hold> held_by_time(const config::kernel& kernel, const config::agent& agent,
                                 const plan_input& in) {
  const std::string& id = agent.agent_id;
  if (const schedule_rule* rule = find(in.schedules, id)) {
    const agent_slot slot = slot_of(*rule, kernel.kernel_id + "/" + id, id, in);
    if (!slot.due)
      return hold{"schedule",
                  slot.next ? "due at " + format_rfc3339(*slot.next) : "no further runs"};
  }
  if (const auto next = cooled_at(agent, in); next > in.now)
    return hold{"cooldown", "over at " + format_rfc3339(next)};
  return std::nullopt;
}

/// Reasons 1 to 6: everything that is known without a wake check.
std::optional<hold> held_back(const config::kernel& kernel, const config::agent& agent,
                              const plan_input& in) {
  const std::string& id = agent.agent_id;
  if (!agent.enabled)
    return hold{"disabled", {}};
  if (auto h = held_by_pause(kernel.kernel_id, id, in))
    return h;
  if (auto h = held_by_quiet_hours(in))
    return h;
  if (auto h = held_by_run(id, in))
    return h;
  if (auto h = in.only ? std::nullopt : held_by_time(kernel, agent, in))
    return h;
  if (const std::string* spent = find(in.spent, id))
    return hold{"budget", *spent};
  return std::nullopt;
}

std::optional<hold> held_by_wake(const config::agent& agent, const plan_input& in) {
  const wake_answer* answer = agent.wake ? find(in.wake, agent.agent_id) : nullptr;
  if (!answer || (answer->kind != wake_kind::unchanged && answer->kind != wake_kind::waiting))
    return std::nullopt;
  return hold{"no_change", answer->detail};
}

/// What a dispatched agent's decision says besides.
std::string remark(const config::agent& agent, const plan_input& in) {
  const wake_answer* answer = agent.wake ? find(in.wake, agent.agent_id) : nullptr;
  if (!answer || answer->kind != wake_kind::error)
    return {};
  return "dispatched because the wake check failed: " + answer->detail;
}

dispatch_spec make_spec(const config::kernel& kernel, const config::agent& agent,
                        const plan_input& in, agent_prompt prompt) {
  dispatch_spec spec;
  spec.dispatch_id = in.make_id();
  spec.kernel_id = kernel.kernel_id;
  spec.cycle_id = in.cycle_id;
  spec.agent_id = agent.agent_id;
  spec.prompt = std::move(prompt.text);
  spec.priority = agent.priority;
  spec.max_attempts = agent.retry.max_attempts;
  spec.metadata_json = std::move(prompt.metadata_json);
  return spec;
}

void use_slot(plan_output& out, const config::kernel& kernel, const std::string& agent_id,
              const plan_input& in) {
  const schedule_rule* rule = find(in.schedules, agent_id);
  if (!rule || in.only)
    return;
  if (const auto slot = slot_of(*rule, kernel.kernel_id + "/" + agent_id, agent_id, in); slot.due)
    out.agent_slots[agent_id] = *slot.due;
}

} // namespace

std::map<std::string, utc_time> read_agent_slots(const std::map<std::string, std::string>& facts) {
  std::map<std::string, utc_time> slots;
  for (const auto& [agent, text] : facts) {
    std::int64_t ms = 0;
    if (std::from_chars(text.data(), text.data() + text.size(), ms).ec == std::errc{})
      slots[agent] = from_unix_ms(ms);
  }
  return slots;
}

plan_output plan_static(const config::kernel& kernel, const plan_input& in) {
  plan_output out;
  placeholder_values values = in.values;
  if (values.time.empty())
    values.time = format_rfc3339(in.now);
  for (const config::agent& agent : kernel.agents) {
    if (in.only && in.only->agent_id != agent.agent_id)
      continue;
    auto held = held_back(kernel, agent, in);
    if (!held && !in.only) {
      held = held_by_wake(agent, in);
      if (held)
        use_slot(out, kernel, agent.agent_id, in);
    }
    if (!held) {
      if (auto prompt = make_prompt(agent, values, in.buffer, in.only ? in.only->message : "")) {
        out.specs.push_back(make_spec(kernel, agent, in, std::move(*prompt)));
        use_slot(out, kernel, agent.agent_id, in);
      } else {
        held = hold{"planner", to_string(prompt.error())};
      }
    }
    out.decisions.push_back(held ? agent_decision{agent.agent_id, false, held->reason, held->detail}
                                 : agent_decision{agent.agent_id, true, {}, remark(agent, in)});
  }
  std::ranges::stable_sort(out.specs, std::ranges::greater{}, &dispatch_spec::priority);
  return out;
}

std::optional<utc_time> ready_at(const config::kernel& kernel, const config::agent& agent,
                                 const plan_input& in) {
  const std::string& id = agent.agent_id;
  if (!agent.enabled || held_by_pause(kernel.kernel_id, id, in))
    return std::nullopt;
  auto ready = in.now;
  if (const schedule_rule* rule = find(in.schedules, id)) {
    const agent_slot slot = slot_of(*rule, kernel.kernel_id + "/" + id, id, in);
    if (!slot.due && !slot.next)
      return std::nullopt;
    ready = std::max(ready, slot.due ? in.now : *slot.next);
  }
  return std::max(ready, cooled_at(agent, in));
}

std::vector<std::string> wake_candidates(const config::kernel& kernel, const plan_input& in) {
  std::vector<std::string> ids;
  if (in.only)
    return ids;
  for (const config::agent& agent : kernel.agents)
    if (agent.wake && !held_back(kernel, agent, in))
      ids.push_back(agent.agent_id);
  return ids;
}

} // namespace boyd::plan
