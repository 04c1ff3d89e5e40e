#include "crash/fault.hpp"

#include <algorithm>
#include <cstdlib>
#include <stdexcept>
#include <unistd.h>

namespace boyd::crash {

namespace {

void put(std::array<char, longest_path>& into, const std::string& text) {
  if (text.size() >= into.size())
    throw std::runtime_error("too long for the shim: " + text);
  into.fill('\0');
  std::copy(text.begin(), text.end(), into.begin());
}

} // namespace

std::filesystem::path fast_place() {
  constexpr const char* memory = "/dev/shm";
  // Homes with their histories, and a disk for each case of power cuts.
  constexpr std::uintmax_t room = std::uintmax_t{512} << 20;
  std::error_code failed;
  const auto space = std::filesystem::space(memory, failed);
  const bool usable = !failed && space.available >= room && ::access(memory, W_OK | X_OK) == 0;
  return usable && std::getenv("TMPDIR") == nullptr ? memory
                                                    : std::filesystem::temp_directory_path();
}

std::map<std::string, std::string> shim::arm(const std::string& below, const fault& f) {
  block_->calls = 0;
  block_->at = f.at;
  block_->what = static_cast<std::uint32_t>(f.what);
  block_->kinds = f.kinds;
  block_->for_ever = f.for_ever ? 1 : 0;
  block_->over = 0;
  block_->fired = 0;
  block_->cut_flags = f.cut_flags;
  block_->cutting = 0;
  block_->lies = f.lies ? 1 : 0;
  block_->unsynced_inode = 0;
  block_->unsynced_from = 0;
  block_->unsynced_to = 0;
  block_->leader = 0;
  put(block_->below, below);
  put(block_->mount, f.mount);
  put(block_->struck, {});
  std::map<std::string, std::string> environment{{"LD_PRELOAD", BOYD_CRASH_SHIM},
                                                 {control_variable, block_.path()}};
  // Preloaded, the shim stands before the sanitizer's library, which would refuse to start.
  if (BOYD_CRASH_SANITIZED)
    environment["ASAN_OPTIONS"] = "verify_asan_link_order=0";
  return environment;
}

} // namespace boyd::crash
