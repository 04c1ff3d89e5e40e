#include "support/pch.hpp"

#include <array>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <sys/wait.h>
#include <utility>

namespace boyd::help_test {

namespace {

/// The exit code and the words of a script of the source tree.
std::pair<int, std::string> run_script(const std::string& line) {
  const char* source = std::getenv("BOYD_SOURCE_DIR");
  REQUIRE(source != nullptr);
  // Nothing is there to be measured: who goes on to work fails.
  const auto command = "cd '" + std::string(source) + "' && BUILD=/nonexistent " + line + " 2>&1";
  std::string text;
  FILE* pipe = ::popen(command.c_str(), "r");
  REQUIRE(pipe != nullptr);
  std::array<char, 4096> part{};
  for (std::size_t n = 0; (n = std::fread(part.data(), 1, part.size(), pipe)) > 0;)
    text.append(part.data(), n);
  const int status = ::pclose(pipe);
  return {WIFEXITED(status) ? WEXITSTATUS(status) : -1, text};
}

} // namespace

TEST_CASE("scripts that measure tell what they can, and refuse what they do not know") {
  for (const std::string script : {"bench/run", "bench/against-peers"})
    for (const char* word : {" --help", " -h"}) {
      const auto [code, text] = run_script(script + word);
      INFO(script << word << ": " << text);
      CHECK(code == 0);
      CHECK(text.find("  " + script) != std::string::npos);
      CHECK(text.find("BUILD") != std::string::npos);
    }
  for (const std::string script : {"bench/run", "bench/against-peers"}) {
    const auto [code, text] = run_script(script + " nonsense");
    INFO(script << ": " << text);
    CHECK(code == 2);
    CHECK(text.find("nonsense") != std::string::npos);
  }
}

} // namespace boyd::help_test
