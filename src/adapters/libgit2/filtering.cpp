#include "git_internal.hpp"

#include <climits>

#include <array>
#include <cerrno>
#include <fcntl.h>
#include <unistd.h>

namespace boyd::adapters::git {

namespace {

std::optional<std::string> target_of(const std::string& link) {
  std::array<char, PATH_MAX> target{};
  const auto length = ::readlink(link.c_str(), target.data(), target.size());
  if (length < 0)
    return std::nullopt;
  return std::string(target.data(), static_cast<std::size_t>(length));
}

std::optional<std::string> bytes_of(const std::string& file, std::size_t most) {
  const unique_fd fd(::open(file.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK));
  std::string bytes(most, '\0');
  std::size_t size = 0;
  while (fd && size < most) {
    const auto n = ::read(fd.get(), bytes.data() + size, most - size);
    if (n < 0 && errno == EINTR)
      continue;
    if (n < 0)
      return std::nullopt;
    if (n == 0)
      break;
    size += static_cast<std::size_t>(n);
  }
  if (!fd)
    return std::nullopt;
  bytes.resize(size);
  return bytes;
}

} // namespace

result<std::optional<git_oid>> filtered_blob(const session& s, const std::string& path,
                                             const struct stat& info) {
  if (s.filter == nullptr || static_cast<std::size_t>(info.st_size) > filtered_bytes)
    return std::nullopt;
  const auto file = s.at->work_tree + "/" + path;
  // One byte more: a file that grew meanwhile.
  auto bytes = S_ISLNK(info.st_mode) ? target_of(file)
                                     : bytes_of(file, static_cast<std::size_t>(info.st_size) + 1);
  // What cannot be read is for libgit2 to complain about.
  if (!bytes)
    return std::nullopt;
  const auto kept = (*s.filter)(*bytes);
  if (kept == *bytes)
    return std::nullopt;
  git_oid id{};
  if (const int rc = write_object(
          [&] { return git_blob_create_from_buffer(&id, s.repo.get(), kept.data(), kept.size()); });
      rc != 0)
    return fail(failure(rc, "cannot store a version of the file", file));
  return id;
}

} // namespace boyd::adapters::git
