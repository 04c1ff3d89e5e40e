#include "home_lock.hpp"

#include "boyd/core/home_layout.hpp"
#include "errors.hpp"

#include <nlohmann/json.hpp>

#include <array>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <fcntl.h>
#include <filesystem>
#include <fstream>
#include <linux/magic.h>
#include <poll.h>
#include <sstream>
#include <string_view>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/statvfs.h>
#include <unistd.h>
#include <utility>

namespace boyd::adapters {

namespace {

constexpr mode_t run_directory_mode = 0700;
constexpr mode_t lock_mode = 0600;
constexpr std::size_t lock_file_bytes = 4096;
constexpr int retry_step_ms = 20;
/// An owner that has the lock but has not written its name yet gets this long.
constexpr milliseconds unnamed_patience = 1s;
/// How often a lock file may vanish between opening and locking it.
constexpr int vanished_retries = 3;
constexpr long cifs_magic = 0xFF534D42;
constexpr long smb2_magic = 0xFE534D42;

tl::unexpected<error> failed(std::string_view operation, const std::string& path) {
  return fail(system_error(errno, operation, path));
}

/// Field 22 of /proc/PID/stat; 0 when it cannot be read. The name in field 2 may hold blanks and
/// parentheses, so counting begins behind the last ')'.
std::uint64_t start_ticks_of(std::int64_t pid) {
  std::ifstream file("/proc/" + std::to_string(pid) + "/stat");
  std::string line;
  std::getline(file, line);
  const auto name_end = line.rfind(')');
  if (name_end == std::string::npos) {
    return 0;
  }
  std::istringstream fields(line.substr(name_end + 1));
  constexpr int fields_before = 19; // 3 (state) to 21
  std::string skipped;
  for (int i = 0; i < fields_before; ++i) {
    fields >> skipped;
  }
  std::uint64_t ticks = 0;
  fields >> ticks;
  return fields ? ticks : 0;
}

/// A zombie has ended; only its parent has not noticed.
bool is_zombie(std::int64_t pid) {
  std::ifstream file("/proc/" + std::to_string(pid) + "/stat");
  std::string line;
  std::getline(file, line);
  const auto name_end = line.rfind(')');
  return name_end != std::string::npos && name_end + 2 < line.size() && line[name_end + 2] == 'Z';
}

result<void> check_owner(const struct ::stat& info, const std::string& path) {
  if (info.st_uid != ::geteuid()) {
    return fail(errc::refused,
                "owned by user " + std::to_string(info.st_uid) + ", not to user " +
                    std::to_string(::geteuid()),
                path, "run as its owner, or choose another home");
  }
  return {};
}

result<void> check_file_system(const std::string& home) {
  struct ::statvfs flags {};
  struct ::statfs kind {};
  if (::statvfs(home.c_str(), &flags) != 0 || ::statfs(home.c_str(), &kind) != 0) {
    return failed("statfs", home);
  }
  if ((flags.f_flag & ST_RDONLY) != 0) {
    return fail(errc::refused, "the home is on a read-only file system", home,
                "mount it writable, or choose another home");
  }
  if (is_network_file_system(static_cast<long>(kind.f_type))) {
    return fail(errc::refused, "the home is on a network file system, where locks are not reliable",
                home, "choose a home on a local disk");
  }
  return {};
}

result<void> check_home(const std::string& home) {
  struct ::stat info {};
  if (::lstat(home.c_str(), &info) != 0) {
    return failed("stat", home);
  }
  if (S_ISLNK(info.st_mode)) {
    return fail(errc::refused, "the home is a symbolic link", home, "use the directory itself");
  }
  if (!S_ISDIR(info.st_mode)) {
    return fail(errc::refused, "the home is not a directory", home);
  }
  if (auto owned = check_owner(info, home); !owned) {
    return owned;
  }
  return check_file_system(home);
}

result<unique_fd> open_run_directory(const std::string& home) {
  const auto path = home_layout(home).run();
  if (::mkdir(path.c_str(), run_directory_mode) != 0 && errno != EEXIST) {
    return failed("mkdir", path);
  }
  unique_fd fd(::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
  if (!fd && (errno == ELOOP || errno == ENOTDIR)) {
    return fail(errc::refused, "not a directory", path, "remove the link or file with this name");
  }
  if (!fd) {
    return failed("open", path);
  }
  struct ::stat info {};
  if (::fstat(fd.get(), &info) != 0) {
    return failed("stat", path);
  }
  if (auto owned = check_owner(info, path); !owned) {
    return fail(std::move(owned.error()));
  }
  return fd;
}

result<unique_fd> open_lock(int directory, const std::string& path, int flags) {
  unique_fd fd(::openat(directory, "lock", flags | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK, lock_mode));
  if (!fd && errno == ELOOP) {
    return fail(errc::refused, "the lock is a symbolic link", path, "remove it");
  }
  if (!fd) {
    return failed("open", path);
  }
  struct ::stat info {};
  if (::fstat(fd.get(), &info) != 0) {
    return failed("stat", path);
  }
  if (!S_ISREG(info.st_mode) || info.st_nlink > 1) {
    return fail(errc::refused, "the lock is not a separate file", path, "remove it");
  }
  if (auto owned = check_owner(info, path); !owned) {
    return fail(std::move(owned.error()));
  }
  return fd;
}

/// Whether the name still leads to the locked file: a lock on a removed one guards nothing.
bool is_current(int directory, int descriptor) {
  struct ::stat named {};
  struct ::stat opened {};
  return ::fstatat(directory, "lock", &named, AT_SYMLINK_NOFOLLOW) == 0 &&
         ::fstat(descriptor, &opened) == 0 && named.st_ino == opened.st_ino &&
         named.st_dev == opened.st_dev;
}

std::optional<lock_owner> read_owner(int descriptor) {
  std::array<char, lock_file_bytes> bytes{};
  const auto count = ::pread(descriptor, bytes.data(), bytes.size(), 0);
  if (count <= 0) {
    return std::nullopt;
  }
  const std::string_view text(bytes.data(), static_cast<std::size_t>(count));
  const auto json = nlohmann::json::parse(text, nullptr, false);
  if (!json.is_object()) {
    return std::nullopt;
  }
  lock_owner owner;
  const auto integer = [&](const char* key) -> std::int64_t {
    const auto it = json.find(key);
    return it != json.end() && it->is_number_integer() ? it->get<std::int64_t>() : 0;
  };
  const auto string = [&](const char* key) -> std::string {
    const auto it = json.find(key);
    return it != json.end() && it->is_string() ? it->get<std::string>() : "";
  };
  owner.pid = integer("pid");
  owner.node_id = string("node_id");
  owner.start_ticks = static_cast<std::uint64_t>(integer("start_ticks"));
  owner.started_at = parse_rfc3339(string("started_at")).value_or(utc_time{});
  return owner.pid > 0 ? std::optional(owner) : std::nullopt;
}

result<void> write_owner(int descriptor, const lock_owner& owner, const std::string& path) {
  const nlohmann::ordered_json json = {{"pid", owner.pid},
                                       {"started_at", format_rfc3339(owner.started_at, true)},
                                       {"node_id", owner.node_id},
                                       {"start_ticks", owner.start_ticks}};
  const auto text =
      json.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace) + "\n";
  if (::ftruncate(descriptor, 0) != 0 ||
      ::pwrite(descriptor, text.data(), text.size(), 0) != static_cast<ssize_t>(text.size()) ||
      ::fsync(descriptor) != 0) {
    return failed("write", path);
  }
  return {};
}

error locked_by(const std::optional<lock_owner>& owner, const std::string& path) {
  if (!owner) {
    return {errc::locked, "the home is locked by an unknown process", path, "stop it first"};
  }
  const auto who =
      "process " + std::to_string(owner->pid) + ", started " + format_rfc3339(owner->started_at);
  if (is_alive(*owner)) {
    return {errc::locked, "another node or command uses this home: " + who, path,
            "stop it, or choose another home"};
  }
  return {errc::locked,
          "the last node of this home is gone (" + who +
              "), but one of its processes still holds the lock",
          path, "wait until that process ends, or kill it"};
}

/// Waits a step without holding anything up; a signal ends the step early.
void wait_a_step() {
  ::poll(nullptr, 0, retry_step_ms);
}

/// Tries until `patience` has passed, as long as no living owner is named.
result<void> lock_with_patience(int descriptor, const std::string& path, milliseconds patience) {
  const auto begin = std::chrono::steady_clock::now();
  while (::flock(descriptor, LOCK_EX | LOCK_NB) != 0) {
    if (errno == EINTR) {
      continue;
    }
    if (errno != EWOULDBLOCK) {
      return failed("flock", path);
    }
    const auto owner = read_owner(descriptor);
    const auto limit = owner ? patience : std::min(patience, unnamed_patience);
    const bool hopeless = owner && is_alive(*owner);
    if (hopeless || std::chrono::steady_clock::now() - begin >= limit) {
      return fail(locked_by(owner, path));
    }
    wait_a_step();
  }
  return {};
}

unique_fd open_home(const std::string& home) {
  return unique_fd(::open(home.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
}

/// The second lock, on the home's directory, which cannot be removed as a file can. A process that
/// ends may hold it for a moment longer than the first one.
result<unique_fd> lock_directory(const std::string& home) {
  auto fd = open_home(home);
  if (!fd) {
    return failed("open", home);
  }
  const auto begin = std::chrono::steady_clock::now();
  while (::flock(fd.get(), LOCK_EX | LOCK_NB) != 0) {
    if (errno != EWOULDBLOCK && errno != EINTR) {
      return failed("flock", home);
    }
    if (std::chrono::steady_clock::now() - begin >= unnamed_patience) {
      return fail(errc::locked, "a node or command uses this home, although run/lock was removed",
                  home, "stop it (it is a process called boyd), then try again");
    }
    wait_a_step();
  }
  return fd;
}

/// Somebody holds the home although no file says who.
bool is_directory_locked(const std::string& home) {
  const auto fd = open_home(home);
  return fd && ::flock(fd.get(), LOCK_SH | LOCK_NB) != 0 && errno == EWOULDBLOCK;
}

} // namespace

bool is_network_file_system(long type) noexcept {
  const auto magic = type & 0xFFFFFFFFL; // statfs may have extended its sign
  return magic == NFS_SUPER_MAGIC || magic == cifs_magic || magic == smb2_magic ||
         magic == SMB_SUPER_MAGIC || magic == AFS_SUPER_MAGIC || magic == AFS_FS_MAGIC ||
         magic == CODA_SUPER_MAGIC;
}

std::uint64_t own_start_ticks() {
  return start_ticks_of(::getpid());
}

bool is_alive(const lock_owner& owner) {
  if (owner.pid <= 0 || (::kill(static_cast<pid_t>(owner.pid), 0) != 0 && errno == ESRCH) ||
      is_zombie(owner.pid)) {
    return false;
  }
  const auto ticks = start_ticks_of(owner.pid);
  return owner.start_ticks == 0 || ticks == 0 || ticks == owner.start_ticks;
}

std::string boot_mark() {
  std::ifstream file("/proc/sys/kernel/random/boot_id");
  std::string boot;
  file >> boot;
  std::error_code failed;
  const auto space = std::filesystem::read_symlink("/proc/self/ns/pid", failed);
  return boot.empty() ? boot : boot + " " + space.string();
}

bool is_alive(const lock_owner& owner, const std::string& mark) {
  const auto here = boot_mark();
  if (mark.empty() || here.empty() || mark == here)
    return is_alive(owner);
  return mark.substr(0, mark.find(' ')) == here.substr(0, here.find(' '));
}

result<home_lock> home_lock::acquire(const std::string& home, utc_time started_at,
                                     const std::string& node_id, milliseconds patience) {
  if (auto fit = check_home(home); !fit) {
    return fail(std::move(fit.error()));
  }
  const auto directory = open_run_directory(home);
  if (!directory) {
    return fail(directory.error());
  }
  const auto path = home_layout(home).lock();
  for (int round = 0; round < vanished_retries; ++round) {
    auto fd = open_lock(directory->get(), path, O_RDWR | O_CREAT);
    if (!fd) {
      return fail(std::move(fd.error()));
    }
    if (auto locked = lock_with_patience(fd->get(), path, patience); !locked) {
      return fail(std::move(locked.error()));
    }
    if (!is_current(directory->get(), fd->get())) {
      continue;
    }
    auto whole = lock_directory(home);
    if (!whole) {
      return fail(std::move(whole.error()));
    }
    const lock_owner self{::getpid(), started_at, node_id, start_ticks_of(::getpid())};
    if (auto written = write_owner(fd->get(), self, path); !written) {
      return fail(std::move(written.error()));
    }
    return home_lock(std::move(*fd), std::move(*whole), home, started_at);
  }
  return fail(errc::conflict, "the lock file keeps disappearing", path,
              "find the program that removes it");
}

bool home_lock::is_replaced() const {
  struct ::stat named {};
  struct ::stat held {};
  if (::lstat(path_.c_str(), &named) != 0 || ::fstat(home_.get(), &held) != 0 ||
      (named.st_ino == held.st_ino && named.st_dev == held.st_dev))
    return false;
  // Directories alone may be this process's own doing: who writes a record makes what is missing.
  return ::lstat(home_layout(path_).lock().c_str(), &named) == 0;
}

result<std::optional<lock_owner>> read_home_owner(const std::string& home) {
  const auto path = home_layout(home).lock();
  const unique_fd fd(::open(path.c_str(), O_RDONLY | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK));
  if (!fd) {
    if (errno == ENOENT || errno == ENOTDIR) {
      return is_directory_locked(home) ? std::optional(lock_owner{}) : std::nullopt;
    }
    return failed("open", path);
  }
  // A shared lock held for a moment; a node that starts in that moment tries again, because the
  // owner named in the file is dead or unknown.
  if (::flock(fd.get(), LOCK_SH | LOCK_NB) == 0) {
    return std::optional<lock_owner>{};
  }
  if (errno != EWOULDBLOCK) {
    return failed("flock", path);
  }
  auto owner = read_owner(fd.get());
  return owner ? owner : std::optional(lock_owner{});
}

} // namespace boyd::adapters
