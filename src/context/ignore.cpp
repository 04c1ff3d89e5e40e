#include "boyd/context/ignore.hpp"

#include "boyd/core/text.hpp"

#include <algorithm>
#include <optional>
#include <utility>

namespace boyd::context {

namespace {

/// More patterns and longer ones are a slip, or meant to cost time; what is beyond is not read.
constexpr std::size_t most_rules = 5000;
constexpr std::size_t pattern_bytes = 1000;
/// Steps of one comparison; a pattern that needs more does not fit.
constexpr int most_steps = 20'000;

/// Whether `c` is in the set that begins behind the bracket at `at`; moves `at` to the closing one.
/// Nothing: the bracket is not closed and stands for itself.
std::optional<bool> in_set(std::string_view pattern, std::size_t& at, char c) {
  auto i = at + 1;
  const bool negated = i < pattern.size() && (pattern[i] == '!' || pattern[i] == '^');
  if (negated)
    ++i;
  bool found = false;
  for (bool first = true; i < pattern.size() && (first || pattern[i] != ']'); first = false) {
    const char low = pattern[i];
    char high = low;
    if (i + 2 < pattern.size() && pattern[i + 1] == '-' && pattern[i + 2] != ']') {
      high = pattern[i + 2];
      i += 2;
    }
    found = found || (low <= c && c <= high);
    ++i;
  }
  if (i >= pattern.size())
    return std::nullopt;
  at = i;
  return found != negated;
}

/// Compares a pattern with a path; `*` and `?` stop at slashes, `**` does not.
class matcher {
 public:
  bool fits(std::string_view pattern, std::string_view path) {
    if (--steps_ < 0)
      return false;
    for (std::size_t p = 0, i = 0;; ++p, ++i) {
      if (p == pattern.size())
        return i == path.size();
      if (pattern[p] == '*')
        return star(pattern.substr(p), path.substr(i));
      if (i == path.size() || !one(pattern, p, path[i]))
        return false;
    }
  }

 private:
  static bool one(std::string_view pattern, std::size_t& p, char c) {
    if (pattern[p] == '?')
      return c != '/';
    if (pattern[p] == '[')
      if (const auto found = in_set(pattern, p, c))
        return *found && c != '/';
    if (pattern[p] == '\\' && p + 1 < pattern.size())
      ++p;
    return pattern[p] == c;
  }

  bool star(std::string_view pattern, std::string_view path) {
    const bool deep = pattern.starts_with("**");
    auto rest = pattern.substr(std::min(pattern.find_first_not_of('*'), pattern.size()));
    // "a/**/b" is "a/b", too.
    if (deep && rest.starts_with('/') && fits(rest.substr(1), path))
      return true;
    for (std::size_t i = 0;; ++i) {
      if (fits(rest, path.substr(i)))
        return true;
      if (i == path.size() || (!deep && path[i] == '/') || steps_ < 0)
        return false;
    }
  }

  int steps_ = most_steps;
};

/// Without blanks at its end that no backslash keeps.
std::string_view without_blanks(std::string_view line) {
  while (line.ends_with('\r') ||
         (line.ends_with(' ') && !(line.size() > 1 && line[line.size() - 2] == '\\')))
    line.remove_suffix(1);
  return line;
}

} // namespace

void ignore_rules::add(std::string_view directory, std::string_view text) {
  for (auto line : split(text, '\n')) {
    line = without_blanks(line);
    if (line.empty() || line.front() == '#' || line.size() > pattern_bytes ||
        rules_.size() == most_rules)
      continue;
    rule r;
    r.directory = directory.empty() ? std::string() : std::string(directory) + "/";
    r.negated = line.front() == '!';
    if (r.negated)
      line.remove_prefix(1);
    r.directories_only = line.ends_with('/');
    if (r.directories_only)
      line.remove_suffix(1);
    r.anchored = line.find('/') != line.npos;
    if (line.starts_with('/'))
      line.remove_prefix(1);
    r.pattern = line;
    if (!r.pattern.empty())
      rules_.push_back(std::move(r));
  }
}

bool ignore_rules::ignores(std::string_view path, bool is_directory) const {
  for (auto r = rules_.rbegin(); r != rules_.rend(); ++r) {
    if (!path.starts_with(r->directory) || (r->directories_only && !is_directory))
      continue;
    const auto below = path.substr(r->directory.size());
    const auto name = r->anchored ? below : below.substr(below.rfind('/') + 1);
    if (matcher().fits(r->pattern, name))
      return !r->negated;
  }
  return false;
}

} // namespace boyd::context
