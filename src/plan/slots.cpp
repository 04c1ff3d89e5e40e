#include "boyd/plan/slots.hpp"

#include "boyd/core/limits.hpp"

#include <algorithm>
#include <utility>

namespace boyd::plan {
namespace {

struct due_slot {
  utc_time slot{};
  bool misfired = false;
};

/// How a summary row begins to say what it stands for: "… FIRST to LAST".
constexpr std::string_view summary_words = "stands for every slot from ";

/// The slots after `base` that are due, oldest first, and those too old for a row of their own.
struct due_slots {
  std::vector<due_slot> slots;
  std::optional<std::pair<utc_time, utc_time>> older; ///< first and last
};

due_slots find_due(const schedule_rule& rule, const slot_input& in, utc_time base) {
  due_slots due;
  const milliseconds grace = rule.settings().grace;
  auto slot = rule.latest_at_or_before(in.now);
  for (; slot && *slot > base && due.slots.size() < limits::caught_up_slots;
       slot = rule.latest_at_or_before(*slot - milliseconds{1})) {
    const utc_time start = rule.due_at(in.kernel_id, *slot);
    if (start <= in.now)
      due.slots.push_back({*slot, in.now - start > grace});
  }
  std::reverse(due.slots.begin(), due.slots.end());
  if (slot && *slot > base)
    due.older = std::pair{rule.next_after(base).value_or(*slot), *slot};
  return due;
}

/// Turns due slots into rows; keeps count of what is opened on the way.
class decider {
 public:
  decider(const schedule_rule& rule, const slot_input& in)
      : rule_{rule}, in_{in}, waiting_{in.waiting} {}

  slot_decision take(const due_slots& due) {
    if (due.older)
      summarise(*due.older, due.slots.back().slot);
    if (!in_.paused.empty()) {
      for (const due_slot& s : due.slots)
        add(s.slot, occurrence_state::skipped, "paused: " + in_.paused);
    } else if (rule_.settings().misfire == config::misfire_policy::all) {
      for (const due_slot& s : due.slots)
        catch_up(s);
    } else if (!due.slots.empty()) {
      newest_only(due.slots);
    }
    return std::move(out_);
  }

 private:
  bool busy() const { return !in_.running_cycle.empty() || waiting_ > 0; }

  occurrence& add(utc_time slot, occurrence_state state, std::string reason) {
    occurrence row;
    row.kernel_id = in_.kernel_id;
    row.scheduled_at = slot;
    row.trigger = schedule_trigger;
    row.state = state;
    row.reason = std::move(reason);
    row.node_id = in_.node_id;
    row.created_at = in_.now;
    if (state != occurrence_state::open)
      row.finished_at = in_.now;
    out_.rows.push_back(std::move(row));
    return out_.rows.back();
  }

  void open(const due_slot& s) {
    add(s.slot, occurrence_state::open, {}).late = s.misfired;
    ++waiting_;
  }

  void summarise(const std::pair<utc_time, utc_time>& older, utc_time newest) {
    const std::string range = std::string{summary_words} + format_rfc3339(older.first) + " to " +
                              format_rfc3339(older.second);
    if (!in_.paused.empty())
      add(older.first, occurrence_state::skipped, "paused: " + in_.paused + "; " + range);
    else if (rule_.settings().misfire == config::misfire_policy::run_once)
      add(older.first, occurrence_state::coalesced,
          "merged into the slot " + format_rfc3339(newest) + "; " + range);
    else
      add(older.first, occurrence_state::missed, "no node was running then; " + range);
  }

  /// misfire run_once and skip: one slot stands for all.
  void newest_only(const std::vector<due_slot>& due) {
    const bool drop_misfired = rule_.settings().misfire == config::misfire_policy::skip;
    const due_slot& newest = due.back();
    for (const due_slot& s : due) {
      if (drop_misfired && s.misfired)
        add(s.slot, occurrence_state::missed,
            "too late: grace period of " + format_duration(rule_.settings().grace));
      else if (s.slot == newest.slot)
        start(s);
      else
        add(s.slot, occurrence_state::coalesced,
            "merged into the slot " + format_rfc3339(newest.slot));
    }
  }

  /// misfire all: what was missed runs, one after the other; a slot that comes in time joins it,
  /// unless something of an earlier decision runs or waits: then the overlap rule holds.
  void catch_up(const due_slot& s) {
    const bool busy_before = !in_.running_cycle.empty() || in_.waiting > 0;
    if (busy_before && !s.misfired)
      start(s);
    else if (waiting_ < limits::caught_up_slots)
      open(s);
    else
      add(s.slot, occurrence_state::missed,
          "already " + std::to_string(limits::caught_up_slots) + " missed slots are waiting");
  }

  /// The late run after a downtime comes behind the cycle that the downtime cut off.
  bool waits(const due_slot& s) const {
    return s.misfired && in_.running_is_resumed && waiting_ == 0;
  }

  void start(const due_slot& s) {
    const std::string who = in_.running_cycle.empty()
                                ? "an earlier slot is about to start"
                                : "cycle " + in_.running_cycle + " is still running";
    if (!busy()) {
      open(s);
    } else if (rule_.settings().overlap == config::overlap_policy::skip && !waits(s)) {
      add(s.slot, occurrence_state::skipped, "running: " + who);
    } else if (waiting_ > 0) {
      add(s.slot, occurrence_state::coalesced, "merged into the waiting slot; " + who);
    } else {
      out_.cancel_running = rule_.settings().overlap == config::overlap_policy::cancel;
      open(s);
    }
  }

  const schedule_rule& rule_;
  const slot_input& in_;
  std::size_t waiting_;
  slot_decision out_;
};

} // namespace

slot_decision decide_slots(const schedule_rule& rule, const slot_input& in) {
  utc_time base = in.last_slot.value_or(in.since);
  if (base > in.now + limits::clock_step)
    base = in.now - 2 * limits::clock_check;
  const due_slots due = find_due(rule, in, base);
  slot_decision out = decider{rule, in}.take(due);
  out.next_slot = rule.next_after(due.slots.empty() ? base : due.slots.back().slot);
  out.look_again = in.now + in.look_every;
  if (out.next_slot)
    out.look_again = std::min(out.look_again, rule.due_at(in.kernel_id, *out.next_slot));
  return out;
}

std::string clock_note(const slot_input& in, const slot_decision& decision) {
  // Clocks of two nodes differ by seconds.
  const auto ahead = in.last_slot.value_or(utc_time{}) - in.now;
  if (!in.last_slot || ahead <= limits::clock_check || ahead > limits::clock_step)
    return {};
  return "the clock is behind the newest recorded slot, " + format_rfc3339(*in.last_slot) +
         " (the clock was set back, or another node's clock is ahead); no slot runs twice, so the "
         "schedule waits until " +
         (decision.next_slot ? format_rfc3339(*decision.next_slot) : std::string("its next slot")) +
         "; to run a cycle now: boyd cycle";
}

std::optional<utc_time> last_scheduled(const std::vector<occurrence>& rows) {
  std::optional<utc_time> newest;
  for (const occurrence& row : rows)
    if (row.trigger == schedule_trigger && (!newest || row.scheduled_at > *newest))
      newest = row.scheduled_at;
  return newest;
}

std::optional<utc_time> stands_until(const occurrence& row) {
  constexpr std::string_view between = " to ";
  const auto words = row.reason.rfind(summary_words);
  const auto to = words == std::string::npos ? words : row.reason.find(between, words);
  if (to == std::string::npos)
    return std::nullopt;
  const auto last = parse_rfc3339(std::string_view{row.reason}.substr(to + between.size()));
  return last ? std::optional{*last} : std::nullopt;
}

} // namespace boyd::plan
