#include "confinement.hpp"

#include "errors.hpp"
#include "retry.hpp"

#include <climits>

#include <cerrno>
#include <fcntl.h>
#include <linux/openat2.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>
#include <utility>
#include <vector>

namespace boyd::adapters {

namespace {

constexpr int path_only = O_PATH | O_CLOEXEC;
constexpr mode_t directory_mode = 0700;
/// The kernel gives up when something is renamed while it follows "..", and asks to be asked again.
constexpr int openat2_attempts = 64;
constexpr int open_attempts = 16;

tl::unexpected<error> failed(std::string_view operation) {
  return fail(system_error(errno, operation, {}));
}

tl::unexpected<error> leads_out() {
  return fail(errc::refused, "the path leads out of the workspace", {},
              "use a path relative to the workspace");
}

int open_kernel_confined(int root, const char* path) {
  open_how how{};
  how.flags = path_only;
  how.resolve = RESOLVE_BENEATH | RESOLVE_NO_MAGICLINKS;
  for (int attempt = 1;; ++attempt) {
    const auto fd = ::syscall(SYS_openat2, root, path, &how, sizeof how);
    if (fd >= 0 || (errno != EAGAIN && errno != EINTR) || attempt == openat2_attempts)
      return static_cast<int>(fd);
  }
}

bool is_link(int fd) {
  struct ::stat info {};
  return ::fstat(fd, &info) == 0 && S_ISLNK(info.st_mode);
}

/// Opens `name` in `directory` and follows nothing; a link is refused.
result<unique_fd> open_part(int directory, const std::string& name) {
  unique_fd fd(retry([&] { return ::openat(directory, name.c_str(), path_only | O_NOFOLLOW); }));
  if (!fd)
    return failed("open");
  if (is_link(fd.get()))
    return fail(errc::refused, "the path contains a symbolic link, and links are not followed here",
                {}, "use the path of its target");
  return fd;
}

result<void> make_directory(int parent, const std::string& name) {
  if (::mkdirat(parent, name.c_str(), directory_mode) != 0)
    return errno == EEXIST ? result<void>{} : failed("mkdir");
  const unique_fd readable(
      retry([&] { return ::openat(parent, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC); }));
  if (!readable || ::fsync(readable.get()) != 0)
    return failed("fsync of the directory");
  return {};
}

std::vector<std::string> parts_of(const std::string& path) {
  std::vector<std::string> parts;
  for (std::size_t begin = 0; begin < path.size();) {
    const auto end = std::min(path.find('/', begin), path.size());
    parts.push_back(path.substr(begin, end - begin));
    begin = end + 1;
  }
  return parts;
}

} // namespace

result<std::string> path_of(int fd) {
  char path[PATH_MAX];
  const auto size = ::readlink(("/proc/self/fd/" + std::to_string(fd)).c_str(), path, sizeof path);
  if (size < 0)
    return failed("readlink in /proc");
  struct ::stat info {};
  if (::fstat(fd, &info) != 0)
    return failed("stat");
  if (info.st_nlink == 0)
    return fail(errc::conflict, "the file was removed or replaced at the same time", {},
                "try again");
  if (size == 0 || path[0] != '/' || static_cast<std::size_t>(size) == sizeof path)
    return fail(errc::refused, "cannot determine its path");
  return std::string(path, static_cast<std::size_t>(size));
}

std::optional<std::string> relative_to(std::string_view base, std::string_view absolute) {
  if (absolute == base)
    return ".";
  if (base == "/")
    return std::string(absolute.substr(1));
  if (!absolute.starts_with(base) || absolute[base.size()] != '/')
    return std::nullopt;
  return std::string(absolute.substr(base.size() + 1));
}

std::string joined(std::string_view where, std::string_view name) {
  if (where == ".")
    return std::string(name);
  std::string path(where);
  if (!path.ends_with('/'))
    path += '/';
  return path.append(name);
}

confinement::confinement(std::string home, bool without_openat2) : home_(std::move(home)) {
  if (without_openat2)
    return;
  // Old kernels say ENOSYS, some containers EPERM: either way there is none.
  const unique_fd probe(open_kernel_confined(AT_FDCWD, "."));
  has_openat2_ = static_cast<bool>(probe);
}

result<confined_place> confinement::open(const std::string& root, const std::string& path) const {
  // A file that is being replaced by renaming is there all the time: the next look finds it.
  for (int attempt = 1;; ++attempt) {
    auto place = open_once(root, path);
    if (place || place.error().code != errc::conflict || attempt == open_attempts)
      return place;
  }
}

result<confined_place> confinement::open_once(const std::string& root,
                                              const std::string& path) const {
  auto base = open_root(root);
  if (!base)
    return base;
  auto fd = open_beneath(base->fd.get(), path);
  if (!fd)
    return fail(std::move(fd.error()));
  auto absolute = path_of(fd->get());
  if (!absolute)
    return fail(std::move(absolute.error()));
  auto where = relative_to(base->absolute, *absolute);
  if (!where)
    return leads_out();
  if (auto ok = check(*absolute, file_use::read); !ok)
    return fail(std::move(ok.error()));
  return confined_place{std::move(*fd), std::move(*absolute), std::move(*where)};
}

result<confined_target> confinement::open_for_writing(const std::string& root,
                                                      const std::string& path) const {
  auto base = open_root(root);
  if (!base)
    return fail(std::move(base.error()));
  auto parts = parts_of(path);
  if (parts.empty() || path == ".")
    return fail(errc::invalid_argument, "this is a directory");
  confined_target target;
  target.name = std::move(parts.back());
  parts.pop_back();
  unique_fd directory = std::move(base->fd);
  std::string wanted = base->absolute; // as far as it goes without surprises
  for (const auto& part : parts)
    wanted = joined(wanted, part);
  // Before the first directory is made, and once more on what was opened.
  if (auto ok = check(joined(wanted, target.name), file_use::write); !ok)
    return fail(std::move(ok.error()));
  for (const auto& part : parts) {
    auto next = open_part(directory.get(), part);
    if (!next && next.error().code == errc::not_found) {
      if (auto made = make_directory(directory.get(), part); !made)
        return fail(std::move(made.error()));
      next = open_part(directory.get(), part);
    }
    if (!next)
      return fail(std::move(next.error()));
    directory = std::move(*next);
  }
  auto absolute = path_of(directory.get());
  if (!absolute)
    return fail(std::move(absolute.error()));
  auto where = relative_to(base->absolute, *absolute);
  if (!where)
    return leads_out();
  if (auto ok = check(joined(*absolute, target.name), file_use::write); !ok)
    return fail(std::move(ok.error()));
  target.parent = {std::move(directory), std::move(*absolute), std::move(*where)};
  return target;
}

std::optional<std::string> confinement::why_forbidden(std::string_view absolute,
                                                      file_use use) const {
  if (home_.empty())
    return std::nullopt;
  // Looked up each time: the home may lie behind a link, and links change.
  const unique_fd home(retry([&] { return ::open(home_.c_str(), path_only | O_DIRECTORY); }));
  const auto home_path = home ? path_of(home.get()) : result<std::string>(home_);
  if (!home_path)
    return "cannot find the node's home: " + home_path.error().what;
  const auto inside = relative_to(*home_path, absolute);
  return inside ? why_home_forbids(*inside, use) : std::nullopt;
}

result<confined_place> confinement::open_root(const std::string& root) const {
  if (root.empty() || root.front() != '/')
    return fail(errc::invalid_argument, "the workspace is not an absolute path: " + root);
  confined_place place;
  place.fd.reset(retry([&] { return ::open(root.c_str(), path_only | O_DIRECTORY); }));
  if (!place.fd) {
    error e = system_error(errno, "open of the workspace " + root, {});
    return fail(std::move(e));
  }
  auto absolute = path_of(place.fd.get());
  if (!absolute)
    return fail(std::move(absolute.error()));
  place.absolute = std::move(*absolute);
  place.where = ".";
  return place;
}

result<unique_fd> confinement::open_beneath(int root, const std::string& path) const {
  if (has_openat2_) {
    unique_fd fd(open_kernel_confined(root, path.c_str()));
    if (fd)
      return fd;
    if (errno == EXDEV)
      return leads_out();
    if (errno == EAGAIN)
      return fail(errc::conflict, "directories in the path are being renamed", {}, "try again");
    if (errno == ELOOP)
      return fail(errc::refused, "symbolic links in the path form a loop, or belong to /proc");
    return failed("open");
  }
  auto fd = open_part(root, ".");
  for (const auto& part : parts_of(path)) {
    if (!fd)
      return fd;
    fd = open_part(fd->get(), part);
  }
  return fd;
}

result<void> confinement::check(std::string_view absolute, file_use use) const {
  if (auto why = why_forbidden(absolute, use))
    return fail(errc::refused, std::move(*why), {}, "choose another file");
  return {};
}

} // namespace boyd::adapters
