#pragma once

#include "src/adapters/posix/confined_files.hpp"
#include "support/temp_dir.hpp"

#include <filesystem>
#include <fstream>
#include <iterator>
#include <memory>
#include <string>

namespace boyd::test {

/// A workspace with something beside it that must not be reached.
struct confined_fixture {
  explicit confined_fixture(bool without_openat2 = false)
      : files(adapters::make_confined_files({home, without_openat2})) {
    std::filesystem::create_directories(root + "/src/deep");
    std::filesystem::create_directories(dir.file("outside/deep"));
    put(dir.file("outside/secret"), "SECRET");
    put(root + "/src/deep/f", "inside");
  }

  static void put(const std::string& path, const std::string& text) {
    std::ofstream(path, std::ios::binary) << text;
  }
  static std::string get(const std::string& path) {
    std::ifstream in(path, std::ios::binary);
    return {std::istreambuf_iterator<char>(in), {}};
  }

  temp_dir dir;
  std::string root = dir.file("workspace");
  std::string home = dir.file("home");
  std::shared_ptr<confined_files> files;
};

inline constexpr std::size_t plenty = std::size_t{1} << 20;

} // namespace boyd::test
