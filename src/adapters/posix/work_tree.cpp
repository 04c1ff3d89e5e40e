#include "work_tree.hpp"

#include "../unique_fd.hpp"
#include "boyd/core/text.hpp"
#include "errors.hpp"
#include "retry.hpp"

#include <cerrno>
#include <cstdio>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>
#include <utility>

namespace boyd::adapters {

namespace {

constexpr unsigned permission_bits = 07777;
constexpr mode_t new_directory_mode = 0755;

tl::unexpected<error> failed(std::string_view operation, const std::string& path) {
  if (errno == EINVAL || errno == ENOSYS)
    return fail(errc::invalid_argument,
                "this file system cannot exchange two files (" + std::string(operation) + ")", path,
                "keep the repository on a local file system such as ext4, XFS, Btrfs or tmpfs");
  if (errno == EXDEV)
    return fail(errc::invalid_argument, "the file is on another file system than its copy", path,
                "set improve.outputs to a directory on the file system of the repository");
  if (errno == ENOTDIR)
    return fail(errc::refused, "a part of the path is not a directory", path);
  return fail(system_error(errno, operation, path));
}

/// A directory and a name in it.
struct spot {
  unique_fd parent;
  std::string name;
};

result<unique_fd> open_directory(int at, const std::string& name, const std::string& shown) {
  unique_fd fd(retry(
      [&] { return ::openat(at, name.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC); }));
  if (!fd)
    return failed("open", shown);
  return fd;
}

/// Follows no link below `root`.
result<spot> spot_of(const std::string& root, const std::string& path) {
  unique_fd at(retry([&] { return ::open(root.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC); }));
  if (!at)
    return failed("open", root);
  const auto parts = split(path, '/');
  for (const auto part : parts)
    if (part.empty() || part == "." || part == "..")
      return fail(errc::refused, "the path contains . or .. or empty parts", path);
  for (std::size_t i = 0; i + 1 < parts.size(); ++i) {
    auto next = open_directory(at.get(), std::string(parts[i]), path);
    if (!next)
      return fail(std::move(next.error()));
    at = std::move(*next);
  }
  return spot{std::move(at), std::string(parts.back())};
}

result<spot> spot_of_staged(const std::string& staged) {
  const auto slash = staged.rfind('/');
  auto parent = open_directory(AT_FDCWD, staged.substr(0, slash), staged);
  if (!parent)
    return fail(std::move(parent.error()));
  return spot{std::move(*parent), staged.substr(slash + 1)};
}

file_kind kind_of(mode_t mode) {
  if (S_ISREG(mode))
    return file_kind::regular;
  if (S_ISDIR(mode))
    return file_kind::directory;
  return S_ISLNK(mode) ? file_kind::symlink : file_kind::other;
}

result<void> read_into(tree_entry& entry, int fd, std::size_t max_bytes, const std::string& shown) {
  std::string& text = entry.content;
  constexpr std::size_t chunk = std::size_t{64} << 10;
  for (;;) {
    const auto have = text.size();
    text.resize(have + chunk);
    const auto n = retry([&] { return ::read(fd, text.data() + have, chunk); });
    if (n < 0)
      return failed("read", shown);
    text.resize(have + static_cast<std::size_t>(n));
    if (text.size() > max_bytes)
      return fail(errc::limit_exceeded,
                  "the file is larger than " + std::to_string(max_bytes) + " bytes", shown);
    if (n == 0)
      return {};
  }
}

result<tree_entry> look_at(const spot& s, std::size_t max_bytes, const std::string& shown) {
  struct ::stat info {};
  if (::fstatat(s.parent.get(), s.name.c_str(), &info, AT_SYMLINK_NOFOLLOW) != 0) {
    if (errno == ENOENT)
      return tree_entry{};
    return failed("stat", shown);
  }
  tree_entry entry{kind_of(info.st_mode), info.st_mode & permission_bits, info.st_nlink, {}};
  if (entry.kind != file_kind::regular)
    return entry;
  const unique_fd fd(retry([&] {
    return ::openat(s.parent.get(), s.name.c_str(), O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
  }));
  if (!fd)
    return failed("open", shown);
  if (auto read = read_into(entry, fd.get(), max_bytes, shown); !read)
    return fail(std::move(read.error()));
  return entry;
}

result<void> rename_between(const spot& from, const spot& to, unsigned flags,
                            const std::string& shown) {
  if (::renameat2(from.parent.get(), from.name.c_str(), to.parent.get(), to.name.c_str(), flags) !=
      0)
    return failed("rename", shown);
  return {};
}

class posix_work_tree final : public work_tree {
 public:
  result<tree_entry> look(const std::string& root, const std::string& path,
                          std::size_t max_bytes) override {
    auto s = spot_of(root, path);
    if (!s && s.error().code == errc::not_found)
      return tree_entry{};
    if (!s)
      return fail(std::move(s.error()));
    return look_at(*s, max_bytes, path);
  }

  result<tree_entry> look_staged(const std::string& staged, std::size_t max_bytes) override {
    auto s = spot_of_staged(staged);
    if (!s && s.error().code == errc::not_found)
      return tree_entry{};
    if (!s)
      return fail(std::move(s.error()));
    return look_at(*s, max_bytes, staged);
  }

  result<void> stage(const std::string& staged, std::string_view content, unsigned mode) override {
    const unique_fd fd(retry([&] {
      return ::open(staged.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
    }));
    if (!fd)
      return failed("open", staged);
    while (!content.empty()) {
      const auto n = retry([&] { return ::write(fd.get(), content.data(), content.size()); });
      if (n < 0)
        return failed("write", staged);
      content.remove_prefix(static_cast<std::size_t>(n));
    }
    if (::fchmod(fd.get(), mode & 0777) != 0)
      return failed("chmod", staged);
    if (::fsync(fd.get()) != 0)
      return failed("fsync", staged);
    return {};
  }

  result<void> exchange(const std::string& root, const std::string& path,
                        const std::string& staged) override {
    return move(root, path, staged, RENAME_EXCHANGE, false);
  }
  result<void> move_in(const std::string& root, const std::string& path,
                       const std::string& staged) override {
    return move(root, path, staged, RENAME_NOREPLACE, false);
  }
  result<void> move_out(const std::string& root, const std::string& path,
                        const std::string& staged) override {
    return move(root, path, staged, RENAME_NOREPLACE, true);
  }

  result<void> make_directory(const std::string& root, const std::string& path) override {
    const auto s = spot_of(root, path);
    if (!s)
      return fail(s.error());
    // The process's umask would make it private; a repository's directories are not.
    if (::mkdirat(s->parent.get(), s->name.c_str(), 0700) != 0)
      return failed("mkdir", path);
    if (::fchmodat(s->parent.get(), s->name.c_str(), new_directory_mode, 0) != 0)
      return failed("chmod", path);
    return {};
  }

  result<void> remove_directory(const std::string& root, const std::string& path) override {
    const auto s = spot_of(root, path);
    if (!s)
      return s.error().code == errc::not_found ? result<void>() : fail(s.error());
    if (::unlinkat(s->parent.get(), s->name.c_str(), AT_REMOVEDIR) != 0 && errno != ENOTEMPTY &&
        errno != EEXIST && errno != ENOENT)
      return failed("rmdir", path);
    return {};
  }

  result<void> sync_directory_of(const std::string& root, const std::string& path) override {
    const auto s = spot_of(root, path);
    if (!s)
      return fail(s.error());
    if (::fsync(s->parent.get()) != 0)
      return failed("fsync", path);
    return {};
  }

 private:
  static result<void> move(const std::string& root, const std::string& path,
                           const std::string& staged, unsigned flags, bool outwards) {
    const auto inside = spot_of(root, path);
    if (!inside)
      return fail(inside.error());
    const auto outside = spot_of_staged(staged);
    if (!outside)
      return fail(outside.error());
    return outwards ? rename_between(*inside, *outside, flags, path)
                    : rename_between(*outside, *inside, flags, path);
  }
};

} // namespace

std::shared_ptr<work_tree> make_work_tree() {
  return std::make_shared<posix_work_tree>();
}

} // namespace boyd::adapters
