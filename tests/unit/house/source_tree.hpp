#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace house {

/// One #include line.
struct inclusion {
  std::string name; ///< what stands between the brackets
  bool angled = false;
  int line = 0; ///< from 1
};

/// One file of the source tree, by its path from the top.
struct source {
  std::string path;
  std::string text; ///< as it is on disk
  std::string code; ///< the same with comments and literals blanked out; same line numbers
  std::vector<inclusion> inclusions;

  bool is_header() const { return path.ends_with(".hpp"); }
  bool is_cpp() const { return is_header() || path.ends_with(".cpp"); }
  bool is_below(std::string_view folder) const { return path.starts_with(folder); }
};

/// The tree as values, so that every rule can also be tried on a tree that breaks it.
using source_tree = std::map<std::string, source>;

/// Blanks out comments, string and character literals, raw ones included, but keeps newlines.
std::string without_comments_and_literals(std::string_view text);

source make_source(std::string path, std::string text);

/// A tree of path → text pairs.
source_tree make_tree(const std::vector<std::pair<std::string, std::string>>& files);

/// Every text file below `top` that belongs to the project; what is built or hidden is left out.
source_tree read_tree(const std::string& top);

} // namespace house
