#include "fuzz/target.hpp"

#include <spdlog/spdlog.h>

#include <cstdio>
#include <cstdlib>

/// libFuzzer's entry points; BOYD_FUZZ_TARGET says which target runs.
namespace {
const boyd::fuzz::target* chosen = nullptr;
}

extern "C" int LLVMFuzzerInitialize(int* /*argc*/, char*** /*argv*/) {
  const char* name = std::getenv("BOYD_FUZZ_TARGET");
  chosen = name == nullptr ? nullptr : boyd::fuzz::find_target(name);
  if (chosen == nullptr) {
    std::fputs("BOYD_FUZZ_TARGET must name one of:\n", stderr);
    for (const auto& t : boyd::fuzz::targets())
      std::fprintf(stderr, "  %.*s\n", static_cast<int>(t.name.size()), t.name.data());
    std::exit(2);
  }
  spdlog::set_level(spdlog::level::off);
  return 0;
}

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  chosen->run({reinterpret_cast<const char*>(data), size});
  return 0;
}
