#pragma once

#include "boyd/core/result.hpp"

#include <cstddef>
#include <limits>
#include <string>
#include <string_view>

/// The one reader for JSON that comes from outside: models, agent CLIs, servers of tools, programs.
/// Generous with bytes, strict about meaning. Pure functions of any bytes; safe on any thread.
namespace boyd {

struct outside_json_options {
  /// Strings beyond this many bytes are cut, on a character, and end with "… [N bytes cut]".
  std::size_t string_bytes = std::numeric_limits<std::size_t>::max();
  /// The text is a piece of a stream: halves of a surrogate pair and bytes of an unfinished UTF-8
  /// sequence stay, as private characters, until join_pieces() sees their other half.
  bool is_piece = false;
};

struct outside_json {
  std::string text;      ///< the value as strict JSON in UTF-8, at most limits::json_depth deep
  bool mended = false;   ///< something in it was not strict JSON
  std::size_t cut = 0;   ///< bytes that were cut from strings
  std::size_t begin = 0; ///< where the value stands in the input
  std::size_t end = 0;   ///< behind it
};

/// The JSON value that `text` is. A byte order mark, blanks, NUL bytes and ANSI escape sequences
/// around it and between its tokens are passed over. In strings, bytes that are no UTF-8 and half
/// surrogate pairs become U+FFFD, raw control characters are escaped, and the backslash of an
/// unknown escape counts as a character. NaN, infinities and numbers too large for a double become
/// null. Error `parse_error`: no value, not whole, or something else beside it; `limit_exceeded`:
/// nested too deep.
result<outside_json> mend_json(std::string_view text, const outside_json_options& options = {});

/// The one JSON object or array among other words: behind reasoning (<think>…</think> and the
/// like), in a Markdown fence, or in prose. A text that is a JSON value as a whole is that value,
/// of any kind. An object is preferred to arrays, a fence to the text outside of fences. A value
/// inside of another one does not count. Error `parse_error`: there is none, there are several
/// different ones, or one is broken.
result<outside_json> find_json(std::string_view text, const outside_json_options& options = {});

/// Joins what was read with `is_piece`, in text of any form (plain, or JSON that holds it): halves
/// that stand side by side become their character, all others U+FFFD.
void join_pieces(std::string& text);

/// Without ANSI escape sequences (colours, titles, cursor movements) and byte order marks.
std::string without_escapes(std::string_view text);

} // namespace boyd
