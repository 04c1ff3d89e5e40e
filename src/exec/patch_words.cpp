#include "boyd/exec/patch_words.hpp"

#include "boyd/core/text.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <cstddef>
#include <optional>
#include <utility>

namespace boyd::exec {

namespace {

struct path_mark {
  std::string_view begin; ///< of the line
  std::string_view side;  ///< what the path has before it
};
constexpr std::array<path_mark, 4> path_marks{
    {{"--- ", "a/"}, {"+++ ", "b/"}, {"rename from ", ""}, {"rename to ", ""}}};

/// A name as git writes it: in quotes, with octal escapes, when it has more than plain signs.
std::string unquoted(std::string_view name) {
  if (name.size() < 2 || name.front() != '"' || name.back() != '"')
    return std::string(name);
  name = name.substr(1, name.size() - 2);
  constexpr std::string_view letters = "abtnvfr";
  constexpr std::string_view signs = "\a\b\t\n\v\f\r";
  constexpr std::size_t octal_digits = 3;
  std::string plain;
  for (std::size_t i = 0; i < name.size(); ++i) {
    if (name[i] != '\\' || i + 1 == name.size()) {
      plain += name[i];
      continue;
    }
    ++i;
    unsigned code = 0;
    const auto digits = name.substr(i, octal_digits);
    const auto [end, failed] =
        std::from_chars(digits.data(), digits.data() + digits.size(), code, 8);
    if (const auto letter = letters.find(name[i]); letter != letters.npos)
      plain += signs[letter];
    else if (failed != std::errc{})
      plain += name[i]; // a quote or a backslash
    else {
      plain += static_cast<char>(code);
      i += static_cast<std::size_t>(end - digits.data()) - 1;
    }
  }
  return plain;
}

/// The path in a line that tells of one.
std::optional<std::string> path_in(std::string_view line) {
  for (const auto& [mark, side] : path_marks)
    if (line.starts_with(mark)) {
      auto name = line.substr(mark.size());
      // Behind a name with blanks git writes a tab.
      if (name.ends_with('\t'))
        name.remove_suffix(1);
      const auto path = unquoted(name);
      if (path.starts_with(side))
        return path.substr(side.size());
    }
  return std::nullopt;
}

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
    if (auto path = path_in(line))
      words.paths.push_back(std::move(*path));
  }
  std::ranges::sort(words.paths);
  words.paths.erase(std::unique(words.paths.begin(), words.paths.end()), words.paths.end());
  return words;
}

} // namespace boyd::exec
