#include "boyd/exec/patch_words.hpp"

#include "boyd/core/text.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <cstddef>

namespace boyd::exec {

namespace {

constexpr std::array<std::string_view, 4> path_marks{"--- a/", "+++ b/", "rename from ",
                                                     "rename to "};

/// "12,3" or "12": how many lines a side of a hunk has.
std::size_t lines_of_side(std::string_view side) {
  const auto comma = side.find(',');
  if (comma == side.npos)
    return 1;
  std::size_t n = 0;
  std::from_chars(side.data() + comma + 1, side.data() + side.size(), n);
  return n;
}

/// Lines of the hunk under way that are still to come.
struct open_hunk {
  std::size_t removed = 0;
  std::size_t added = 0;

  bool is_open() const { return removed > 0 || added > 0; }

  /// "@@ -12,3 +14,5 @@"
  void begin(std::string_view head) {
    const auto sides = split(head, ' ');
    if (sides.size() < 3)
      return;
    removed = lines_of_side(sides[1]);
    added = lines_of_side(sides[2]);
  }
  void take(char mark) {
    if (mark != '+' && removed > 0 && mark != '\\')
      --removed;
    if (mark != '-' && added > 0 && mark != '\\')
      --added;
  }
};

} // namespace

patch_words read_patch(std::string_view patch) {
  patch_words words;
  open_hunk hunk;
  for (const auto line : split(patch, '\n')) {
    if (hunk.is_open()) {
      const char mark = line.empty() ? ' ' : line.front();
      hunk.take(mark);
      if (mark == '+')
        words.added.append(line.substr(1)).append("\n");
      continue;
    }
    if (line.starts_with("@@ "))
      hunk.begin(line);
    for (const auto mark : path_marks)
      if (line.starts_with(mark))
        words.paths.emplace_back(line.substr(mark.size()));
  }
  std::ranges::sort(words.paths);
  words.paths.erase(std::unique(words.paths.begin(), words.paths.end()), words.paths.end());
  return words;
}

} // namespace boyd::exec
