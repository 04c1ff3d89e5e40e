#include "../unique_fd.hpp"
#include "boyd/core/text.hpp"
#include "inside_internal.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <dirent.h>
#include <fcntl.h>
#include <map>
#include <memory>
#include <optional>
#include <string_view>
#include <sys/stat.h>
#include <unistd.h>
#include <utility>
#include <vector>

namespace boyd::adapters::git {

namespace {

using namespace std::string_view_literals;

/// Of a configuration.
constexpr std::size_t configuration_bytes = 1U << 20;
/// Directories below refs/ and logs/ that are looked into.
constexpr std::size_t most_directories = 10'000;
constexpr int newest_format = 1;

struct close_listing {
  void operator()(DIR* d) const noexcept { ::closedir(d); }
};

tl::unexpected<error> out_of_place(std::string what, std::string where, std::string next) {
  return fail(errc::repository_unavailable, std::move(what), std::move(where), std::move(next));
}

/// Of .git itself: the names that Boyd and libgit2 use. Others are a person's business (hooks may
/// be a link).
bool is_used(std::string_view name) {
  constexpr std::array used{
      "HEAD"sv, "config"sv, "config.worktree"sv, "index"sv,  "packed-refs"sv, "objects"sv, "refs"sv,
      "logs"sv, "info"sv,   "commondir"sv,       "shallow"sv};
  return std::ranges::find(used, name) != used.end() || name.starts_with("boyd-") ||
         name.ends_with(".lock");
}

/// Of info/: what git and Boyd read. An editor may keep links of its own beside it.
bool is_used_in_info(std::string_view name) {
  return name == "exclude" || name == "attributes" || name == "sparse-checkout" || name == "grafts";
}

std::string_view kind_of(mode_t mode) {
  if (S_ISLNK(mode))
    return "the repository contains a symbolic link"sv;
  return "the repository contains a pipe, socket or device"sv;
}

enum class depth { these, all };

/// Looks at the names in `directory`: at those that `matters`, and with `depth::all` at those
/// below.
template <class Matters>
result<void> check_names(const std::string& directory, depth how, Matters matters) {
  std::vector<std::string> open{directory};
  for (std::size_t seen = 0; !open.empty() && seen < most_directories; ++seen) {
    const std::string at = std::move(open.back());
    open.pop_back();
    const int fd = ::open(at.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0 && errno == ENOENT)
      continue;
    const std::unique_ptr<DIR, close_listing> d(fd < 0 ? nullptr : ::fdopendir(fd));
    if (!d)
      return out_of_place(
          "cannot open a directory of the repository: " + std::string(std::strerror(errno)), at,
          "replace it with a readable directory; history then continues by itself");
    while (const dirent* e = ::readdir(d.get())) {
      const std::string_view name = e->d_name;
      if (name == "." || name == ".." || !matters(name) || e->d_type == DT_REG)
        continue;
      struct stat info {};
      if (e->d_type == DT_DIR)
        info.st_mode = S_IFDIR;
      else if (::fstatat(::dirfd(d.get()), e->d_name, &info, AT_SYMLINK_NOFOLLOW) != 0)
        continue;
      if (!S_ISREG(info.st_mode) && !S_ISDIR(info.st_mode))
        return out_of_place(
            std::string(kind_of(info.st_mode)), at + "/" + std::string(name),
            "replace it with a real file or directory; history then continues by itself");
      if (how == depth::all && S_ISDIR(info.st_mode))
        open.push_back(at + "/" + std::string(name));
    }
  }
  return {};
}

std::string lower(std::string_view text) {
  std::string out(text);
  std::ranges::transform(out, out.begin(), [](char c) {
    return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  });
  return out;
}

/// A value without its quotes and the comment behind it. Formats and extensions have plain values.
std::string plain_value(std::string_view text) {
  std::string out;
  bool quoted = false;
  for (const char c : text) {
    if (!quoted && (c == '#' || c == ';'))
      break;
    if (c == '"')
      quoted = !quoted;
    else
      out += c;
  }
  return lower(trim(out));
}

/// The settings of a configuration, "section.key" and value in small letters.
std::map<std::string, std::string> settings_of(std::string_view text) {
  std::map<std::string, std::string> out;
  std::string section;
  for (const auto raw : split(text, '\n')) {
    auto line = trim(raw);
    if (line.starts_with('[')) {
      const auto end = std::min(line.find(']'), line.size() - 1);
      section = lower(trim(line.substr(1, end - 1)));
      line = trim(line.substr(end + 1));
    }
    if (line.empty() || line.front() == '#' || line.front() == ';')
      continue;
    const auto equals = line.find('=');
    const auto key = section + "." + lower(trim(line.substr(0, equals)));
    out[key] = equals == std::string_view::npos ? std::string("true")
                                                : plain_value(line.substr(equals + 1));
  }
  return out;
}

result<void> check_extension(const std::string& name, const std::string& value, int format,
                             const std::string& file) {
  if (name == "objectformat" && value != "sha1")
    return out_of_place("the repository uses the object format " + value +
                            ", but Boyd supports only SHA-1",
                        file, "move .git away, then create a new repository: boyd init");
  if (name == "refstorage" && value != "files")
    return out_of_place("the repository uses the branch format " + value +
                            ", but Boyd supports only branches in files",
                        file, "run in the work tree: git refs migrate --ref-format=files");
  const bool known = name == "objectformat" || name == "refstorage" || name == "noop" ||
                     std::ranges::find(readable_extensions, name) != readable_extensions.end();
  if (!known && format > 0)
    return out_of_place("the repository uses an extension that Boyd does not support: " + name,
                        file,
                        "clone it with `git clone` to another place, then put that clone's .git "
                        "here");
  return {};
}

result<void> check_format(const std::string& file) {
  const auto text = end_of_file(file, configuration_bytes);
  if (!text)
    return {};
  const auto settings = settings_of(*text);
  int format = 0;
  if (const auto it = settings.find("core.repositoryformatversion"); it != settings.end())
    std::from_chars(it->second.data(), it->second.data() + it->second.size(), format);
  if (format > newest_format)
    return out_of_place("the repository has format version " + std::to_string(format) +
                            ", but Boyd supports versions 0 and 1",
                        file, "clone it with an older git, then put that clone's .git here");
  constexpr auto section = "extensions."sv;
  for (auto it = settings.lower_bound(std::string(section));
       it != settings.end() && it->first.starts_with(section); ++it)
    if (auto ok = check_extension(it->first.substr(section.size()), it->second, format, file); !ok)
      return ok;
  return {};
}

} // namespace

std::optional<std::string> end_of_file(const std::string& path, std::size_t most) {
  const unique_fd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK));
  struct stat info {};
  if (!fd || ::fstat(fd.get(), &info) != 0 || !S_ISREG(info.st_mode))
    return std::nullopt;
  std::string text(std::min(most, static_cast<std::size_t>(info.st_size)), '\0');
  auto at = info.st_size - static_cast<off_t>(text.size());
  std::size_t size = 0;
  while (size < text.size()) {
    const auto n = ::pread(fd.get(), text.data() + size, text.size() - size, at);
    if (n < 0 && errno == EINTR)
      continue;
    if (n <= 0)
      break;
    size += static_cast<std::size_t>(n);
    at += n;
  }
  text.resize(size);
  return text;
}

result<void> check_inside(const std::string& git_dir) {
  const auto all = [](std::string_view) { return true; };
  if (auto ok = check_names(git_dir, depth::these, is_used); !ok)
    return ok;
  if (auto ok = check_names(git_dir + "/info", depth::these, is_used_in_info); !ok)
    return ok;
  if (auto ok = check_names(git_dir + "/objects", depth::these, all); !ok)
    return ok;
  for (const char* part : {"/refs", "/logs"})
    if (auto ok = check_names(git_dir + part, depth::all, all); !ok)
      return ok;
  return check_format(git_dir + "/config");
}

} // namespace boyd::adapters::git
