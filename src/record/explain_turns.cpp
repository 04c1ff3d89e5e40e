#include "explain_internal.hpp"

#include <utility>

/// Each turn: what it could read, what it wanted, what was decided about that, what came of it.
namespace boyd::record::words {

namespace {

std::string diff_line(const turn& t, bool is_first) {
  const auto& d = t.diff;
  if (t.snapshot.items.empty())
    return "- **Context diff:** none; no texts were given\n";
  std::vector<std::string> parts;
  const auto add = [&](const char* sign, const std::vector<std::string>& all) {
    for (const auto& p : all)
      parts.push_back(std::string(sign) + " " + code(p));
  };
  add("+", d.added);
  add("~", d.changed);
  add("−", d.removed);
  const char* against = is_first ? " (since the previous run of the agent)" : "";
  if (parts.empty())
    return "- **Context diff:** none" + std::string(is_first ? against : "") + "\n";
  std::string line = "- **Context diff:** ";
  for (std::size_t i = 0; i < parts.size(); ++i)
    line += (i == 0 ? "" : ", ") + parts[i];
  return line + against + "\n";
}

/// "WHAT 2 tool calls:" and a line for each.
std::string calls_in_words(const std::string& what, const json& tools) {
  auto lines = " " + what + " " +
               counted(static_cast<std::int64_t>(tools.size()), "tool call", "tool calls") + ":\n";
  for (const auto& t : tools)
    lines += "  - step " + part_in(t, "step").dump() + ": " + code(text_in(t, "call")) + "\n";
  return lines;
}

/// What an agent's own program reported of its tools.
std::string program_line(const json& action) {
  const std::string line = "- **Action:** the program ran";
  const auto& tools = part_in(action, "tools");
  if (!tools.is_array() || tools.empty())
    return line + "\n";
  const auto more = number_in(action, "tools_left_out");
  return line + calls_in_words("and reported", tools) +
         (more == 0 ? std::string()
                    : "  - and " + counted(more, "more call", "more calls") +
                          ", not recorded because there were too many\n");
}

std::string action_line(const json& action) {
  const auto kind = text_in(action, "kind");
  if (kind.empty())
    return "- **Action:** not started, or unknown\n";
  if (kind != "model_call")
    return kind == "script" ? "- **Action:** the script answered\n" : program_line(action);
  const auto line = "- **Action:** the model " + code(text_in(action, "model")) + " was called";
  const auto& tools = part_in(action, "tools");
  if (!tools.is_array() || tools.empty())
    return line + " and answered\n";
  return line + calls_in_words("and requested", tools);
}

/// What was in force for a program; empty: not on record.
std::string sandbox_in_words(const json& outcome) {
  const auto& box = part_in(part_in(outcome, "usage"), "sandbox");
  const auto mode = text_in(box, "mode");
  if (mode.empty() || !flag_in(box, "in_force", true))
    return {};
  if (mode == "off")
    return ". It had no sandbox";
  std::vector<std::string> lacking;
  for (const auto& what : texts_in(box, "not_enforced"))
    lacking.push_back(code(what));
  return std::string(mode == "limits" ? ". Its sandbox limited what it could consume, not its files"
                                      : ". Its sandbox limited what it could reach") +
         " (" + code(mode) + ")" +
         (lacking.empty() ? std::string() : "; not enforced: " + listed(lacking));
}

std::string governance_line(const json& decisions, const json& action, const json& outcome) {
  if (!decisions.is_array() || decisions.empty()) {
    const auto kind = text_in(action, "kind");
    const bool is_program = !kind.empty() && kind != "model_call" && kind != "script";
    return "- **Governance:** " +
           (is_program ? "what an agent's own program does is not decided by rules one by one" +
                             sandbox_in_words(outcome)
                       : std::string("no actions to decide")) +
           "\n";
  }
  std::string line = "- **Governance:** decisions of the agent's rules\n";
  for (const auto& d : decisions) {
    const auto decision = text_in(d, "decision");
    line +=
        "  - step " + part_in(d, "step").dump() + ", " + code(text_in(d, "tool")) + ": " +
        (decision == "allow"  ? "allowed"
         : decision == "deny" ? "denied"
                              : "a person was asked") +
        (text_in(d, "reason").empty() ? std::string() : ", because " + code(text_in(d, "reason"))) +
        "\n";
  }
  return line;
}

std::string results_in_words(const json& result) {
  std::string lines;
  const auto& tools = part_in(result, "tools");
  if (tools.is_array())
    for (const auto& t : tools)
      lines += "  - step " + part_in(t, "step").dump() + ": " +
               (part_in(t, "ok") == json(true) ? "succeeded" : "failed") + "\n";
  return lines;
}

std::string result_line(const json& result, const json& outcome) {
  if (result.is_null())
    return "- **Result:** unknown\n";
  std::string line = "- **Result:** ";
  if (const auto& stop = part_in(result, "stop"); stop.is_string()) {
    const auto& used = part_in(result, "usage");
    line += (stop == "stop"         ? std::string("a final answer")
             : stop == "tool_calls" ? std::string("it received the results of the tools")
             : stop == "length"     ? std::string("the answer was too long and was cut off")
                                    : "the model stopped: " + code(stop.get<std::string>())) +
            ", " +
            std::to_string(number_in(used, "input_tokens") + number_in(used, "output_tokens")) +
            " tokens\n";
    return line + results_in_words(result);
  }
  const auto execution = text_in(result, "execution");
  line += execution == "succeeded" ? "it ended by itself" : "it failed";
  if (const auto& exit = part_in(result, "exit_code"); exit.is_number_integer() && exit != json(-1))
    line += ", exit code " + exit.dump();
  if (const auto why = text_in(outcome, "error"); !why.empty())
    line += (execution == "succeeded" ? ", but failed the checks: " : ": ") + code(why);
  if (const auto cut = number_in(result, "output_cut"); cut > 0)
    line += "; " + std::to_string(cut) + " bytes of its output were not stored";
  return line + "\n" + results_in_words(result);
}

/// Of the signs that stand in a diff of the page.
std::string signs_in_words(const execution& e) {
  bool added = false;
  bool changed = false;
  bool removed = false;
  for (const auto& a : e.attempts)
    for (const auto& t : a.turns) {
      added = added || !t.diff.added.empty();
      changed = changed || !t.diff.changed.empty();
      removed = removed || !t.diff.removed.empty();
    }
  std::string all;
  const auto add = [&](bool occurs, const char* what) {
    if (occurs)
      all += (all.empty() ? " (" : ", ") + std::string(what);
  };
  add(added, "+ new");
  add(changed, "~ changed");
  add(removed, "− removed");
  return all.empty() ? all : all + ")";
}

} // namespace

std::string turn_by_turn(const execution& e) {
  std::string text = "## Turn by Turn\n\nA turn is one model call, or one run of a program. "
                     "**Context diff** shows changes of the texts that it was given" +
                     signs_in_words(e) +
                     ";\n**Governance** shows the decisions of the agent's rules about each "
                     "action, made before the action.\n\n";
  std::size_t number = 0;
  for (const auto& a : e.attempts) {
    ++number;
    const auto outcome = value(a.outcome);
    bool is_first = true;
    for (const auto& t : a.turns) {
      const auto action = value(t.action);
      text += "### Attempt " + std::to_string(number) + ", turn " + std::to_string(t.number) +
              "\n\n" + diff_line(t, is_first && number == 1) + action_line(action) +
              governance_line(value(t.governance), action, outcome) +
              result_line(value(t.result), outcome) + "\n";
      is_first = false;
    }
  }
  return number == 0 ? text + "- (none)\n\n" : text;
}

} // namespace boyd::record::words
