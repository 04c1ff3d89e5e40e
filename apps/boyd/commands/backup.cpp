#include "../exit_codes.hpp"
#include "../home.hpp"
#include "../json_view.hpp"
#include "../live_line.hpp"
#include "../terminal.hpp"
#include "adapters/posix/home_archive.hpp"
#include "adapters/sqlite/copy.hpp"
#include "backup_manifest.hpp"
#include "boyd/ports/clock.hpp"
#include "boyd_version.hpp"
#include "commands.hpp"

#include <filesystem>
#include <string>
#include <string_view>
#include <unistd.h>
#include <utility>
#include <vector>

/// `boyd backup FILE`: a copy of the home, with a node and without.
namespace boyd::app {

namespace {

constexpr std::uint64_t mebibyte = std::uint64_t{1} << 20;

bool is_below(const std::string& path, std::string_view folder) {
  return path == folder ||
         (path.starts_with(folder) && path.size() > folder.size() && path[folder.size()] == '/');
}

/// Of HOME/run only what stays from one start to the next.
bool stays_in_run(const std::string& name) {
  return name == "node_id" || name == "home" || name == "store" || is_below(name, "sessions") ||
         name.starts_with("spool.jsonl");
}

/// What is copied in a way of its own, or can be made again.
bool is_left_out(const std::string& relative) {
  if (relative.starts_with("boyd.db") || is_below(relative, "run") ||
      is_below(relative, "knowledge"))
    return true;
  return relative.find(".boyd-tmp-") != std::string::npos;
}

/// Derived from the log of facts.
bool is_index(const std::string& name) {
  return name.starts_with("index.db");
}

/// In an order in which each part knows no more than those behind it: results that wait, the
/// database, the repositories, everything else, and last the log of facts, which nodes go on with
/// from the database.
class home_copy {
 public:
  home_copy(const place& where, adapters::archive_writer& to, std::string database_copy,
            const std::string& own_file)
      : where_(where), to_(to), database_copy_(std::move(database_copy)), own_file_(own_file) {}

  result<void> run() {
    auto done = add_run();
    if (done)
      done = add_database();
    if (done && exists(where_.layout().kernels()))
      done = to_.add_tree(std::string(home_in_archive) + "/kernel", where_.layout().kernels(),
                          [](const std::string&) { return false; });
    if (done)
      done = to_.add_tree(home_in_archive, where_.home, [this](const std::string& relative) {
        return is_left_out(relative) || is_below(relative, "kernel") || is_own(relative);
      });
    if (done && exists(where_.layout().knowledge()))
      done = to_.add_together(std::string(home_in_archive) + "/knowledge",
                              where_.layout().knowledge(), is_index);
    return done;
  }

  bool has_database() const { return has_database_; }

 private:
  static bool exists(const std::string& path) {
    std::error_code failed;
    return std::filesystem::exists(path, failed);
  }

  /// The archive, when it is made inside the home.
  bool is_own(const std::string& relative) const {
    return is_below(where_.home + "/" + relative, own_file_) ||
           (where_.home + "/" + relative).starts_with(own_file_ + ".part");
  }

  result<void> add_run() {
    if (!exists(where_.layout().run()))
      return {};
    return to_.add_tree(std::string(home_in_archive) + "/run", where_.layout().run(),
                        [](const std::string& relative) { return !stays_in_run(relative); });
  }

  result<void> add_database() {
    const auto database = where_.layout().database();
    has_database_ = exists(database);
    if (!has_database_)
      return {};
    if (auto copied = adapters::copy_sqlite_database(database, database_copy_); !copied)
      return copied;
    auto added = to_.add_file(std::string(home_in_archive) + "/boyd.db", database_copy_);
    ::unlink(database_copy_.c_str());
    return added;
  }

  const place& where_;
  adapters::archive_writer& to_;
  std::string database_copy_;
  std::string own_file_;
  bool has_database_ = false;
};

std::string absolute(const std::string& path) {
  return std::filesystem::absolute(path).lexically_normal().string();
}

/// What is not in the archive and needs a backup of its own; may be empty.
std::string elsewhere(const place& where, bool has_database) {
  const auto p = local_ports();
  const auto loaded = load_configuration_to_ask(where.config_path, *p.files, *p.zones);
  std::string text;
  if (where.has_own_config())
    text += "not included: the configuration file, which is outside the home: " + where.config_path;
  if (!loaded)
    return text;
  const auto& store = (*loaded)->node_settings.store;
  if (store != embedded_store)
    text += (text.empty() ? "" : "\n  ") +
            std::string("not included: queue, cycles and budgets in PostgreSQL; back them up with: "
                        "pg_dump --schema=boyd DATABASE");
  else if (!has_database)
    text += (text.empty() ? "" : "\n  ") + std::string("no boyd.db yet");
  return text;
}

struct backup_report {
  std::size_t files = 0;
  std::uint64_t bytes = 0;
  std::vector<std::string> passed_over;
  std::string note;
};

result<backup_report> make_backup(const place& where, const std::string& file) {
  auto archive = adapters::archive_writer::create(file);
  if (!archive)
    return fail(std::move(archive.error()));
  const auto database_copy = file + ".part.db";
  ::unlink(database_copy.c_str());
  home_copy copy(where, *archive, database_copy, file);
  auto done = copy.run();
  ::unlink(database_copy.c_str());
  if (!done)
    return fail(std::move(done.error()));
  backup_report report;
  report.files = archive->files().size();
  for (const auto& f : archive->files())
    report.bytes += f.size;
  report.passed_over = archive->passed_over();
  report.note = elsewhere(where, copy.has_database());
  const backup_manifest manifest{program_version, where.home, local_ports().clock->now(),
                                 archive->files()};
  done = archive->add_text(manifest_in_archive, to_json(manifest));
  if (done)
    done = archive->finish();
  return done ? result<backup_report>(std::move(report)) : fail(std::move(done.error()));
}

} // namespace

int run_backup(const arguments& args) {
  const auto where = place_of(args);
  if (!where)
    return report(where.error(), args.json);
  std::error_code failed;
  if (!std::filesystem::is_directory(where->home, failed))
    return report(require_home(*where).error(), args.json);
  const auto file = absolute(args.file);
  const auto made =
      with_live_line(args, "backing up " + where->home, [&] { return make_backup(*where, file); });
  if (!made)
    return report(made.error(), args.json);
  if (args.json) {
    print(json{{"schema", "boyd.backup/1"},
               {"home", where->home},
               {"file", file},
               {"files", made->files},
               {"bytes", made->bytes},
               {"passed_over", made->passed_over},
               {"note", made->note}}
              .dump(-1, ' ', false, json::error_handler_t::replace) +
          "\n");
    return exit_code::ok;
  }
  print("Backup of " + where->home + ": " + std::to_string(made->files) + " files, " +
        std::to_string((made->bytes + mebibyte - 1) / mebibyte) + " MiB, in " + file + "\n");
  for (const auto& path : made->passed_over)
    print_note("not a regular file, skipped: " + path);
  if (!made->note.empty())
    print_note(made->note);
  return exit_code::ok;
}

} // namespace boyd::app
