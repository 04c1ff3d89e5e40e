#include "boyd/files/atomic_file.hpp"

#include "paths.hpp"
#include "write_all.hpp"

#include <spdlog/spdlog.h>

#include <algorithm>
#include <array>
#include <memory>
#include <optional>
#include <utility>

namespace boyd::files {

namespace {

constexpr std::string_view temporary_infix = ".boyd-tmp-";

/// Names tried for one temporary file. More than one is taken only by leftovers of crashes.
constexpr int temporary_names = 8;

/// What a file system gives room by.
constexpr std::size_t page_bytes = 4096;

std::string temporary_path(const std::string& path, int number) {
  return join_path(parent_directory(path),
                   "." + base_name(path) + std::string(temporary_infix) + std::to_string(number));
}

/// A temporary file that is removed again unless it was renamed.
class temporary_file {
 public:
  explicit temporary_file(file_system& fs) : fs_(&fs) {}
  temporary_file(const temporary_file&) = delete;
  temporary_file& operator=(const temporary_file&) = delete;
  ~temporary_file() { remove(); }

  /// Makes the file beside `target` and writes it; its bytes are on their way to the disk.
  result<void> fill(const std::string& target, std::string_view bytes, bool sync) {
    auto file = make(target);
    if (!file) {
      return fail(std::move(file.error()));
    }
    file_ = std::move(*file);
    if (auto written = write_all(*file_, bytes, path_); !written) {
      return written;
    }
    if (sync)
      file_->begin_sync();
    return {};
  }

  /// Waits until they are there.
  result<void> settle(std::string_view bytes, bool sync) {
    if (!sync) {
      file_.reset();
      return {};
    }
    if (auto synced = file_->sync(); !synced) {
      return synced;
    }
    file_.reset();
    return verify(bytes);
  }

  result<void> rename_to(const std::string& target) {
    auto renamed = fs_->rename(path_, target);
    if (renamed) {
      path_.clear();
    }
    return renamed;
  }

 private:
  result<std::unique_ptr<open_file>> make(const std::string& target) {
    for (int number = 0; number < temporary_names; ++number) {
      auto file = open_new(temporary_path(target, number));
      if (file || file.error().code != errc::already_exists) {
        return file;
      }
    }
    // One writer per path: when every name is taken, all of them were left by crashes.
    const std::string first = temporary_path(target, 0);
    spdlog::warn("replacing a temporary file left by a crash: {}", first);
    if (auto removed = fs_->unlink(first); !removed) {
      return fail(std::move(removed.error()));
    }
    return open_new(first);
  }

  result<std::unique_ptr<open_file>> open_new(const std::string& path) {
    auto file = fs_->open(path, open_mode::create_new);
    if (file) {
      path_ = path;
    }
    return file;
  }

  /// What a disk took without complaint must be what it gives back, before it replaces a good file.
  result<void> verify(std::string_view bytes) {
    auto found = fs_->read(path_, bytes.size());
    if (!found && found.error().code != errc::limit_exceeded) {
      return fail(std::move(found.error()));
    }
    if (!found || *found != bytes) {
      return fail(errc::corrupt, "the file reads back differently from what was written", path_,
                  "check the disk");
    }
    return {};
  }

  void remove() noexcept {
    if (path_.empty()) {
      return;
    }
    if (auto removed = fs_->unlink(path_); !removed) {
      spdlog::warn("cannot remove a temporary file before the next start: {}",
                   to_string(removed.error()));
    }
  }

  file_system* fs_;
  std::string path_; ///< empty: nothing to remove
  std::unique_ptr<open_file> file_;
};

std::string check_content(std::string_view bytes, const content_check& check) {
  if (check) {
    return check(bytes);
  }
  return bytes.empty() ? "empty" : "";
}

/// What reading one copy came to.
struct copy {
  std::optional<std::string> bytes; ///< set: it passed
  std::string problem;
  errc code = errc::corrupt;
};

copy read_copy(file_system& fs, const std::string& path, std::size_t max_bytes,
               const content_check& check) {
  auto bytes = fs.read_below(parent_directory(path), base_name(path), max_bytes);
  if (!bytes) {
    return {std::nullopt, to_string(bytes.error()), bytes.error().code};
  }
  std::string problem = check_content(*bytes, check);
  if (problem.empty()) {
    return {std::move(*bytes), "", errc::corrupt};
  }
  return {std::nullopt, path + ": " + problem, errc::corrupt};
}

} // namespace

std::string backup_path(const std::string& path) {
  return path + ".bak";
}

result<void> write_atomic(file_system& fs, const std::string& path, std::string_view bytes,
                          atomic_options options) {
  temporary_file fresh(fs);
  temporary_file fresh_backup(fs);
  // Both copies are on the disk before either name changes: a full disk is met here.
  if (options.backup) {
    if (auto filled = fresh_backup.fill(backup_path(path), bytes, options.sync); !filled) {
      return filled;
    }
  }
  if (auto filled = fresh.fill(path, bytes, options.sync); !filled) {
    return filled;
  }
  if (options.backup) {
    if (auto settled = fresh_backup.settle(bytes, options.sync); !settled) {
      return settled;
    }
  }
  if (auto settled = fresh.settle(bytes, options.sync); !settled) {
    return settled;
  }
  if (options.backup) {
    if (auto renamed = fresh_backup.rename_to(backup_path(path)); !renamed) {
      return renamed;
    }
  }
  if (auto renamed = fresh.rename_to(path); !renamed) {
    return renamed;
  }
  if (!options.sync_name) {
    return {};
  }
  return fs.sync_directory(parent_directory(path));
}

bool is_temporary_name(std::string_view name) noexcept {
  const auto infix = name.rfind(temporary_infix);
  if (name.empty() || name.front() != '.' || infix == std::string_view::npos || infix == 0) {
    return false;
  }
  const auto number = name.substr(infix + temporary_infix.size());
  return !number.empty() &&
         std::all_of(number.begin(), number.end(), [](char c) { return c >= '0' && c <= '9'; });
}

result<void> try_writing(file_system& fs, std::string directory) {
  for (auto info = fs.stat(directory); directory != "/"; info = fs.stat(directory)) {
    if (!info) {
      return fail(std::move(info.error()));
    }
    if (info->kind != file_kind::missing) {
      break;
    }
    directory = parent_directory(directory);
  }
  const std::string path = temporary_path(join_path(directory, "probe"), 0);
  auto file = fs.open(path, open_mode::append);
  if (!file) {
    return fail(std::move(file.error()));
  }
  auto tried = write_all(**file, std::string(page_bytes, ' '), path);
  if (tried) {
    tried = (*file)->sync();
  }
  auto removed = fs.unlink(path);
  return tried ? removed : tried;
}

result<std::size_t> remove_leftover_temporaries(file_system& fs, const std::string& directory) {
  auto names = fs.list(directory);
  if (!names) {
    if (names.error().code == errc::not_found) {
      return std::size_t{0};
    }
    return fail(std::move(names.error()));
  }
  std::size_t removed = 0;
  for (const auto& name : *names) {
    if (!is_temporary_name(name)) {
      continue;
    }
    if (auto gone = fs.unlink(join_path(directory, name)); !gone) {
      return fail(std::move(gone.error()));
    }
    ++removed;
  }
  return removed;
}

result<checked_content> read_checked(file_system& fs, const std::string& path,
                                     std::size_t max_bytes, const content_check& check) {
  auto main = read_copy(fs, path, max_bytes, check);
  if (main.bytes) {
    return checked_content{std::move(*main.bytes), false, ""};
  }
  auto backup = read_copy(fs, backup_path(path), max_bytes, check);
  if (backup.bytes) {
    return checked_content{std::move(*backup.bytes), true, std::move(main.problem)};
  }
  if (backup.code == errc::not_found) {
    return fail(main.code, main.problem, path);
  }
  const errc code = main.code == errc::not_found ? backup.code : main.code;
  return fail(code,
              "neither the file nor its backup is usable: " + main.problem + "; " + backup.problem,
              path);
}

} // namespace boyd::files
