#pragma once

#include <string>
#include <string_view>

/// What the words of a program mean to its reader. Pure functions of any bytes.
namespace boyd::exec {

/// Whether nothing can be read in it: blanks, invisible characters, escape sequences.
bool says_nothing(std::string_view text);

/// The first line, as long as a summary may be; valid UTF-8.
std::string summary_line(std::string_view text);

/// Whether it is only a fence or other marks: no letter, no digit, no question mark.
bool is_decoration(std::string_view line);

/// Whether a line leaves a decision to its reader: a question mark at its end, in any script and
/// before closing marks, blanks and emoji; a choice such as [y/N]; an English phrase of asking. A
/// question mark of code or of an address is none.
bool asks_reader(std::string_view line);

} // namespace boyd::exec
