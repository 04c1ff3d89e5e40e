#include "confined_walk.hpp"

#include "errors.hpp"
#include "retry.hpp"

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <dirent.h>
#include <fcntl.h>
#include <memory>
#include <sys/stat.h>
#include <utility>

namespace boyd::adapters {

namespace {

/// More names in one directory are refused: they are sorted in memory.
constexpr std::size_t directory_entries = 1'000'000;

file_kind kind_of(mode_t mode) {
  return S_ISREG(mode)   ? file_kind::regular
         : S_ISDIR(mode) ? file_kind::directory
         : S_ISLNK(mode) ? file_kind::symlink
                         : file_kind::other;
}

tl::unexpected<error> failed(std::string_view operation) {
  return fail(system_error(errno, operation, {}));
}

class walker {
 public:
  walker(const confinement& guard, const confined_files::walk_limits& limits,
         const confined_files::wanted_file& wanted, const confined_files::visit_file& visit)
      : guard_(guard), limits_(limits), wanted_(wanted), visit_(visit),
        end_at_(std::chrono::steady_clock::now() + limits.time) {}

  result<confined_files::walk_end> run(const confined_place& start) {
    const auto info = info_of(start.fd.get(), {});
    if (info.kind == file_kind::directory) {
      if (auto ok = directory(start.fd.get(), start.absolute, start.where, 0); !ok)
        return fail(std::move(ok.error()));
      return std::move(end_);
    }
    if (info.kind != file_kind::regular)
      return fail(errc::invalid_argument, "not a directory or regular file");
    // Opened by its descriptor: a link has led here, or the path has changed since.
    file(AT_FDCWD, "/proc/self/fd/" + std::to_string(start.fd.get()), 0, start.where, info.size);
    return std::move(end_);
  }

 private:
  /// An error only of the first directory: below it, what cannot be read is counted.
  result<void> directory(int fd, const std::string& absolute, const std::string& where,
                         std::size_t depth) {
    auto names = names_in(fd);
    if (!names)
      return fail(std::move(names.error()));
    for (const auto& name : *names) {
      if (stopped_ || !may_go_on())
        return {};
      entry(fd, name, joined(absolute, name), joined(where, name), depth);
    }
    return {};
  }

  void entry(int parent, const std::string& name, const std::string& absolute,
             const std::string& where, std::size_t depth) {
    const auto info = info_of(parent, name);
    if (guard_.why_forbidden(absolute, file_use::read))
      return;
    if (info.kind == file_kind::regular)
      return file(parent, name, O_NOFOLLOW, where, info.size);
    if (info.kind != file_kind::directory || is_git_directory(name))
      return;
    if (depth >= limits_.depth) {
      end_.cut = std::to_string(limits_.depth) + " directory levels";
      return;
    }
    const unique_fd fd(retry([&] {
      return ::openat(parent, name.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    }));
    if (!fd || !directory(fd.get(), absolute, where, depth + 1))
      ++end_.unreadable;
  }

  void file(int parent, const std::string& name, int flags, const std::string& where,
            std::uint64_t size) {
    if (!wanted_(where))
      return;
    if (size > limits_.file_bytes) {
      ++end_.too_large;
      return;
    }
    const unique_fd fd(retry([&] {
      return ::openat(parent, name.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY | flags);
    }));
    // Once more on what was opened: the name may stand for something else by now.
    if (!fd || info_of(fd.get(), {}).kind != file_kind::regular || !fill(fd.get(), size)) {
      ++end_.unreadable;
      return;
    }
    ++end_.files;
    end_.bytes += text_.size();
    stopped_ = !visit_(where, text_);
  }

  /// A file that grows meanwhile ends where it ended.
  bool fill(int fd, std::uint64_t size) {
    text_.resize(static_cast<std::size_t>(size));
    std::size_t filled = 0;
    while (filled < text_.size()) {
      const auto count =
          retry([&] { return ::read(fd, text_.data() + filled, text_.size() - filled); });
      if (count < 0)
        return false;
      if (count == 0)
        break;
      filled += static_cast<std::size_t>(count);
    }
    text_.resize(filled);
    return true;
  }

  bool may_go_on() {
    if (++entries_ > limits_.entries)
      end_.cut = std::to_string(limits_.entries) + " entries";
    else if (end_.bytes >= limits_.bytes)
      end_.cut = std::to_string(limits_.bytes) + " bytes read";
    else if (std::chrono::steady_clock::now() >= end_at_)
      end_.cut = format_duration(limits_.time);
    else
      return true;
    stopped_ = true;
    return false;
  }

  const confinement& guard_;
  const confined_files::walk_limits& limits_;
  const confined_files::wanted_file& wanted_;
  const confined_files::visit_file& visit_;
  std::chrono::steady_clock::time_point end_at_;
  confined_files::walk_end end_;
  std::size_t entries_ = 0;
  bool stopped_ = false;
  std::string text_;
};

} // namespace

entry_info info_of(int directory, const std::string& name) {
  struct ::stat info {};
  const int flags = AT_SYMLINK_NOFOLLOW | (name.empty() ? AT_EMPTY_PATH : 0);
  if (::fstatat(directory, name.c_str(), &info, flags) != 0)
    return {};
  return {kind_of(info.st_mode), static_cast<std::uint64_t>(info.st_size)};
}

result<std::vector<std::string>> names_in(int directory) {
  unique_fd readable(
      retry([&] { return ::openat(directory, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC); }));
  if (!readable) {
    if (errno == ENOTDIR)
      return fail(errc::invalid_argument, "not a directory");
    return failed("open");
  }
  DIR* const opened = ::fdopendir(readable.get());
  if (opened == nullptr)
    return failed("list");
  const auto close = [](DIR* d) { ::closedir(d); };
  const std::unique_ptr<DIR, decltype(close)> stream(opened, close);
  (void)readable.release();
  std::vector<std::string> names;
  for (;;) {
    errno = 0;
    const dirent* entry = ::readdir(stream.get());
    if (entry == nullptr) {
      if (errno != 0)
        return failed("list");
      std::sort(names.begin(), names.end());
      return names;
    }
    const std::string_view name = entry->d_name;
    if (name == "." || name == "..")
      continue;
    if (names.size() == directory_entries)
      return fail(errc::limit_exceeded,
                  "the directory has more than " + std::to_string(directory_entries) + " entries");
    names.emplace_back(name);
  }
}

result<confined_files::walk_end> walk_confined(const confinement& guard,
                                               const confined_place& start,
                                               const confined_files::walk_limits& limits,
                                               const confined_files::wanted_file& wanted,
                                               const confined_files::visit_file& visit) {
  return walker(guard, limits, wanted, visit).run(start);
}

} // namespace boyd::adapters
