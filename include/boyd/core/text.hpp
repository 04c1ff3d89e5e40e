#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace boyd {

/// U+FFFD in UTF-8: stands where bytes were no text.
inline constexpr std::string_view replacement_character = "\xEF\xBF\xBD";

/// The number of Unicode code points in `utf8`; an invalid byte counts as one.
std::size_t count_characters(std::string_view utf8) noexcept;

/// The longest prefix of `utf8` with at most `characters` code points; never splits a sequence.
std::string_view cut_characters(std::string_view utf8, std::size_t characters) noexcept;

/// Replaces bytes that are not valid UTF-8 by U+FFFD, so that the text fits JSON and PostgreSQL.
/// NUL bytes are replaced too.
std::string sanitize_utf8(std::string_view bytes);

/// The length of the well-formed UTF-8 sequence that `text` begins with; 0 when there is none.
std::size_t utf8_length(std::string_view text) noexcept;

/// Without leading and trailing ASCII white space.
std::string_view trim(std::string_view text) noexcept;

/// Whether the value of a Content-Type header names the media type `type` (lower case): compared
/// without case, its parameters apart.
bool is_media_type(std::string_view value, std::string_view type) noexcept;

/// The first line that is not blank, trimmed; empty when there is none.
std::string_view first_line(std::string_view text) noexcept;

/// Splits at every `separator`; an empty text gives one empty part.
std::vector<std::string_view> split(std::string_view text, char separator);

/// The candidate nearest to `word` by Damerau-Levenshtein distance, when near enough to be a likely
/// slip (at most a third of the length, at least 1); else empty.
std::string_view nearest(std::string_view word, const std::vector<std::string_view>& candidates);

} // namespace boyd
