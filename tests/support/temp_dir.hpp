#pragma once

#include <cstdlib>
#include <filesystem>
#include <stdexcept>
#include <string>
#include <system_error>

namespace boyd::test {

/// A fresh directory of its own (0700), removed with everything in it at the end of the scope.
class temp_dir {
 public:
  temp_dir() : temp_dir(std::filesystem::temp_directory_path()) {}
  explicit temp_dir(const std::filesystem::path& below) {
    std::string pattern = (below / "boyd-test-XXXXXX").string();
    if (::mkdtemp(pattern.data()) == nullptr) {
      throw std::runtime_error("mkdtemp failed: " + pattern);
    }
    path_ = pattern;
  }
  ~temp_dir() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  temp_dir(const temp_dir&) = delete;
  temp_dir& operator=(const temp_dir&) = delete;

  /// Absolute, without a trailing slash.
  const std::string& path() const noexcept { return path_; }

  /// `path()/name`.
  std::string file(const std::string& name) const { return path_ + "/" + name; }

 private:
  std::string path_;
};

} // namespace boyd::test
