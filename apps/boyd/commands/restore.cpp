#include "../exit_codes.hpp"
#include "../home.hpp"
#include "../home_claim.hpp"
#include "../json_view.hpp"
#include "../live_line.hpp"
#include "../terminal.hpp"
#include "../time_view.hpp"
#include "adapters/posix/errors.hpp"
#include "adapters/posix/home_archive.hpp"
#include "adapters/posix/home_lock.hpp"
#include "adapters/sqlite/integrity.hpp"
#include "backup_manifest.hpp"
#include "boyd/core/text.hpp"
#include "boyd/ports/dispatch_store.hpp"
#include "boyd/ports/file_system.hpp"
#include "boyd/ports/repository.hpp"
#include "commands.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <filesystem>
#include <fstream>
#include <string>
#include <string_view>
#include <sys/stat.h>
#include <unistd.h>
#include <utility>
#include <variant>
#include <vector>

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
  const auto mv = "  mv " + shell_word(home) + " " + shell_word(home + ".old");
  if (auto owner = adapters::read_home_owner(home); owner && *owner)
    return fail(errc::locked, "the home is in use by process " + std::to_string((*owner)->pid),
                home, "stop the node, and move the home away:\n  boyd stop\n" + mv);
  std::error_code failed;
  const auto status = fs::symlink_status(home, failed);
  if (status.type() == fs::file_type::not_found)
    return {};
  if (status.type() != fs::file_type::directory)
    return fail(errc::refused, "the home is not a directory", home, "choose another home");
  if (!fs::is_empty(home, failed) || failed)
    return fail(errc::already_exists, "the home is not empty", home,
                "restore into another home:\n  boyd --home DIR restore FILE\n"
                "or move this one away:\n" +
                    mv);
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

/// A file that is there, and no archive at all: its beginning lacks the mark of tar.
bool is_other_file(const std::string& path) {
  constexpr std::streamoff mark_at = 257;
  constexpr std::string_view mark = "ustar";
  std::error_code failed;
  if (!fs::is_regular_file(path, failed))
    return false;
  std::ifstream file(path, std::ios::binary);
  if (!file)
    return false;
  std::array<char, mark.size()> have{};
  file.seekg(mark_at);
  file.read(have.data(), static_cast<std::streamsize>(have.size()));
  return std::string_view(have.data(), have.size()) != mark;
}

/// Unpacks the archive into `scratch` and checks all of it; `restored` is the home in it then.
result<backup_manifest> unpack(const std::string& file, const scratch_folder& scratch,
                               place& restored) {
  std::error_code unknown;
  if (!fs::exists(file, unknown) && !unknown)
    return fail(errc::not_found, "there is no such file: " + file, {},
                "check the name; a backup is made by: boyd backup FILE");
  if (is_other_file(file))
    return fail(errc::corrupt, "this is not a Boyd backup", file,
                "use a file made by: boyd backup");
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
  restored.home = scratch.path() + "/" + home_in_archive;
  restored.config_path = restored.layout().configuration();
  if (auto sound = check_content(restored); !sound)
    return fail(std::move(sound.error()));
  return manifest;
}

/// Of each state, how many dispatches the database has; null without one of its own.
result<json> dispatches_in(const place& restored) {
  std::error_code failed;
  if (!fs::exists(restored.layout().database(), failed))
    return json();
  const auto make = plain_store(local_ports(), restored, {}, embedded_store);
  if (!make)
    return fail(make.error());
  const auto opened = (*make)();
  if (auto done = opened->open(); !done)
    return fail(std::move(done.error()));
  const auto replies = opened->apply({store::count_by_status{}});
  if (!replies)
    return fail(replies.error());
  json counts = json::object();
  if (const auto* reply = std::get_if<store::count_by_status::reply>(&replies->front()))
    for (const auto& [status, n] : *reply)
      if (n > 0)
        counts[std::string(name_of(status))] = n;
  return counts;
}

/// What is in a backup that is whole (boyd.backup_check/1).
result<json> describe(const place& restored, const backup_manifest& m) {
  auto counts = dispatches_in(restored);
  if (!counts)
    return fail(std::move(counts.error()));
  std::uint64_t bytes = 0;
  for (const auto& f : m.files)
    bytes += f.size;
  std::vector<std::string> kernels;
  std::error_code failed;
  for (const auto& kernel : fs::directory_iterator(restored.layout().kernels(), failed))
    kernels.push_back(kernel.path().filename().string());
  std::ranges::sort(kernels);
  constexpr std::size_t id_bytes = 256;
  const auto id = local_ports().files->read(restored.layout().node_id(), id_bytes);
  return json{{"schema", "boyd.backup_check/1"},
              {"made_at", format_rfc3339(m.made_at)},
              {"made_of", m.home},
              {"version", m.version},
              {"node_id", id ? json(std::string(trim(*id))) : json()},
              {"files", m.files.size()},
              {"bytes", bytes},
              {"kernels", kernels},
              {"dispatches", std::move(*counts)}};
}

/// Also says what is in it, as `describe` does.
result<std::pair<backup_manifest, json>> restore(const place& where, const std::string& file) {
  if (auto free = is_free(where.home); !free)
    return fail(std::move(free.error()));
  std::error_code failed;
  fs::create_directories(fs::path(where.home).parent_path(), failed);
  const scratch_folder scratch(where.home + ".restoring-" + std::to_string(::getpid()));
  place restored;
  auto manifest = unpack(file, scratch, restored);
  if (!manifest)
    return fail(std::move(manifest.error()));
  auto content = describe(restored, *manifest);
  if (!content)
    return fail(std::move(content.error()));
  // Once more: it took a while.
  if (auto free = is_free(where.home); !free)
    return fail(std::move(free.error()));
  if (auto placed = put_into_place(restored.home, where.home); !placed)
    return fail(std::move(placed.error()));
  return std::pair{std::move(*manifest), std::move(*content)};
}

/// Unpacks it beside the home, where a restore would, or where there is no such place among the
/// temporary files; nothing of it stays.
result<json> check(const place& where, const std::string& file) {
  std::error_code failed;
  const auto beside = fs::is_directory(fs::path(where.home).parent_path(), failed)
                          ? where.home
                          : (fs::temp_directory_path(failed) / "boyd").string();
  const scratch_folder scratch(beside + ".checking-" + std::to_string(::getpid()));
  place restored;
  const auto manifest = unpack(file, scratch, restored);
  return manifest ? describe(restored, *manifest) : fail(manifest.error());
}

void print_content(const json& body, const terminal& t) {
  constexpr std::int64_t mebibyte = std::int64_t{1} << 20;
  const auto line = [&](const std::string& label, const std::string& value) {
    constexpr std::size_t columns = 12;
    const auto begin = "  " + label + std::string(columns - label.size(), ' ');
    print(wrapped(begin + printable(value), t.width, begin.size()) + "\n");
  };
  std::string kernels;
  const auto names = rows_of(body, "kernels");
  for (const auto& k : names)
    kernels += (kernels.empty() ? "" : ", ") + k.get<std::string>();
  std::string counts;
  const auto dispatches = part_of(body, "dispatches");
  for (const auto& [status, n] : dispatches.items())
    counts += (counts.empty() ? "" : ", ") + n.dump() + " " + status;
  line("made", moment_of(body, "made_at") + " by version " + text_of(body, "version"));
  line("of home", text_of(body, "made_of"));
  line("node", text_of(body, "node_id"));
  line("kernels", kernels.empty() ? "none" : kernels);
  line("dispatches", body.at("dispatches").is_null() ? "no database in the backup"
                     : counts.empty()                ? "none"
                                                     : counts);
  line("files", text_of(body, "files") + ", " +
                    std::to_string((number_of(body, "bytes") + mebibyte - 1) / mebibyte) + " MiB");
}

int run_check(const arguments& args, const place& where) {
  const auto file = fs::absolute(args.file).lexically_normal().string();
  const auto body = with_live_line(args, "unpacking and checking " + args.file,
                                   [&] { return check(where, file); });
  if (!body)
    return report(body.error(), args.json);
  if (args.json)
    print(body->dump(-1, ' ', false, json::error_handler_t::replace) + "\n");
  else {
    print("The backup is complete and undamaged: " + file + "\n");
    print_content(*body, terminal_of_stdout(args));
  }
  return exit_code::ok;
}

} // namespace

int run_restore(const arguments& args) {
  const auto where = place_of(args);
  if (!where)
    return report(where.error(), args.json);
  if (args.check)
    return run_check(args, *where);
  const auto restored = with_live_line(args, "unpacking and checking " + args.file, [&] {
    return restore(*where, fs::absolute(args.file).lexically_normal().string());
  });
  if (!restored)
    return report(restored.error(), args.json);
  const auto& [manifest, content] = *restored;
  const bool has_database = fs::exists(where->layout().database());
  const json body{{"schema", "boyd.restore/1"},
                  {"home", where->home},
                  {"made_at", format_rfc3339(manifest.made_at)},
                  {"made_of", manifest.home},
                  {"version", manifest.version},
                  {"files", manifest.files.size()},
                  {"has_database", has_database}};
  if (args.json) {
    print(body.dump(-1, ' ', false, json::error_handler_t::replace) + "\n");
    return exit_code::ok;
  }
  print("Restored " + where->home + ". All files were verified.\n");
  print_content(content, terminal_of_stdout(args));
  if (!has_database)
    print_note("the backup has no database: if node.store is PostgreSQL, restore it with psql or "
               "pg_restore");
  if (auto original = check_no_copy(*local_ports().files, where->home, manifest.home,
                                    text_of(content, "node_id"));
      !original)
    print_error(original.error());
  else
    print_note("next: boyd --home " + shell_word(where->home) + " doctor");
  return exit_code::ok;
}

} // namespace boyd::app
