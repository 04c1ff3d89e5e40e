#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace boyd::tools {

/// What a call of a tool would do, for a person who is to decide about it: all of it, as the tool
/// itself reads the arguments, in lines of text. Nothing in it can move a terminal's cursor, hide
/// or reorder what stands beside it: see visible_text.
std::string describe_call(std::string_view tool, std::string_view arguments_json);

/// A call for a person who is to decide about it, without its secrets.
struct shown_call {
  /// As describe_call has it. Where redaction took something, the first lines say so: how many
  /// parts, and of each its length and SHA-256.
  std::string text;
  /// Why nobody can be asked: what is not shown could be more than a secret. Empty: a person can.
  std::string refused;
};

/// `secrets` as redact_text takes them. A part that only looks like a secret is refused where it
/// holds signs that mean something to a shell, or several lines of a command: whoever writes the
/// call also writes what makes it look like one.
shown_call show_call(std::string_view tool, std::string_view arguments_json,
                     const std::vector<std::string>& secrets);

/// `text` with every character escaped (`\u{202E}`, `\x1B`) that is not seen, or that changes how
/// others are seen: control characters but line feeds and tabs, marks of direction, joiners,
/// invisible blanks, and bytes that are no UTF-8.
std::string visible_text(std::string_view text);

} // namespace boyd::tools
