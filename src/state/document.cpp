#include "boyd/state/document.hpp"

#include "block_scan.hpp"

#include <algorithm>
#include <optional>
#include <vector>

namespace boyd::state {

namespace {

/// The least that a disk writes at once: what was never written reads as NULs of this length.
constexpr std::size_t hole_bytes = 512;

constexpr std::string_view lf = "\n";
constexpr std::string_view crlf = "\r\n";

/// A file's bytes, taken apart.
struct parts {
  std::string before; ///< up to where the block stands or will stand
  std::string after;
  bool has_place = false; ///< a block stood there; its separating line break is in `before`
  std::string_view line_end = lf;
};

/// The line break that most lines of `text` end with; LF when there are as many of both.
std::string_view usual_line_end(std::string_view text) {
  std::size_t all = 0;
  std::size_t with_return = 0;
  for (auto at = text.find('\n'); at != std::string_view::npos; at = text.find('\n', at + 1)) {
    ++all;
    with_return += at > 0 && text[at - 1] == '\r' ? 1U : 0U;
  }
  return 2 * with_return > all ? crlf : lf;
}

/// The line break of the line that begins at `position`; of a last line without one, the usual.
std::string_view line_end_at(std::string_view text, std::size_t position) {
  const auto newline = text.find('\n', position);
  if (newline == std::string_view::npos) {
    return usual_line_end(text);
  }
  return newline > 0 && text[newline - 1] == '\r' ? crlf : lf;
}

std::optional<std::size_t> first_of(const std::vector<region>& regions, region_kind kind) {
  for (std::size_t i = 0; i < regions.size(); ++i) {
    if (regions[i].kind == kind) {
      return i;
    }
  }
  return std::nullopt;
}

/// The region that counts as the file's block.
std::optional<std::size_t> place_of_block(const std::vector<region>& regions) {
  const auto closed = first_of(regions, region_kind::closed_block);
  return closed ? closed : first_of(regions, region_kind::half_block);
}

parts take_apart(std::string_view text) {
  const auto regions = find_regions(text, split_lines(text));
  const auto place = place_of_block(regions);
  parts found;
  found.has_place = place.has_value();
  found.line_end = line_end_at(text, place ? regions[*place].begin : text.size());
  std::size_t at = 0;
  for (std::size_t i = 0; i < regions.size(); ++i) {
    auto& side = place && i > *place ? found.after : found.before;
    side += text.substr(at, regions[i].begin - at);
    at = regions[i].end;
  }
  (place ? found.after : found.before) += text.substr(at);
  return found;
}

std::string with_line_end(std::string_view block, std::string_view line_end) {
  std::string text;
  while (!block.empty() && (block.back() == '\n' || block.back() == '\r')) {
    block.remove_suffix(1);
  }
  const auto breaks = [](char c) { return c == '\n' || c == '\r'; };
  while (true) {
    const auto at = static_cast<std::size_t>(std::ranges::find_if(block, breaks) - block.begin());
    text += block.substr(0, at);
    if (at == block.size()) {
      return text.append(line_end);
    }
    if (block[at] == '\n') {
      text += line_end;
    }
    block.remove_prefix(at + 1);
  }
}

} // namespace

std::string damage_of(std::string_view file_text) {
  if (file_text.empty())
    return "the file is empty";
  // A hole is at least a sector wide, or the file is nothing else; a lone NUL is an agent's.
  if (file_text.find_first_not_of('\0') == std::string_view::npos)
    return "the file has only NUL bytes";
  static const std::string hole(hole_bytes, '\0');
  return file_text.find(hole) == std::string_view::npos ? "" : "the file has a block of NUL bytes";
}

std::string replace_runtime_block(std::string_view file_text, std::string_view block_text) {
  auto found = take_apart(file_text);
  std::string text = std::move(found.before);
  if (!found.has_place && !text.empty()) {
    text += found.line_end;
  }
  text += with_line_end(block_text, found.line_end);
  return text + found.after;
}

std::string agents_part(std::string_view file_text) {
  auto found = take_apart(file_text);
  if (found.has_place && found.after.empty()) {
    const std::string_view before = found.before;
    for (const auto separator : {found.line_end, lf}) {
      if (before.ends_with(separator)) {
        return found.before.substr(0, before.size() - separator.size());
      }
    }
  }
  return found.before + found.after;
}

std::string kernels_part(std::string_view file_text) {
  std::string ours;
  for (const auto& r : find_regions(file_text, split_lines(file_text)))
    ours += file_text.substr(r.begin, r.end - r.begin);
  return ours;
}

std::string with_block_of(std::string_view file_text, std::string_view other) {
  if (!place_of_block(find_regions(file_text, split_lines(file_text))))
    return std::string(file_text);
  const auto regions = find_regions(other, split_lines(other));
  // Half a block in another file's middle might swallow what follows it there.
  const auto place = first_of(regions, region_kind::closed_block);
  if (!place)
    return agents_part(file_text);
  const auto& r = regions[*place];
  auto text = replace_runtime_block(file_text, other.substr(r.begin, r.end - r.begin));
  // A block with a code fence in it may mean something else between other lines.
  return agents_part(text) == agents_part(file_text) ? text : std::string(file_text);
}

} // namespace boyd::state
