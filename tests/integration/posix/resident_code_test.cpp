#include "src/adapters/posix/resident_code.hpp"
#include "support/pch.hpp"

#include <fstream>
#include <string>

namespace boyd::resident_code_test {

namespace {

/// Kibibytes of mapped files in memory (/proc/self/status).
long resident_files() {
  std::ifstream in("/proc/self/status");
  for (std::string line; std::getline(in, line);)
    if (line.starts_with("RssFile:"))
      return std::stol(line.substr(8));
  return -1;
}

} // namespace

TEST_CASE("code that has run is given back, and runs again") {
  const auto before = resident_files();
  REQUIRE(before > 0);
  const auto looked_at = boyd::adapters::release_resident_code();
  CHECK(looked_at > 100u * 1024);
  CHECK(resident_files() < before);
  CHECK(std::to_string(before).size() > 1);
}

} // namespace boyd::resident_code_test
