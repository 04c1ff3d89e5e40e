#include "boyd/plan/why.hpp"

#include "boyd/core/failure_words.hpp"
#include "boyd/plan/llm_planner.hpp"
#include "boyd/plan/llm_reducer.hpp"
#include "boyd/plan/slots.hpp"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <array>
#include <string_view>
#include <utility>

namespace boyd::plan {
namespace {

using json = nlohmann::ordered_json;
using decision_row = store::list_decisions::row;

json time_or_null(const std::optional<utc_time>& t) {
  return t ? json(format_rfc3339(*t)) : json(nullptr);
}

/// A reason as a person reads it after "because".
std::string_view phrase_of(std::string_view reason) {
  constexpr std::array<std::pair<std::string_view, std::string_view>, 8> phrases{{
      {"disabled", "it is disabled in the configuration"},
      {"paused", "it was paused"},
      {"running", "its previous run was still active"},
      {"schedule", "its own schedule was not due"},
      {"cooldown", "its cooldown was not over"},
      {"budget", "its budget was spent"},
      {"no_change", "its wake check found no change"},
      {"planner", "the planner did not select it"},
  }};
  for (const auto& [name, phrase] : phrases)
    if (name == reason)
      return phrase;
  return reason;
}

/// What the rows say about the question, picked out once for both forms of the answer.
struct facts {
  const occurrence* slot = nullptr;
  std::vector<const occurrence*> by_hand; ///< in the same minute, besides the slot
  std::optional<utc_time> unrecorded; ///< a slot the schedule had, newer than all that is recorded
  std::optional<utc_time> no_slot_at; ///< the minute asked for, where the schedule had none
  bool before_home = false;           ///< what is asked about was before this home was made
  bool in_future = false;             ///< the time asked for is still to come
  std::vector<const decision_row*> decisions;
  std::vector<const pause_record*> pauses;
};

/// Whether a time means its whole minute.
bool is_whole_minute(utc_time at) {
  using std::chrono::minutes;
  return at + milliseconds{1} == std::chrono::floor<minutes>(at) + minutes{1};
}

/// Where what is meant by a time begins.
utc_time begin_of_moment(utc_time at) {
  if (is_whole_minute(at))
    return std::chrono::floor<std::chrono::minutes>(at);
  return std::chrono::floor<seconds>(at);
}

bool is_of_schedule(const occurrence& row) {
  return row.trigger == schedule_trigger;
}

/// Whether a cycle can answer a question about the agent at a time.
bool concerns_agent(const why_input& in, const occurrence& row) {
  if (is_of_schedule(row))
    return true;
  if (row.cycle_id.empty())
    return false;
  std::size_t others = 0;
  for (const decision_row& d : in.decisions) {
    if (d.cycle_id != row.cycle_id)
      continue;
    if (d.decision.agent_id == in.agent_id)
      return true;
    ++others;
  }
  return others > 1;
}

/// A run of one agent, or a request that began no cycle: it tells little of the kernel.
bool is_run_of_one(const why_input& in, const occurrence& row) {
  return !is_of_schedule(row) &&
         (row.cycle_id.empty() ||
          std::ranges::count(in.decisions, row.cycle_id, &decision_row::cycle_id) == 1);
}

/// How well a cycle answers a question about a time: the highest is taken, of equals the newest.
int rank_of(const why_input& in, const occurrence& row, utc_time at) {
  const bool in_minute = row.scheduled_at >= std::chrono::floor<std::chrono::minutes>(at);
  if (!is_whole_minute(at) && row.scheduled_at >= begin_of_moment(at))
    return 3;
  if (in_minute && is_of_schedule(row))
    return 2;
  if (!in_minute && in.agent_id.empty() && is_run_of_one(in, row))
    return 0;
  return 1;
}

std::vector<const decision_row*> decisions_in_question(const why_input& in,
                                                       const occurrence* slot) {
  std::vector<const decision_row*> found;
  const std::string cycle_id = slot ? slot->cycle_id : std::string{};
  const bool newest_of_agent = !in.agent_id.empty() && !in.at;
  for (const decision_row& row : in.decisions) {
    if (!in.agent_id.empty() && row.decision.agent_id != in.agent_id)
      continue;
    if (newest_of_agent || (!cycle_id.empty() && row.cycle_id == cycle_id))
      found.push_back(&row);
  }
  std::ranges::stable_sort(found, std::ranges::greater{}, &decision_row::decided_at);
  if (!in.agent_id.empty() && found.size() > 1)
    found.erase(found.begin() + 1, found.end());
  return found;
}

facts gather(const why_input& in) {
  facts f;
  auto asked = cycles_asked_about(in);
  f.slot = asked.slot;
  f.by_hand = std::move(asked.by_hand);
  f.decisions = decisions_in_question(in, f.slot);
  for (const pause_record& p : in.pauses)
    if (p.kernel_id == in.kernel_id &&
        (p.agent_id.empty() || in.agent_id.empty() || p.agent_id == in.agent_id))
      f.pauses.push_back(&p);
  if (in.expected_slot) {
    const auto covered =
        f.slot ? std::max(f.slot->scheduled_at, stands_until(*f.slot).value_or(utc_time::min()))
               : utc_time::min();
    if (*in.expected_slot > covered)
      f.unrecorded = in.expected_slot;
    const utc_time minute = std::chrono::floor<std::chrono::minutes>(in.at.value_or(in.now));
    if (in.at && *in.expected_slot < minute && covered < minute)
      f.no_slot_at = minute;
  }
  const auto wanted = in.at ? in.at : f.unrecorded;
  f.before_home = !f.slot && in.node_since && wanted && *wanted < *in.node_since;
  f.in_future = in.at && begin_of_moment(*in.at) > in.now;
  return f;
}

/// "the cycle of 2026-02-13T10:30:00Z was skipped: the reason".
std::string end_of_slot(const occurrence& slot) {
  std::string text = slot.trigger == schedule_trigger ? "the cycle of " : "the cycle asked for at ";
  text += format_rfc3339(slot.scheduled_at);
  const std::string late = slot.late ? " late" : "";
  switch (slot.state) {
  case occurrence_state::open:
    text += slot.cycle_id.empty() ? " is waiting to run" + late : " runs" + late;
    break;
  case occurrence_state::ran:
    text += " ran" + late;
    break;
  case occurrence_state::coalesced:
  case occurrence_state::skipped:
  case occurrence_state::missed:
    text += " was " + std::string{name_of(slot.state)};
    break;
  }
  if (!slot.cycle_id.empty())
    text += " as " + slot.cycle_id;
  if (!slot.reason.empty())
    text += ": " + slot.reason;
  return text;
}

/// What a model was asked on the kernel's behalf, and what came of it.
std::string voice_sentence(const decision_row& row) {
  const bool plans = row.decision.agent_id == planner_voice;
  std::string text = plans ? "Planner" : "Reducer";
  text += " in cycle " + row.cycle_id + " at " + format_rfc3339(row.decided_at) + ": ";
  if (plans) {
    const auto record = read_plan_record(row.decision.detail);
    return text + (record ? say(*record) : "its record is unreadable") + ".";
  }
  const auto record = read_reduce_record(row.decision.detail);
  return text + (record ? say(*record) : "its record is unreadable") + ".";
}

const dispatch* run_of(const why_input& in, const decision_row& row) {
  const auto it = std::ranges::find_if(in.runs, [&](const dispatch& d) {
    return d.cycle_id == row.cycle_id && d.agent_id == row.decision.agent_id;
  });
  return it == in.runs.end() ? nullptr : &*it;
}

/// " (attempt 2 of 3)"; empty for the first.
std::string attempt_of(const dispatch& run) {
  if (run.attempt < 2)
    return {};
  return " (attempt " + std::to_string(run.attempt) + " of " + std::to_string(run.max_attempts) +
         ")";
}

/// ": what went wrong.", or the end of the sentence alone.
std::string cause_of(const dispatch& run) {
  const auto& why = run.outcome.error.empty() ? run.outcome.summary : run.outcome.error;
  return why.empty() ? "." : ": " + why + (why.ends_with('.') ? "" : ".");
}

/// How the run ended, or that it has not; empty when it is not known.
std::string end_sentence(const dispatch* run) {
  if (run == nullptr)
    return {};
  switch (run->status) {
  case dispatch_status::pending:
    if (run->attempt == 0)
      return " It is waiting to run.";
    return " Attempt " + std::to_string(run->attempt) + " of " + std::to_string(run->max_attempts) +
           " failed" + cause_of(*run) + " The next one starts at " +
           format_rfc3339(run->not_before) + ".";
  case dispatch_status::running:
    return " It is running" + attempt_of(*run) + ".";
  case dispatch_status::done:
    return " It is done" + attempt_of(*run) + ".";
  case dispatch_status::cancelled:
    return " It was cancelled.";
  case dispatch_status::failed:
    break;
  }
  std::string_view why = run->outcome.error.empty() ? run->outcome.summary : run->outcome.error;
  if (why.ends_with('.'))
    why.remove_suffix(1);
  return " It failed" + attempt_of(*run) + after_failed(why, run->outcome.failure) + ".";
}

/// What a decision noted of a run, which may have ended since.
std::string in_the_past(std::string detail) {
  constexpr std::array<std::pair<std::string_view, std::string_view>, 2> tenses{
      {{" is ", " was "}, {" has not ", " had not "}}};
  for (const auto& [now, then] : tenses)
    if (const auto found = detail.rfind(now); found != std::string::npos)
      return detail.replace(found, now.size(), then);
  return detail;
}

/// Since when it was paused, as the planner noted it: "since TIME", ": REASON" behind it, and of
/// the whole kernel "the kernel, " before it. Empty: the detail is another one, of quiet hours say.
std::string since_when(std::string_view detail) {
  constexpr std::string_view of_kernel = "the kernel, ";
  const bool is_kernel = detail.starts_with(of_kernel);
  if (is_kernel)
    detail.remove_prefix(of_kernel.size());
  if (!detail.starts_with("since "))
    return {};
  const auto end = detail.find(": "); // no time has a blank behind its colons
  auto text = std::string{is_kernel ? "its kernel" : "it"} + " had been paused " +
              std::string{detail.substr(0, end)};
  if (end != detail.npos)
    text += " (" + std::string{detail.substr(end + 2)} + ")";
  return text;
}

std::string decision_sentence(const why_input& in, const decision_row& row) {
  const agent_decision& d = row.decision;
  if (is_kernel_voice(d.agent_id))
    return voice_sentence(row);
  const auto told = d.reason == "running" ? in_the_past(d.detail) : d.detail;
  const std::string detail = told.empty() ? "" : " (" + told + ")";
  const std::string where = " in cycle " + row.cycle_id + " at " + format_rfc3339(row.decided_at);
  if (d.dispatched)
    return "Agent " + d.agent_id + " was dispatched" + where + detail + "." +
           end_sentence(run_of(in, row));
  if (const auto since = d.reason == "paused" ? since_when(d.detail) : ""; !since.empty())
    return "Agent " + d.agent_id + " was not dispatched" + where + " because " + since + ".";
  return "Agent " + d.agent_id + " was not dispatched" + where + " because " +
         std::string{phrase_of(d.reason)} + detail + ".";
}

/// Slots begin within this time, or no node is there to begin them.
constexpr milliseconds start_time = 1min;

/// The moment asked for: of a minute or a second that is meant whole, its begin.
std::string asked_moment(utc_time at) {
  return format_rfc3339(begin_of_moment(at));
}

/// Why the ledger has nothing of a slot that the schedule had.
std::string unrecorded_reason(const why_input& in, utc_time slot) {
  using std::chrono::minutes;
  const auto when = format_rfc3339(slot);
  const bool is_asked_for =
      in.at && std::chrono::floor<minutes>(*in.at) == std::chrono::floor<minutes>(slot);
  if (slot + start_time < in.now)
    return "no node was running " + (is_asked_for ? "then" : "at " + when);
  return in.node_runs ? "the cycle of " + when + " has not started yet" : "no node is running";
}

/// Why nothing happened at the time asked for; nothing when something did.
std::optional<std::string> reason_of_nothing(const why_input& in, const facts& f) {
  if (f.before_home)
    return (in.at ? "this home did not exist yet; it was made at "
                  : "no cycle was due since this home was made at ") +
           format_rfc3339(*in.node_since);
  if (f.no_slot_at)
    return "kernel " + in.kernel_id + " had no cycle then" +
           (in.schedule.empty() ? "" : "; its schedule is \"" + in.schedule + "\"");
  if (f.unrecorded)
    return unrecorded_reason(in, *f.unrecorded);
  return std::nullopt;
}

/// The cycle in question decided about others: the agent was not there.
bool was_unknown(const why_input& in, const facts& f) {
  if (!f.slot || f.slot->cycle_id.empty() || !f.decisions.empty())
    return false;
  const auto others = std::ranges::count(in.decisions, f.slot->cycle_id, &decision_row::cycle_id);
  return others > 1 || (others == 1 && is_of_schedule(*f.slot));
}

/// Why a cycle, or one that was not, decided nothing about the agent.
std::string reason_of_absence(const why_input& in, const facts& f) {
  const auto is_until_then = [&](const occurrence& row) {
    return in.at && row.kernel_id == in.kernel_id && row.scheduled_at <= *in.at;
  };
  if (!f.slot && std::ranges::any_of(in.occurrences, is_until_then))
    return "no cycle was about it until then";
  if (!f.slot)
    return "kernel " + in.kernel_id + " has had no cycle" + (in.at ? " until then" : "");
  const auto when = format_rfc3339(f.slot->scheduled_at);
  if (f.slot->cycle_id.empty())
    return end_of_slot(*f.slot);
  if (was_unknown(in, f))
    return "it was added after the cycle of " + when;
  if (std::ranges::find(in.decisions, f.slot->cycle_id, &decision_row::cycle_id) !=
      in.decisions.end())
    return "the cycle asked for at " + when + " was about another agent";
  return f.slot->state == occurrence_state::open
             ? "the cycle of " + when + " has just begun"
             : "the cycle of " + when + " did not decide about it";
}

/// That the agent was not there at the time asked for, and whether it would have been due.
void say_unknown(std::vector<std::string>& out, const why_input& in, utc_time at) {
  const auto when = asked_moment(at);
  out.push_back("Agent " + in.agent_id + " was not in boyd.yaml at " + when + ".");
  if (!in.agent_schedule.empty() &&
      (!in.agent_due || *in.agent_due < std::chrono::floor<std::chrono::minutes>(at)))
    out.push_back("Its schedule (" + in.agent_schedule + ") has no run at " + when + ".");
}

/// "2026-02-13T10:15:20Z, done (run 64a26dd9)"; of the kernel with the agent in front.
std::string told_briefly(const why_input& in, const occurrence& row, const decision_row& made) {
  constexpr std::size_t short_id = 8;
  auto text = in.agent_id.empty() ? made.decision.agent_id + " at " : std::string{};
  text += format_rfc3339(row.scheduled_at) + ", ";
  if (!made.decision.dispatched)
    return text + "not started because " + std::string{phrase_of(made.decision.reason)};
  const dispatch* run = run_of(in, made);
  if (run == nullptr)
    return text + "dispatched";
  const auto& id = run->dispatch_id;
  const auto dash = id.rfind('-');
  const auto begin = dash == std::string::npos ? 0 : dash + 1;
  return text + std::string{name_of(run->status)} + " (run " + id.substr(begin, short_id) + ")";
}

/// The decisions of cycles that were asked for by hand in the same minute, each with its cycle.
std::vector<std::pair<const occurrence*, const decision_row*>> made_by_hand(const why_input& in,
                                                                            const facts& f) {
  std::vector<std::pair<const occurrence*, const decision_row*>> all;
  for (const occurrence* row : f.by_hand)
    for (const decision_row& made : in.decisions)
      if (!row->cycle_id.empty() && made.cycle_id == row->cycle_id &&
          !is_kernel_voice(made.decision.agent_id) &&
          (in.agent_id.empty() || made.decision.agent_id == in.agent_id))
        all.emplace_back(row, &made);
  return all;
}

void say_same_minute(std::vector<std::string>& out, const why_input& in, const facts& f) {
  for (const auto& [row, made] : made_by_hand(in, f))
    out.push_back("Run by hand in the same minute: " + told_briefly(in, *row, *made) + ".");
}

void say_past_of_agent(std::vector<std::string>& out, const why_input& in, const facts& f) {
  const auto begin = "Agent " + in.agent_id +
                     (in.at ? " did not run at " + asked_moment(*in.at) : " has not run yet") +
                     ": ";
  const auto nothing = reason_of_nothing(in, f);
  if (f.decisions.empty() && !nothing && in.at && was_unknown(in, f))
    say_unknown(out, in, *in.at);
  else if (f.decisions.empty())
    out.push_back(begin + nothing.value_or(reason_of_absence(in, f)) + ".");
  else if (nothing && in.at)
    out.push_back(begin + *nothing + ".");
  for (const decision_row* row : f.decisions)
    out.push_back(decision_sentence(in, *row));
  if (in.at && f.slot && f.slot->trigger != schedule_trigger && !f.decisions.empty())
    out.push_back("That cycle was asked for by hand, not by the schedule.");
  say_same_minute(out, in, f);
  if (nothing && !in.at && !f.decisions.empty())
    out.push_back("It has not run since: " + *nothing + ".");
}

void say_past_of_kernel(std::vector<std::string>& out, const why_input& in, const facts& f) {
  const auto name = "Kernel " + in.kernel_id;
  if (f.no_slot_at && !f.before_home)
    out.push_back(name + " had no cycle at " + format_rfc3339(*f.no_slot_at) +
                  (in.schedule.empty() ? "" : ": its schedule is \"" + in.schedule + "\"") + ".");
  else if (const auto nothing = reason_of_nothing(in, f))
    out.push_back(name +
                  (in.at    ? " had no cycle at " + asked_moment(*in.at)
                   : f.slot ? " has had no cycle since"
                            : " has had no cycle") +
                  ": " + *nothing + ".");
  if (f.slot)
    out.push_back(name + ": " + end_of_slot(*f.slot) + ".");
  else if (out.empty())
    out.push_back(name + " has had no cycle" + (in.at ? " until " + asked_moment(*in.at) : "") +
                  ".");
  for (const decision_row* row : f.decisions)
    out.push_back(decision_sentence(in, *row));
  say_same_minute(out, in, f);
  if (in.by_hand)
    out.push_back("Run by hand since then: " + decision_sentence(in, *in.by_hand));
}

/// When the kernel or the agent runs next, unless somebody has paused it.
void say_next(std::vector<std::string>& out, const why_input& in, const facts& f) {
  bool is_paused = false;
  for (const pause_record* p : f.pauses)
    if (p->agent_id.empty() || p->agent_id == in.agent_id) {
      is_paused = true;
      out.push_back("It runs again after: boyd resume" +
                    (p->agent_id.empty() ? "" : " " + p->agent_id) +
                    (in.several_kernels ? " --kernel " + in.kernel_id : ""));
    }
  if (is_paused)
    return;
  const std::string no_node =
      in.node_runs ? "." : ", but no node is running; start one with: boyd node";
  if (in.agent_id.empty()) {
    if (in.next_slot)
      out.push_back("Kernel " + in.kernel_id + " runs next at " + format_rfc3339(*in.next_slot) +
                    no_node);
    return;
  }
  const auto name = "Agent " + in.agent_id;
  const auto& next = in.own_schedule ? in.next_agent_cycle : in.next_slot;
  if (in.next_agent_slot && !next)
    out.push_back(name + " is due at " + format_rfc3339(*in.next_agent_slot) +
                  ", but its kernel has no cycle after that.");
  else if (next)
    out.push_back(name + " runs next at " + format_rfc3339(*next) +
                  (in.next_agent_slot && *in.next_agent_slot != *next
                       ? " (it is due at " + format_rfc3339(*in.next_agent_slot) + ")"
                       : "") +
                  no_node);
}

void say_future(std::vector<std::string>& out, const why_input& in, const facts& f) {
  if (in.last_decided)
    out.push_back("Agent " + in.agent_id +
                  " is no longer configured in boyd.yaml, so it does not " +
                  "run any more; the last decision about it was made at " +
                  format_rfc3339(*in.last_decided) + ".");
  for (const pause_record* p : f.pauses)
    out.push_back((p->agent_id.empty() ? "Kernel " + p->kernel_id : "Agent " + p->agent_id) +
                  " has been paused since " + format_rfc3339(p->since) + ": " +
                  (p->reason.empty() ? "no reason given" : p->reason) + ".");
  if (in.quiet)
    out.push_back("Quiet hours until " + format_rfc3339(in.quiet->until) + ": " + in.quiet->reason +
                  ".");
  if (in.last_decided)
    return;
  if (!in.enabled)
    out.push_back("Agent " + in.agent_id + " does not run: it is disabled in boyd.yaml.");
  else
    say_next(out, in, f);
}

json slot_json(const occurrence& slot) {
  return {{"scheduled_at", format_rfc3339(slot.scheduled_at)},
          {"trigger", slot.trigger},
          {"state", name_of(slot.state)},
          {"late", slot.late},
          {"reason", slot.reason},
          {"cycle_id", slot.cycle_id.empty() ? json(nullptr) : json(slot.cycle_id)},
          {"stands_until", time_or_null(stands_until(slot))}};
}

json decision_json(const decision_row& row, const dispatch* run) {
  return {{"agent_id", row.decision.agent_id},
          {"dispatched", row.decision.dispatched},
          {"reason", row.decision.reason},
          {"detail", row.decision.detail},
          {"cycle_id", row.cycle_id},
          {"decided_at", format_rfc3339(row.decided_at)},
          {"dispatch_id", run != nullptr ? json(run->dispatch_id) : json(nullptr)},
          {"status", run != nullptr ? json(name_of(run->status)) : json(nullptr)},
          {"error", run != nullptr ? json(run->outcome.error) : json(nullptr)}};
}

std::string to_json(const why_input& in, const facts& f,
                    const std::vector<std::string>& sentences) {
  json out;
  out["kernel_id"] = in.kernel_id;
  out["agent_id"] = in.agent_id.empty() ? json(nullptr) : json(in.agent_id);
  out["at"] = format_rfc3339(in.at.value_or(in.now));
  out["slot"] = f.slot ? slot_json(*f.slot) : json(nullptr);
  out["unrecorded_slot"] = time_or_null(f.unrecorded);
  out["decisions"] = json::array();
  for (const decision_row* row : f.decisions)
    out["decisions"].push_back(decision_json(*row, run_of(in, *row)));
  out["pauses"] = json::array();
  for (const pause_record* p : f.pauses)
    out["pauses"].push_back({{"agent_id", p->agent_id.empty() ? json(nullptr) : json(p->agent_id)},
                             {"reason", p->reason},
                             {"since", format_rfc3339(p->since)}});
  out["quiet"] =
      in.quiet ? json{{"reason", in.quiet->reason}, {"until", format_rfc3339(in.quiet->until)}}
               : json(nullptr);
  out["next_slot"] = time_or_null(in.next_slot);
  out["next_agent_slot"] = time_or_null(in.next_agent_slot);
  out["next_agent_cycle"] = time_or_null(in.next_agent_cycle);
  out["last_decided"] = time_or_null(in.last_decided);
  out["by_hand"] = in.by_hand ? decision_json(*in.by_hand, run_of(in, *in.by_hand)) : json(nullptr);
  out["same_minute"] = json::array();
  for (const auto& [row, made] : made_by_hand(in, f))
    out["same_minute"].push_back(decision_json(*made, run_of(in, *made)));
  out["sentences"] = sentences;
  // Reasons are free text from rows: bad UTF-8 is replaced, for an answer must not throw.
  return out.dump(-1, ' ', false, json::error_handler_t::replace);
}

} // namespace

result<utc_time> end_of_moment(std::string_view rfc3339) {
  auto t = parse_rfc3339(rfc3339);
  if (!t || rfc3339.find('.') != std::string_view::npos)
    return t;
  return *t + seconds{1} - milliseconds{1};
}

asked_cycles cycles_asked_about(const why_input& in) {
  const utc_time until = in.at.value_or(in.now);
  asked_cycles found;
  int best = 0;
  for (const occurrence& row : in.occurrences) {
    if (row.kernel_id != in.kernel_id || row.scheduled_at > until ||
        (in.at && !in.agent_id.empty() && !concerns_agent(in, row)))
      continue;
    const int rank = in.at ? rank_of(in, row, *in.at) : 0;
    const bool is_better =
        !found.slot || rank > best || (rank == best && row.scheduled_at > found.slot->scheduled_at);
    if (!is_better)
      continue;
    found.slot = &row;
    best = rank;
  }
  if (!in.at)
    return found;
  const utc_time minute = std::chrono::floor<std::chrono::minutes>(*in.at);
  for (const occurrence& row : in.occurrences)
    if (row.kernel_id == in.kernel_id && !is_of_schedule(row) && &row != found.slot &&
        row.scheduled_at >= minute && row.scheduled_at <= until)
      found.by_hand.push_back(&row);
  std::ranges::stable_sort(found.by_hand, {}, &occurrence::scheduled_at);
  return found;
}

why_answer explain_why(const why_input& in) {
  const facts f = gather(in);
  why_answer answer;
  if (f.in_future)
    answer.sentences.push_back(asked_moment(*in.at) + " is still to come; see: boyd next" +
                               (in.agent_id.empty() ? "" : " " + in.agent_id));
  else if (in.agent_id.empty())
    say_past_of_kernel(answer.sentences, in, f);
  else
    say_past_of_agent(answer.sentences, in, f);
  say_future(answer.sentences, in, f);
  // Reasons are what people and programs said: a sentence is one line all the same.
  for (auto& sentence : answer.sentences)
    std::ranges::replace_if(
        sentence, [](char c) { return c >= 0 && (c < ' ' || c == '\x7F'); }, ' ');
  answer.json = to_json(in, f, answer.sentences);
  return answer;
}

} // namespace boyd::plan
