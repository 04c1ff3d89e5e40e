#include "worktrees.hpp"

#include "boyd/core/signal_stack.hpp"
#include "worktree_internal.hpp"

#include <spdlog/spdlog.h>

#include <condition_variable>
#include <deque>
#include <filesystem>
#include <mutex>
#include <optional>
#include <sstream>
#include <string_view>
#include <system_error>
#include <thread>
#include <unistd.h>
#include <utility>
#include <vector>

namespace boyd::adapters {

namespace {

/// As note_of has it.
constexpr std::string_view note_end = ".boyd";
/// Longer than any note.
constexpr std::size_t note_bytes = std::size_t{32} << 10;

/// Removes one left-over worktree by its note.
void sweep_one(const std::string& note) {
  // A torn one is from before its worktree.
  std::istringstream in(git::read_regular(note, note_bytes).value_or(std::string()));
  worktree_order order;
  std::string base;
  if (!std::getline(in, order.repo) || !std::getline(in, base) || !std::getline(in, order.branch) ||
      !std::getline(in, order.patch)) {
    (void)git::remove_tree(note);
    return;
  }
  order.base = base;
  order.path = note.substr(0, note.size() - note_end.size());
  if (const auto closed = git::close_worktree(order, base); !closed)
    spdlog::warn("worktree {} of an earlier node: {}", order.path, to_string(closed.error()));
}

/// Does one job after another, on a thread that the first one starts; what is queued at its end is
/// still done. Removes what was left over on a second thread: a file system that does not answer
/// any more holds up nobody else.
class git_worktrees final : public worktrees {
 public:
  /// `left_over`: paths of notes and of what else stands there.
  explicit git_worktrees(std::vector<std::string> left_over) : left_over_(std::move(left_over)) {
    if (left_over_.empty())
      return;
    try {
      sweeper_ = std::thread([this] { sweep(); });
    } catch (const std::system_error& e) {
      spdlog::warn("cannot remove worktrees of an earlier node: no thread: {}", e.what());
    }
  }

  ~git_worktrees() override {
    {
      const std::lock_guard lock(mutex_);
      stopping_ = true;
    }
    wake_.notify_all();
    for (auto* thread : {&thread_, &sweeper_})
      if (thread->joinable())
        thread->join();
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
    return fail(errc::overloaded, "too many worktrees are waiting to be created or removed",
                order.path, "allow fewer runs at once (max_concurrent)");
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
    give_signal_stack();
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

  bool is_stopping() {
    const std::lock_guard lock(mutex_);
    return stopping_;
  }

  void sweep() {
    give_signal_stack();
    std::size_t removed = 0;
    for (const auto& path : left_over_)
      if (path.ends_with(note_end) && !is_stopping()) {
        sweep_one(path);
        ++removed;
      }
    for (const auto& path : left_over_)
      if (!path.ends_with(note_end) && !is_stopping())
        (void)git::remove_tree(path); // without a note: nobody's
    if (removed > 0)
      spdlog::info("node: removed {} worktrees of an earlier node", removed);
  }

  const std::vector<std::string> left_over_;
  std::mutex mutex_;
  std::condition_variable wake_;
  std::deque<std::function<void()>> jobs_;
  bool stopping_ = false;
  std::thread thread_;
  std::thread sweeper_;
};

std::vector<std::string> left_over_in(const std::string& directory) {
  std::error_code failed;
  std::vector<std::string> entries;
  for (auto at = std::filesystem::directory_iterator(directory, failed);
       !failed && at != std::filesystem::directory_iterator() &&
       entries.size() < worktrees_at_start;
       at.increment(failed))
    entries.push_back(at->path().string());
  if (failed && failed != std::errc::no_such_file_or_directory)
    spdlog::warn("cannot remove worktrees of an earlier node: cannot list {}: {}", directory,
                 failed.message());
  return entries;
}

} // namespace

std::shared_ptr<worktrees> make_worktrees(const std::string& left_over) {
  return std::make_shared<git_worktrees>(left_over.empty() ? std::vector<std::string>{}
                                                           : left_over_in(left_over));
}

} // namespace boyd::adapters
