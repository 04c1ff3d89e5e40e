#include "fuzz/target.hpp"
#include "support/pch.hpp"

#include <spdlog/spdlog.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <stdexcept>

namespace boyd::corpus_test {

using namespace boyd;
namespace fs = std::filesystem;

namespace {

fs::path corpus_of(std::string_view target) {
  const char* root = std::getenv("BOYD_SOURCE_DIR");
  REQUIRE(root != nullptr);
  return fs::path(root) / "tests/fuzz/corpus" / target;
}

std::string content_of(const fs::path& file) {
  std::ifstream in(file, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

/// Cuts of each input: enough to end within every part of a small one.
constexpr std::size_t cuts = 16;

} // namespace

TEST_CASE("fuzz corpus: every kept input keeps the rules, whole and cut short", "[fuzz]") {
  const auto folders = static_cast<std::size_t>(
      std::ranges::distance(fs::directory_iterator(corpus_of("")), fs::directory_iterator{}));
  REQUIRE(fuzz::targets().size() == folders);
  // Each input's warnings are what the rules are about.
  spdlog::set_level(spdlog::level::off);
  fuzz::on_failure([](const std::string& rule) { throw std::runtime_error(rule); });
  for (const auto& target : fuzz::targets()) {
    std::size_t inputs = 0;
    for (const auto& entry : fs::directory_iterator(corpus_of(target.name))) {
      ++inputs;
      const auto input = content_of(entry.path());
      INFO(target.name << " on " << entry.path().filename().string());
      REQUIRE_NOTHROW(target.run(input));
      for (std::size_t i = 1; i < cuts; ++i) {
        const auto size = input.size() * i / cuts;
        INFO("cut to " << size << " bytes");
        REQUIRE_NOTHROW(target.run(std::string_view(input).substr(0, size)));
      }
    }
    INFO(target.name << " has no inputs in tests/fuzz/corpus");
    CHECK(inputs > 0);
  }
}

TEST_CASE("fuzz targets: a broken rule is told", "[fuzz]") {
  std::string told;
  fuzz::on_failure([&](const std::string& rule) { told = rule; });
  fuzz::require(true, "holds");
  CHECK(told.empty());
  fuzz::require(false, "is broken");
  CHECK(told == "is broken");
}

} // namespace boyd::corpus_test
