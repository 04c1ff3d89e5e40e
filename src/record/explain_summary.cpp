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

/// Without a capital at its beginning.
std::string how_it_ended(const attempt& a, const json& o) {
  const auto execution = text_in(o, "execution");
  const auto kind = text_in(value(a.executor), "kind");
  const bool is_program = kind != "chat" && kind != "script";
  const auto& exit_code = part_in(o, "exit_code");
  const bool has_ended = execution == "succeeded" || execution == "failed";
  if (has_ended && is_program && exit_code.is_number_integer() && exit_code != json(-1))
    return "exit code " + exit_code.dump();
  if (execution == "succeeded")
    return "it gave a final answer";
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

std::string sentence(std::string text) {
  if (!text.empty() && text.front() >= 'a' && text.front() <= 'z')
    text.front() = static_cast<char>(text.front() - 'a' + 'A');
  return text + ".";
}

std::string claim_of(const json& o) {
  const auto claim = text_in(o, "claim");
  return claim == "done"     ? "It reported success."
         : claim == "failed" ? "It reported failure."
                             : "It did not say itself whether it succeeded.";
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

bool has_passed(const json& requirement) {
  return part_in(requirement, "passed") == json(true);
}

std::string found_of(const json& requirement) {
  const auto found = text_in(requirement, "found");
  return found.empty() ? std::string() : ", " + code(found);
}

/// The checks and what they found, in one sentence where all passed, else with a line for each.
struct checks_in_words {
  std::string sentence;
  std::string lines;
};

checks_in_words checks_of(const json& o) {
  const auto verdict = text_in(o, "verification");
  const auto& all = part_in(o, "requirements");
  if (verdict == "none" || verdict.empty())
    return {"The agent has no checks (`require`).", {}};
  if (!all.is_array() || all.empty())
    return {verdict == "passed" ? "Its checks passed." : "Its checks failed.", {}};
  const auto passed = std::ranges::count_if(all, has_passed);
  const auto total = static_cast<std::ptrdiff_t>(all.size());
  std::string inside;
  checks_in_words found;
  for (const auto& one : all) {
    const auto what = requirement_in_words(text_in(one, "requirement"));
    const bool looked = part_in(one, "looked_at") != json(false);
    inside += (inside.empty() ? "" : "; ") + what + found_of(one);
    found.lines += "  - " + what + ": " +
                   (has_passed(one) ? "yes"
                    : !looked       ? "not checked, because the run failed"
                                    : "no") +
                   found_of(one) + "\n";
  }
  found.sentence = "Checks passed: " + std::to_string(passed) + " of " + std::to_string(total);
  if (passed == total)
    return {found.sentence + " (" + inside + ").", {}};
  found.sentence += ".";
  return found;
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
  std::int64_t unreadable = 0;
  std::int64_t left_out = 0;
  if (s != nullptr)
    for (const auto& i : s->items)
      ++(!i.key.empty() ? shown : i.hash.empty() ? unreadable : left_out);
  if (shown + unreadable + left_out == 0)
    return "- **What it was given:** only its instructions.\n";
  auto line = "- **What it was given:** " + counted(shown, "text", "texts") +
              " in addition to its instructions";
  if (unreadable > 0)
    line += "; " + std::to_string(unreadable) + " more could not be read";
  if (left_out > 0)
    line += "; " + std::to_string(left_out) + " more did not fit";
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
    text += "- **It cited sources that it was never given:** " + listed(invented) + ".\n";
  return text;
}

/// What it printed last; empty: it printed nothing, and the record has other words for that.
std::string own_words(const json& o, const json& result) {
  const auto said = text_in(o, "summary");
  // "completed" stands for words where there are none.
  const bool is_silent = said == "completed" && part_in(result, "output_bytes") == json(0);
  const bool is_of_the_node = text_in(o, "error").starts_with(said) ||
                              said == "exit code " + part_in(o, "exit_code").dump();
  return is_silent || is_of_the_node ? std::string() : said;
}

std::string words_line(const attempt& a, const json& o, const std::string& dispatch_id) {
  const auto result = a.turns.empty() ? json() : value(a.turns.back().result);
  const auto said = own_words(o, result);
  if (said.empty())
    return {};
  const auto bytes = a.answer.bytes > 0 ? a.answer.bytes : number_in(result, "output_bytes");
  constexpr std::int64_t line_break = 1;
  auto line = "- **In its own words:** " + code(said);
  if (bytes > static_cast<std::int64_t>(said.size()) + line_break)
    line += "; `boyd logs " + dispatch_id + "` shows all " + std::to_string(bytes) + " bytes" +
            (number_in(result, "output_cut") > 0 ? " that were stored" : "");
  return line + "\n";
}

/// Files that checks found to be written, and the patch of a worktree.
std::string files_lines(const json& o, const std::string& dispatch_id) {
  constexpr std::string_view artifact = "artifact ";
  std::vector<std::string> files;
  if (const auto& all = part_in(o, "requirements"); all.is_array())
    for (const auto& one : all)
      if (const auto what = text_in(one, "requirement");
          has_passed(one) && what.starts_with(artifact))
        files.push_back(code(what.substr(artifact.size())));
  std::string lines;
  if (!files.empty())
    lines = "- **Files that it wrote, as its checks found:** " + listed(files) + ".\n";
  const auto& changed = part_in(part_in(o, "usage"), "worktree");
  if (const auto n = number_in(changed, "files"); n > 0)
    lines += "- **Its patch:** " + counted(n, "file", "files") + ", " +
             counted(number_in(changed, "added"), "line", "lines") + " added and " +
             std::to_string(number_in(changed, "removed")) + " removed; `boyd patches show " +
             dispatch_id + "` shows it.\n";
  return lines;
}

std::string end_lines(const attempt& a, const std::string& dispatch_id) {
  if (!a.ended_at)
    return "- **How it ended:** not finished. It is still running, or its node has stopped.\n";
  const auto o = value(a.outcome);
  const auto checks = checks_of(o);
  auto text = "- **How it ended:** " + sentence(how_it_ended(a, o)) + " " + checks.sentence + " " +
              claim_of(o) + "\n" + checks.lines;
  if (const auto why = text_in(o, "error"); !why.empty())
    text += "- **What went wrong:** " + code(why) + "\n";
  if (const auto of = class_in_words(text_in(o, "failure")); !of.empty())
    text += "- **Cause:** " + of + ".\n";
  text += words_line(a, o, dispatch_id) + files_lines(o, dispatch_id);
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
  auto line = "- **Its instructions:** " + counted(a.prompt.bytes, "byte", "bytes") +
              (a.prompt.places.empty() ? "" : " with the texts that it was given");
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
  if (text_in(o, "verification") == "passed") {
    const auto& checks = part_in(o, "requirements");
    if (!checks.is_array() || checks.empty())
      return "**passed its checks**; which ones is not on record";
    // How a program ends says nothing about what it made.
    if (std::ranges::all_of(
            checks, [](const json& one) { return text_in(one, "requirement") == "exit_zero"; }))
      return "**ended without an error**. That was its only check; nobody checked the content of "
             "its result";
    return "**did its work**, according to its checks";
  }
  return text_in(o, "claim") == "done" ? "**reported success**; nobody checked it"
                                       : "**ended without an error**; nobody checked its result";
}

/// Of an AI model: whether it was offered tools, or asked for one.
bool has_tools(const attempt& a) {
  constexpr std::int64_t empty_list = 2; // "[]"
  return a.tools.bytes > empty_list || std::ranges::any_of(a.turns, [](const turn& t) {
           const auto action = value(t.action);
           const auto& tools = part_in(action, "tools");
           return tools.is_array() && !tools.empty();
         });
}

std::string level_line(const attempt& a) {
  if (a.turns.empty() || a.turns.front().snapshot.items.empty())
    return {};
  if (a.level == "focused")
    return "- **Reduced context:** an earlier attempt exceeded its time or the context window of "
           "its model, so this one was given only half.\n";
  if (a.level == "minimal")
    return "- **Strongly reduced context:** two earlier attempts exceeded their time or the "
           "context window of their model, so this one was given only a quarter.\n";
  return {};
}

} // namespace

std::string what_it_is(const attempt* a) {
  const auto kind = a == nullptr ? std::string() : text_in(value(a->executor), "kind");
  if (kind == "chat")
    return has_tools(*a) ? "an AI model with tools" : "an AI model without tools";
  if (kind == "agent_cli" || kind == "improve")
    return "an agent CLI, a program that asks an AI model,";
  if (kind == "script")
    return "a script with prepared answers";
  return kind == "command" ? "a program" : "an agent";
}

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
  text += end_lines(*a, e.dispatch_id) + warning_lines(e, *a) + attempts_line(e) + level_line(*a) +
          reading_line(e) + instructions_line(*a, e.dispatch_id);
  return text + "- **Run:** " + code(e.dispatch_id) + "\n- **Cycle:** " + code(e.cycle_id) +
         ", one round of agents\n- **Kernel:** " + code(e.kernel_id) +
         ", a group of agents with one memory\n\n";
}

} // namespace boyd::record::words
