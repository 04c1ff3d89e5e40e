#include "sandbox_grants.hpp"

#include <climits>

#include <algorithm>
#include <cstdlib>
#include <dirent.h>
#include <memory>
#include <string_view>
#include <sys/stat.h>

namespace boyd::adapters {

namespace {

/// Deeper than this nothing is looked for that is hidden: no path of the system's is that long.
constexpr int deepest = 128;

/// Nothing in these is written.
constexpr std::array kernels_own{"/proc", "/sys"};

std::vector<std::string> names_in(const std::string& directory) {
  std::vector<std::string> names;
  const std::unique_ptr<DIR, int (*)(DIR*)> open(::opendir(directory.c_str()), ::closedir);
  while (open && names.size() < granted_entries) {
    const dirent* const entry = ::readdir(open.get());
    if (entry == nullptr)
      break;
    const std::string_view name = entry->d_name;
    if (name != "." && name != "..")
      names.emplace_back(name);
  }
  return names;
}

class collector {
 public:
  explicit collector(std::vector<std::string> hidden) : hidden_(std::move(hidden)) {}

  void add(const std::string& path, bool writable, int depth = 0) {
    if (std::ranges::find(hidden_, path) != hidden_.end() || depth > deepest)
      return;
    const auto within = [&](const char* place) { return is_within(path, place); };
    if (writable && std::ranges::any_of(kernels_own, within))
      writable = false;
    const bool holds_hidden =
        std::ranges::any_of(hidden_, [&](const auto& h) { return is_within(h, path); });
    const bool holds_kernels = writable && std::ranges::any_of(kernels_own, [&](const char* place) {
                                 return is_within(place, path);
                               });
    if (!holds_hidden && !holds_kernels) {
      found.push_back({path, writable});
      return;
    }
    const auto base = path == "/" ? path : path + '/';
    for (const auto& name : names_in(path)) {
      struct stat info {};
      const auto below = base + name;
      if (::lstat(below.c_str(), &info) == 0 && !S_ISLNK(info.st_mode))
        add(below, writable, depth + 1);
    }
  }

  std::vector<sandbox_grant> found;

 private:
  std::vector<std::string> hidden_;
};

} // namespace

std::string real_path(const std::string& path) {
  char resolved[PATH_MAX];
  return ::realpath(path.c_str(), resolved) == nullptr ? std::string() : std::string(resolved);
}

std::string granted_path(const sandbox_spec& spec, const std::string& path) {
  auto real = real_path(path);
  for (const auto& hidden : spec.hidden) {
    const auto closed = real_path(hidden);
    if (!closed.empty() && is_within(real, closed) && !is_within(path, closed) &&
        !is_within(path, hidden))
      return {};
  }
  return real;
}

bool is_within(const std::string& path, const std::string& above) {
  return above == "/" || path == above ||
         (path.size() > above.size() && path.starts_with(above) && path[above.size()] == '/');
}

std::vector<sandbox_grant> grants_of(const sandbox_spec& spec) {
  std::vector<std::string> hidden;
  for (const auto& path : spec.hidden)
    if (auto real = real_path(path); !real.empty())
      hidden.push_back(std::move(real));
  collector all(std::move(hidden));
  const auto take = [&](const std::string& path, bool writable) {
    if (const auto real = granted_path(spec, path); !real.empty())
      all.add(real, writable);
  };
  for (const auto& path : spec.readable)
    take(path, false);
  for (const auto& path : spec.writable)
    take(path, true);
  if (!spec.scratch.empty())
    take(spec.scratch, true);
  return std::move(all.found);
}

} // namespace boyd::adapters
