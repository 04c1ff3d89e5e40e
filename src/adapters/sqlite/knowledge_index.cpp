#include "knowledge_index.hpp"

#include "connection.hpp"
#include "fact_links.hpp"

#include <spdlog/spdlog.h>
#include <sqlite3.h>

#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <map>
#include <sys/stat.h>
#include <unistd.h>
#include <utility>

namespace boyd::adapters {

namespace {

using sqlite::connection;
using sqlite::failure;

/// The tables below, and how entries are taken from files and split into words: when one of them
/// changes, so does this, and older databases are made anew.
constexpr std::int64_t index_version = 8;
constexpr milliseconds busy_timeout = 5s;
constexpr mode_t file_mode = 0600;

constexpr const char* tables = R"(
CREATE TABLE memory_files (
  file_no INTEGER PRIMARY KEY,
  kernel_id TEXT NOT NULL,
  path TEXT NOT NULL,
  size INTEGER NOT NULL,
  inode INTEGER NOT NULL,
  modified INTEGER NOT NULL,
  read_at INTEGER NOT NULL,
  hash TEXT NOT NULL,
  unreadable INTEGER NOT NULL,
  UNIQUE (kernel_id, path)
);
CREATE TABLE memory_entries (
  row_no INTEGER PRIMARY KEY,
  file_no INTEGER NOT NULL,
  id TEXT NOT NULL,
  time INTEGER NOT NULL,
  has_time INTEGER NOT NULL,
  cost INTEGER NOT NULL,
  key TEXT NOT NULL,
  source TEXT NOT NULL,
  author TEXT NOT NULL,
  terms TEXT NOT NULL,
  section TEXT NOT NULL,
  text TEXT NOT NULL
);
CREATE INDEX memory_entry_ids ON memory_entries (id, file_no);
CREATE TABLE learned (
  area INTEGER NOT NULL,
  key TEXT NOT NULL,
  value TEXT NOT NULL,
  PRIMARY KEY (area, key)
) WITHOUT ROWID;
CREATE TABLE learned_lists (
  area INTEGER NOT NULL,
  key TEXT NOT NULL,
  value TEXT NOT NULL,
  PRIMARY KEY (area, key)
) WITHOUT ROWID;
CREATE TABLE learned_counts (
  area INTEGER PRIMARY KEY,
  keys INTEGER NOT NULL
);
)";

/// Statements about the values of an area.
struct value_statements {
  const char* value;
  const char* each;
  const char* some;
};

constexpr value_statements of_values{
    "SELECT value FROM learned WHERE area = ? AND key = ?",
    "SELECT key, value FROM learned WHERE area = ? ORDER BY key",
    "SELECT key, value FROM learned WHERE area = ? AND key >= ? ORDER BY key LIMIT ?"};
constexpr value_statements of_lists{
    "SELECT value FROM learned_lists WHERE area = ? AND key = ?",
    "SELECT key, value FROM learned_lists WHERE area = ? ORDER BY key",
    "SELECT key, value FROM learned_lists WHERE area = ? AND key >= ? ORDER BY key LIMIT ?"};

const value_statements& statements_of(index_area area) {
  return is_list(area) ? of_lists : of_values;
}

/// Ends in ROLLBACK unless it was committed.
class transaction {
 public:
  explicit transaction(connection& db) : db_(db) { db_.execute("BEGIN IMMEDIATE"); }
  ~transaction() {
    if (!db_.in_transaction())
      return;
    try {
      db_.execute("ROLLBACK");
    } catch (const failure& f) {
      spdlog::debug("memory index: no rollback: {}", f.what());
    }
  }
  transaction(const transaction&) = delete;
  transaction& operator=(const transaction&) = delete;

  void commit() { db_.execute("COMMIT"); }

 private:
  connection& db_;
};

class sqlite_knowledge_index final : public knowledge_index {
 public:
  explicit sqlite_knowledge_index(std::string path) : path_(std::move(path)) {}
  ~sqlite_knowledge_index() override {
    if (db_)
      db_->empty_log_at_close();
  }
  sqlite_knowledge_index(const sqlite_knowledge_index&) = delete;
  sqlite_knowledge_index& operator=(const sqlite_knowledge_index&) = delete;

  result<void> open(index_use use) override;
  result<std::vector<memory_file>> files(const std::string& kernel_id) override;
  result<void> scan(const std::string& kernel_id,
                    const std::function<void(memory_row&)>& row) override;
  result<std::vector<memory_row>> find(const std::string& kernel_id,
                                       const std::vector<std::string>& ids) override;
  result<void> put_file(const std::string& kernel_id, const memory_file& file,
                        const std::vector<std::string>& gone,
                        const std::vector<memory_row>& fresh) override;
  result<void> remove_file(const std::string& kernel_id, const std::string& path) override;
  result<std::optional<std::string>> value(index_area area, const std::string& key) override;
  result<void>
  each(index_area area,
       const std::function<void(std::string_view key, std::string_view value)>& f) override;
  result<std::vector<std::pair<std::string, std::string>>>
  some(index_area area, const std::string& from, std::size_t most) override;
  result<std::uint64_t> count(index_area area, const std::optional<std::string>& before) override;
  result<void> change(const index_changes& changes, const link_changes& links) override;
  result<std::vector<fact_link>> fresh_links() override;
  result<std::vector<std::uint64_t>> lines_of(std::uint64_t node, std::uint64_t before,
                                              std::size_t most) override;
  result<std::optional<line_mark>> mark_before(std::uint64_t line) override;
  result<std::optional<line_mark>> segment_of(std::uint64_t line) override;
  result<void> forget_log() override;

 private:
  result<void> open_to_keep();
  result<void> open_to_read();
  result<void> make_file() const;
  result<void> remove_files() const;
  /// Empty: it can be used.
  std::string open_database();
  result<void> discard(const std::string& why);
  std::int64_t number_of(const std::string& kernel_id, const memory_file& file);
  void remove_entries(std::int64_t file_no, const std::vector<std::string>& ids);
  void add_entries(std::int64_t file_no, const std::vector<memory_row>& rows);

  /// Calls `what` with an open database; after a failure the next call opens it again.
  template <class F>
  auto with_database(F&& what) -> result<decltype(what(std::declval<connection&>()))> {
    if (!db_)
      if (auto opened = open(use_); !opened)
        return fail(std::move(opened.error()));
    try {
      if constexpr (std::is_void_v<decltype(what(*db_))>) {
        what(*db_);
        return {};
      } else {
        return what(*db_);
      }
    } catch (const failure& f) {
      db_.reset();
      return fail(sqlite::to_error(f, path_));
    }
  }

  std::string path_;
  index_use use_ = index_use::keep;
  std::unique_ptr<connection> db_;
};

result<void> sqlite_knowledge_index::make_file() const {
  const int fd = ::open(path_.c_str(), O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, file_mode);
  if (fd < 0)
    return fail(errno == ENOSPC  ? errc::no_space
                : errno == ELOOP ? errc::refused
                                 : errc::io_error,
                std::string("cannot create the memory index: ") + std::strerror(errno), path_,
                "check the disk and the directory's permissions");
  ::close(fd);
  return {};
}

std::string sqlite_knowledge_index::open_database() {
  db_ = std::make_unique<connection>(path_, SQLITE_OPEN_READWRITE | SQLITE_OPEN_NOMUTEX);
  db_->execute("PRAGMA busy_timeout=" + std::to_string(busy_timeout.count()));
  if (use_ == index_use::keep) {
    db_->execute("PRAGMA journal_mode=WAL");
    db_->execute("PRAGMA synchronous=NORMAL");
  }
  db_->execute("PRAGMA temp_store=MEMORY");
  std::int64_t version = 0;
  {
    auto question = db_->prepare("PRAGMA user_version");
    question.step();
    version = question.integer(0);
  }
  if (version == 0) {
    auto any = db_->prepare("SELECT count(*) FROM sqlite_master");
    any.step();
    if (any.integer(0) != 0)
      return "not a memory index";
  }
  if (version == 0 && use_ == index_use::keep) {
    transaction t(*db_);
    db_->execute(tables);
    db_->execute(sqlite::link_tables);
    db_->execute("PRAGMA user_version=" + std::to_string(index_version));
    t.commit();
    return {};
  }
  if (version != index_version)
    return "version " + std::to_string(version) + ", but this program needs version " +
           std::to_string(index_version);
  auto check = db_->prepare("PRAGMA quick_check(1)");
  if (!check.step())
    return "the check failed";
  return check.text(0) == "ok" ? std::string() : check.text(0);
}

/// Nothing is lost: it is made again from the files.
result<void> sqlite_knowledge_index::discard(const std::string& why) {
  db_.reset();
  spdlog::warn("{}: creating it again: {}", path_, why);
  if (auto removed = remove_files(); !removed)
    return removed;
  return make_file();
}

result<void> sqlite_knowledge_index::remove_files() const {
  for (const char* ending : {"", "-wal", "-shm"})
    if (::unlink((path_ + ending).c_str()) != 0 && errno != ENOENT)
      return fail(errc::io_error,
                  std::string("cannot remove the old memory index: ") + std::strerror(errno),
                  path_ + ending, "remove it by hand; it is created again from the files");
  return {};
}

result<void> sqlite_knowledge_index::open(index_use use) {
  db_.reset();
  use_ = use;
  return use == index_use::keep ? open_to_keep() : open_to_read();
}

result<void> sqlite_knowledge_index::open_to_read() {
  std::string why;
  try {
    why = open_database();
    if (why.empty())
      return {};
  } catch (const failure& f) {
    auto e = sqlite::to_error(f, path_);
    if (e.code != errc::corrupt && e.code != errc::refused) {
      db_.reset();
      return fail(std::move(e));
    }
    why = e.what;
  }
  db_.reset();
  return fail(errc::store_unavailable, "the index of what the node knows cannot be used: " + why,
              path_, "ask again in a moment; when it stays, remove the file: it is made again");
}

result<void> sqlite_knowledge_index::open_to_keep() {
  // What belonged to a database that is gone must not become part of the new one.
  struct stat info {};
  if (::lstat(path_.c_str(), &info) != 0 && errno == ENOENT)
    if (auto removed = remove_files(); !removed)
      return removed;
  if (auto made = make_file(); !made)
    return made;
  for (int tries = 0;; ++tries) {
    std::string why;
    try {
      why = open_database();
      if (why.empty())
        return {};
    } catch (const failure& f) {
      db_.reset();
      auto e = sqlite::to_error(f, path_);
      const bool is_torn = e.code == errc::corrupt || e.code == errc::refused;
      if (!is_torn || tries > 0)
        return fail(std::move(e));
      why = e.what;
    }
    if (tries > 0)
      return fail(errc::corrupt, "cannot create the memory index again: " + why, path_,
                  "check the disk");
    if (auto gone = discard(why); !gone)
      return gone;
  }
}

result<std::vector<memory_file>> sqlite_knowledge_index::files(const std::string& kernel_id) {
  return with_database([&](connection& db) {
    std::vector<memory_file> all;
    auto s = db.prepare(
        "SELECT path, size, inode, modified, read_at, hash, unreadable FROM memory_files "
        "WHERE kernel_id = ? ORDER BY path");
    s.bind(kernel_id);
    while (s.step())
      all.push_back({s.text(0), static_cast<std::uint64_t>(s.integer(1)),
                     static_cast<std::uint64_t>(s.integer(2)), s.time(3), s.time(4), s.text(5),
                     static_cast<std::uint64_t>(s.integer(6))});
    return all;
  });
}

result<void> sqlite_knowledge_index::scan(const std::string& kernel_id,
                                          const std::function<void(memory_row&)>& row) {
  return with_database([&](connection& db) {
    auto s =
        db.prepare("SELECT e.id, e.time, e.has_time, e.cost, e.source, e.author, e.terms, f.path "
                   "FROM memory_files f JOIN memory_entries e ON e.file_no = f.file_no "
                   "WHERE f.kernel_id = ? ORDER BY e.row_no");
    s.bind(kernel_id);
    memory_row r;
    while (s.step()) {
      r.id = s.view(0);
      r.time = s.time(1);
      r.has_time = s.integer(2) != 0;
      r.cost = s.integer(3);
      r.source = s.view(4);
      r.author = s.view(5);
      r.terms = s.view(6);
      r.file = s.view(7);
      row(r);
    }
  });
}

result<std::vector<memory_row>> sqlite_knowledge_index::find(const std::string& kernel_id,
                                                             const std::vector<std::string>& ids) {
  return with_database([&](connection& db) {
    std::vector<memory_row> all;
    auto s = db.prepare("SELECT e.id, f.path, e.key, e.source, e.author, e.section, e.text, "
                        "e.terms, e.time, e.has_time, e.cost FROM memory_entries e "
                        "JOIN memory_files f ON f.file_no = e.file_no "
                        "WHERE e.id = ? AND f.kernel_id = ? ORDER BY e.file_no LIMIT 1");
    for (const auto& id : ids) {
      s.bind(id).bind(kernel_id);
      if (s.step())
        all.push_back({s.text(0), s.text(1), s.text(2), s.text(3), s.text(4), s.text(5), s.text(6),
                       s.text(7), s.time(8), s.integer(9) != 0, s.integer(10)});
      s.rewind();
    }
    return all;
  });
}

std::int64_t sqlite_knowledge_index::number_of(const std::string& kernel_id,
                                               const memory_file& file) {
  auto s = db_->prepare(
      "INSERT INTO memory_files (kernel_id, path, size, inode, modified, read_at, "
      "hash, unreadable) VALUES (?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT (kernel_id, path) DO "
      "UPDATE SET size = excluded.size, inode = excluded.inode, "
      "modified = excluded.modified, read_at = excluded.read_at, "
      "hash = excluded.hash, unreadable = excluded.unreadable RETURNING file_no");
  s.bind(kernel_id)
      .bind(file.path)
      .bind(static_cast<std::int64_t>(file.size))
      .bind(static_cast<std::int64_t>(file.inode))
      .bind(file.modified)
      .bind(file.read_at)
      .bind(file.hash)
      .bind(static_cast<std::int64_t>(file.unreadable));
  s.step();
  const auto number = s.integer(0);
  s.run();
  return number;
}

void sqlite_knowledge_index::remove_entries(std::int64_t file_no,
                                            const std::vector<std::string>& ids) {
  auto s = db_->prepare("DELETE FROM memory_entries WHERE id = ? AND file_no = ?");
  for (const auto& id : ids) {
    s.bind(id).bind(file_no).run();
    s.rewind();
  }
}

void sqlite_knowledge_index::add_entries(std::int64_t file_no,
                                         const std::vector<memory_row>& rows) {
  auto s =
      db_->prepare("INSERT INTO memory_entries (file_no, id, time, has_time, cost, key, source, "
                   "author, terms, section, text) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)");
  for (const auto& r : rows) {
    s.bind(file_no)
        .bind(r.id)
        .bind(r.time)
        .bind(r.has_time ? 1 : 0)
        .bind(r.cost)
        .bind(r.key)
        .bind(r.source)
        .bind(r.author)
        .bind(r.terms)
        .bind(r.section)
        .bind(r.text)
        .run();
    s.rewind();
  }
}

result<void> sqlite_knowledge_index::put_file(const std::string& kernel_id, const memory_file& file,
                                              const std::vector<std::string>& gone,
                                              const std::vector<memory_row>& fresh) {
  return with_database([&](connection& db) {
    transaction t(db);
    const auto number = number_of(kernel_id, file);
    remove_entries(number, gone);
    add_entries(number, fresh);
    t.commit();
  });
}

result<void> sqlite_knowledge_index::remove_file(const std::string& kernel_id,
                                                 const std::string& path) {
  return with_database([&](connection& db) {
    transaction t(db);
    auto entries = db.prepare("DELETE FROM memory_entries WHERE file_no = (SELECT file_no FROM "
                              "memory_files WHERE kernel_id = ? AND path = ?)");
    entries.bind(kernel_id).bind(path).run();
    auto file = db.prepare("DELETE FROM memory_files WHERE kernel_id = ? AND path = ?");
    file.bind(kernel_id).bind(path).run();
    t.commit();
  });
}

result<std::optional<std::string>> sqlite_knowledge_index::value(index_area area,
                                                                 const std::string& key) {
  return with_database([&](connection& db) {
    auto s = db.prepare(statements_of(area).value);
    s.bind(static_cast<int>(area)).bind(key);
    return s.step() ? std::optional(s.text(0)) : std::nullopt;
  });
}

result<void> sqlite_knowledge_index::each(
    index_area area, const std::function<void(std::string_view key, std::string_view value)>& f) {
  return with_database([&](connection& db) {
    auto s = db.prepare(statements_of(area).each);
    s.bind(static_cast<int>(area));
    while (s.step())
      f(s.view(0), s.view(1));
  });
}

result<std::vector<std::pair<std::string, std::string>>>
sqlite_knowledge_index::some(index_area area, const std::string& from, std::size_t most) {
  return with_database([&](connection& db) {
    std::vector<std::pair<std::string, std::string>> all;
    auto s = db.prepare(statements_of(area).some);
    s.bind(static_cast<int>(area)).bind(from).bind(static_cast<std::int64_t>(most));
    while (s.step())
      all.emplace_back(s.text(0), s.text(1));
    return all;
  });
}

result<std::uint64_t> sqlite_knowledge_index::count(index_area area,
                                                    const std::optional<std::string>& before) {
  return with_database([&](connection& db) {
    auto s = db.prepare(before ? "SELECT count(*) FROM learned_lists WHERE area = ? AND key < ?"
                               : "SELECT keys FROM learned_counts WHERE area = ?");
    s.bind(static_cast<int>(area));
    if (before)
      s.bind(*before);
    return s.step() ? static_cast<std::uint64_t>(s.integer(0)) : std::uint64_t{0};
  });
}

namespace {

/// Puts values, and keys of lists, which it counts.
class value_writer {
 public:
  explicit value_writer(connection& db)
      : db_(db), put_(db.prepare("INSERT INTO learned (area, key, value) VALUES (?, ?, ?) "
                                 "ON CONFLICT (area, key) DO UPDATE SET value = excluded.value")),
        remove_(db.prepare("DELETE FROM learned WHERE area = ? AND key = ?")),
        add_(db.prepare("INSERT INTO learned_lists (area, key, value) VALUES (?, ?, ?) "
                        "ON CONFLICT (area, key) DO NOTHING")),
        set_(db.prepare("UPDATE learned_lists SET value = ?3 WHERE area = ?1 AND key = ?2")),
        drop_(db.prepare("DELETE FROM learned_lists WHERE area = ? AND key = ?")) {}

  void write(const index_change& c) {
    if (!is_list(c.area))
      return run(c.value ? put_ : remove_, c);
    run(c.value ? add_ : drop_, c);
    const auto changed = db_.changes();
    if (c.value && changed == 0)
      return run(set_, c);
    more_[c.area] += c.value ? changed : -changed;
  }

  void write_counts() {
    auto s = db_.prepare("INSERT INTO learned_counts (area, keys) VALUES (?, ?) "
                         "ON CONFLICT (area) DO UPDATE SET keys = keys + excluded.keys");
    for (const auto& [area, more] : more_) {
      if (more == 0)
        continue;
      s.bind(static_cast<int>(area)).bind(more).run();
      s.rewind();
    }
    // As if there had never been one.
    db_.execute("DELETE FROM learned_counts WHERE keys = 0");
  }

 private:
  static void run(sqlite::statement& s, const index_change& c) {
    s.bind(static_cast<int>(c.area)).bind(c.key);
    if (c.value)
      s.bind(*c.value);
    s.run();
    s.rewind();
  }

  connection& db_;
  sqlite::statement put_;
  sqlite::statement remove_;
  sqlite::statement add_;
  sqlite::statement set_;
  sqlite::statement drop_;
  std::map<index_area, std::int64_t> more_;
};

} // namespace

result<void> sqlite_knowledge_index::change(const index_changes& changes,
                                            const link_changes& links) {
  return with_database([&](connection& db) {
    transaction t(db);
    if (changes) {
      value_writer values(db);
      changes([&](const index_change& c) { values.write(c); });
      values.write_counts();
    }
    sqlite::put_links(db, links);
    t.commit();
  });
}

result<std::vector<fact_link>> sqlite_knowledge_index::fresh_links() {
  return with_database([](connection& db) { return sqlite::fresh_links(db); });
}

result<std::vector<std::uint64_t>>
sqlite_knowledge_index::lines_of(std::uint64_t node, std::uint64_t before, std::size_t most) {
  return with_database([&](connection& db) { return sqlite::lines_of(db, node, before, most); });
}

result<std::optional<line_mark>> sqlite_knowledge_index::mark_before(std::uint64_t line) {
  return with_database([&](connection& db) { return sqlite::mark_before(db, line); });
}

result<std::optional<line_mark>> sqlite_knowledge_index::segment_of(std::uint64_t line) {
  return with_database([&](connection& db) { return sqlite::segment_of(db, line); });
}

result<void> sqlite_knowledge_index::forget_log() {
  return with_database([](connection& db) {
    transaction t(db);
    for (const char* table : {"learned", "learned_lists", "learned_counts"})
      db.execute(std::string("DELETE FROM ") + table);
    sqlite::forget_links(db);
    t.commit();
  });
}

} // namespace

std::unique_ptr<knowledge_index> make_sqlite_knowledge_index(std::string path) {
  return std::make_unique<sqlite_knowledge_index>(std::move(path));
}

} // namespace boyd::adapters
