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

#if PQXX_VERSION_MAJOR >= 7
/// The fields of a line of COPY's text format: libpqxx 7 takes no whole lines.
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
#endif

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
  std::unique_ptr<pqxx::transaction_base> work;
  std::unordered_map<std::string, std::string> prepared; ///< SQL → statement name

  pqxx::result exec(pqxx::transaction_base& in, std::string_view sql, const parameters& p) {
    auto [it, fresh] = prepared.try_emplace(std::string{sql});
    if (fresh) {
      it->second = "boyd_" + std::to_string(prepared.size());
      connection.prepare(it->second, it->first);
    }
#if PQXX_VERSION_MAJOR < 7
    return in.exec_prepared(it->second, pqxx::prepare::make_dynamic_params(p.values()));
#else
    pqxx::params values;
    for (const auto& v : p.values())
      values.append(v);
    return in.exec_prepared(it->second, values);
#endif
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
  impl_->call([&] { impl_->work = std::make_unique<pqxx::work>(impl_->connection); });
}

void session::begin_reading() {
  impl_->call([&] { impl_->work = std::make_unique<pqxx::nontransaction>(impl_->connection); });
}

void session::commit() {
  const auto work = std::move(impl_->work);
  impl_->call([&] { work->commit(); });
}

void session::rollback() noexcept {
  if (!impl_ || !impl_->work)
    return;
  // Aborting asks the server, too.
  impl_->limit.begin(impl_->longest_call);
  impl_->work.reset(); // aborts; libpqxx's destructors do not throw
  impl_->limit.end();
}

answer session::run(std::string_view sql, const parameters& p) {
  return impl_->call([&] {
    auto data = std::make_shared<answer::impl>();
    data->result = impl_->exec(*impl_->work, sql, p);
    return answer{std::move(data)};
  });
}

void session::run_alone(std::string_view sql, const parameters& p) {
  impl_->call([&] {
    pqxx::nontransaction alone(impl_->connection);
    impl_->exec(alone, sql, p);
  });
}

void session::copy(const std::string& table, std::string_view columns, const copy_rows& rows) {
  if (rows.rows() == 0)
    return;
  impl_->call([&] {
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
    for (const auto line :
         split(std::string_view{rows.text()}.substr(0, rows.text().size() - 1), '\n'))
      stream.write_row(fields_of(line));
    stream.complete();
#endif
  });
}

void session::script(std::string_view sql) {
  impl_->call([&] { impl_->work->exec(std::string{sql}); });
}

std::string session::server_version() const {
  const int version = impl_->connection.server_version();
  constexpr int major_factor = 10'000;
  return std::to_string(version / major_factor) + "." + std::to_string(version % major_factor);
}

} // namespace boyd::adapters::postgres
