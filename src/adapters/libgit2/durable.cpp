#include "../signals_blocked.hpp"
#include "durable_internal.hpp"

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <fcntl.h>
#include <system_error>
#include <thread>
#include <unistd.h>

namespace boyd::adapters::git {

namespace {

/// So many are waited for at the same time.
constexpr std::size_t most_at_once = 8;

/// fsync of each; their errno values or 0. A file system that has written its journal for the first
/// of them flushes the disk's cache once more for every other one that comes only then. Those that
/// are under way together share the journal and the flush: hence threads, for as long as it takes.
std::vector<int> fsync_all(const std::vector<std::pair<int, std::string>>& files) {
  std::vector<int> codes(files.size(), 0);
  const auto lanes = std::min(files.size(), most_at_once);
  const auto sync_lane = [&](std::size_t lane) {
    for (auto i = lane; i < files.size(); i += lanes)
      codes[i] = ::fsync(files[i].first) == 0 ? 0 : errno;
  };
  std::vector<std::thread> helpers;
  helpers.reserve(lanes);
  std::size_t taken = 1;
  try {
    const signals_blocked none;
    for (; taken < lanes; ++taken)
      helpers.emplace_back(sync_lane, taken);
  } catch (const std::system_error&) {
    // No more threads: the rest waits in this one.
  }
  if (lanes > 0)
    sync_lane(0);
  for (auto lane = taken; lane < lanes; ++lane)
    sync_lane(lane);
  for (auto& helper : helpers)
    helper.join();
  return codes;
}

} // namespace

int sync_group::sync() {
  if (files_.size() > 1)
    for (const auto& file : files_) {
      // A hint: what comes of it is found by the fsync, and a file system may not know the call.
      [[maybe_unused]] const int begun = ::sync_file_range(file.first, 0, 0, SYNC_FILE_RANGE_WRITE);
    }
  const auto codes = fsync_all(files_);
  const auto bad = std::ranges::find_if(codes, [](int code) { return code != 0; });
  if (bad == codes.end())
    return 0;
  failed_ = files_[static_cast<std::size_t>(bad - codes.begin())].second;
  return *bad;
}

int sync_directories(const std::vector<std::string>& paths, std::string& failed) {
  std::vector<unique_fd> open;
  sync_group group;
  for (const auto& path : paths) {
    open.emplace_back(::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    if (!open.back()) {
      failed = path;
      return errno;
    }
    group.add(open.back().get(), path);
  }
  const int code = group.sync();
  failed = group.failed();
  return code;
}

} // namespace boyd::adapters::git
