#pragma once

#include <cstdint>
#include <string_view>

namespace boyd {

/// Why an operation failed. The values are stable: they appear in rows, logs and API answers.
/// Decisions read `category_of`, never a text.
enum class errc : std::uint8_t {
  /// An argument or input breaks its contract; the caller must change it.
  invalid_argument = 1,
  /// The thing named does not exist.
  not_found = 2,
  /// The thing named exists already and is different.
  already_exists = 3,
  /// Text that came from outside does not parse.
  parse_error = 4,
  /// The configuration is wrong; trying again cannot help.
  invalid_configuration = 5,
  /// A size, count or depth limit was reached; nothing was done.
  limit_exceeded = 6,
  /// The owner of a lease or fence has changed; the result was not accepted.
  stale_fence = 10,
  /// Somebody else changed the same thing at the same moment.
  conflict = 11,
  /// Another process holds the home, the file or the repository.
  locked = 12,
  /// A queue or credit is exhausted; ask again later.
  overloaded = 20,
  /// A request was not answered in time.
  timed_out = 21,
  /// The database cannot be reached or was taken away.
  store_unavailable = 22,
  /// The connection broke during COMMIT: the outcome must be read again.
  commit_in_doubt = 23,
  /// The git repository cannot be opened or written.
  repository_unavailable = 24,
  /// A file operation failed (EIO, ENOENT on a directory, EROFS, …).
  io_error = 25,
  /// The disk is full.
  no_space = 26,
  /// The part that would answer has crashed or is being restarted.
  actor_down = 27,
  /// A child process could not be started.
  spawn_failed = 28,
  /// Stored data does not pass its check.
  corrupt = 30,
  /// A safety rule forbids it (mass deletion, path outside the home, …).
  refused = 31,
  /// The operation was cancelled by an operator or by shutdown.
  cancelled = 32,
  /// A fault point was told to fail here (docs/reliability.md).
  injected = 33,
  /// A contract inside Boyd is broken; the actor dies and is restarted.
  bug = 40,
};

/// What a caller can do about an error.
enum class error_category : std::uint8_t {
  transient,  ///< try again, with backoff
  overloaded, ///< try again later, slower
  conflict,   ///< read again, then decide
  permanent,  ///< trying again gives the same answer
  config,     ///< a person must change the configuration
  cancelled,  ///< somebody asked for it
  bug,        ///< ours
};

/// The category of `code`; total over all values.
error_category category_of(errc code) noexcept;

/// The stable name of `code`, e.g. "store_unavailable".
std::string_view name_of(errc code) noexcept;

/// The HTTP status that stands for `code` in the control API (RFC 9110 §15).
int http_status_of(errc code) noexcept;

/// The stable name of `category`.
std::string_view name_of(error_category category) noexcept;

} // namespace boyd
