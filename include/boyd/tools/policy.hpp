#pragma once

#include "boyd/config/models.hpp"

#include <optional>
#include <string>
#include <vector>

namespace boyd::tools {

/// Something an agent wants to do, as its policy sees it.
struct action {
  std::string tool; ///< built-in name or mcp__server__tool
  std::string path; ///< from workspace_path; empty: the action concerns none
  /// The line, or the arguments joined by spaces, each in quotes that would be more than one word
  /// of a line; empty: none.
  std::string command;
  bool shell = false; ///< `command` is a line for a shell
  std::string host;   ///< empty: none
  /// Of a command that is no line: the arguments, the program's name first.
  std::vector<std::string> argv{};
  bool elsewhere = false; ///< the command begins in a directory below the workspace
};

struct decision {
  config::policy_decision what = config::policy_decision::deny;
  std::string reason; ///< for the record and for the model
  int rule = 0;       ///< which of the policy's rules, from 1; 0: none, the default

  bool operator==(const decision&) const = default;
};

/// Whether one of `patterns` (an agent's `tools`) names `tool`.
bool is_listed(const std::string& tool, const std::vector<std::string>& patterns);

/// What may become of `a`: the first rule decides whose every given part matches; a part that is
/// given and that the action does not have does not match. Without a rule, a built-in tool is
/// allowed, run_command and everything else denied. A tool that is not listed in `tools` is denied
/// whatever the rules say. Depends on its arguments alone: no text of a model or of a file can
/// change a decision about another action.
///
/// A shell's line is more than one command: a rule that allows by a pattern of commands (other than
/// `*` or `**`) does not match a line that could start a second one (; & | ` $ ( ) < > { } \ or a
/// line break). A rule that denies or asks is tried on each command of the line as a shell would
/// read it, without quotes, by the program's whole name and the last part of it, and on what
/// programs such as env, timeout, xargs or sh -c would start; where only the shell knows what
/// stands in a line, it fits. All the same, only a list of what is allowed is a boundary: a denied
/// command has other names (git -C . push).
///
/// An argument with blanks or quotes stands in quotes for a rule that allows: it is no run of words
/// that the pattern spells out. Such a rule takes a program by the pattern's first word alone: as
/// it stands there, or, when wildcards have to do it, a plain name (no `..`, and in a line no
/// quotes and no wildcards of the shell). A program of a relative path (`scripts/x`) is allowed by
/// it where the pattern means it: in the workspace itself, not in a directory that the call names.
decision decide(const action& a, const config::action_policy& policy,
                const std::vector<std::string>& tools);

/// Why a file tool must not write `a.path` below `workspace`, whatever the policy says: it is one
/// of `files` (names) in `kernel_home`. Both absolute. Empty optional: it may.
std::optional<decision> decide_protected(const action& a, const std::string& workspace,
                                         const std::string& kernel_home,
                                         const std::vector<std::string>& files);

/// The same without the defaults: nothing when no rule matches.
std::optional<decision> decide_by_rules(const action& a, const config::action_policy& policy);

} // namespace boyd::tools
