#include "file_system.hpp"

#include "../unique_fd.hpp"
#include "errors.hpp"
#include "retry.hpp"

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <dirent.h>
#include <fcntl.h>
#include <limits>
#include <sys/stat.h>
#include <unistd.h>
#include <utility>

namespace boyd::adapters {

namespace {

constexpr mode_t file_mode = 0600;
constexpr mode_t directory_mode = 0700;
constexpr unsigned permission_bits = 07777;
/// More entries in one directory are refused: nothing of Boyd's makes so many.
constexpr std::size_t directory_entries = 1'000'000;
constexpr std::size_t read_chunk = std::size_t{64} << 10;

tl::unexpected<error> failed(std::string_view operation, const std::string& path) {
  return fail(system_error(errno, operation, path));
}

result<void> sync_descriptor(int fd, const std::string& path) {
  // Not repeated after EINTR: what a second call says about the first one's pages is unknown.
  if (::fsync(fd) != 0) {
    return failed("fsync", path);
  }
  return {};
}

/// What there is from `offset` on, at most `max_bytes`.
result<std::string> read_descriptor(int fd, const std::string& path, std::uint64_t offset,
                                    std::size_t max_bytes) {
  struct ::stat info {};
  if (::fstat(fd, &info) != 0) {
    return failed("stat", path);
  }
  const auto size = static_cast<std::uint64_t>(info.st_size);
  // No more memory than there is to read: a part may be asked for that is larger than the file.
  const auto wanted = static_cast<std::size_t>(
      std::min<std::uint64_t>(max_bytes, size > offset ? size - offset : 0));
  std::string bytes(wanted, '\0');
  std::size_t have = 0;
  while (have < wanted) {
    const auto count = retry([&] {
      return ::pread(fd, bytes.data() + have, wanted - have, static_cast<off_t>(offset + have));
    });
    if (count < 0) {
      return failed("read", path);
    }
    if (count == 0) {
      break;
    }
    have += static_cast<std::size_t>(count);
  }
  bytes.resize(have);
  return bytes;
}

class posix_file final : public open_file {
 public:
  posix_file(unique_fd fd, std::string path) : fd_(std::move(fd)), path_(std::move(path)) {}

  result<std::size_t> write(std::string_view bytes) override {
    const auto wanted = std::min<std::size_t>(bytes.size(), std::numeric_limits<int>::max());
    const auto count = retry([&] { return ::write(fd_.get(), bytes.data(), wanted); });
    if (count < 0) {
      return failed("write", path_);
    }
    return static_cast<std::size_t>(count);
  }

  void begin_sync() override {
    // A file system may not know the call.
    [[maybe_unused]] const int begun = ::sync_file_range(fd_.get(), 0, 0, SYNC_FILE_RANGE_WRITE);
  }

  result<void> sync() override { return sync_descriptor(fd_.get(), path_); }

  result<void> truncate(std::uint64_t size) override {
    if (retry([&] { return ::ftruncate(fd_.get(), static_cast<off_t>(size)); }) != 0) {
      return failed("truncate", path_);
    }
    return {};
  }

  result<void> rewrite(std::uint64_t offset, std::string_view bytes) override {
    // Linux appends with pwrite, too, as long as the descriptor says so.
    const int flags = ::fcntl(fd_.get(), F_GETFL);
    if (flags < 0 || ::fcntl(fd_.get(), F_SETFL, flags & ~O_APPEND) != 0) {
      return failed("fcntl", path_);
    }
    auto written = overwrite(offset, bytes);
    if (::fcntl(fd_.get(), F_SETFL, flags) != 0 && written) {
      return failed("fcntl", path_);
    }
    return written;
  }

  result<std::uint64_t> size() override {
    struct ::stat info {};
    if (::fstat(fd_.get(), &info) != 0) {
      return failed("stat", path_);
    }
    return static_cast<std::uint64_t>(info.st_size);
  }

  result<std::string> read_part(std::uint64_t offset, std::size_t max_bytes) override {
    return read_descriptor(fd_.get(), path_, offset, max_bytes);
  }

 private:
  result<void> overwrite(std::uint64_t offset, std::string_view bytes) {
    while (!bytes.empty()) {
      const auto count = retry([&] {
        return ::pwrite(fd_.get(), bytes.data(), bytes.size(), static_cast<off_t>(offset));
      });
      if (count < 0) {
        return failed("write", path_);
      }
      if (count == 0) {
        return fail(errc::io_error, "nothing was written", path_);
      }
      offset += static_cast<std::uint64_t>(count);
      bytes.remove_prefix(static_cast<std::size_t>(count));
    }
    return {};
  }

  unique_fd fd_;
  std::string path_;
};

/// Takes a descriptor of a regular file and of nothing else.
result<unique_fd> only_regular(unique_fd fd, const std::string& path) {
  struct ::stat info {};
  if (::fstat(fd.get(), &info) != 0) {
    return failed("stat", path);
  }
  if (!S_ISREG(info.st_mode)) {
    return fail(errc::refused, "not a regular file", path);
  }
  return fd;
}

/// Never blocks on a FIFO.
constexpr int careful = O_CLOEXEC | O_NONBLOCK | O_NOCTTY;

result<unique_fd> open_regular(const std::string& path, int flags) {
  unique_fd fd(retry([&] { return ::open(path.c_str(), flags | careful, file_mode); }));
  if (!fd) {
    return failed("open", path);
  }
  return only_regular(std::move(fd), path);
}

/// Why `name` in `directory` could not be opened without following links.
tl::unexpected<error> not_opened(int directory, const std::string& name, const std::string& path) {
  const int why = errno;
  struct ::stat info {};
  if (::fstatat(directory, name.c_str(), &info, AT_SYMLINK_NOFOLLOW) == 0 &&
      S_ISLNK(info.st_mode)) {
    return fail(errc::refused, "this is a symbolic link, and links are not followed here", path,
                "replace the link with its target");
  }
  return fail(system_error(why, "open", path));
}

/// Opens `file` below `root` part by part, so that whoever exchanges one meanwhile gains nothing.
result<unique_fd> open_below(const std::string& root, const std::string& file) {
  unique_fd directory(
      retry([&] { return ::open(root.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC); }));
  if (!directory) {
    return failed("open", root);
  }
  for (std::size_t begin = 0;;) {
    const auto slash = file.find('/', begin);
    const std::string name = file.substr(begin, slash - begin);
    const std::string path = root + "/" + file.substr(0, slash);
    if (name.empty() || name == "." || name == "..") {
      return fail(errc::invalid_argument, "not a path inside the directory: " + file, root);
    }
    const int flags =
        slash == std::string::npos ? O_RDONLY | careful : O_PATH | O_DIRECTORY | O_CLOEXEC;
    unique_fd next(
        retry([&] { return ::openat(directory.get(), name.c_str(), flags | O_NOFOLLOW); }));
    if (!next) {
      return not_opened(directory.get(), name, path);
    }
    if (slash == std::string::npos) {
      return only_regular(std::move(next), path);
    }
    directory = std::move(next);
    begin = slash + 1;
  }
}

result<std::string> read_all(result<unique_fd> fd, const std::string& path, std::size_t max_bytes) {
  if (!fd) {
    return fail(std::move(fd.error()));
  }
  std::string bytes;
  while (bytes.size() <= max_bytes) {
    const auto before = bytes.size();
    bytes.resize(before + read_chunk);
    const auto count = retry([&] { return ::read(fd->get(), bytes.data() + before, read_chunk); });
    if (count < 0) {
      return failed("read", path);
    }
    bytes.resize(before + static_cast<std::size_t>(count));
    if (count == 0) {
      return bytes;
    }
  }
  return fail(errc::limit_exceeded,
              "the file is larger than " + std::to_string(max_bytes) + " bytes", path);
}

result<std::string> read_from(result<unique_fd> fd, const std::string& path, std::uint64_t offset,
                              std::size_t max_bytes) {
  if (!fd) {
    return fail(std::move(fd.error()));
  }
  return read_descriptor(fd->get(), path, offset, max_bytes);
}

/// A disk may fail one read and serve the next, and a read changes nothing: it is made once more,
/// so that a command that asks once does not end by it. What fails twice is told.
template <class Read>
result<std::string> read_patiently(Read read) {
  auto bytes = read();
  return bytes || bytes.error().code != errc::io_error ? bytes : read();
}

file_kind kind_of(mode_t mode) {
  return S_ISREG(mode)   ? file_kind::regular
         : S_ISDIR(mode) ? file_kind::directory
         : S_ISLNK(mode) ? file_kind::symlink
                         : file_kind::other;
}

std::string parent_of(const std::string& path) {
  const auto slash = path.rfind('/');
  return slash == std::string::npos || slash == 0 ? "/" : path.substr(0, slash);
}

class posix_file_system final : public file_system {
 public:
  result<std::string> read(const std::string& path, std::size_t max_bytes) override {
    return read_patiently([&] { return read_all(open_regular(path, O_RDONLY), path, max_bytes); });
  }

  result<std::string> read_below(const std::string& root, const std::string& file,
                                 std::size_t max_bytes) override {
    return read_patiently(
        [&] { return read_all(open_below(root, file), root + "/" + file, max_bytes); });
  }

  result<std::string> read_part(const std::string& path, std::uint64_t offset,
                                std::size_t max_bytes) override {
    return read_patiently(
        [&] { return read_from(open_regular(path, O_RDONLY), path, offset, max_bytes); });
  }

  result<file_info> stat(const std::string& path) override {
    struct ::stat found {};
    if (::lstat(path.c_str(), &found) != 0) {
      if (errno == ENOENT || errno == ENOTDIR) {
        return file_info{};
      }
      return failed("stat", path);
    }
    file_info info;
    info.kind = kind_of(found.st_mode);
    info.size = static_cast<std::uint64_t>(found.st_size);
    info.inode = found.st_ino;
    info.device = found.st_dev;
    info.modified = utc_time{std::chrono::floor<milliseconds>(
        seconds{found.st_mtim.tv_sec} + std::chrono::nanoseconds{found.st_mtim.tv_nsec})};
    info.mode = found.st_mode & permission_bits;
    return info;
  }

  result<std::unique_ptr<open_file>> open(const std::string& path, open_mode mode) override {
    const int flags =
        O_RDWR | O_APPEND | O_CREAT | O_NOFOLLOW | (mode == open_mode::create_new ? O_EXCL : 0);
    auto fd = open_regular(path, flags);
    if (!fd) {
      return fail(std::move(fd.error()));
    }
    return std::unique_ptr<open_file>(std::make_unique<posix_file>(std::move(*fd), path));
  }

  result<void> rename(const std::string& from, const std::string& to) override {
    if (::rename(from.c_str(), to.c_str()) != 0) {
      return failed("rename", to);
    }
    return {};
  }

  result<void> unlink(const std::string& path) override {
    if (::unlink(path.c_str()) == 0 || (errno == EISDIR && ::rmdir(path.c_str()) == 0)) {
      return {};
    }
    return failed("unlink", path);
  }

  result<void> sync_directory(const std::string& path) override {
    const unique_fd fd(
        retry([&] { return ::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC); }));
    if (!fd) {
      return failed("open", path);
    }
    return sync_descriptor(fd.get(), path);
  }

  result<void> make_directories(const std::string& path) override {
    for (std::size_t slash = path.find('/', 1);; slash = path.find('/', slash + 1)) {
      const std::string part = path.substr(0, slash);
      if (auto made = make_directory(part); !made) {
        return made;
      }
      if (slash == std::string::npos) {
        return {};
      }
    }
  }

  result<std::vector<std::string>> list(const std::string& path) override {
    DIR* const opened = ::opendir(path.c_str());
    if (opened == nullptr) {
      return failed("list", path);
    }
    const auto close = [](DIR* directory) { ::closedir(directory); };
    const std::unique_ptr<DIR, decltype(close)> directory(opened, close);
    std::vector<std::string> names;
    while (names.size() < directory_entries) {
      errno = 0;
      const dirent* entry = ::readdir(directory.get());
      if (entry == nullptr) {
        if (errno != 0) {
          return failed("list", path);
        }
        std::sort(names.begin(), names.end());
        return names;
      }
      const std::string name = entry->d_name;
      if (name != "." && name != "..") {
        names.push_back(name);
      }
    }
    return fail(errc::limit_exceeded, "the directory has too many entries", path);
  }

 private:
  result<void> make_directory(const std::string& path) {
    if (path.empty() || path.back() == '/') {
      return {};
    }
    if (::mkdir(path.c_str(), directory_mode) == 0) {
      return sync_directory(parent_of(path));
    }
    const int why = errno;
    struct ::stat info {};
    // A read-only parent says EROFS or EACCES also of a directory that is there already.
    if (::stat(path.c_str(), &info) == 0) {
      if (S_ISDIR(info.st_mode)) {
        return {};
      }
      return fail(errc::already_exists, "a file has the name of the directory", path);
    }
    return fail(system_error(why, "mkdir", path));
  }
};

} // namespace

std::shared_ptr<file_system> make_posix_file_system() {
  return std::make_shared<posix_file_system>();
}

} // namespace boyd::adapters
