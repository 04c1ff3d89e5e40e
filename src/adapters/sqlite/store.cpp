#include "store.hpp"

#include "boyd/queue/transitions.hpp"
#include "connection.hpp"
#include "log_file.hpp"
#include "migrations.hpp"
#include "operations.hpp"

#include <spdlog/spdlog.h>
#include <sqlite3.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <iterator>
#include <sys/stat.h>
#include <type_traits>
#include <unistd.h>
#include <utility>

namespace boyd::adapters {

namespace {

using sqlite::failure;

/// How long a statement waits for another process's lock before it fails.
constexpr milliseconds busy_timeout = 5s;
/// Pages kept in memory; the default of 2 MB reads index pages again and again.
constexpr std::int64_t cache_kilobytes = std::int64_t{32} << 10;
/// Of a new database; an older one keeps the pages that it has. With 4 KiB, SQLite's own default,
/// a page is full after ten requests, and a tenth of the worker's time goes into splitting pages.
constexpr std::int64_t page_bytes = 8192;
/// The write-ahead log before it is copied into the database: a checkpoint costs two more fsyncs,
/// and the transaction that makes it waits for them and for the copying.
constexpr std::int64_t checkpoint_bytes = std::int64_t{16} << 20;
constexpr mode_t file_mode = 0600;

/// Which file a path names.
struct identity {
  dev_t device = 0;
  ino_t inode = 0;

  bool operator==(const identity&) const = default;
};

std::optional<identity> identity_of(const std::string& path) {
  struct ::stat info {};
  if (::lstat(path.c_str(), &info) != 0)
    return std::nullopt;
  return identity{info.st_dev, info.st_ino};
}

/// Makes the names in the database's directory durable.
result<void> sync_directory_of(const std::string& path) {
  const auto slash = path.rfind('/');
  const auto parent = slash == std::string::npos ? std::string{"."} : path.substr(0, slash + 1);
  const int directory = ::open(parent.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  const bool synced = directory >= 0 && ::fsync(directory) == 0;
  const bool full = !synced && errno == ENOSPC;
  if (directory >= 0)
    ::close(directory);
  if (!synced)
    return fail(full ? errc::no_space : errc::io_error, "cannot sync the directory of the database",
                parent, "check the disk");
  return {};
}

/// Makes the file 0600 and its name durable; SQLite gives -wal and -shm the same mode.
result<void> create_file(const std::string& path) {
  const int fd = ::open(path.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, file_mode);
  if (fd < 0)
    return fail(errno == ENOSPC ? errc::no_space : errc::store_unavailable,
                std::string{"cannot create the database file: "} + std::strerror(errno), path,
                "check the directory and its permissions");
  ::close(fd);
  return sync_directory_of(path);
}

class sqlite_store final : public dispatch_store {
 public:
  explicit sqlite_store(sqlite_options options) : options_(std::move(options)) {}
  /// An end in order: after a failure the database is closed already.
  ~sqlite_store() override {
    if (db_)
      db_->empty_log_at_close();
  }
  sqlite_store(const sqlite_store&) = delete;
  sqlite_store& operator=(const sqlite_store&) = delete;

  void tell_migrations(migration_step before) override { before_migration_ = std::move(before); }
  result<void> open() override;
  result<std::vector<store::any_reply>> apply(const std::vector<store::operation>& batch) override;
  void tidy() override {
    // nop: nobody else reads this file
  }
  result<std::vector<std::string>> concerns() override;
  std::string describe() const override;

 private:
  std::int64_t wal_bytes() const;
  std::int64_t cut_wal();
  result<void> check_wal();
  result<void> check_file();
  result<void> check_leftover_wal();
  void configure();
  result<void> settle_log() const;
  result<void> migrate();
  int schema_version();
  /// Nothing, or why the open database is not the one at its path.
  std::optional<std::string> lost_file();
  void close();
  void rollback();
  result<std::vector<store::any_reply>> run(const std::vector<store::operation>& batch);

  sqlite_options options_;
  migration_step before_migration_;
  std::unique_ptr<sqlite::connection> db_;
  std::unique_ptr<sqlite::directory> names_;
  identity file_;
  /// The write-ahead log left behind by a database that was taken away, and its database.
  std::optional<std::pair<identity, identity>> orphan_wal_;
  int version_ = 0;
};

result<void> sqlite_store::check_file() {
  struct ::stat info {};
  if (::lstat(options_.path.c_str(), &info) == 0) {
    if (!S_ISREG(info.st_mode))
      return fail(errc::refused, "the database is not a regular file", options_.path);
    if (info.st_size == 0 && options_.opened_before->load())
      return fail(errc::store_unavailable, "database file is empty: its content was removed",
                  options_.path, "restore it");
    return check_leftover_wal();
  }
  if (!options_.create || options_.opened_before->load())
    return fail(errc::store_unavailable, "database file is missing or was replaced", options_.path,
                "restore it, then try again; a running node continues by itself");
  return create_file(options_.path);
}

/// A log that belongs to another file would be played into this one: SQLite cannot tell.
result<void> sqlite_store::check_leftover_wal() {
  if (!orphan_wal_)
    return {};
  const auto& [wal, database] = *orphan_wal_;
  const auto here = identity_of(options_.path);
  const auto wal_here = identity_of(options_.path + "-wal");
  if (wal_here == wal && here != database)
    return fail(errc::store_unavailable,
                "this is another database file, next to the write-ahead log of the old one",
                options_.path, "restore the old file, or move " + options_.path + "-wal away");
  return {};
}

void sqlite_store::configure() {
  db_->execute("PRAGMA busy_timeout=" + std::to_string(busy_timeout.count()));
  db_->execute("PRAGMA page_size=" + std::to_string(page_bytes));
  db_->execute("PRAGMA journal_mode=WAL");
  db_->execute("PRAGMA synchronous=FULL");
  db_->execute("PRAGMA foreign_keys=ON");
  db_->execute("PRAGMA cache_size=-" + std::to_string(cache_kilobytes));
  db_->execute("PRAGMA temp_store=MEMORY");
  db_->execute("PRAGMA journal_size_limit=" + std::to_string(options_.wal_concern));
  auto size = db_->prepare("PRAGMA page_size");
  size.step();
  db_->execute("PRAGMA wal_autocheckpoint=" + std::to_string(checkpoint_bytes / size.integer(0)));
}

/// Nothing is built on what an earlier writer left in the log before it is on the disk: that one
/// may have met a failed fsync. By a connection of its own, whose transaction keeps other writers
/// out: the next one reads what is on the disk then.
result<void> sqlite_store::settle_log() const {
  const auto bytes = wal_bytes();
  if (bytes == 0)
    return {};
  if (bytes > options_.wal_concern && before_migration_)
    if (auto may =
            before_migration_("writing " + std::to_string(bytes) + " bytes of its log again");
        !may)
      return may;
  sqlite::connection alone(options_.path, SQLITE_OPEN_READWRITE | SQLITE_OPEN_NOMUTEX);
  alone.execute("PRAGMA busy_timeout=" + std::to_string(busy_timeout.count()));
  alone.execute("BEGIN IMMEDIATE");
  auto written = sqlite::write_anew(options_.path + "-wal");
  alone.execute("ROLLBACK");
  return written;
}

std::int64_t sqlite_store::wal_bytes() const {
  struct ::stat info {};
  return ::stat((options_.path + "-wal").c_str(), &info) == 0 ? info.st_size : 0;
}

/// Its size after an attempt to empty it, which waits for nobody.
std::int64_t sqlite_store::cut_wal() {
  const auto wait_for_locks = [this](milliseconds limit) {
    db_->execute("PRAGMA busy_timeout=" + std::to_string(limit.count()));
  };
  wait_for_locks(milliseconds{0});
  try {
    db_->prepare("PRAGMA wal_checkpoint(TRUNCATE)").step(); // its row says whether it was busy
  } catch (...) {
    wait_for_locks(busy_timeout); // the connection may live on
    throw;
  }
  wait_for_locks(busy_timeout);
  return wal_bytes();
}

/// The log grows while somebody reads an old state of the database; so may the disk be filled.
result<void> sqlite_store::check_wal() {
  if (wal_bytes() <= options_.wal_limit || cut_wal() <= options_.wal_limit)
    return {};
  return fail(errc::no_space,
              "the write-ahead log has more than " + std::to_string(options_.wal_limit) + " bytes",
              options_.path + "-wal",
              "end the process that keeps a transaction open, then try again; a running node "
              "continues by itself");
}

int sqlite_store::schema_version() {
  db_->execute("CREATE TABLE IF NOT EXISTS schema_migrations(version INTEGER PRIMARY KEY, "
               "name TEXT NOT NULL, applied_at INTEGER NOT NULL) STRICT");
  auto s = db_->prepare("SELECT coalesce(max(version), 0) FROM schema_migrations");
  s.step();
  return static_cast<int>(s.integer(0));
}

result<void> sqlite_store::migrate() {
  db_->execute("BEGIN IMMEDIATE");
  version_ = schema_version();
  db_->execute("COMMIT");
  if (version_ > sqlite_schema_version())
    return fail(errc::invalid_configuration,
                "the database has schema version " + std::to_string(version_) +
                    ", but this build supports only up to " +
                    std::to_string(sqlite_schema_version()),
                options_.path, "run the newer boyd, or restore a backup made before the upgrade");
  for (const auto& m : sqlite::migrations()) {
    if (m.version <= version_ || (options_.migrate_to > 0 && m.version > options_.migrate_to))
      continue;
    if (before_migration_)
      if (auto may = before_migration_(m.title()); !may)
        return may;
    db_->execute("BEGIN IMMEDIATE");
    db_->execute(std::string{m.sql});
    db_->prepare("INSERT INTO schema_migrations(version, name, applied_at) VALUES(?,?,?)")
        .bind(m.version)
        .bind(m.name)
        .bind(options_.clock->now())
        .run();
    db_->execute("COMMIT");
    version_ = m.version;
    spdlog::info("database {}: {}", options_.path, m.title());
  }
  return {};
}

result<void> sqlite_store::open() {
  close();
  if (auto checked = check_file(); !checked)
    return checked;
  const auto before = identity_of(options_.path);
  try {
    if (auto settled = settle_log(); !settled)
      return settled;
    db_ = std::make_unique<sqlite::connection>(options_.path,
                                               SQLITE_OPEN_READWRITE | SQLITE_OPEN_NOMUTEX);
    names_ = std::make_unique<sqlite::directory>(*db_);
    configure();
    auto usable = check_wal();
    if (usable)
      usable = migrate();
    // The first statement has made the log. SQLite syncs its name as well, at the first commit, but
    // takes an fsync of a directory that fails for one that went well (os_unix.c, unixSync).
    if (usable)
      usable = sync_directory_of(options_.path);
    if (!usable) {
      close();
      return usable;
    }
  } catch (const failure& f) {
    close();
    return fail(sqlite::to_error(f, options_.path));
  }
  if (!before || identity_of(options_.path) != before || db_->has_moved()) {
    close();
    return fail(errc::store_unavailable, "database file is missing or was replaced", options_.path);
  }
  file_ = *before;
  orphan_wal_.reset();
  options_.opened_before->store(true);
  return {};
}

std::optional<std::string> sqlite_store::lost_file() {
  const auto here = identity_of(options_.path);
  if (here == file_ && !db_->has_moved())
    return std::nullopt;
  return "database file is missing or was replaced";
}

void sqlite_store::close() {
  names_.reset();
  db_.reset();
}

void sqlite_store::rollback() {
  try {
    if (names_)
      names_->forget();
    if (db_ && db_->in_transaction())
      db_->execute("ROLLBACK");
  } catch (const failure& f) {
    spdlog::warn("database {}: rollback failed: {}", options_.path, f.what());
    close();
  }
}

/// Operations that do not look at what claims and settlements have gathered.
template <class Operation>
constexpr bool leaves_gathered =
    std::is_same_v<Operation, store::claim> || std::is_same_v<Operation, store::settle> ||
    std::is_same_v<Operation, store::due_agents>;

/// Carries out the next operation, and with an enqueue those of its kind that follow it.
void run_some(sqlite::operations& run, const std::vector<store::operation>& batch,
              std::vector<store::any_reply>& replies) {
  const auto& next = batch[replies.size()];
  if (auto problem = queue::check_operation(next)) {
    replies.emplace_back(std::move(*problem));
    return;
  }
  std::visit(
      [&](const auto& op) {
        if constexpr (std::is_same_v<std::decay_t<decltype(op)>, store::enqueue_cycle>) {
          std::vector<const store::enqueue_cycle*> same{&op};
          for (auto i = replies.size() + 1; i < batch.size(); ++i) {
            const auto* other = std::get_if<store::enqueue_cycle>(&batch[i]);
            if (other == nullptr || queue::check_operation(batch[i]))
              break;
            same.push_back(other);
          }
          std::ranges::move(run.run(same), std::back_inserter(replies));
        } else {
          if constexpr (!leaves_gathered<std::decay_t<decltype(op)>>)
            run.write_gathered();
          replies.push_back(run.run(op));
        }
      },
      next);
}

result<std::vector<store::any_reply>>
sqlite_store::run(const std::vector<store::operation>& batch) {
  db_->prepare("BEGIN IMMEDIATE").run();
  sqlite::operations operations(*db_, *names_, options_.clock->now());
  std::vector<store::any_reply> replies;
  replies.reserve(batch.size());
  while (replies.size() < batch.size())
    run_some(operations, batch, replies);
  operations.write_gathered();
  names_->write_counts();
  try {
    db_->prepare("COMMIT").run();
  } catch (const failure& f) {
    // After a failed fsync the log may or may not hold the transaction; only reading it again,
    // through a new descriptor, tells.
    if ((f.code() & 0xff) != SQLITE_IOERR)
      throw;
    close();
    return fail(errc::commit_in_doubt, std::string{"the commit failed: "} + f.what(),
                options_.path);
  }
  return replies;
}

result<std::vector<store::any_reply>>
sqlite_store::apply(const std::vector<store::operation>& batch) {
  if (!db_)
    return fail(errc::store_unavailable, "the database is not open", options_.path);
  if (auto why = lost_file()) {
    if (const auto wal = identity_of(options_.path + "-wal"))
      orphan_wal_ = {*wal, file_};
    close();
    return fail(errc::store_unavailable, std::move(*why), options_.path,
                "restore it, then try again; a running node continues by itself");
  }
  try {
    if (!std::ranges::all_of(batch, store::is_question))
      if (auto room = check_wal(); !room)
        return fail(room.error());
    return run(batch);
  } catch (const failure& f) {
    rollback();
    auto e = sqlite::to_error(f, options_.path);
    if (e.code == errc::io_error || e.code == errc::store_unavailable || e.code == errc::corrupt)
      close();
    return fail(std::move(e));
  }
}

result<std::vector<std::string>> sqlite_store::concerns() {
  if (!db_)
    return fail(errc::store_unavailable, "the database is not open", options_.path);
  try {
    if (wal_bytes() <= options_.wal_concern || cut_wal() <= options_.wal_concern)
      return std::vector<std::string>{};
    return std::vector<std::string>{
        "the write-ahead log " + options_.path + "-wal is larger than " +
        std::to_string(options_.wal_concern) +
        " bytes and cannot be truncated: another process keeps a transaction open in the database"};
  } catch (const failure& f) {
    return fail(sqlite::to_error(f, options_.path));
  }
}

std::string sqlite_store::describe() const {
  return "sqlite " + options_.path + " (SQLite " + sqlite3_libversion() + ", schema " +
         std::to_string(version_) + ")";
}

} // namespace

std::unique_ptr<dispatch_store> make_sqlite_store(sqlite_options options) {
  return std::make_unique<sqlite_store>(std::move(options));
}

int sqlite_schema_version() noexcept {
  return sqlite::migrations().back().version;
}

} // namespace boyd::adapters
