#pragma once

#include <cstdint>
#include <string_view>

namespace boyd::tools {

enum class glob_text : std::uint8_t {
  path,    ///< `*` and `?` stop at "/"
  command, ///< nothing stops them
};

/// Whether `pattern` matches the whole of `text`: `*` any run of characters but "/", `**` any run,
/// `?` one character (a code point) but "/"; everything else stands for itself. In a path `**/` at
/// the beginning or after "/" also stands for no directory at all, and `/**` at the end for the
/// directory itself: `**/.env` is every .env, `secret/**` is secret and what lies in it. Takes time
/// of the order of both lengths multiplied, whatever they hold.
bool glob_matches(std::string_view pattern, std::string_view text,
                  glob_text kind = glob_text::path);

/// Whether `pattern` matches some text that begins with `beginning`.
bool glob_continues(std::string_view pattern, std::string_view beginning, glob_text kind);

} // namespace boyd::tools
