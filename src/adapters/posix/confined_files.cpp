#include "confined_files.hpp"

#include "confined_walk.hpp"
#include "confinement.hpp"
#include "errors.hpp"
#include "retry.hpp"

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <dirent.h>
#include <fcntl.h>
#include <optional>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>
#include <utility>

namespace boyd::adapters {

namespace {

constexpr mode_t file_mode = 0600;
/// Of a file that is replaced these stay; set-user-id and its kin do not survive new content.
constexpr mode_t kept_bits = 0777;
/// Of a temporary file's name, so that it does not grow beyond what a file system takes.
constexpr std::size_t name_bytes = 200;
constexpr int temporary_names = 16; ///< tried, before somebody must be making them on purpose

tl::unexpected<error> failed(std::string_view operation) {
  return fail(system_error(errno, operation, {}));
}

/// The errors of the parts speak of no path: the model knows the one that it gave.
template <class T>
result<T> at(const std::string& path, result<T> outcome) {
  if (!outcome && outcome.error().where.empty())
    outcome.error().where = path;
  return outcome;
}

result<void> write_all(int fd, std::string_view bytes) {
  while (!bytes.empty()) {
    const auto count = retry([&] { return ::write(fd, bytes.data(), bytes.size()); });
    if (count < 0)
      return failed("write");
    if (count == 0)
      return fail(errc::no_space, "the file could not be written completely");
    bytes.remove_prefix(static_cast<std::size_t>(count));
  }
  return {};
}

/// A new file beside the one that it will replace; gone again unless it was renamed.
class temporary_file {
 public:
  explicit temporary_file(const confined_target& target) : target_(target) {}
  temporary_file(const temporary_file&) = delete;
  temporary_file& operator=(const temporary_file&) = delete;
  ~temporary_file() {
    if (fd_ && !renamed_)
      ::unlinkat(directory(), name_.c_str(), 0);
  }

  result<void> make() {
    for (int i = 0; i < temporary_names; ++i) {
      std::uint32_t number = 0;
      if (::getrandom(&number, sizeof number, 0) != sizeof number)
        return failed("getrandom");
      // A form that the node's start and its repositories know.
      name_ = "." + target_.name.substr(0, name_bytes) + ".boyd-tmp-" + std::to_string(number);
      fd_.reset(retry([&] {
        return ::openat(directory(), name_.c_str(),
                        O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, file_mode);
      }));
      if (fd_)
        return {};
      if (errno != EEXIST)
        return failed("open");
    }
    return fail(errc::conflict, "no free name for a temporary file");
  }

  result<void> fill(std::string_view content, mode_t mode) {
    if (auto ok = write_all(fd_.get(), content); !ok)
      return ok;
    if (mode != file_mode && ::fchmod(fd_.get(), mode) != 0)
      return failed("chmod");
    if (::fsync(fd_.get()) != 0)
      return failed("fsync");
    return {};
  }

  result<void> take_place() {
    if (::renameat(directory(), name_.c_str(), directory(), target_.name.c_str()) != 0)
      return failed("rename");
    renamed_ = true;
    const unique_fd readable(
        retry([&] { return ::openat(directory(), ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC); }));
    if (!readable || ::fsync(readable.get()) != 0)
      return failed("fsync of the directory");
    return {};
  }

 private:
  int directory() const { return target_.parent.fd.get(); }

  const confined_target& target_;
  unique_fd fd_;
  std::string name_;
  bool renamed_ = false;
};

/// The permissions that the new content gets, when what stands there may be replaced.
result<mode_t> mode_for(const confined_target& target) {
  const int directory = target.parent.fd.get();
  struct ::stat info {};
  if (::fstatat(directory, target.name.c_str(), &info, AT_SYMLINK_NOFOLLOW) != 0) {
    if (errno == ENOENT)
      return file_mode;
    return failed("stat");
  }
  if (S_ISLNK(info.st_mode))
    return fail(errc::refused, "this is a symbolic link, and links are not followed when writing",
                {}, "use the path of its target");
  if (!S_ISREG(info.st_mode))
    return fail(errc::invalid_argument,
                S_ISDIR(info.st_mode) ? "this is a directory" : "this is not a regular file");
  if (::faccessat(directory, target.name.c_str(), W_OK, AT_EACCESS | AT_SYMLINK_NOFOLLOW) != 0)
    return fail(errc::refused, "the file is read-only", {}, "do not change it");
  return info.st_mode & kept_bits;
}

/// The content; nothing: nothing stands there.
result<std::optional<std::string>> content_of(const confined_target& target) {
  const unique_fd fd(retry([&] {
    return ::openat(target.parent.fd.get(), target.name.c_str(),
                    O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY);
  }));
  if (!fd && errno == ENOENT)
    return std::optional<std::string>();
  struct ::stat info {};
  if (!fd || ::fstat(fd.get(), &info) != 0)
    return failed("open");
  if (!S_ISREG(info.st_mode))
    return fail(errc::conflict, "the file was removed or replaced", {}, "read it again");
  if (static_cast<std::uint64_t>(info.st_size) > confined_files::compared_bytes)
    return fail(errc::limit_exceeded,
                "the existing file has " + std::to_string(info.st_size) +
                    " bytes; files are compared before they are replaced, up to " +
                    std::to_string(confined_files::compared_bytes),
                {}, "remove or shorten the file first");
  std::string content;
  content.resize(static_cast<std::size_t>(info.st_size) + 1); // one more: it may grow
  std::size_t filled = 0;
  while (filled < content.size()) {
    const auto count =
        retry([&] { return ::read(fd.get(), content.data() + filled, content.size() - filled); });
    if (count < 0)
      return failed("read");
    if (count == 0)
      break;
    filled += static_cast<std::size_t>(count);
  }
  content.resize(filled);
  return std::optional(std::move(content));
}

result<void> check(const confined_target& target, const confined_files::may_replace& may) {
  const auto now = content_of(target);
  if (!now)
    return fail(now.error());
  if (!may(*now ? &**now : nullptr))
    return fail(errc::conflict, "the file has changed since it was read", {}, "read it again");
  return {};
}

/// The descriptor again, for reading: what was checked is what is opened.
result<unique_fd> reopened(int fd) {
  const auto path = "/proc/self/fd/" + std::to_string(fd);
  unique_fd readable(
      retry([&] { return ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY); }));
  if (!readable)
    return failed("open");
  return readable;
}

class posix_confined_files final : public confined_files {
 public:
  explicit posix_confined_files(confined_options options)
      : guard_(std::move(options.home), options.without_openat2) {}

  result<text_part> read(const std::string& root, const std::string& path, std::uint64_t offset,
                         std::size_t max_bytes) override {
    return at(path, read_part(root, path, offset, max_bytes));
  }

  result<void> write(const std::string& root, const std::string& path,
                     std::string_view content) override {
    return at(path, replace(root, path, content, nullptr));
  }

  result<void> write_over(const std::string& root, const std::string& path,
                          std::string_view content, const may_replace& may) override {
    return at(path, replace(root, path, content, may));
  }

  result<listing> list(const std::string& root, const std::string& path,
                       std::size_t most) override {
    return at(path, list_directory(root, path, most));
  }

  result<place> find(const std::string& root, const std::string& path) override {
    return at(path, look(root, path));
  }

  result<walk_end> walk(const std::string& root, const std::string& path, const walk_limits& limits,
                        const wanted_file& wanted, const visit_file& visit) override {
    auto start = open(root, path);
    if (!start)
      return at<walk_end>(path, fail(std::move(start.error())));
    return at(path, walk_confined(guard_, *start, limits, wanted, visit));
  }

 private:
  result<confined_place> open(const std::string& root, const std::string& path) {
    auto clean = workspace_path(root, path);
    if (!clean)
      return fail(std::move(clean.error()));
    return guard_.open(root, *clean);
  }

  result<text_part> read_part(const std::string& root, const std::string& path,
                              std::uint64_t offset, std::size_t max_bytes) {
    auto found = open(root, path);
    if (!found)
      return fail(std::move(found.error()));
    struct ::stat info {};
    if (::fstat(found->fd.get(), &info) != 0)
      return failed("stat");
    // Before it is opened: to open a device or a pipe can already be an action.
    if (!S_ISREG(info.st_mode))
      return fail(errc::invalid_argument,
                  S_ISDIR(info.st_mode) ? "this is a directory" : "this is not a regular file");
    auto fd = reopened(found->fd.get());
    if (!fd)
      return fail(std::move(fd.error()));
    text_part part;
    part.size = static_cast<std::uint64_t>(info.st_size);
    part.where = std::move(found->where);
    // Some files (of /sys, for one) say a size of 0 and have content.
    part.text.resize(max_bytes);
    std::size_t filled = 0;
    while (filled < max_bytes) {
      const auto count = retry([&] {
        return ::pread(fd->get(), part.text.data() + filled, max_bytes - filled,
                       static_cast<off_t>(offset + filled));
      });
      if (count < 0)
        return failed("read");
      if (count == 0)
        break;
      filled += static_cast<std::size_t>(count);
    }
    part.text.resize(filled);
    part.size = std::max(part.size, filled > 0 ? offset + filled : 0);
    return part;
  }

  result<void> replace(const std::string& root, const std::string& path, std::string_view content,
                       const may_replace& may) {
    auto clean = workspace_path(root, path);
    if (!clean)
      return fail(std::move(clean.error()));
    if (auto why = why_unwritable(*clean))
      return fail(errc::refused, std::move(*why), {}, "choose another file");
    auto target = guard_.open_for_writing(root, *clean);
    if (!target)
      return fail(std::move(target.error()));
    const auto mode = mode_for(*target);
    if (!mode)
      return fail(mode.error());
    temporary_file file(*target);
    if (auto ok = file.make(); !ok)
      return ok;
    if (auto ok = file.fill(content, *mode); !ok)
      return ok;
    if (may)
      if (auto same = check(*target, may); !same)
        return same;
    return file.take_place();
  }

  result<listing> list_directory(const std::string& root, const std::string& path,
                                 std::size_t most) {
    auto found = open(root, path);
    if (!found)
      return fail(std::move(found.error()));
    auto names = names_in(found->fd.get());
    if (!names)
      return fail(std::move(names.error()));
    listing all;
    all.total = names->size();
    all.where = std::move(found->where);
    for (auto& name : *names) {
      if (all.entries.size() == most)
        break;
      const auto info = info_of(found->fd.get(), name);
      all.entries.push_back({std::move(name), info.kind, info.size});
    }
    return all;
  }

  result<place> look(const std::string& root, const std::string& path) {
    auto found = open(root, path);
    if (!found)
      return fail(std::move(found.error()));
    const auto info = info_of(found->fd.get(), {});
    return place{info.kind, info.size, std::move(found->absolute), std::move(found->where)};
  }

  confinement guard_;
};

} // namespace

std::shared_ptr<confined_files> make_confined_files(confined_options options) {
  return std::make_shared<posix_confined_files>(std::move(options));
}

} // namespace boyd::adapters
