#include "session.hpp"

#include "boyd/core/text.hpp"
#include "call_limit.hpp"
#include "notices.hpp"

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

/// By SQLSTATE class (PostgreSQL manual, appendix A).
errc code_of(const std::string& state) {
  if (state == "53100")
    return errc::no_space;
  if (state == "23505")
    return errc::already_exists;
  if (state == "40001" || state == "40P01")
    return errc::conflict;
  if (state == "55P03" || state == "57014")
    return errc::timed_out;
  if (state.rfind("XX", 0) == 0)
    return errc::corrupt;
  if (state == "42501" || state.rfind("28", 0) == 0 || state == "3D000")
    return errc::invalid_configuration;
  if (state.rfind("08", 0) == 0 || state.rfind("53", 0) == 0 || state.rfind("57", 0) == 0 ||
      state.rfind("58", 0) == 0 || state == "25P03" || state == "25006")
    return errc::store_unavailable;
  return errc::bug;
}

/// One line of what libpqxx or libpq says, without the hints that libpq puts on lines of their own.
std::string one_line(std::string_view text) {
  std::string line;
  for (const char c : trim(text)) {
    const bool is_space = c == ' ' || c == '\t' || c == '\n' || c == '\r';
    if (!is_space)
      line += c;
    else if (!line.empty() && line.back() != ' ')
      line += ' ';
  }
  for (const std::string_view hint : {" Is the server running", " This probably means"})
    line.resize(std::min(line.find(hint), line.size()));
  return line;
}

/// Of a connection that was lost, libpqxx may only say which of its own calls came too late.
std::string lost_text(std::string_view said) {
  const auto line = one_line(said);
  const bool is_own = line.find("not connected") != std::string::npos ||
                      line.find("Could not obtain") != std::string::npos;
  return "connection lost" + (line.empty() || is_own ? "" : ": " + line);
}

/// The server ends a statement by itself; this much later there is no server to be heard.
constexpr milliseconds answer_margin = 5s;

constexpr const char* database_advice =
    "start the database, or mend node.store; a running node then goes on by itself";

/// No connection, or none any more: without `connection` there never was one.
failure lost(const pqxx::connection* connection, std::string_view said) {
  return {{errc::store_unavailable,
           connection == nullptr ? "cannot connect: " + one_line(said) : lost_text(said),
           "postgres", database_advice},
          true};
}

/// Runs `f`, turning what libpqxx throws into `failure`.
template <class F>
auto guarded(const pqxx::connection* connection, F f) {
  const auto is_lost = [&] { return connection == nullptr || !connection->is_open(); };
  try {
    return f();
  } catch (const pqxx::in_doubt_error& e) {
    throw failure{{errc::commit_in_doubt, one_line(e.what()), "postgres", {}}, true};
  } catch (const pqxx::broken_connection& e) {
    throw lost(connection, e.what());
  } catch (const pqxx::sql_error& e) {
    if (is_lost())
      throw lost(connection, e.what());
    throw failure{{code_of(e.sqlstate()), one_line(e.what()), "postgres", {}}, false};
  } catch (const pqxx::failure& e) {
    if (is_lost())
      throw lost(connection, e.what());
    throw failure{{errc::bug, one_line(e.what()), "postgres", {}}, false};
  } catch (const std::logic_error& e) {
    // pqxx::usage_error: e.g. a statement after the connection broke.
    if (is_lost())
      throw lost(connection, e.what());
    throw failure{{errc::bug, one_line(e.what()), "postgres", {}}, false};
  }
}

/// libpqxx 6 would open a new session behind our back, without our settings and locks.
void never_reconnect([[maybe_unused]] pqxx::connection& connection) {
#if PQXX_VERSION_MAJOR < 7
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wdeprecated-declarations"
  connection.inhibit_reactivation(true);
#pragma GCC diagnostic pop
#endif
}

/// The fields of a line of COPY's text format.
std::vector<std::optional<std::string>> fields_of(std::string_view line) {
  std::vector<std::optional<std::string>> out;
  for (const auto raw : split(line, '\t')) {
    if (raw == "\\N") {
      out.emplace_back();
      continue;
    }
    auto& text = *out.emplace_back(std::string{});
    for (std::size_t i = 0; i < raw.size(); ++i) {
      if (raw[i] != '\\') {
        text += raw[i];
        continue;
      }
      const char c = raw[++i];
      text += c == 't' ? '\t' : c == 'n' ? '\n' : c == 'r' ? '\r' : c;
    }
  }
  return out;
}

std::vector<std::string_view> lines_of(const copy_rows& rows) {
  return split(std::string_view{rows.text()}.substr(0, rows.text().size() - 1), '\n');
}

/// So many rows are inserted one by one: COPY takes two more ways to the server and back.
constexpr std::size_t few_rows = 4;
/// Values up to this size stand in the text of what is sent together.
constexpr std::size_t short_values = 8'192;

std::string insert_of(const std::string& table, std::string_view columns) {
  std::string places;
  for (std::size_t i = 0; i < split(columns, ',').size(); ++i)
    places += (i == 0 ? "$" : ",$") + std::to_string(i + 1);
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

constexpr std::string_view begin_statement = "BEGIN;";

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

/// libpqxx passes what it and the server say beside answers to the newest of these. What is said
/// before a session stands goes to standard error: libpq gives nobody else a chance to hear it.
class notice_log final : public pqxx::errorhandler {
 public:
  notice_log(pqxx::connection& connection, std::string where)
      : pqxx::errorhandler(connection), where_(std::move(where)) {}
  bool operator()(const char text[]) noexcept override {
    log_notice(where_, text);
    return false; // to no other
  }

 private:
  std::string where_;
};

struct session::impl {
  impl(const std::string& conninfo, milliseconds longest)
      : connection(conninfo), limit(connection.sock()), longest_call(longest) {}

  pqxx::connection connection;
  call_limit limit;
  milliseconds longest_call;
  std::unique_ptr<notice_log> notices;
  /// libpqxx's own transactions would go to the server for each begin and end.
  std::unique_ptr<pqxx::nontransaction> work;
  std::string unsent; ///< statements, each with its end, that go with the next one
  work_kind kind = work_kind::transaction;
  std::unordered_map<std::string, std::string> prepared; ///< SQL → statement name
  std::uint64_t names = 0;                               ///< that were given

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
    return text + (all.empty() ? ";" : ");");
  }

  /// What was left unsent, and `more` behind it; the answer to the last statement.
  pqxx::result send(const std::string& more = {}) {
    const auto text = std::exchange(unsent, {}) + more;
    return text.empty() ? pqxx::result{} : work->exec(text);
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
    return work->exec_prepared(name, list);
#endif
  }

  void exec_later(std::string_view sql, const value_list& all) {
    if (size_of(all) <= short_values)
      unsent += text_of(sql, all);
    else
      exec(sql, all);
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
};

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
  const auto field = data_->result[row][column];
  return {field.c_str(), field.size()};
}

std::int64_t answer::integer(int row, int column) const {
  const auto digits = text(row, column);
  std::int64_t value = 0;
  std::from_chars(digits.data(), digits.data() + digits.size(), value);
  return value;
}

bool answer::is_null(int row, int column) const {
  return data_->result[row][column].is_null();
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
  impl_->notices = std::make_unique<notice_log>(impl_->connection, place(options));
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
  impl_->unsent = begin_statement;
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
      !is_late && (impl_->kind != work_kind::transaction || impl_->unsent == begin_statement);
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
  if (impl_->unsent == begin_statement)
    impl_->unsent.clear();
  else
    impl_->unsent += "COMMIT;";
  impl_->kind = impl_->unsent.empty() ? work_kind::questions : work_kind::committing;
}

void session::rollback() noexcept {
  if (!impl_ || !impl_->work)
    return;
  // A begin that was not sent has begun nothing.
  const bool is_begun =
      (impl_->kind == work_kind::transaction || impl_->kind == work_kind::committing) &&
      impl_->unsent.rfind(begin_statement, 0) != 0;
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
  const bool commits = impl_->kind == work_kind::single || impl_->kind == work_kind::committing;
  try {
    auto a = impl_->call([&] {
      auto data = std::make_shared<answer::impl>();
      data->result = impl_->exec(sql, values_of(p));
      return answer{std::move(data)};
    });
    if (impl_->kind == work_kind::committing)
      impl_->kind = work_kind::questions;
    return a;
  } catch (const failure& f) {
    if (commits)
      throw_in_doubt(f);
    throw;
  }
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
    const auto sql = insert_of(table, columns);
    impl_->call([&] {
      for (const auto line : lines_of(rows))
        impl_->exec_later(sql, values_of(fields_of(line)));
    });
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

void session::script(std::string_view sql) {
  impl_->call([&] { impl_->send(std::string{sql}); });
}

std::string session::server_version() const {
  const int version = impl_->connection.server_version();
  constexpr int major_factor = 10'000;
  return std::to_string(version / major_factor) + "." + std::to_string(version % major_factor);
}

} // namespace boyd::adapters::postgres
