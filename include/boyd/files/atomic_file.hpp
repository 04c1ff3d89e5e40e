#pragma once

#include "boyd/core/result.hpp"
#include "boyd/ports/file_system.hpp"

#include <cstddef>
#include <functional>
#include <string>
#include <string_view>

namespace boyd::files {

struct atomic_options {
  /// Keep a second copy of the same bytes in `<path>.bak`, replaced by the same rules just before
  /// the file itself. Holding the *new* bytes (not the previous ones), it never replaces a good
  /// backup by a damaged main file and loses nothing when the main file is damaged later.
  bool backup = false;
  /// Without: the caller syncs the directory. Until then a crash may bring the old bytes back.
  bool sync_name = true;
  /// Without: a crash of the machine may leave an empty file, one of the process still leaves the
  /// old bytes or the new ones. For what can be done without.
  bool sync = true;
};

/// `<path>.bak`.
std::string backup_path(const std::string& path);

/// Replaces the content of `path` so that after any crash it holds the old bytes or the new ones,
/// never else: temporary file in the same directory, fsync, rename, fsync of the directory
/// (docs/state-and-history.md). With a value, the new content is durable (`sync_name`). On an error
/// all temporary files are removed and the old content stands; only when the very last step (fsync
/// of the directory) fails the new content is visible but not known to be durable: write again. One
/// writer per path at a time.
result<void> write_atomic(file_system& fs, const std::string& path, std::string_view bytes,
                          atomic_options options = {});

/// Whether `directory` takes a file again: one of a page is written, synced and removed. The
/// nearest directory above stands for one that is missing. For parts that were refused a write and
/// have nothing to write now.
result<void> try_writing(file_system& fs, std::string directory);

/// True for names that `write_atomic` gives its temporary files: `.<name>.boyd-tmp-<digit…>`.
bool is_temporary_name(std::string_view name) noexcept;

/// Removes temporary files that a crash left in `directory`; returns how many. For the start, when
/// nobody writes there. A missing directory has none.
result<std::size_t> remove_leftover_temporaries(file_system& fs, const std::string& directory);

/// Why a content cannot be used; empty text: it can.
using content_check = std::function<std::string(std::string_view)>;

/// A content that passed its check, and where it came from.
struct checked_content {
  std::string bytes;
  bool from_backup = false;
  /// Why the main file was not used, for the log; empty when it was.
  std::string problem;
};

/// Reads `path`; when it is missing, unreadable or fails `check`, its `.bak` by the same check. The
/// caller restores the main file by writing `bytes` again. Errors: `not_found` when neither exists,
/// `corrupt` when one exists and none passes (both reasons are in the text), otherwise the error
/// of reading the main file. An empty `check` accepts everything but an empty file.
result<checked_content> read_checked(file_system& fs, const std::string& path,
                                     std::size_t max_bytes, const content_check& check);

} // namespace boyd::files
