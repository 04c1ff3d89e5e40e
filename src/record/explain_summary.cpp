#include "boyd/core/money.hpp"
#include "boyd/core/text.hpp"
#include "explain_internal.hpp"

#include <algorithm>
#include <chrono>
#include <utility>
#include <vector>

/// What ran, how it ended, and what it was judged by.
namespace boyd::record::words {

namespace {

/// "12 ms", "7.3 s", "4 min 5 s".
std::string took(milliseconds time) {
  constexpr std::int64_t second = 1000;
  constexpr std::int64_t tenth = 100;
  constexpr std::int64_t tenths = 10;
  constexpr std::int64_t minute = 60;
  const auto ms = std::max<std::int64_t>(0, time.count());
  if (ms < second)
    return std::to_string(ms) + " ms";
  if (ms < minute * second)
    return std::to_string(ms / second) + "." + std::to_string(ms / tenth % tenths) + " s";
  return std::to_string(ms / second / minute) + " min " + std::to_string(ms / second % minute) +
         " s";
}

std::string who_ran(const attempt& a) {
  const auto x = value(a.executor);
  const auto kind = text_in(x, "kind");
  const auto model = text_in(x, "model");
  if (kind == "chat")
    return "an AI model" + (model.empty() ? std::string() : ", " + code(model)) +
           (text_in(x, "provider").empty() ? std::string()
                                           : ", from the provider " + code(text_in(x, "provider")));
  if (kind == "agent_cli" || kind == "improve")
    return "an agent CLI, " + code(text_in(x, "provider")) +
           (model.empty() ? std::string() : ", with the model " + code(model));
  if (kind == "script")
    return "a script with prepared answers, without a program or model";
  if (kind.empty())
    return "unknown: recorded by an older version of Boyd";
  const auto command = text_in(x, "command");
  return "a program" + (command.empty() ? std::string() : ", " + code(command));
}

std::string how_it_ended(const attempt& a, const json& o) {
  const auto execution = text_in(o, "execution");
  const auto kind = text_in(value(a.executor), "kind");
  const auto code_of_exit = part_in(o, "exit_code");
  const bool program = kind != "chat" && kind != "script";
  if (execution == "succeeded")
    return program && code_of_exit.is_number_integer()
               ? "it ended with exit code " + code_of_exit.dump()
               : "it gave a final answer";
  if (execution == "timed_out")
    return "it exceeded its time limit and was stopped";
  if (execution == "stalled")
    return "it produced no output for too long and was stopped";
  if (execution == "cancelled")
    return "it was cancelled before it finished";
  if (execution == "indeterminate")
    return "how it ended is unknown";
  return "it failed";
}

std::string claim_of(const json& o) {
  const auto claim = text_in(o, "claim");
  return claim == "done"     ? "it reported success"
         : claim == "failed" ? "it reported failure"
                             : "it reported neither success nor failure";
}

std::string checks_of(const json& o) {
  const auto verdict = text_in(o, "verification");
  const auto& all = part_in(o, "requirements");
  if (verdict == "none" || verdict.empty())
    return "its result was not checked, because the agent has no checks (`require`)";
  if (!all.is_array() || all.empty())
    return verdict == "passed" ? "the checks of its result passed"
                               : "the checks of its result failed";
  std::size_t passed = 0;
  for (const auto& one : all)
    passed += part_in(one, "passed") == json(true) ? 1 : 0;
  return "result of the checks: " + std::to_string(passed) + " of " +
         counted(static_cast<std::int64_t>(all.size()), "check", "checks") + " passed";
}

/// A requirement, its first word being its kind.
std::string requirement_in_words(const std::string& text) {
  const auto blank = text.find(' ');
  const auto kind = text.substr(0, blank);
  const auto rest = blank == text.npos ? std::string() : text.substr(blank + 1);
  if (kind == "exit_zero")
    return "it must end without an error";
  if (kind == "tool_action")
    return "it must use a tool successfully";
  if (kind == "no_question")
    return "its answer must not end with a question";
  if (kind == "artifact")
    return "it must write the file " + code(rest);
  if (kind == "command")
    return "the command " + code(rest) + " must succeed afterwards";
  if (kind == "schema")
    return "its answer must match the schema " + code(rest) + " describes";
  return code(text);
}

std::string requirement_lines(const json& o) {
  std::string lines;
  const auto& all = part_in(o, "requirements");
  if (!all.is_array())
    return lines;
  for (const auto& one : all) {
    const bool passed = part_in(one, "passed") == json(true);
    const bool looked = part_in(one, "looked_at") != json(false);
    lines += "  - " + requirement_in_words(text_in(one, "requirement")) + ": " +
             (passed    ? "yes"
              : !looked ? "not checked, because the run failed"
                        : "no") +
             (text_in(one, "found").empty() ? std::string() : ", " + code(text_in(one, "found"))) +
             "\n";
  }
  return lines;
}

std::string class_in_words(const std::string& name) {
  if (name == "transient")
    return "a temporary problem; another attempt may succeed";
  if (name == "deterministic")
    return "the task itself; another attempt with the same input would probably fail too";
  if (name == "environment")
    return "the environment: a program, file or permission is missing";
  if (name == "policy")
    return "a rule or budget that forbids it";
  if (name == "flaky")
    return "an unreliable check: the result changes between attempts";
  return {};
}

std::string usage_of(const json& o) {
  const auto& u = part_in(o, "usage");
  std::vector<std::string> parts;
  if (const auto n = number_in(u, "calls"); n > 0)
    parts.push_back(counted(n, "model call", "model calls"));
  if (const auto n = number_in(u, "tool_calls"); n > 0)
    parts.push_back(counted(n, "tool call", "tool calls"));
  if (const auto n = number_in(u, "input_tokens") + number_in(u, "output_tokens"); n > 0)
    parts.push_back(std::to_string(n) + " tokens (pieces of words)");
  if (const auto n = number_in(u, "cost_microusd"); n > 0)
    parts.push_back("$" + format_dollars(n));
  return listed(parts);
}

std::string reading_line(const execution& e) {
  const auto* s = first_snapshot(e);
  std::int64_t shown = 0;
  std::int64_t not_shown = 0;
  if (s != nullptr)
    for (const auto& i : s->items)
      ++(i.key.empty() ? not_shown : shown);
  if (shown + not_shown == 0)
    return "- **What it read:** only its instructions.\n";
  auto line =
      "- **What it read:** " + counted(shown, "text", "texts") + " in addition to its instructions";
  if (not_shown > 0)
    line += "; " + std::to_string(not_shown) + " more were unreadable or did not fit";
  if (e.cited)
    line += ". Its answer cited " +
            counted(static_cast<std::int64_t>(e.cited->valid.size()), "text", "texts");
  if (e.cited && e.cited->weak)
    line += " (**weak**: not all citations are correct, see Citation Retrospective)";
  return line + ".\n";
}

/// What deserves a look before all else: actions that were denied, sources that were never given.
std::string warning_lines(const execution& e, const attempt& a) {
  std::string text;
  std::vector<std::string> denied;
  for (const auto& t : a.turns)
    if (const auto decisions = value(t.governance); decisions.is_array())
      for (const auto& d : decisions)
        if (text_in(d, "decision") == "deny")
          denied.push_back(code(text_in(d, "tool")));
  if (!denied.empty())
    text += "- **Denied by its rules:** " + listed(denied) + " (see Turn by Turn).\n";
  std::vector<std::string> invented;
  if (e.cited)
    for (const auto& i : e.cited->invented)
      invented.push_back(code(i));
  if (!invented.empty())
    text += "- **It cited sources that it never read:** " + listed(invented) + ".\n";
  return text;
}

std::string end_lines(const attempt& a) {
  if (!a.ended_at)
    return "- **How it ended:** not finished. It is still running, or its node has stopped.\n";
  const auto o = value(a.outcome);
  auto text = "- **How it ended:** " + how_it_ended(a, o) + "; " + claim_of(o) + "; " +
              checks_of(o) + ".\n" + requirement_lines(o);
  if (const auto why = text_in(o, "error"); !why.empty())
    text += "- **What went wrong:** " + code(why) + "\n";
  if (const auto of = class_in_words(text_in(o, "failure")); !of.empty())
    text += "- **Cause:** " + of + ".\n";
  if (const auto said = text_in(o, "summary"); !said.empty())
    text += "- **In its own words:** " + code(said) + "\n";
  if (const auto used = usage_of(o); !used.empty())
    text += "- **What it used:** " + used + ".\n";
  return text;
}

std::string attempts_line(const execution& e) {
  if (e.attempts.size() < 2)
    return {};
  std::string lines = "- **Attempts:** " + std::to_string(e.attempts.size()) +
                      "; unless stated otherwise, this page describes the last one.\n";
  for (std::size_t i = 0; i + 1 < e.attempts.size(); ++i) {
    const auto& a = e.attempts[i];
    const auto o = value(a.outcome);
    lines += "  - attempt of " + moment(a.started_at) + ": " +
             (a.ended_at ? how_it_ended(a, o) : "its end is unknown") +
             (text_in(o, "error").empty() ? std::string() : ", " + code(text_in(o, "error"))) +
             "\n";
  }
  return lines;
}

std::string instructions_line(const attempt& a, const std::string& dispatch_id) {
  if (a.prompt.hash.empty())
    return {};
  if (a.prompt.bytes == 0)
    return "- **Its instructions:** none.\n";
  auto line = "- **Its instructions:** " + counted(a.prompt.bytes, "byte", "bytes");
  const auto& frame = a.prompt.text;
  const bool begins_with_it = a.prompt.places.empty() || a.prompt.places.front().at > 0;
  if (begins_with_it && !trim(frame).empty())
    line += ", starting with " + code(split(trim(frame), '\n').front());
  return line + "; `boyd replay " + dispatch_id + " --prompt` shows them.\n";
}

/// No more than what somebody has seen.
std::string verdict_on(const attempt& a, fate how) {
  if (how == fate::failed)
    return "**failed**";
  if (how == fate::unfinished)
    return "**has not finished**";
  const auto o = value(a.outcome);
  if (text_in(o, "verification") == "passed")
    return "**did its work**, according to its checks";
  return text_in(o, "claim") == "done" ? "**reported success**; nobody checked it"
                                       : "**ended without an error**; nobody checked its result";
}

std::string level_line(const attempt& a) {
  if (a.turns.empty() || a.turns.front().snapshot.items.empty())
    return {};
  if (a.level == "focused")
    return "- **Reduced context:** an earlier attempt exceeded its time or the context window of "
           "its model, so this one read only half.\n";
  if (a.level == "minimal")
    return "- **Strongly reduced context:** two earlier attempts exceeded their time or the "
           "context window of their model, so this one read only a quarter.\n";
  return {};
}

} // namespace

std::string summary(const execution& e) {
  std::string text = "## Summary\n\n";
  const auto* a = last_of(e);
  if (a == nullptr)
    return text + "No record of this run exists.\n\n";
  const auto fate = fate_of(e);
  text += "The agent " + code(e.agent_id) + " " + verdict_on(*a, fate) +
          (e.attempts.size() > 1 ? ". Its last attempt began on " : ". It began on ") +
          moment(a->started_at);
  if (a->ended_at)
    text +=
        " and took " + took(std::chrono::duration_cast<milliseconds>(*a->ended_at - a->started_at));
  text += ".\n\n- **What ran:** " + who_ran(*a) + ".\n";
  text +=
      end_lines(*a) + warning_lines(e, *a) + attempts_line(e) + level_line(*a) + reading_line(e);
  text += instructions_line(*a, e.dispatch_id);
  text += "- **Where it belongs:** execution " + code(e.dispatch_id) +
          " (this run), in the cycle " + code(e.cycle_id) +
          " (one round of agents) of the kernel " + code(e.kernel_id) +
          " (a group of agents with one memory).\n\n";
  return text;
}

} // namespace boyd::record::words
