#include "store.hpp"

#include "concerns.hpp"
#include "failures.hpp"
#include "lock_patience.hpp"
#include "migrations.hpp"
#include "operations.hpp"
#include "session.hpp"

#include <spdlog/spdlog.h>

#include <algorithm>
#include <span>
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

constexpr const char* needed_encoding = "UTF8";

std::string encoding_problem(const std::string& encoding) {
  return "the database has the encoding " + encoding +
         ", which rejects or damages texts; Boyd needs UTF8";
}

class postgres_store final : public dispatch_store {
 public:
  explicit postgres_store(postgres_options options)
      : options_(std::move(options)), patience_(options_.lock_timeout) {}

  void tell_migrations(migration_step before) override { before_migration_ = std::move(before); }
  result<void> open() override;
  result<std::vector<store::any_reply>> apply(const std::vector<store::operation>& batch) override;
  void tidy() override { notify(); }
  result<std::vector<std::string>> concerns() override;
  std::string describe() const override;

 private:
  void choose_schema();
  result<bool> migrate_once();
  void look_for_losses();
  std::vector<store::any_reply> run(const std::vector<store::operation>& batch, bool careful);
  void note(const failure& f);
  void hand_patience_behind_commit();
  void give_up(bool connection_lost);
  void notify();

  postgres_options options_;
  migration_step before_migration_;
  std::unique_ptr<session> db_;
  std::unique_ptr<directory> names_; ///< of db_
  lock_patience patience_;           ///< of db_
  std::string server_ = "not connected";
  std::string encoding_; ///< the database's
  int version_ = 0;
  wakeup woken_;                   ///< what other nodes have not been told of
  std::optional<witness> witness_; ///< of earlier sessions, too
  std::string loss_;               ///< what was acknowledged and is gone; kept for who reads status
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

/// The next migration with its commit; false: there is none left. Whoever waits for the lock has
/// the ordinary limits, and comes again.
result<bool> postgres_store::migrate_once() {
  db_->begin();
  db_->run("SELECT pg_advisory_xact_lock($1::bigint)", parameters{}.add(migration_lock));
  db_->script("SET LOCAL client_min_messages=warning;"
              "CREATE TABLE IF NOT EXISTS schema_migrations(version integer PRIMARY KEY, name text "
              "NOT NULL, applied_at timestamptz NOT NULL DEFAULT now())");
  const auto known =
      db_->run("SELECT coalesce(max(version), 0), current_setting('server_encoding') "
               "FROM schema_migrations");
  version_ = static_cast<int>(known.integer(0, 0));
  encoding_ = known.text(0, 1);
  if (encoding_ != needed_encoding && version_ == 0) {
    db_->rollback();
    return fail(errc::invalid_configuration, encoding_problem(encoding_), place(options_),
                "create a database for Boyd: createdb --encoding=UTF8 --template=template0 NAME");
  }
  if (version_ > postgres_schema_version()) {
    db_->rollback();
    return fail(errc::invalid_configuration,
                "the database has schema version " + std::to_string(version_) +
                    ", but this build supports only up to " +
                    std::to_string(postgres_schema_version()),
                place(options_), "run the newer boyd, or restore a backup made before the upgrade");
  }
  const auto next = std::ranges::find_if(migrations(), [&](const queue::migration& m) {
    return m.version > version_ && (options_.migrate_to == 0 || m.version <= options_.migrate_to);
  });
  if (next == migrations().end()) {
    db_->commit();
    return false;
  }
  if (before_migration_)
    if (auto may = before_migration_(next->title()); !may) {
      db_->rollback();
      return fail(std::move(may.error()));
    }
  db_->script("SET LOCAL statement_timeout=" + std::to_string(migration_timeout.count()) +
              ";SET LOCAL lock_timeout=" + std::to_string(migration_timeout.count()));
  db_->answer_within(migration_timeout);
  db_->script(next->sql);
  db_->run("INSERT INTO schema_migrations(version, name) VALUES($1::int, $2)",
           parameters{}.add(next->version).add(next->name));
  db_->commit();
  db_->answer_within(options_.statement_timeout);
  version_ = next->version;
  spdlog::info("database {}: {}", place(options_), next->title());
  return true;
}

/// Whether the server that answers now has what another one, or this one, acknowledged before.
void postgres_store::look_for_losses() {
  if (!witness_)
    return;
  if (auto loss = loss_of(*db_, *witness_)) {
    loss_ = std::move(*loss);
    witness_.reset();
    spdlog::error("database {}: {}", place(options_), loss_);
  }
}

result<void> postgres_store::open() {
  give_up(true);
  try {
    db_ = std::make_unique<session>(options_);
    names_ = std::make_unique<directory>(*db_);
    patience_ = lock_patience(options_.lock_timeout);
    server_ = db_->server_version();
    if (db_->shares_backend(options_))
      throw failure{pooler_error(errc::invalid_configuration, {}), false};
    choose_schema();
    auto migrated = migrate_once();
    while (migrated && *migrated)
      migrated = migrate_once();
    if (!migrated) {
      give_up(true);
      return fail(std::move(migrated.error()));
    }
    look_for_losses();
    return {};
  } catch (const failure& f) {
    give_up(true);
    auto why = f.why;
    why.where = place(options_);
    // Nothing was asked of the database that a second open would not repeat.
    if (why.code == errc::commit_in_doubt)
      why.code = errc::store_unavailable;
    // A role that may not make the tables, say.
    if (why.code == errc::refused)
      why.code = errc::invalid_configuration;
    return fail(std::move(why));
  }
}

bool asks_once(const store::operation& op) {
  return std::visit([](const auto& what) { return is_one_question<std::decay_t<decltype(what)>>; },
                    op);
}

bool is_claim(const store::operation& op) {
  return std::holds_alternative<store::claim>(op);
}

/// Whether a settlement means the same before claims that stand before it in the batch: it only
/// ends what this session claimed earlier, which no claim can take.
bool may_go_first(const store::settle& op, const directory& names) {
  return std::all_of(op.items.begin(), op.items.end(), [&](const settlement& item) {
    return item.to != settle_to::retry && item.to != settle_to::release &&
           names.claim_of(item.dispatch_id);
  });
}

/// Whether a question that stands before a settlement in the batch has the same answer behind it.
bool is_indifferent(const store::operation& question, const store::settle& op) {
  const auto all_items = [&](auto holds) { return std::ranges::all_of(op.items, holds); };
  if (const auto* rows = std::get_if<store::list_dispatches>(&question))
    return !rows->cycle_id.empty() && all_items([&](const settlement& item) {
      return !item.cycle_id.empty() && item.cycle_id != rows->cycle_id;
    });
  if (std::holds_alternative<store::due_agents>(question))
    return all_items([](const settlement& item) {
      return item.to != settle_to::retry && item.to != settle_to::release;
    });
  return std::holds_alternative<store::list_nodes>(question) ||
         std::holds_alternative<store::list_pauses>(question) ||
         std::holds_alternative<store::get_facts>(question) ||
         std::holds_alternative<store::list_occurrences>(question) ||
         std::holds_alternative<store::list_cycles>(question) ||
         std::holds_alternative<store::list_decisions>(question);
}

/// The operations that share the statements of batch[first], itself included: those of its kind
/// that follow it. Settlements are gathered from between claims and questions, too, where that
/// changes no answer: many dispatchers ask for them in turn.
template <class Kind>
std::vector<std::size_t> joined(const std::vector<store::operation>& batch,
                                const std::vector<bool>& done, std::size_t first,
                                const directory& names) {
  std::vector<std::size_t> out{first};
  std::vector<std::size_t> passed_questions;
  bool passed = false;
  for (auto i = first + 1; is_merged<Kind> && i < batch.size(); ++i) {
    const auto* same = std::get_if<Kind>(&batch[i]);
    if (done[i])
      continue;
    if (same == nullptr && std::is_same_v<Kind, store::settle> &&
        (is_claim(batch[i]) || asks_once(batch[i]))) {
      if (is_claim(batch[i]))
        passed = true;
      else
        passed_questions.push_back(i);
      continue;
    }
    if (same == nullptr || queue::check_operation(batch[i]))
      break;
    if constexpr (std::is_same_v<Kind, store::settle>) {
      if (passed && !may_go_first(*same, names))
        break;
      if (!std::ranges::all_of(passed_questions,
                               [&](auto q) { return is_indifferent(batch[q], *same); }))
        break;
    }
    out.push_back(i);
  }
  return out;
}

/// Carries out batch[first] and what is joined with it.
void run_some(operations& run, const std::vector<store::operation>& batch, std::size_t first,
              const directory& names, std::vector<bool>& done,
              std::vector<store::any_reply>& replies) {
  std::visit(
      [&](const auto& op) {
        using kind = std::decay_t<decltype(op)>;
        if constexpr (is_merged<kind>) {
          const auto places = joined<kind>(batch, done, first, names);
          std::vector<const kind*> same;
          for (const auto i : places)
            same.push_back(&std::get<kind>(batch[i]));
          auto some = run.run(same);
          for (std::size_t i = 0; i < places.size(); ++i) {
            replies[places[i]] = std::move(some.at(i));
            done[places[i]] = true;
          }
        } else {
          replies[first] = run.run(op);
        }
      },
      batch[first]);
}

/// What stands in a batch from `first` on, each of them one statement, on one way to the server.
void ask_together(operations& run, session& db, const std::vector<store::operation>& batch,
                  std::size_t first, std::vector<store::any_reply>& replies) {
  std::vector<statement> asked;
  std::vector<std::pair<std::size_t, question>> questions;
  for (auto i = first; i < batch.size(); ++i) {
    if (auto problem = queue::check_operation(batch[i])) {
      replies[i] = std::move(*problem);
      continue;
    }
    std::visit(
        [&](const auto& op) {
          if constexpr (is_one_statement<std::decay_t<decltype(op)>>)
            questions.emplace_back(i, run.ask(op));
        },
        batch[i]);
    asked.push_back(std::move(questions.back().second.ask));
  }
  // One time limit of the connection holds for all that is on one way.
  constexpr std::size_t most_together = 32;
  for (std::size_t from = 0; from < asked.size(); from += most_together) {
    const auto part =
        std::span(asked).subspan(from).first(std::min(most_together, asked.size() - from));
    const auto answers = db.run_together({part.begin(), part.end()});
    for (std::size_t i = 0; i < answers.size(); ++i) {
      const auto& [place, asks] = questions[from + i];
      replies[place] = asks.read(answers[i]);
    }
  }
}

/// A question that fails takes nothing with it that stands before it.
void ask_apart(operations& run, session& db, const std::vector<store::operation>& batch,
               std::size_t first, const directory& names, std::vector<store::any_reply>& replies) {
  std::vector<bool> done(batch.size());
  for (auto i = first; i < batch.size(); ++i)
    try {
      db.begin_reading();
      if (!queue::check_operation(batch[i]))
        run_some(run, batch, i, names, done, replies);
      db.commit();
    } catch (const failure& f) {
      if (f.connection_lost)
        throw failure{{errc::commit_in_doubt, f.why.what, f.why.where, f.why.next}, true};
      db.rollback();
      replies[i] = f.why;
    }
}

std::vector<store::any_reply> postgres_store::run(const std::vector<store::operation>& batch,
                                                  bool careful) {
  std::vector<store::any_reply> replies(batch.size());
  std::vector<bool> done(batch.size());
  // Questions at the end of a batch are asked behind its commit, on one way with it. A slot with
  // its cycle is one statement, which commits itself, and goes with them; of claims each is a step
  // of its own, and one whose answer is lost is found by its claimer.
  const auto last_change = std::ranges::find_if_not(batch.rbegin(), batch.rend(), asks_once);
  const auto questions = static_cast<std::size_t>(batch.rend() - last_change);
  const auto changes = std::span(batch).first(questions);
  const bool is_slot =
      changes.size() == 1 && std::holds_alternative<store::open_occurrence>(changes[0]);
  if (changes.empty())
    db_->begin_reading();
  else if (is_slot || std::ranges::all_of(changes, is_claim))
    db_->begin_single();
  else
    db_->begin();
  operations operations(*db_, *names_, careful);
  operations.hold_spend(batch);
  const auto together = is_slot ? 0 : questions;
  const auto last_other = std::find_if_not(changes.rbegin(), changes.rend(), is_claim);
  const auto last_claims = static_cast<std::size_t>(changes.rend() - last_other);
  const bool enqueues = std::ranges::any_of(changes, [](const store::operation& op) {
    return std::holds_alternative<store::enqueue_cycle>(op);
  });
  for (std::size_t i = 0; i < together; ++i) {
    if (done[i])
      continue;
    // Rows that this batch does not have itself are read behind the claim, and could then be lost
    // with the connection.
    if (i == last_claims && enqueues)
      operations.commit_with_claim();
    if (auto problem = queue::check_operation(batch[i]))
      replies[i] = std::move(*problem);
    else
      run_some(operations, batch, i, *names_, done, replies);
  }
  operations.write_totals();
  operations.write_counts();
  if (together < batch.size())
    try {
      db_->commit_with_next();
      ask_together(operations, *db_, batch, together, replies);
    } catch (const failure& f) {
      const bool by_question = f.answered >= (is_slot ? 1 : 0);
      if (f.connection_lost || changes.empty() || !by_question)
        throw;
      db_->rollback();
      note(f);
      hand_patience_behind_commit();
      if (is_slot) {
        db_->begin_single();
        run_some(operations, batch, 0, *names_, done, replies);
        db_->commit();
      }
      ask_apart(operations, *db_, batch, questions, *names_, replies);
    }
  db_->commit();
  woken_.add(operations.woken());
  return replies;
}

void postgres_store::note(const failure& f) {
  if (f.why.code == errc::timed_out)
    patience_.waited_in_vain();
}

/// A connection that breaks here leaves the commit in doubt.
void postgres_store::hand_patience_behind_commit() {
  try {
    patience_.hand_to(*db_);
  } catch (failure& f) {
    if (f.connection_lost)
      f.why.code = errc::commit_in_doubt;
    throw;
  }
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
void postgres_store::notify() {
  const auto news = std::exchange(woken_, {});
  if (news.empty() || !db_)
    return;
  try {
    array payloads;
    for (const auto& each : payloads_of(news, spoken_by(options_)))
      payloads.add(each);
    db_->begin_single();
    db_->run("SELECT set_config('synchronous_commit', 'off', true), pg_notify('boyd_work', "
             "k) FROM unnest($1::text[]) AS k",
             parameters{}.add(payloads));
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
      patience_.hand_to(*db_);
      auto replies = run(batch, careful);
      if (auto newest = witness_of(batch, replies))
        witness_ = std::move(newest);
      return replies;
    } catch (const failure& f) {
      note(f);
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

result<std::vector<std::string>> postgres_store::concerns() {
  if (!db_)
    return fail(errc::store_unavailable, "the database is not connected", place(options_));
  try {
    auto all = open_transactions(*db_, options_.long_transaction);
    if (encoding_ != needed_encoding)
      all.push_back(encoding_problem(encoding_) +
                    "; create a database with ENCODING UTF8, then run: boyd store migrate");
    if (!loss_.empty())
      all.insert(all.begin(), loss_);
    return all;
  } catch (const failure& f) {
    give_up(f.connection_lost);
    auto why = f.why;
    why.where = place(options_);
    return fail(std::move(why));
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
