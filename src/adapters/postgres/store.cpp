#include "store.hpp"

#include "migrations.hpp"
#include "operations.hpp"
#include "session.hpp"

#include <spdlog/spdlog.h>

#include <type_traits>
#include <utility>

namespace boyd::adapters {

namespace {

using namespace postgres;

/// Any constant that no other program uses in the same database: "boyd" in ASCII.
constexpr std::int64_t migration_lock = 0x626f7964;
/// A migration may rewrite a large table.
constexpr milliseconds migration_timeout = 10min;
/// Deadlocks and serialization failures are repeated this often at once.
constexpr int conflict_tries = 3;

template <class T>
constexpr bool is_merged =
    std::is_same_v<T, store::enqueue_cycle> || std::is_same_v<T, store::settle> ||
    std::is_same_v<T, store::renew_leases>;

class postgres_store final : public dispatch_store {
 public:
  explicit postgres_store(postgres_options options) : options_(std::move(options)) {}

  result<void> open() override;
  result<std::vector<store::any_reply>> apply(const std::vector<store::operation>& batch) override;
  std::string describe() const override;

 private:
  void choose_schema();
  result<void> migrate();
  std::vector<store::any_reply> run(const std::vector<store::operation>& batch, bool careful,
                                    std::set<std::string>& woken);
  void give_up(bool connection_lost);
  void notify(const std::set<std::string>& kernels);

  postgres_options options_;
  std::unique_ptr<session> db_;
  std::unique_ptr<directory> names_; ///< of db_
  std::string server_ = "not connected";
  int version_ = 0;
};

/// Schema `boyd` when it is there or may be made; else wherever the search path leads.
void postgres_store::choose_schema() {
  db_->begin();
  db_->run("SELECT pg_advisory_xact_lock($1::bigint)", parameters{}.add(migration_lock));
  const auto a = db_->run("SELECT to_regnamespace('boyd') IS NOT NULL, "
                          "has_database_privilege(current_database(), 'CREATE')");
  const bool exists = a.text(0, 0) == "t";
  const bool allowed = a.text(0, 1) == "t";
  if (!exists && allowed)
    db_->script("CREATE SCHEMA boyd");
  if (exists || allowed)
    db_->script("SET search_path TO boyd");
  db_->commit();
}

result<void> postgres_store::migrate() {
  db_->begin();
  db_->script("SET LOCAL statement_timeout=" + std::to_string(migration_timeout.count()) +
              ";SET LOCAL lock_timeout=" + std::to_string(migration_timeout.count()));
  db_->run("SELECT pg_advisory_xact_lock($1::bigint)", parameters{}.add(migration_lock));
  db_->script("SET LOCAL client_min_messages=warning;"
              "CREATE TABLE IF NOT EXISTS schema_migrations(version integer PRIMARY KEY, name text "
              "NOT NULL, applied_at timestamptz NOT NULL DEFAULT now())");
  const auto known = db_->run("SELECT coalesce(max(version), 0) FROM schema_migrations");
  version_ = static_cast<int>(known.integer(0, 0));
  if (version_ > postgres_schema_version()) {
    db_->rollback();
    return fail(errc::invalid_configuration,
                "the database has schema version " + std::to_string(version_) +
                    ", this build knows " + std::to_string(postgres_schema_version()),
                place(options_), "run the newer boyd, or restore a backup made before the upgrade");
  }
  for (const auto& m : migrations()) {
    if (m.version <= version_ || (options_.migrate_to > 0 && m.version > options_.migrate_to))
      continue;
    db_->script(m.sql);
    db_->run("INSERT INTO schema_migrations(version, name) VALUES($1::int, $2)",
             parameters{}.add(m.version).add(m.name));
    version_ = m.version;
    spdlog::info("database {}: schema version {} ({})", place(options_), m.version, m.name);
  }
  db_->commit();
  return {};
}

result<void> postgres_store::open() {
  give_up(true);
  try {
    db_ = std::make_unique<session>(options_);
    names_ = std::make_unique<directory>(*db_);
    server_ = db_->server_version();
    choose_schema();
    if (auto migrated = migrate(); !migrated) {
      give_up(true);
      return migrated;
    }
    return {};
  } catch (const failure& f) {
    give_up(true);
    auto why = f.why;
    why.where = place(options_);
    // Nothing was asked of the database that a second open would not repeat.
    if (why.code == errc::commit_in_doubt)
      why.code = errc::store_unavailable;
    return fail(std::move(why));
  }
}

/// The replies to batch[first…] that one call can give: a run of operations of one kind, or one.
std::vector<store::any_reply> run_some(operations& run, const std::vector<store::operation>& batch,
                                       std::size_t first) {
  return std::visit(
      [&](const auto& op) -> std::vector<store::any_reply> {
        using kind = std::decay_t<decltype(op)>;
        if constexpr (is_merged<kind>) {
          std::vector<const kind*> same{&op};
          for (auto i = first + 1; i < batch.size(); ++i) {
            const auto* next = std::get_if<kind>(&batch[i]);
            if (next == nullptr || queue::check_operation(batch[i]))
              break;
            same.push_back(next);
          }
          return run.run(same);
        } else {
          std::vector<store::any_reply> one;
          one.push_back(run.run(op));
          return one;
        }
      },
      batch[first]);
}

std::vector<store::any_reply> postgres_store::run(const std::vector<store::operation>& batch,
                                                  bool careful, std::set<std::string>& woken) {
  std::vector<store::any_reply> replies;
  replies.reserve(batch.size());
  db_->begin();
  operations operations(*db_, *names_, careful);
  while (replies.size() < batch.size()) {
    if (auto problem = queue::check_operation(batch[replies.size()])) {
      replies.emplace_back(std::move(*problem));
      continue;
    }
    for (auto& reply : run_some(operations, batch, replies.size()))
      replies.push_back(std::move(reply));
  }
  operations.write_counts();
  db_->commit();
  woken = operations.woken();
  return replies;
}

/// Ends what is left of a failed transaction, and forgets what it taught.
void postgres_store::give_up(bool connection_lost) {
  if (connection_lost) {
    names_.reset();
    db_.reset();
    return;
  }
  db_->rollback();
  names_->forget();
}

/// After the commit and on its own: NOTIFY takes a database-wide lock when it commits. A lost one
/// is repaired by the other nodes' poll: nothing waits until it is on the disk.
void postgres_store::notify(const std::set<std::string>& kernels) {
  if (kernels.empty())
    return;
  try {
    array names;
    for (const auto& k : kernels)
      names.add(k);
    db_->begin();
    db_->run("SELECT set_config('synchronous_commit', 'off', true), pg_notify('boyd_work', k) FROM "
             "unnest($1::text[]) AS k",
             parameters{}.add(names));
    db_->commit();
  } catch (const failure& f) {
    spdlog::warn("database {}: no wake-up sent: {}", place(options_), f.why.what);
    give_up(f.connection_lost);
  }
}

result<std::vector<store::any_reply>>
postgres_store::apply(const std::vector<store::operation>& batch) {
  bool careful = false;
  for (int attempt = 1;; ++attempt) {
    if (!db_)
      return fail(errc::store_unavailable, "the database is not connected", place(options_));
    try {
      std::set<std::string> woken;
      auto replies = run(batch, careful, woken);
      notify(woken);
      return replies;
    } catch (const failure& f) {
      give_up(f.connection_lost);
      // A cycle that was enqueued before, by a batch whose commit was in doubt or by another node.
      const bool repeated = f.why.code == errc::already_exists && !careful;
      careful = careful || repeated;
      if (repeated || (f.why.code == errc::conflict && attempt < conflict_tries))
        continue;
      auto why = f.why;
      why.where = place(options_);
      return fail(std::move(why));
    }
  }
}

std::string postgres_store::describe() const {
  return "postgres " + place(options_) + " (PostgreSQL " + server_ + ", schema " +
         std::to_string(version_) + ")";
}

} // namespace

std::unique_ptr<dispatch_store> make_postgres_store(postgres_options options) {
  return std::make_unique<postgres_store>(std::move(options));
}

int postgres_schema_version() noexcept {
  return postgres::migrations().back().version;
}

} // namespace boyd::adapters
