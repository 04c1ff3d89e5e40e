#include "git_internal.hpp"
#include "inside_internal.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <mutex>

namespace boyd::adapters::git {

namespace {

/// Here are no files.
constexpr const char* no_certificates = "/proc/self/task";
/// Objects that libgit2 keeps in memory, bytes.
constexpr ssize_t most_cached = ssize_t{2} << 20;

/// libgit2 reports system errors as text alone: its message ends with strerror's.
bool mentions(const std::string& message, int code) {
  return message.find(std::strerror(code)) != std::string::npos;
}

errc code_for(int rc, const std::string& message, errc otherwise) {
  switch (rc) {
  case GIT_ELOCKED:
    return errc::locked;
  case GIT_EMODIFIED:
  case GIT_ECONFLICT:
  case GIT_EUNMERGED:
    return errc::conflict;
  case GIT_EOWNER:
    return errc::refused;
  case GIT_EINVALIDSPEC:
  case GIT_EAMBIGUOUS:
    return errc::invalid_argument;
  default:
    break;
  }
  if (mentions(message, ENOSPC) || mentions(message, EDQUOT))
    return errc::no_space;
  return otherwise;
}

} // namespace

void start_library() {
  static std::once_flag once;
  std::call_once(once, [] {
    git_libgit2_init();
    const std::array levels{GIT_CONFIG_LEVEL_PROGRAMDATA, GIT_CONFIG_LEVEL_SYSTEM,
                            GIT_CONFIG_LEVEL_XDG, GIT_CONFIG_LEVEL_GLOBAL};
    for (const int level : levels)
      git_libgit2_opts(GIT_OPT_SET_SEARCH_PATH, level, "");
    git_libgit2_opts(GIT_OPT_SET_TEMPLATE_PATH, "");
    git_libgit2_opts(GIT_OPT_ENABLE_FSYNC_GITDIR, 1);
    git_libgit2_opts(GIT_OPT_SET_OWNER_VALIDATION, 1);
    // By default up to 256 MiB of objects are kept; a cycle reads those of the one before, once.
    git_libgit2_opts(GIT_OPT_SET_CACHE_MAX_SIZE, most_cached);
    // Nothing is fetched: the authorities that libgit2 has just read are a third of a mebibyte.
    git_libgit2_opts(GIT_OPT_SET_SSL_CERT_LOCATIONS, nullptr, no_certificates);
    std::array<const char*, readable_extensions.size()> extensions{};
    std::ranges::transform(readable_extensions, extensions.begin(), &std::string_view::data);
    git_libgit2_opts(GIT_OPT_SET_EXTENSIONS, extensions.data(), extensions.size());
    git_error_clear();
  });
}

error failure(int rc, std::string_view doing, const std::string& where, errc otherwise) {
  const git_error* last = git_error_last();
  const std::string message = last != nullptr && last->message != nullptr
                                  ? std::string(last->message)
                                  : "error " + std::to_string(rc);
  error e{code_for(rc, message, otherwise), std::string(doing) + ": " + message, where, {}};
  git_error_clear();
  return e;
}

error system_failure(int code, std::string_view doing, const std::string& where) {
  const errc kind =
      code == ENOSPC || code == EDQUOT ? errc::no_space : errc::repository_unavailable;
  return error{kind, std::string(doing) + ": " + std::strerror(code), where, {}};
}

std::string hex(const git_oid& id) {
  std::array<char, GIT_OID_HEXSZ + 1> text{};
  git_oid_tostr(text.data(), text.size(), &id);
  return text.data();
}

} // namespace boyd::adapters::git
