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
  std::optional<utc_time> unrecorded; ///< a slot the schedule had, newer than all that is recorded
  std::optional<utc_time> no_slot_at; ///< the minute asked for, where the schedule had none
  std::vector<const decision_row*> decisions;
  std::vector<const pause_record*> pauses;
};

const occurrence* slot_in_question(const why_input& in, utc_time until) {
  const occurrence* newest = nullptr;
  for (const occurrence& row : in.occurrences)
    if (row.kernel_id == in.kernel_id && row.scheduled_at <= until &&
        (!newest || row.scheduled_at > newest->scheduled_at))
      newest = &row;
  return newest;
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
  f.slot = slot_in_question(in, in.at.value_or(in.now));
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
  return f;
}

std::string slot_sentence(const why_input& in, const occurrence& slot) {
  const std::string trigger = slot.trigger == schedule_trigger ? "slot" : slot.trigger + " run";
  std::string text =
      "Kernel " + in.kernel_id + ": the " + trigger + " of " + format_rfc3339(slot.scheduled_at);
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
    text += " as cycle " + slot.cycle_id;
  if (!slot.reason.empty())
    text += ": " + slot.reason;
  return text + ".";
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

/// How the run ended, or that it has not; empty when it is not known.
std::string end_sentence(const dispatch* run) {
  if (run == nullptr)
    return {};
  switch (run->status) {
  case dispatch_status::pending:
    return " It is waiting to run.";
  case dispatch_status::running:
    return " It is running.";
  case dispatch_status::done:
    return " It is done.";
  case dispatch_status::cancelled:
    return " It was cancelled.";
  case dispatch_status::failed:
    break;
  }
  std::string_view why = run->outcome.error.empty() ? run->outcome.summary : run->outcome.error;
  if (why.ends_with('.'))
    why.remove_suffix(1);
  return " It failed" + after_failed(why, run->outcome.failure) + ".";
}

std::string decision_sentence(const why_input& in, const decision_row& row) {
  const agent_decision& d = row.decision;
  if (is_kernel_voice(d.agent_id))
    return voice_sentence(row);
  const std::string detail = d.detail.empty() ? "" : " (" + d.detail + ")";
  const std::string where = " in cycle " + row.cycle_id + " at " + format_rfc3339(row.decided_at);
  if (d.dispatched)
    return "Agent " + d.agent_id + " was dispatched" + where + detail + "." +
           end_sentence(run_of(in, row));
  return "Agent " + d.agent_id + " was not dispatched" + where + " because " +
         std::string{phrase_of(d.reason)} + detail + ".";
}

/// Slots begin within this time, or no node is there to begin them.
constexpr milliseconds start_time = 1min;

std::string unrecorded_sentence(const why_input& in, utc_time slot) {
  const auto when = format_rfc3339(slot);
  if (in.node_since && slot < *in.node_since)
    return "Kernel " + in.kernel_id + ": no node was running at " + when +
           ". This node was first started at " + format_rfc3339(*in.node_since) + ".";
  if (slot + start_time < in.now)
    return "Kernel " + in.kernel_id + ": no node was running at " + when + ".";
  return "Kernel " + in.kernel_id + ": the slot of " + when +
         " has not started yet, or no node is running.";
}

void say_past(std::vector<std::string>& out, const why_input& in, const facts& f) {
  if (f.no_slot_at)
    out.push_back("Kernel " + in.kernel_id + " had no cycle at " + format_rfc3339(*f.no_slot_at) +
                  (in.schedule.empty() ? "" : ": its schedule is \"" + in.schedule + "\"") + ".");
  if (f.unrecorded)
    out.push_back(unrecorded_sentence(in, *f.unrecorded));
  if (f.slot)
    out.push_back(slot_sentence(in, *f.slot));
  else
    out.push_back("Kernel " + in.kernel_id + ": no record at or before " +
                  format_rfc3339(in.at.value_or(in.now)) + ".");
  for (const decision_row* row : f.decisions)
    out.push_back(decision_sentence(in, *row));
  if (in.agent_id.empty() || !f.decisions.empty())
    return;
  const bool no_cycle = !f.slot || f.slot->cycle_id.empty();
  out.push_back(no_cycle ? "Therefore agent " + in.agent_id + " was not considered."
                         : "No recorded decision about agent " + in.agent_id + " for it.");
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
  if (in.next_slot)
    out.push_back("The next slot of kernel " + in.kernel_id + " is " +
                  format_rfc3339(*in.next_slot) + ".");
  if (in.next_agent_slot)
    out.push_back("Agent " + in.agent_id + " is due at " + format_rfc3339(*in.next_agent_slot) +
                  (in.next_agent_cycle
                       ? " and runs in the cycle of " + format_rfc3339(*in.next_agent_cycle) + "."
                       : ", but its kernel has no cycle after that."));
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

why_answer explain_why(const why_input& in) {
  const facts f = gather(in);
  why_answer answer;
  say_past(answer.sentences, in, f);
  say_future(answer.sentences, in, f);
  // Reasons are what people and programs said: a sentence is one line all the same.
  for (auto& sentence : answer.sentences)
    std::ranges::replace_if(
        sentence, [](char c) { return c >= 0 && (c < ' ' || c == '\x7F'); }, ' ');
  answer.json = to_json(in, f, answer.sentences);
  return answer;
}

} // namespace boyd::plan
