#pragma once

#include "boyd/improve/finding.hpp"

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace boyd::improve {

/// Rules with stable names: conflict-marker, large-file, broken-link, final-newline, secret,
/// unreferenced-script.
struct hygiene_settings {
  bool enabled = true;
  std::uint64_t large_file = std::uint64_t{1} << 20; ///< bytes
  std::vector<std::string> ignore;                   ///< patterns of paths (tools/glob.hpp)
  std::set<std::string> rules_off;
};

struct listed_file {
  std::string path; ///< relative to the repository
  std::uint64_t size = 0;
};

/// Looks at the files of a repository, one after the other. Pure; not thread-safe.
class hygiene_scan {
 public:
  /// `files`: all of the repository, sorted by path.
  hygiene_scan(hygiene_settings settings, std::vector<listed_file> files);

  /// Whether its text is wanted.
  bool wants(const listed_file& file) const;
  void take(const std::string& path, std::string_view text);

  /// In the order of paths and lines; to be called once, at the end.
  std::vector<finding> findings();

 private:
  bool is_on(const std::string& rule) const { return !settings_.rules_off.contains(rule); }
  bool is_ignored(const std::string& path) const;
  void add(const char* rule, const std::string& path, int line, std::string message,
           std::string text, std::string unfixable = {});
  void look_for_conflicts(const std::string& path, std::string_view text);
  void look_for_secrets(const std::string& path, std::string_view text);
  void look_for_links(const std::string& path, std::string_view text);
  void check_link(const std::string& path, int line, std::string_view target);
  void look_for_names(const std::string& path, std::string_view text);

  hygiene_settings settings_;
  std::vector<listed_file> files_;
  std::set<std::string, std::less<>> known_; ///< files and directories
  std::map<std::string, bool> scripts_;      ///< path → named somewhere
  std::vector<finding> found_;
};

} // namespace boyd::improve
