#include "socket_place_internal.hpp"

#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <system_error>
#include <unistd.h>
#include <utility>

namespace boyd::adapters::control_detail {

namespace {

constexpr std::size_t name_bytes = 80;
constexpr int backlog = 128;
constexpr mode_t file_mode = 0600;
constexpr mode_t directory_mode = 0700;
constexpr mode_t others = 0077;

errc code_of(int number) {
  switch (number) {
  case ENOENT:
    return errc::not_found;
  case ENOSPC:
  case EDQUOT:
    return errc::no_space;
  case ELOOP:
  case ENOTDIR:
    return errc::refused;
  case ENAMETOOLONG:
    return errc::invalid_argument;
  default:
    return errc::io_error;
  }
}

tl::unexpected<error> system_failure(int number, const std::string& what, const std::string& path) {
  return fail(code_of(number), what + " failed: " + std::generic_category().message(number), path);
}

struct split_path {
  std::string directory;
  std::string name;
};

result<split_path> split_socket_path(const std::string& path) {
  if (path.find('\0') != std::string::npos)
    return fail(errc::invalid_argument, "the socket's path has a NUL byte");
  const auto slash = path.rfind('/');
  split_path parts;
  parts.name = slash == std::string::npos ? path : path.substr(slash + 1);
  parts.directory = slash == std::string::npos ? "." : path.substr(0, slash);
  if (parts.directory.empty())
    parts.directory = "/";
  if (parts.name.empty() || parts.name == "." || parts.name == "..")
    return fail(errc::invalid_argument, "the socket's path names no file", path);
  if (parts.name.size() > name_bytes)
    return fail(errc::invalid_argument,
                "the socket's name is longer than " + std::to_string(name_bytes) + " bytes", path);
  return parts;
}

/// Makes the directory ours alone.
result<void> secure_directory(const socket_place& place) {
  struct stat info {};
  if (::fstat(place.directory(), &info) != 0)
    return system_failure(errno, "stat", place.path());
  if (info.st_uid != ::geteuid())
    return fail(errc::refused, "the control socket's directory belongs to another user",
                place.path(), "run as its owner");
  if ((info.st_mode & others) != 0 && ::fchmod(place.directory(), directory_mode) != 0)
    return system_failure(errno, "chmod", place.path());
  return {};
}

/// Removes what a dead server left.
result<void> clear_place(const socket_place& place) {
  struct stat info {};
  if (::fstatat(place.directory(), place.name().c_str(), &info, AT_SYMLINK_NOFOLLOW) != 0) {
    if (errno == ENOENT)
      return {};
    return system_failure(errno, "stat", place.path());
  }
  if (!S_ISSOCK(info.st_mode))
    return fail(errc::refused, "a file that is not a socket has the name of the control socket",
                place.path(), "move it away");
  int number = 0;
  const auto answered = place.connect(number);
  if (answered || number == EAGAIN)
    return fail(errc::locked, "another process answers on the control socket", place.path(),
                "stop it first");
  if (number != ECONNREFUSED && number != ENOENT)
    return system_failure(number, "connect", place.path());
  if (::unlinkat(place.directory(), place.name().c_str(), 0) != 0 && errno != ENOENT)
    return system_failure(errno, "unlink", place.path());
  return {};
}

/// Holds the directory while a place is cleared and taken, so that of two servers that start at
/// once neither removes the other's fresh socket.
class directory_turn {
 public:
  explicit directory_turn(int directory) : fd_(::fcntl(directory, F_DUPFD_CLOEXEC, 0)) {
    taken_ = ::flock(fd_.get(), LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK;
  }
  ~directory_turn() { ::flock(fd_.get(), LOCK_UN); }
  directory_turn(const directory_turn&) = delete;
  directory_turn& operator=(const directory_turn&) = delete;
  /// Somebody else's turn. A file system without flock has no turns.
  bool taken() const noexcept { return taken_; }

 private:
  owned_fd fd_;
  bool taken_ = false;
};

} // namespace

owned_fd& owned_fd::operator=(owned_fd&& other) noexcept {
  if (this != &other) {
    const owned_fd old(fd_);
    fd_ = other.release();
  }
  return *this;
}

owned_fd::~owned_fd() {
  if (fd_ >= 0)
    ::close(fd_);
}

result<socket_place> socket_place::open(const std::string& path) {
  const auto parts = split_socket_path(path);
  if (!parts)
    return fail(parts.error());
  socket_place place;
  place.path_ = path;
  place.name_ = parts->name;
  place.directory_ =
      owned_fd(::open(parts->directory.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW));
  if (!place.directory_)
    return system_failure(errno, "opening the directory", parts->directory);
  place.address_.sun_family = AF_UNIX;
  const auto through =
      path.size() < sizeof place.address_.sun_path
          ? path
          : "/proc/self/fd/" + std::to_string(place.directory()) + "/" + place.name_;
  std::memcpy(place.address_.sun_path, through.c_str(), through.size() + 1);
  return place;
}

owned_fd socket_place::connect(int& error_number) const {
  owned_fd fd(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (fd && ::connect(fd.get(), address(), address_size) == 0)
    return fd;
  error_number = errno;
  return owned_fd();
}

void listening_socket::remove_file() const {
  struct stat info {};
  if (::fstatat(place.directory(), place.name().c_str(), &info, AT_SYMLINK_NOFOLLOW) == 0 &&
      info.st_dev == device && info.st_ino == inode)
    ::unlinkat(place.directory(), place.name().c_str(), 0);
}

bool listening_socket::is_lost() const {
  // By its path: a directory that was removed or moved away still takes names.
  struct stat info {};
  return ::lstat(place.path().c_str(), &info) != 0 && (errno == ENOENT || errno == ENOTDIR);
}

result<listening_socket> listen_at(const std::string& path) {
  const auto parts = split_socket_path(path);
  if (!parts)
    return fail(parts.error());
  if (::mkdir(parts->directory.c_str(), directory_mode) != 0 && errno != EEXIST)
    return system_failure(errno, "creating the directory", parts->directory);
  auto place = socket_place::open(path);
  if (!place)
    return fail(place.error());
  if (auto secured = secure_directory(*place); !secured)
    return fail(secured.error());
  const directory_turn turn(place->directory());
  if (turn.taken())
    return fail(errc::locked, "another process is creating the control socket", path);
  if (auto cleared = clear_place(*place); !cleared)
    return fail(cleared.error());

  listening_socket made;
  made.fd = owned_fd(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!made.fd)
    return system_failure(errno, "creating a socket", path);
  // Before bind: the file then never has wider rights, and the process's umask is left alone.
  if (::fchmod(made.fd.get(), file_mode) != 0)
    return system_failure(errno, "chmod", path);
  if (::bind(made.fd.get(), place->address(), socket_place::address_size) != 0)
    return system_failure(errno, "bind", path);
  struct stat info {};
  if (::fstatat(place->directory(), place->name().c_str(), &info, AT_SYMLINK_NOFOLLOW) != 0)
    return system_failure(errno, "stat", path);
  made.place = std::move(*place);
  made.device = info.st_dev;
  made.inode = info.st_ino;
  if (::listen(made.fd.get(), backlog) != 0) {
    const int number = errno;
    made.remove_file();
    return system_failure(number, "listen", path);
  }
  return made;
}

socket_peer peer_of(int fd) {
  ucred peer{};
  socklen_t size = sizeof peer;
  if (::getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &size) != 0)
    return {};
  return {static_cast<std::int64_t>(peer.uid), static_cast<std::int64_t>(peer.pid)};
}

std::int64_t peer_user(int fd) {
  return peer_of(fd).user;
}

} // namespace boyd::adapters::control_detail
