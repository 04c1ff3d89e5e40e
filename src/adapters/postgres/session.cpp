#include "session.hpp"

#include "boyd/core/text.hpp"
#include "call_limit.hpp"
#include "guarded_internal.hpp"
#include "notice_handler_internal.hpp"

#include <pqxx/pqxx>
#if PQXX_VERSION_MAJOR < 7
#include <pqxx/tablewriter>
#endif

#include <algorithm>
#include <charconv>
#include <cstring>
#include <unordered_map>

namespace boyd::adapters::postgres {

namespace {

/// Versions of libpqxx differ in what they count rows and columns with.
pqxx::field at(const pqxx::result& rows, int row, int column) {
  return rows[static_cast<pqxx::result::size_type>(row)][static_cast<pqxx::row::size_type>(column)];
}

/// The server ends a statement by itself; this much later there is no server to be heard.
constexpr milliseconds answer_margin = 5s;

/// libpqxx 6 would open a new session behind our back, without our settings and locks.
void never_reconnect([[maybe_unused]] pqxx::connection& connection) {
#if PQXX_VERSION_MAJOR < 7
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wdeprecated-declarations"
  connection.inhibit_reactivation(true);
#pragma GCC diagnostic pop
#endif
}

/// Values up to this size stand in the text of what is sent together.
constexpr std::size_t short_values = 8'192;

bool is_time(std::string_view column) {
  return column.ends_with("_at") || column.ends_with("_before");
}

/// `from_now`: see session::insert_from_now.
std::string insert_of(const std::string& table, std::string_view columns, bool from_now) {
  std::string places;
  int n = 0;
  for (const auto column : split(columns, ',')) {
    const auto place = "$" + std::to_string(++n);
    places += n == 1 ? "" : ",";
    places += from_now && is_time(column) ? "now_ms()+" + place + "::bigint" : place;
  }
  return "INSERT INTO " + table + "(" + std::string{columns} + ") VALUES(" + places + ")";
}

/// Values of a statement, which stay their owner's; null stands for NULL. None holds a zero byte.
using value_list = std::vector<const char*>;

value_list values_of(const parameters& p) {
  value_list out;
  out.reserve(p.values().size());
  for (const auto& v : p.values())
    out.push_back(v.c_str());
  return out;
}

value_list values_of(const std::vector<std::optional<std::string>>& row) {
  value_list out;
  for (const auto& v : row)
    out.push_back(v ? v->c_str() : nullptr);
  return out;
}

std::size_t size_of(const value_list& all) {
  std::size_t size = 0;
  for (const auto* v : all)
    size += v == nullptr ? 0 : std::strlen(v);
  return size;
}

/// What the server may have done although nobody heard of it.
[[noreturn]] void throw_in_doubt(failure f) {
  if (f.connection_lost && f.why.code == errc::store_unavailable)
    f.why.code = errc::commit_in_doubt;
  throw f;
}

constexpr std::string_view begin_statement = "BEGIN";

/// What is under way on the connection.
enum class work_kind : std::uint8_t {
  transaction,
  questions,  ///< each statement by itself, without effects
  single,     ///< one statement, which commits itself
  committing, ///< the commit is unsent, and goes with a question
};

} // namespace

struct answer::impl {
  pqxx::result result;
};

struct session::impl {
  impl(const std::string& conninfo, milliseconds longest)
      : connection(conninfo), limit(connection.sock()), longest_call(longest) {}

  pqxx::connection connection;
  call_limit limit;
  milliseconds longest_call;
  std::shared_ptr<void> notices; ///< the handler of notices; ends before the connection
  /// libpqxx's own transactions would go to the server for each begin and end.
  std::unique_ptr<pqxx::nontransaction> work;
  std::vector<std::string> unsent; ///< statements that go with the next one
  work_kind kind = work_kind::transaction;
  std::unordered_map<std::string, std::string> prepared; ///< SQL → statement name
  std::uint64_t names = 0;                               ///< that were given
  int answered = -1;                                     ///< see failure

  /// Whether nothing but the begin is waiting, and nothing was sent.
  bool has_only_begun() const { return unsent.size() == 1 && unsent.front() == begin_statement; }

  const std::string& prepare(std::string_view sql) {
    std::string key{sql};
    if (const auto known = prepared.find(key); known != prepared.end())
      return known->second;
    // A name is not used again when the server has refused what it stood for.
    const auto name = "boyd_" + std::to_string(++names);
    connection.prepare(name, key);
#if PQXX_VERSION_MAJOR < 7
    connection.prepare_now(name);
#endif
    return prepared.emplace(std::move(key), name).first->second;
  }

  /// A prepared statement with its values, as a text.
  std::string text_of(std::string_view sql, const value_list& all) {
    std::string text = "EXECUTE " + prepare(sql);
    for (std::size_t i = 0; i < all.size(); ++i) {
      text += i == 0 ? '(' : ',';
      text += all[i] == nullptr ? "NULL" : work->quote(all[i]);
    }
    return text + (all.empty() ? "" : ")");
  }

  /// What was left unsent, and `more` behind it; the answer to the last statement.
  pqxx::result send(const std::string& more = {}) {
    std::string text;
    for (const auto& each : std::exchange(unsent, {}))
      text += each + ";";
    text += more;
    return text.empty() ? pqxx::result{} : work->exec(text);
  }

  /// What was left unsent, and `questions` behind it, all on one way; the answers to the questions,
  /// which are counted in `answered`.
  std::vector<pqxx::result> send_all(const std::vector<std::string>& questions) {
    auto all = std::exchange(unsent, {});
    all.insert(all.end(), questions.begin(), questions.end());
    pqxx::pipeline together(*work);
    together.retain(static_cast<int>(all.size()) + 1);
    std::vector<pqxx::pipeline::query_id> ids;
    for (const auto& each : all)
      ids.push_back(together.insert(each));
    together.complete();
    std::vector<pqxx::result> answers;
    const auto before = static_cast<int>(ids.size() - questions.size());
    for (int i = 0; i < static_cast<int>(ids.size()); ++i) {
      answered = i - before;
      auto one = together.retrieve(ids[static_cast<std::size_t>(i)]);
      if (i >= before)
        answers.push_back(std::move(one));
    }
    return answers;
  }

  pqxx::result exec(std::string_view sql, const value_list& all) {
    if (!unsent.empty() && size_of(all) <= short_values)
      return send(text_of(sql, all));
    send();
    return exec_prepared(sql, all);
  }

  pqxx::result exec_prepared(std::string_view sql, const value_list& all) {
    const auto& name = prepare(sql);
#if PQXX_VERSION_MAJOR < 7
    return work->exec_prepared(name, pqxx::prepare::make_dynamic_params(all));
#else
    pqxx::params list;
    for (const auto* v : all)
      list.append(v);
#if !BOYD_PQXX_NEW_CALLS
    return work->exec_prepared(name, list);
#else
    return work->exec(pqxx::prepped{name}, list);
#endif
#endif
  }

  void exec_later(std::string_view sql, const value_list& all) {
    if (size_of(all) <= short_values)
      unsent.push_back(text_of(sql, all));
    else
      exec(sql, all);
  }

  /// `call` of what is answered: behind the commit, where that goes with it.
  template <class F>
  auto ask(F f) {
    const bool commits = kind == work_kind::single || kind == work_kind::committing;
    try {
      auto heard = call(std::move(f));
      if (kind == work_kind::committing)
        kind = work_kind::questions;
      return heard;
    } catch (const failure& e) {
      if (commits)
        throw_in_doubt(e);
      throw;
    }
  }

  /// `guarded`, and given up when no answer comes.
  template <class F>
  auto call(F f) {
    struct span {
      call_limit& limit;
      explicit span(impl& i) : limit(i.limit) { limit.begin(i.longest_call); }
      ~span() { limit.end(); }
      span(const span&) = delete;
      span& operator=(const span&) = delete;
    };
    try {
      const span whole(*this);
      return guarded(&connection, std::move(f));
    } catch (failure& e) {
      if (limit.struck()) {
        e.why.what = "no answer within " + std::to_string(longest_call.count()) + " ms";
        e.connection_lost = true;
        if (e.why.code != errc::commit_in_doubt)
          e.why.code = errc::store_unavailable;
      }
      throw;
    }
  }

  /// Whether a transaction waits for its end after an error: nothing else is answered in it.
  bool has_failed() {
    try {
      call([&] { work->exec("SELECT 1"); });
      return false;
    } catch (const failure&) {
      return true;
    }
  }

  void insert_each(const std::string& sql, const copy_rows& rows) {
    call([&] {
      for (const auto line : lines_of(rows))
        exec_later(sql, values_of(fields_of(line)));
    });
  }
};

namespace {

/// Whether who answers there is another one than the server: a pooler has numbers of its own.
bool is_pooled(const std::string& conninfo) {
  try {
    pqxx::connection connection(conninfo);
    pqxx::nontransaction question(connection);
    return question.exec("SELECT pg_backend_pid()")[0][0].as<int>() != connection.backendpid();
  } catch (const std::exception&) {
    return false; // nobody answers any more
  }
}

answer answer_of(const pqxx::result& result) {
  auto data = std::make_shared<answer::impl>();
  data->result = result;
  return answer{std::move(data)};
}

} // namespace

parameters& parameters::add(std::string_view text) {
  values_.push_back(sanitize_utf8(text));
  return *this;
}

parameters& parameters::add(std::int64_t number) {
  values_.push_back(std::to_string(number));
  return *this;
}

parameters& parameters::add(const array& a) {
  values_.push_back(a.literal());
  return *this;
}

int answer::rows() const {
  return static_cast<int>(data_->result.size());
}

std::int64_t answer::affected() const {
  return static_cast<std::int64_t>(data_->result.affected_rows());
}

std::string_view answer::text(int row, int column) const {
  const auto field = at(data_->result, row, column);
  return {field.c_str(), field.size()};
}

std::int64_t answer::integer(int row, int column) const {
  const auto digits = text(row, column);
  std::int64_t value = 0;
  std::from_chars(digits.data(), digits.data() + digits.size(), value);
  return value;
}

bool answer::is_null(int row, int column) const {
  return at(data_->result, row, column).is_null();
}

std::optional<utc_time> answer::optional_time(int row, int column) const {
  if (is_null(row, column))
    return std::nullopt;
  return time(row, column);
}

session::session(const postgres_options& options) {
  auto conninfo = connection_string(options);
  if (!conninfo)
    throw failure{conninfo.error(), true};
  guarded(nullptr, [&] {
    impl_ = std::make_unique<impl>(*conninfo, options.statement_timeout + answer_margin);
  });
  never_reconnect(impl_->connection);
  impl_->notices = handle_notices(impl_->connection, place(options));
  try {
    configure(options);
  } catch (const failure& f) {
    // PgBouncer ends what begins a transaction in statement mode, and says why only to its log.
    if (f.connection_lost && f.why.code == errc::store_unavailable && is_pooled(*conninfo))
      throw failure{pooler_error(errc::invalid_configuration, f.why.what), true};
    throw;
  }
}

void session::configure(const postgres_options& options) {
  const auto setting = [](const char* name, milliseconds value) {
    return std::string{"SET "} + name + "=" + std::to_string(value.count()) + ";";
  };
  begin();
  // A queue's tables change faster than their statistics: an index is right however small the
  // planner believes them to be, read in its order and no further than the limit asks, and a plan
  // made once is as good as one made for each batch.
  script(setting("statement_timeout", options.statement_timeout) +
         setting("lock_timeout", options.lock_timeout) +
         setting("idle_in_transaction_session_timeout", options.idle_in_transaction_timeout) +
         "SET synchronous_commit=on;SET enable_seqscan=off;SET jit=off;"
         "SET enable_bitmapscan=off;SET enable_sort=off;"
         "SET plan_cache_mode=force_generic_plan;"
         "SET default_transaction_isolation='read committed'");
  commit();
}

session::~session() {
  rollback();
}

void session::answer_within(milliseconds statement_timeout) {
  impl_->longest_call = statement_timeout + answer_margin;
}

void session::begin() {
  // A connection that is known to be lost says so here already.
  impl_->call([&] { impl_->work = std::make_unique<pqxx::nontransaction>(impl_->connection); });
  impl_->unsent.assign(1, std::string{begin_statement});
  impl_->kind = work_kind::transaction;
}

void session::begin_reading() {
  begin();
  impl_->unsent.clear();
  impl_->kind = work_kind::questions;
}

void session::begin_single() {
  begin();
  impl_->unsent.clear();
  impl_->kind = work_kind::single;
}

void session::commit() {
  // What was to commit with a question has found none.
  const bool is_late = impl_->kind == work_kind::committing;
  const bool is_empty =
      !is_late && (impl_->kind != work_kind::transaction || impl_->has_only_begun());
  try {
    if (!is_empty)
      impl_->call([&] { impl_->send(is_late ? "" : "COMMIT"); });
  } catch (const failure& f) {
    throw_in_doubt(f);
  }
  impl_->unsent.clear();
  impl_->work.reset();
}

void session::commit_with_next() {
  if (impl_->kind != work_kind::transaction)
    return;
  if (impl_->has_only_begun())
    impl_->unsent.clear();
  else
    impl_->unsent.emplace_back("COMMIT");
  impl_->kind = impl_->unsent.empty() ? work_kind::questions : work_kind::committing;
}

void session::rollback() noexcept {
  if (!impl_ || !impl_->work)
    return;
  // A begin that was not sent has begun nothing.
  const bool is_begun =
      (impl_->kind == work_kind::transaction || impl_->kind == work_kind::committing) &&
      (impl_->unsent.empty() || impl_->unsent.front() != begin_statement);
  impl_->unsent.clear();
  try {
    if (is_begun)
      impl_->call([&] { impl_->work->exec("ROLLBACK"); });
  } catch (...) {
    // A connection that is lost has no transaction, and the next call says that it is lost.
  }
  impl_->work.reset();
}

answer session::run(std::string_view sql, const parameters& p) {
  return impl_->ask([&] { return answer_of(impl_->exec(sql, values_of(p))); });
}

answer session::run_and_commit(std::string_view sql, const parameters& p) {
  auto& i = *impl_;
  const auto values = values_of(p);
  if (i.kind != work_kind::transaction || i.unsent.empty() || size_of(values) > short_values)
    return run(sql, p);
  try {
    auto a = i.call([&] { return answer_of(i.send_all({i.text_of(sql, values), "COMMIT"})[0]); });
    i.kind = work_kind::single;
    return a;
  } catch (const failure& f) {
    throw_in_doubt(f);
  }
}

std::vector<answer> session::run_together(const std::vector<statement>& questions) {
  std::vector<value_list> values;
  for (const auto& q : questions)
    values.push_back(values_of(q.values));
  const bool are_short = std::ranges::all_of(
      values, [](const value_list& each) { return size_of(each) <= short_values; });
  if (questions.size() < 2 || !are_short)
    return run_each(questions);
  impl_->answered = -1;
  try {
    return impl_->ask([&] {
      std::vector<answer> answers;
      std::vector<std::string> texts;
      for (std::size_t i = 0; i < questions.size(); ++i)
        texts.push_back(impl_->text_of(questions[i].sql, values[i]));
      for (const auto& each : impl_->send_all(texts))
        answers.push_back(answer_of(each));
      return answers;
    });
  } catch (failure& f) {
    f.answered = impl_->answered;
    throw;
  }
}

std::vector<answer> session::run_each(const std::vector<statement>& questions) {
  std::vector<answer> answers;
  try {
    for (const auto& q : questions)
      answers.push_back(run(q.sql, q.values));
  } catch (failure& f) {
    // What was to go with the first question is unsent when that could not even be prepared.
    const bool sent = !answers.empty() || (impl_->unsent.empty() && !impl_->has_failed());
    if (!f.connection_lost && sent)
      f.answered = static_cast<int>(answers.size());
    throw;
  }
  return answers;
}

void session::later(std::string_view sql, const parameters& p) {
  if (impl_->kind != work_kind::transaction)
    run(sql, p);
  else
    impl_->call([&] { impl_->exec_later(sql, values_of(p)); });
}

void session::copy(const std::string& table, std::string_view columns, const copy_rows& rows) {
  if (rows.rows() == 0)
    return;
  if (rows.rows() <= few_rows) {
    impl_->insert_each(insert_of(table, columns, false), rows);
    return;
  }
  impl_->call([&] {
    impl_->send();
#if PQXX_VERSION_MAJOR < 7
    const auto names = split(columns, ',');
    const std::vector<std::string> list(names.begin(), names.end());
    // stream_to, which is to be used instead, takes no whole lines.
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wdeprecated-declarations"
    pqxx::tablewriter writer(*impl_->work, table, list.begin(), list.end());
#pragma GCC diagnostic pop
    // The writer adds the last line's end.
    writer.write_raw_line(rows.text().substr(0, rows.text().size() - 1));
    writer.complete();
#else
    auto stream = pqxx::stream_to::raw_table(*impl_->work, table, columns);
    for (const auto line : lines_of(rows))
      stream.write_row(fields_of(line));
    stream.complete();
#endif
  });
}

void session::insert_from_now(const std::string& table, std::string_view columns,
                              const copy_rows& rows) {
  if (rows.rows() > 0)
    impl_->insert_each(insert_of(table, columns, true), rows);
}

void session::script(std::string_view sql) {
  impl_->call([&] { impl_->send(std::string{sql}); });
}

bool session::shares_backend(const postgres_options& options) {
  const auto asked = [](session& s) {
    return guarded(&s.impl_->connection, [&] {
      pqxx::nontransaction question(s.impl_->connection);
      return question.exec("SELECT pg_backend_pid()")[0][0].as<int>();
    });
  };
  const auto mine = asked(*this);
  // A pooler announces a number of its own.
  if (mine == impl_->connection.backendpid())
    return false;
  try {
    session other(options);
    return asked(other) == mine;
  } catch (const failure&) {
    return false; // a pooler that has no second connection does not share the first one either
  }
}

std::string session::server_version() const {
  const int version = impl_->connection.server_version();
  constexpr int major_factor = 10'000;
  return std::to_string(version / major_factor) + "." + std::to_string(version % major_factor);
}

} // namespace boyd::adapters::postgres
