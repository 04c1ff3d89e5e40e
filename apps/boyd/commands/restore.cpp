#include "../exit_codes.hpp"
#include "../home.hpp"
#include "../json_view.hpp"
#include "../live_line.hpp"
#include "../terminal.hpp"
#include "../time_view.hpp"
#include "adapters/posix/errors.hpp"
#include "adapters/posix/home_archive.hpp"
#include "adapters/posix/home_lock.hpp"
#include "adapters/sqlite/integrity.hpp"
#include "backup_manifest.hpp"
#include "boyd/ports/repository.hpp"
#include "commands.hpp"

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <string>
#include <sys/stat.h>
#include <unistd.h>
#include <utility>

/// `boyd restore FILE`: a home made from a backup, checked before it stands in its place.
namespace boyd::app {

namespace {

namespace fs = std::filesystem;

constexpr ::mode_t own_directory = 0700;

/// Removed with all that is in it, unless it was kept.
class scratch_folder {
 public:
  explicit scratch_folder(std::string path) : path_(std::move(path)) {}
  ~scratch_folder() {
    std::error_code ignored;
    fs::remove_all(path_, ignored);
  }
  scratch_folder(const scratch_folder&) = delete;
  scratch_folder& operator=(const scratch_folder&) = delete;

  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

/// Nothing that is there is written over.
result<void> is_free(const std::string& home) {
  if (auto owner = adapters::read_home_owner(home); owner && *owner)
    return fail(errc::locked, "the home is in use by process " + std::to_string((*owner)->pid),
                home,
                "stop the node, and move the home away: mv " + shell_word(home) + " " +
                    shell_word(home + ".old"));
  std::error_code failed;
  const auto status = fs::symlink_status(home, failed);
  if (status.type() == fs::file_type::not_found)
    return {};
  if (status.type() != fs::file_type::directory)
    return fail(errc::refused, "the home is not a directory", home, "choose another home");
  if (!fs::is_empty(home, failed) || failed)
    return fail(errc::already_exists, "the home is not empty", home,
                "restore into another home (boyd --home DIR restore FILE), or move this one away");
  return {};
}

/// Every file is there, is what it was, and no other is.
result<void> check_files(const adapters::extracted_archive& out, const backup_manifest& m) {
  const auto by_path = [](const adapters::archived_file& a, const adapters::archived_file& b) {
    return a.path < b.path;
  };
  auto have = out.files;
  have.pop_back(); // the manifest
  auto want = m.files;
  std::ranges::sort(have, by_path);
  std::ranges::sort(want, by_path);
  const auto [a, b] = std::ranges::mismatch(have, want);
  if (a == have.end() && b == want.end())
    return {};
  const auto& path = b != want.end() ? b->path : a->path;
  return fail(errc::corrupt, "the backup is damaged: " + path + " differs from the original", {},
              "use another backup");
}

/// SQLite and git look at what is theirs.
result<void> check_content(const place& restored) {
  std::error_code failed;
  const auto database = restored.layout().database();
  if (fs::exists(database, failed))
    if (auto sound = adapters::check_sqlite_integrity(database); !sound)
      return sound;
  const auto repositories = local_ports().repositories;
  const auto kernels = restored.layout().kernels();
  if (!repositories || !fs::is_directory(kernels, failed))
    return {};
  for (const auto& kernel : fs::directory_iterator(kernels, failed)) {
    if (!fs::exists(kernel.path() / ".git" / "HEAD", failed))
      continue;
    auto repository = repositories->open(kernel.path().string(), {});
    if (!repository)
      return fail(std::move(repository.error()));
    const auto head = (*repository)->head();
    if (!head)
      return fail(head.error());
    if (*head)
      if (auto history = (*repository)->history({}, 1); !history)
        return fail(std::move(history.error()));
  }
  return {};
}

/// Into the place of `home`, which is missing or empty.
result<void> put_into_place(const std::string& from, const std::string& home) {
  if (::chmod(from.c_str(), own_directory) != 0)
    return fail(adapters::system_error(errno, "chmod", from));
  if (::rename(from.c_str(), home.c_str()) != 0)
    return fail(adapters::system_error(errno, "rename", home));
  return {};
}

result<backup_manifest> restore(const place& where, const std::string& file) {
  if (auto free = is_free(where.home); !free)
    return fail(std::move(free.error()));
  std::error_code failed;
  fs::create_directories(fs::path(where.home).parent_path(), failed);
  const scratch_folder scratch(where.home + ".restoring-" + std::to_string(::getpid()));
  if (::mkdir(scratch.path().c_str(), own_directory) != 0)
    return fail(adapters::system_error(errno, "mkdir", scratch.path()));
  const auto out = adapters::extract_archive(file, scratch.path());
  if (!out)
    return fail(out.error());
  auto manifest = out->files.empty() || out->files.back().path != manifest_in_archive
                      ? read_manifest({})
                      : read_manifest(out->last_text);
  if (manifest)
    if (auto whole = check_files(*out, *manifest); !whole)
      manifest = fail(std::move(whole.error()));
  if (!manifest) {
    manifest.error().where = file;
    return manifest;
  }
  const auto made = scratch.path() + "/" + home_in_archive;
  place restored = where;
  restored.home = made;
  if (auto sound = check_content(restored); !sound)
    return fail(std::move(sound.error()));
  // Once more: it took a while.
  if (auto free = is_free(where.home); !free)
    return fail(std::move(free.error()));
  if (auto placed = put_into_place(made, where.home); !placed)
    return fail(std::move(placed.error()));
  return manifest;
}

} // namespace

int run_restore(const arguments& args) {
  const auto where = place_of(args);
  if (!where)
    return report(where.error(), args.json);
  const auto manifest = with_live_line(args, "unpacking and checking " + args.file, [&] {
    return restore(*where, fs::absolute(args.file).lexically_normal().string());
  });
  if (!manifest)
    return report(manifest.error(), args.json);
  const bool has_database = fs::exists(where->layout().database());
  const json body{{"schema", "boyd.restore/1"},
                  {"home", where->home},
                  {"made_at", format_rfc3339(manifest->made_at)},
                  {"made_of", manifest->home},
                  {"version", manifest->version},
                  {"files", manifest->files.size()},
                  {"has_database", has_database}};
  if (args.json) {
    print(body.dump(-1, ' ', false, json::error_handler_t::replace) + "\n");
    return exit_code::ok;
  }
  print("Restored " + where->home + ": " + std::to_string(manifest->files.size()) + " files of " +
        manifest->home + ", backed up " + moment_of(body, "made_at") +
        ". All files were verified.\n");
  if (!has_database)
    print_note("the backup has no database: if node.store is PostgreSQL, restore it with psql or "
               "pg_restore");
  print_note("next: boyd --home " + shell_word(where->home) + " doctor");
  return exit_code::ok;
}

} // namespace boyd::app
