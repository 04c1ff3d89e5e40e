#pragma once

#include <string>
#include <string_view>
#include <vector>

/// How a shell would take a line apart, as far as the line alone can tell. For rules that forbid:
/// in doubt there is rather one command more.
namespace boyd::tools {

/// One command of a line: quotes and backslashes are gone, assignments before it and redirections
/// left out.
struct shell_command {
  std::vector<std::string> words;
  /// Only the shell knows how the last word goes on and what follows it: a variable, a
  /// substitution, a pattern of files.
  bool open = false;
};

struct shell_reading {
  std::vector<shell_command> commands; ///< also those in parentheses and substitutions
  bool sure = true; ///< false: it cannot be taken apart (a quote without its end)
};

shell_reading read_shell_line(std::string_view line);

/// Whether `pattern` fits the command, by the program's whole name or the last part of it, or what
/// it would start in turn, where the program is known for that (env, timeout, sh -c, xargs, …); of
/// a line, one of its commands. What cannot be read fits.
bool fits_command(std::string_view pattern, const shell_command& command);
bool fits_line(std::string_view pattern, std::string_view line);

} // namespace boyd::tools
