#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

namespace boyd::state {

/// One line of a text: [begin, end) without byte order marks at its head and without the line
/// break, `next` behind it.
struct text_line {
  std::size_t begin = 0;
  std::size_t end = 0;
  std::size_t next = 0;
  bool fenced = false; ///< part of a closed code fence, its delimiters included
};

/// The lines of `text`, split at "\n"; a carriage return before it stays in the line.
std::vector<text_line> split_lines(std::string_view text);

/// `line` without a trailing carriage return and blanks.
std::string_view without_trailing_blanks(std::string_view line) noexcept;

enum class region_kind : std::uint8_t { closed_block, half_block, stray_end };

/// Bytes that are ours by document.hpp's rule; whole lines.
struct region {
  region_kind kind = region_kind::closed_block;
  std::size_t begin = 0;
  std::size_t end = 0;
};

/// All regions of `text`, in order.
std::vector<region> find_regions(std::string_view text, const std::vector<text_line>& lines);

/// Splits a table row at its unescaped '|' into trimmed cells, still escaped; empty when `line`
/// does not begin and end with '|'.
std::vector<std::string_view> table_cells(std::string_view line);

} // namespace boyd::state
