#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace boyd::state {

/// `text` on one line and safe within a table cell; runtime_block.hpp lists the escapes. Characters
/// of `separators` are escaped too. Empty text becomes "(none)". Cut, by whole characters and
/// escapes, at `max_characters` of the result.
std::string escape_value(std::string_view text, std::string_view separators,
                         std::size_t max_characters);

/// The inverse; "(none)" becomes empty. An unknown escape stands for its second character.
std::string unescape_value(std::string_view escaped);

/// Splits at every `separator` whose first character is not escaped.
std::vector<std::string_view> split_unescaped(std::string_view text, std::string_view separator);

/// Position of the first unescaped `needle`, or npos.
std::size_t find_unescaped(std::string_view text, std::string_view needle);

/// The longest prefix of at most `characters` characters that ends within no escape and carries no
/// blank at its end.
std::string_view cut_escaped(std::string_view escaped, std::size_t characters);

} // namespace boyd::state
