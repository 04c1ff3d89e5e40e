#include "bench/support/process_state.hpp"

#include "adapters/heap/heap.hpp"

#include <filesystem>
#include <fstream>

namespace boyd::bench {

namespace fs = std::filesystem;

namespace {

std::size_t entries_of(const fs::path& directory) {
  std::size_t n = 0;
  std::error_code failed;
  for (auto it = fs::directory_iterator(directory, failed); !failed && it != fs::end(it);
       it.increment(failed))
    ++n;
  return n;
}

std::size_t count_children() {
  std::size_t n = 0;
  std::error_code failed;
  for (auto it = fs::directory_iterator("/proc/self/task", failed); !failed && it != fs::end(it);
       it.increment(failed)) {
    std::ifstream children(it->path() / "children");
    for (std::string pid; children >> pid;)
      ++n;
  }
  return n;
}

std::uint64_t resident() {
  std::ifstream status("/proc/self/status");
  constexpr std::uint64_t bytes_per_kilobyte = 1024;
  for (std::string word; status >> word;)
    if (std::uint64_t kilobytes = 0; word == "VmRSS:" && status >> kilobytes)
      return kilobytes * bytes_per_kilobyte;
  return 0;
}

} // namespace

process_state observe_process() {
  process_state s;
  s.heap_bytes = adapters::heap_in_use();
  s.resident_bytes = resident();
  s.descriptors = entries_of("/proc/self/fd");
  s.threads = entries_of("/proc/self/task");
  s.children = count_children();
  return s;
}

std::uint64_t size_of_file(const std::string& path) {
  std::error_code failed;
  const auto size = fs::file_size(path, failed);
  return failed ? 0 : size;
}

} // namespace boyd::bench
