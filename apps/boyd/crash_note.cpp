#include "crash_note.hpp"

#include "boyd/core/home_layout.hpp"
#include "boyd/core/signal_stack.hpp"
#include "boyd/faults/points.hpp"
#include "boyd/ports/dispatch_store.hpp"
#include "boyd/ports/file_system.hpp"

#include <climits>
#include <spdlog/spdlog.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <csignal>
#include <cstring>
#include <fcntl.h>
#include <unistd.h>
#include <utility>
#include <variant>
#include <vector>

namespace boyd::app {

namespace {

constexpr std::array faults{SIGSEGV, SIGBUS, SIGILL, SIGFPE, SIGABRT};
/// Losses of its node that a dispatch survives when the last one was a crash.
constexpr int rescues_after_crash = 1;
constexpr mode_t note_mode = 0600;

std::string note_path(const std::string& home) {
  return home_layout(home).crash_note();
}

/// For the handler, which may neither allocate nor lock.
std::array<char, PATH_MAX> note_file{};
std::array<struct sigaction, NSIG> earlier_actions{};

void on_fault(int number, siginfo_t* info, void* context) {
  const int fd =
      ::open(note_file.data(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, note_mode);
  if (fd >= 0) {
    constexpr int ten = 10;
    const std::array<char, 3> text{static_cast<char>('0' + number / ten),
                                   static_cast<char>('0' + number % ten), '\n'};
    // When this fails there is still the file.
    [[maybe_unused]] const auto written = ::write(fd, text.data(), text.size());
    ::close(fd);
  }
  const auto& earlier = earlier_actions[static_cast<std::size_t>(number)];
  if ((earlier.sa_flags & SA_SIGINFO) != 0 && earlier.sa_sigaction != nullptr)
    return earlier.sa_sigaction(number, info, context); // a sanitizer's report
  // SA_RESETHAND has put the default back: the process ends by this signal, with its core.
  ::raise(number);
}

bool is_there(file_system& files, const std::string& path) {
  const auto info = files.stat(path);
  return info && info->kind != file_kind::missing;
}

/// Whether all was taken back that there is; else it is asked for again.
bool is_last_page(const std::vector<store::operation>& batch,
                  const std::vector<store::any_reply>& replies) {
  for (std::size_t i = 0; i < batch.size(); ++i) {
    const auto* asked = std::get_if<store::take_back>(&batch[i]);
    const auto* got = std::get_if<store::take_back::reply>(&replies[i]);
    if (asked != nullptr && got != nullptr &&
        got->returned.size() + got->poisoned.size() >= asked->limit)
      return false;
  }
  return true;
}

/// See strict_after_crash.
class strict_store final : public dispatch_store {
 public:
  strict_store(std::unique_ptr<dispatch_store> inner, std::string note,
               std::shared_ptr<file_system> files)
      : inner_(std::move(inner)), note_(std::move(note)), files_(std::move(files)) {}

  void tell_migrations(migration_step before) override {
    inner_->tell_migrations(std::move(before));
  }
  result<void> open() override { return inner_->open(); }
  void tidy() override { inner_->tidy(); }
  result<std::vector<std::string>> concerns() override { return inner_->concerns(); }
  std::string describe() const override { return inner_->describe(); }

  result<std::vector<store::any_reply>> apply(const std::vector<store::operation>& batch) override {
    const bool takes_back = std::ranges::any_of(batch, [](const store::operation& op) {
      return std::holds_alternative<store::take_back>(op);
    });
    if (!takes_back || !is_there(*files_, note_))
      return inner_->apply(batch);
    auto strict = batch;
    for (auto& op : strict)
      if (auto* t = std::get_if<store::take_back>(&op))
        t->max_rescues = std::min(t->max_rescues, rescues_after_crash);
    auto replies = inner_->apply(strict);
    if (!replies)
      return replies;
    if (!is_last_page(strict, *replies))
      return replies;
    spdlog::warn(
        "node: the previous node crashed; dispatches that were interrupted twice have failed");
    auto removed = faults::pass("home.crash_note");
    if (removed)
      removed = files_->unlink(note_);
    if (!removed)
      spdlog::warn("node: cannot remove the crash note: {}", to_string(removed.error()));
    return replies;
  }

 private:
  std::unique_ptr<dispatch_store> inner_;
  std::string note_;
  std::shared_ptr<file_system> files_;
};

} // namespace

void leave_crash_note(const std::string& home) {
  const auto path = note_path(home);
  if (path.size() >= note_file.size())
    return;
  std::memcpy(note_file.data(), path.c_str(), path.size() + 1);
  give_signal_stack();
  for (const int number : faults) {
    struct sigaction action {};
    action.sa_sigaction = on_fault;
    action.sa_flags = SA_SIGINFO | SA_ONSTACK | static_cast<int>(SA_RESETHAND) | SA_NODEFER;
    ::sigemptyset(&action.sa_mask);
    ::sigaction(number, &action, &earlier_actions[static_cast<std::size_t>(number)]);
  }
}

bool has_crash_note(const std::string& home, file_system& files) {
  return is_there(files, note_path(home));
}

store_factory strict_after_crash(store_factory make, const std::string& home,
                                 std::shared_ptr<file_system> files) {
  return [make = std::move(make), note = note_path(home),
          files = std::move(files)]() -> std::unique_ptr<dispatch_store> {
    auto inner = make();
    if (!inner || !is_there(*files, note))
      return inner;
    return std::make_unique<strict_store>(std::move(inner), note, files);
  };
}

} // namespace boyd::app
