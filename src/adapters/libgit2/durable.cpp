#include "durable_internal.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstddef>
#include <fcntl.h>
#include <libaio.h>
#include <mutex>
#include <span>
#include <unistd.h>

namespace boyd::adapters::git {

namespace {

using named_file = std::pair<int, std::string>;

/// A file whose fsync was not asked for yet; errno values are positive.
constexpr int not_asked = -1;

/// The kernel's queues of requests (io_setup(2)) of this process. Each serves one thread at a time;
/// they are kept, for the end of one takes milliseconds. Threads: any.
class request_queues {
 public:
  /// So many requests fit into one.
  static constexpr std::size_t length = 32;

  request_queues() = default;
  request_queues(const request_queues&) = delete;
  request_queues& operator=(const request_queues&) = delete;
  ~request_queues() {
    for (auto* queue : free_)
      end(queue);
  }

  /// Null: the system has none, or no more.
  io_context_t take() {
    {
      const std::lock_guard lock(mutex_);
      if (!free_.empty()) {
        auto* queue = free_.back();
        free_.pop_back();
        return queue;
      }
    }
    io_context_t queue = nullptr;
    return ::io_setup(static_cast<int>(length), &queue) == 0 ? queue : nullptr;
  }

  static void end(io_context_t queue) { ::io_destroy(queue); }

  void give_back(io_context_t queue) {
    const std::lock_guard lock(mutex_);
    free_.push_back(queue);
  }

 private:
  std::mutex mutex_;
  std::vector<io_context_t> free_;
};

request_queues& queues() {
  static request_queues all;
  return all;
}

/// fsync of each at the same time, as far as the kernel takes them; at most `length` files. False:
/// the queue is not to be used again.
bool ask_together(io_context_t queue, std::span<const named_file> files, std::span<int> codes) {
  std::array<iocb, request_queues::length> requests{};
  std::array<iocb*, request_queues::length> asked{};
  for (std::size_t i = 0; i < files.size(); ++i) {
    ::io_prep_fsync(&requests[i], files[i].first);
    requests[i].data = &codes[i];
    asked[i] = &requests[i];
  }
  const int taken = ::io_submit(queue, static_cast<long>(files.size()), asked.data());
  std::array<io_event, request_queues::length> ends{};
  for (int left = taken; left > 0;) {
    const int n = ::io_getevents(queue, left, left, ends.data(), nullptr);
    for (int i = 0; i < n; ++i) {
      const auto code = static_cast<long>(ends[static_cast<std::size_t>(i)].res);
      *static_cast<int*>(ends[static_cast<std::size_t>(i)].data) =
          code < 0 ? static_cast<int>(-code) : 0;
    }
    if (n < 0 && n != -EINTR) {
      // What failed of those that have no answer would not fail once more: the kernel tells a
      // descriptor of an error only once.
      std::ranges::replace(codes.first(static_cast<std::size_t>(taken)), not_asked, EIO);
      return false;
    }
    left -= std::max(n, 0);
  }
  return true;
}

/// fsync of each; their errno values or 0. A file system that has written its journal for the first
/// of them flushes the disk's cache once more for every other one that comes only then. Those that
/// are under way together share the journal and the flush. What the kernel's queue does not take
/// is asked for one after the other.
std::vector<int> fsync_all(std::span<const named_file> files) {
  std::vector<int> codes(files.size(), not_asked);
  if (auto* queue = files.size() > 1 ? queues().take() : nullptr) {
    bool works = true;
    for (std::size_t at = 0; works && at < files.size(); at += request_queues::length) {
      const auto count = std::min(request_queues::length, files.size() - at);
      works = ask_together(queue, files.subspan(at, count), std::span(codes).subspan(at, count));
    }
    works ? queues().give_back(queue) : request_queues::end(queue);
  }
  for (std::size_t i = 0; i < files.size(); ++i)
    if (codes[i] == not_asked)
      codes[i] = ::fsync(files[i].first) == 0 ? 0 : errno;
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
