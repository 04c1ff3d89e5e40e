#include "run_view.hpp"

#include "boyd/core/failure_words.hpp"
#include "boyd/queue/dispatch_ids.hpp"
#include "counted.hpp"
#include "terminal.hpp"
#include "time_view.hpp"

#include <algorithm>
#include <array>
#include <cstdio>

namespace boyd::app {

namespace {

constexpr std::size_t reason_characters = 300;
constexpr double microdollars = 1e6;

void append(std::string& line, const std::string& part) {
  if (!part.empty())
    line += (line.empty() ? "" : ", ") + part;
}

} // namespace

std::string short_id(std::string_view id) {
  constexpr std::size_t uuid_characters = 36;
  if (id.size() != uuid_characters)
    return std::string(id);
  return std::string(queue::random_part_of(id).substr(0, queue::min_random_part));
}

std::string short_id_of(const json& dispatch) {
  return short_id(text_of(dispatch, "dispatch_id"));
}

std::string agent_of(const json& dispatch) {
  return text_of(dispatch, "kernel_id") + "/" + text_of(dispatch, "agent_id");
}

std::string attempt_of(const json& dispatch) {
  return number_of(dispatch, "attempt") < 2 ? std::string()
                                            : ", attempt " + text_of(dispatch, "attempt") + " of " +
                                                  text_of(dispatch, "max_attempts");
}

std::string after_status_of(const json& dispatch, std::size_t characters) {
  const auto status = text_of(dispatch, "status");
  const auto of = failure_class_from(text_of(dispatch, "failure_class"));
  if (status != "failed" && status != "cancelled")
    return {}; // before its end, the error is an earlier attempt's
  return after_failed(one_line(text_of(dispatch, "error"), characters),
                      status == "failed" && of ? *of : failure_class::none);
}

std::string headline_of(const json& dispatch) {
  auto line = "run " + short_id_of(dispatch) + " of " + agent_of(dispatch) + ": " +
              text_of(dispatch, "status");
  if (text_of(dispatch, "status") == "running")
    line += " for " + time_between(dispatch, "started_at", "finished_at");
  else if (const auto when = moment_of(dispatch, "started_at"); when != "-")
    line += ", started " + when;
  return line + attempt_of(dispatch);
}

std::string ending_of(const json& dispatch) {
  auto line = text_of(dispatch, "status");
  if (const auto took = time_between(dispatch, "started_at", "finished_at"); !took.empty())
    line += " after " + took;
  return line + after_status_of(dispatch, reason_characters);
}

std::string result_of(const json& dispatch) {
  const auto status = text_of(dispatch, "status");
  const auto execution = text_of(dispatch, "execution");
  if (status == "pending" || status == "running" || execution == "none")
    return {};
  const auto code = text_of(dispatch, "exit_code");
  std::string words = execution == "timed_out"       ? "ended by its timeout"
                      : execution == "stalled"       ? "ended because it wrote nothing for too long"
                      : execution == "cancelled"     ? "cancelled"
                      : execution == "indeterminate" ? "nobody knows how it ended"
                      : !code.empty()                ? "ended with exit code " + code
                      : execution == "succeeded"     ? "ended well"
                                                     : "failed";
  const auto check = text_of(dispatch, "verification");
  if (check == "passed" || check == "failed")
    words += "; its check " + check;
  const auto claim = text_of(dispatch, "claim");
  return words + (claim == "done"     ? "; it says that it is done"
                  : claim == "failed" ? "; it says that it has failed"
                                      : "; it made no statement of its own");
}

std::string status_of_cycle(const json& cycle) {
  const auto agents = rows_of(cycle, "agents");
  const bool none_ran = !agents.empty() && std::ranges::all_of(agents, [](const json& a) {
    return text_of(a, "status") == "cancelled";
  });
  const auto status = text_of(cycle, "status");
  return status == "failed" && none_ran ? "cancelled" : status;
}

result<void> find_run(const json& dispatch, const std::string& run, json& found) {
  const auto newest = text_of(dispatch, "fence");
  std::string known;
  for (const auto& earlier : rows_of(dispatch, "attempts")) {
    const auto fence = text_of(earlier, "fence");
    if (fence == run) {
      found = earlier;
      return {};
    }
    if (fence != newest)
      known += fence + ", ";
  }
  found = dispatch;
  if (run == newest)
    return {};
  return fail(errc::not_found, "no such attempt of this run: " + run,
              text_of(dispatch, "dispatch_id"), "existing attempts: " + known + newest);
}

std::string end_of_run(const json& earlier) {
  const auto to = text_of(earlier, "to");
  return to == "retry"     ? "failed, tried again"
         : to == "release" ? "returned to the queue"
         : to == "rescue"  ? "its node was lost"
                           : to;
}

std::string headline_of_run(const json& dispatch, const json& earlier) {
  return "attempt " + text_of(earlier, "fence") + " of run " + short_id_of(dispatch) + " of " +
         agent_of(dispatch) + ": " + end_of_run(earlier) + ", started " +
         moment_of(earlier, "started_at");
}

std::string ending_of_run(const json& earlier) {
  auto line = end_of_run(earlier);
  if (const auto took = time_between(earlier, "started_at", "ended_at"); !took.empty())
    line += " after " + took;
  const auto why = text_of(earlier, "error");
  return why.empty() ? line : line + ": " + one_line(why, reason_characters);
}

std::string figures_of(const json& dispatch) {
  const auto usage = part_of(dispatch, "usage");
  std::string line;
  if (const auto turns = number_of(usage, "turns"); turns > 0)
    append(line, counted(turns, "turn"));
  if (const auto calls = number_of(usage, "tool_calls"); calls > 0)
    append(line, counted(calls, "tool call"));
  if (const auto denied = number_of(usage, "denied"); denied > 0) {
    std::string names;
    for (const auto& name : rows_of(usage, "denials"))
      if (name.is_string())
        append(names, name.get<std::string>());
    append(line, std::to_string(denied) + " denied" + (names.empty() ? "" : " (" + names + ")"));
  }
  const auto input = number_of(usage, "input_tokens");
  const auto output = number_of(usage, "output_tokens");
  if (input + output > 0)
    append(line, std::to_string(input) + " tokens in, " + std::to_string(output) + " out");
  if (const auto cost = number_of(usage, "cost_microusd"); cost > 0) {
    std::array<char, 32> text{};
    std::snprintf(text.data(), text.size(), "$%.4f", static_cast<double>(cost) / microdollars);
    append(line, text.data());
  }
  append(line, text_of(usage, "model"));
  return line;
}

} // namespace boyd::app
