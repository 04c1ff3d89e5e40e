#include "boyd/tools/policy.hpp"

#include "boyd/core/text.hpp"
#include "boyd/core/workspace_path.hpp"
#include "boyd/tools/definitions.hpp"
#include "boyd/tools/glob.hpp"
#include "shell_words.hpp"

#include <algorithm>
#include <string_view>

namespace boyd::tools {

namespace {

using config::policy_decision;

constexpr std::string_view starts_another_command = ";&|`$()<>{}\\\n\r";
constexpr std::string_view blanks = " \t\n\v\f\r";

bool path_matches(std::string_view pattern, const std::string& path) {
  if (path.empty())
    return false;
  if (pattern.starts_with("./"))
    pattern.remove_prefix(2);
  if (pattern.size() > 1 && pattern.ends_with('/'))
    pattern.remove_suffix(1);
  return glob_matches(pattern, path);
}

bool a_piece_matches(std::string_view pattern, std::string_view line) {
  while (true) {
    const auto end = line.find_first_of(starts_another_command);
    if (glob_matches(pattern, trim(line.substr(0, end)), glob_text::command))
      return true;
    if (end == std::string_view::npos)
      return false;
    line.remove_prefix(end + 1);
  }
}

std::string_view first_word(std::string_view text) {
  return text.substr(0, text.find_first_of(blanks));
}

bool leads_up(std::string_view program) {
  for (std::size_t at = 0; at <= program.size();) {
    const auto end = std::min(program.find('/', at), program.size());
    if (program.substr(at, end - at) == "..")
      return true;
    at = end + 1;
  }
  return false;
}

/// Whether the program is one that the pattern's first word means.
bool means_program(std::string_view pattern, const action& a) {
  const std::string_view program = a.argv.empty() ? first_word(a.command) : a.argv.front();
  const bool relative = program.find('/') != std::string_view::npos && program.front() != '/';
  if (relative && a.elsewhere)
    return false;
  const auto meant = first_word(pattern);
  if (program == meant)
    return true;
  const bool odd = program.find_first_of(a.shell ? "'\"*?[~" : blanks) != std::string_view::npos;
  return !odd && !leads_up(program) && glob_matches(meant, program, glob_text::command);
}

std::string joined(const std::vector<std::string>& argv) {
  std::string line;
  for (const auto& argument : argv)
    line.append(line.empty() ? "" : " ").append(argument);
  return line;
}

bool command_matches(const config::policy_rule& rule, const action& a) {
  if (a.command.empty())
    return false;
  const std::string_view pattern = rule.command;
  if (pattern.find_first_not_of('*') == std::string_view::npos)
    return true;
  const bool fits = glob_matches(pattern, a.command, glob_text::command);
  if (rule.decision == policy_decision::allow)
    return fits && means_program(pattern, a) &&
           !(a.shell && a.command.find_first_of(starts_another_command) != std::string::npos);
  // What forbids is tried on every way to read it.
  if (fits || (!a.argv.empty() && glob_matches(pattern, joined(a.argv), glob_text::command)))
    return true;
  if (a.shell)
    return a_piece_matches(pattern, a.command) || fits_line(pattern, a.command);
  return fits_command(pattern, {a.argv, false});
}

bool matches(const config::policy_rule& rule, const action& a) {
  if (!glob_matches(rule.tool, a.tool))
    return false;
  if (!rule.path.empty() && !path_matches(rule.path, a.path))
    return false;
  if (!rule.command.empty() && !command_matches(rule, a))
    return false;
  // A host has no "/": `*` crosses its dots.
  return rule.host.empty() || (!a.host.empty() && glob_matches(rule.host, a.host));
}

} // namespace

bool is_listed(const std::string& tool, const std::vector<std::string>& patterns) {
  return std::ranges::any_of(patterns, [&](const auto& p) { return glob_matches(p, tool); });
}

std::optional<decision> decide_by_rules(const action& a, const config::action_policy& policy) {
  for (std::size_t i = 0; i < policy.rules.size(); ++i) {
    const auto& rule = policy.rules[i];
    if (!matches(rule, a))
      continue;
    decision d{rule.decision, {}, static_cast<int>(i) + 1};
    const auto which = "rule " + std::to_string(d.rule) + " of the agent's policy";
    d.reason = rule.decision == policy_decision::ask     ? which + " requires approval"
               : rule.decision == policy_decision::allow ? "allowed by " + which
                                                         : "denied by " + which;
    if (!rule.reason.empty())
      d.reason += ": " + rule.reason;
    return d;
  }
  return std::nullopt;
}

std::optional<decision> decide_protected(const action& a, const std::string& workspace,
                                         const std::string& kernel_home,
                                         const std::vector<std::string>& files) {
  if (a.tool != write_file_name)
    return std::nullopt;
  const auto path = workspace + "/" + a.path;
  const auto end = path.rfind('/');
  // As the least careful file system takes names.
  const auto folded = folded_name(path.substr(end + 1));
  const auto same = [&](const std::string& f) { return folded_name(f) == folded; };
  const auto found = std::ranges::find_if(files, same);
  if (found == files.end() || path.substr(0, end) != kernel_home)
    return std::nullopt;
  return decision{policy_decision::deny,
                  *found + " is protected: agents cannot write it (protected_files of the kernel)",
                  0};
}

decision decide(const action& a, const config::action_policy& policy,
                const std::vector<std::string>& tools) {
  if (!is_listed(a.tool, tools))
    return {policy_decision::deny, "the tool " + a.tool + " is not among the agent's tools", 0};
  if (auto d = decide_by_rules(a, policy))
    return *d;
  if (a.tool == run_command_name)
    return {policy_decision::deny, "no rule of the agent's policy allows this command", 0};
  if (find_built_in(a.tool) != nullptr)
    return {policy_decision::allow, "built-in tools are allowed unless a rule says otherwise", 0};
  return {policy_decision::deny, "no rule of the agent's policy allows " + a.tool, 0};
}

} // namespace boyd::tools
