#pragma once

#include <string>
#include <string_view>

namespace boyd::tools {

/// What a call of a tool would do, for a person who is to decide about it: all of it, as the tool
/// itself reads the arguments, in lines of text. Nothing in it can move a terminal's cursor, hide
/// or reorder what stands beside it: see visible_text.
std::string describe_call(std::string_view tool, std::string_view arguments_json);

/// `text` with every character escaped (`\u{202E}`, `\x1B`) that is not seen, or that changes how
/// others are seen: control characters but line feeds and tabs, marks of direction, joiners,
/// invisible blanks, and bytes that are no UTF-8.
std::string visible_text(std::string_view text);

} // namespace boyd::tools
