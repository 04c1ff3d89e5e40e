#include "worktrees.hpp"

#include "worktree_internal.hpp"

#include <spdlog/spdlog.h>

#include <condition_variable>
#include <deque>
#include <filesystem>
#include <fstream>
#include <mutex>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

namespace boyd::adapters {

namespace {

namespace fs = std::filesystem;

/// Does one job after another, on a thread that the first one starts; what is queued at its end is
/// still done.
class git_worktrees final : public worktrees {
 public:
  ~git_worktrees() override {
    {
      const std::lock_guard lock(mutex_);
      stopping_ = true;
    }
    wake_.notify_all();
    if (thread_.joinable())
      thread_.join();
  }

  void make(worktree_order order, std::function<void(result<worktree_made>)> done) override {
    const bool taken = put([order, done] { done(git::make_worktree(order)); });
    if (!taken)
      done(too_many(order));
  }

  void close(worktree_order order, std::string base,
             std::function<void(result<worktree_change>)> done) override {
    const bool taken =
        put([order, base = std::move(base), done] { done(git::close_worktree(order, base)); });
    if (!taken)
      done(too_many(order));
  }

 private:
  static tl::unexpected<error> too_many(const worktree_order& order) {
    return fail(errc::overloaded, "too many worktrees wait to be made or removed", order.path,
                "fewer runs at once (max_concurrent)");
  }

  bool put(std::function<void()> job) {
    {
      const std::lock_guard lock(mutex_);
      if (stopping_ || jobs_.size() >= worktree_jobs)
        return false;
      if (!thread_.joinable() && !start())
        return false;
      jobs_.push_back(std::move(job));
    }
    wake_.notify_one();
    return true;
  }

  bool start() {
    try {
      thread_ = std::thread([this] { work(); });
      return true;
    } catch (const std::system_error&) {
      return false; // the system has no more threads to give
    }
  }

  void work() {
    std::unique_lock lock(mutex_);
    for (;;) {
      wake_.wait(lock, [&] { return stopping_ || !jobs_.empty(); });
      if (jobs_.empty())
        return;
      const auto job = std::move(jobs_.front());
      jobs_.pop_front();
      lock.unlock();
      job();
      lock.lock();
    }
  }

  std::mutex mutex_;
  std::condition_variable wake_;
  std::deque<std::function<void()>> jobs_;
  bool stopping_ = false;
  std::thread thread_;
};

/// Removes one left-over worktree by its note.
bool sweep_one(const fs::path& note) {
  std::ifstream in(note, std::ios::binary);
  worktree_order order;
  std::string base;
  if (!std::getline(in, order.repo) || !std::getline(in, base) || !std::getline(in, order.branch) ||
      !std::getline(in, order.patch))
    return false;
  order.base = base;
  order.path = note.string().substr(0, note.string().size() - note.extension().string().size());
  if (const auto closed = git::close_worktree(order, base); !closed)
    spdlog::warn("worktree {} of an ended node: {}", order.path, to_string(closed.error()));
  return true;
}

} // namespace

std::shared_ptr<worktrees> make_worktrees() {
  return std::make_shared<git_worktrees>();
}

result<std::size_t> sweep_worktrees(const std::string& directory) {
  std::error_code failed;
  std::vector<fs::path> entries;
  for (auto at = fs::directory_iterator(directory, failed);
       !failed && at != fs::directory_iterator() && entries.size() < worktrees_at_start;
       at.increment(failed))
    entries.push_back(at->path());
  if (failed == std::errc::no_such_file_or_directory)
    return std::size_t{0};
  if (failed)
    return fail(git::system_failure(failed.value(), "cannot list the worktrees", directory));
  std::size_t removed = 0;
  for (const auto& path : entries) {
    if (path.extension() != ".boyd")
      continue;
    // A note that is torn is from before its worktree.
    if (!sweep_one(path))
      fs::remove(path, failed);
    ++removed;
  }
  for (const auto& path : entries)
    if (path.extension() != ".boyd")
      (void)git::remove_tree(path.string()); // without a note: nobody's
  return removed;
}

} // namespace boyd::adapters
