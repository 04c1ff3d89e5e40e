#include "session.hpp"

#include "boyd/core/text.hpp"

#include <pqxx/pqxx>

#include <charconv>
#include <unordered_map>

namespace boyd::adapters::postgres {

namespace {

/// By SQLSTATE class (PostgreSQL manual, appendix A).
errc code_of(const std::string& state) {
  if (state == "53100")
    return errc::no_space;
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

std::string one_line(const char* text) {
  std::string line{trim(text)};
  for (auto& c : line)
    if (c == '\n' || c == '\r')
      c = ' ';
  return line;
}

/// Runs `f`, turning what libpqxx throws into `failure`.
template <class F>
auto guarded(const pqxx::connection* connection, F f) {
  const auto lost = [&] { return connection == nullptr || !connection->is_open(); };
  try {
    return f();
  } catch (const pqxx::in_doubt_error& e) {
    throw failure{{errc::commit_in_doubt, one_line(e.what()), "postgres", {}}, true};
  } catch (const pqxx::broken_connection& e) {
    throw failure{{errc::store_unavailable, one_line(e.what()), "postgres",
                   "the node goes on by itself when the database is back"},
                  true};
  } catch (const pqxx::sql_error& e) {
    if (lost())
      throw failure{{errc::store_unavailable, one_line(e.what()), "postgres", {}}, true};
    throw failure{{code_of(e.sqlstate()), one_line(e.what()), "postgres", {}}, false};
  } catch (const pqxx::failure& e) {
    throw failure{
        {lost() ? errc::store_unavailable : errc::bug, one_line(e.what()), "postgres", {}}, lost()};
  } catch (const std::logic_error& e) {
    // pqxx::usage_error: e.g. a statement after the connection broke.
    throw failure{
        {lost() ? errc::store_unavailable : errc::bug, one_line(e.what()), "postgres", {}}, lost()};
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

} // namespace

struct answer::impl {
  pqxx::result result;
};

struct session::impl {
  explicit impl(const std::string& conninfo) : connection(conninfo) {}

  pqxx::connection connection;
  std::unique_ptr<pqxx::work> work;
  std::unordered_map<std::string, std::string> prepared; ///< SQL → statement name
};

void array::separate() {
  if (!empty_)
    body_ += ',';
  empty_ = false;
}

array& array::add(std::string_view text) {
  separate();
  body_ += '"';
  for (const char c : sanitize_utf8(text)) {
    if (c == '"' || c == '\\')
      body_ += '\\';
    body_ += c;
  }
  body_ += '"';
  return *this;
}

array& array::add(std::int64_t number) {
  separate();
  body_ += std::to_string(number);
  return *this;
}

array& array::add(const std::optional<utc_time>& t) {
  if (t)
    return add(to_unix_ms(*t));
  separate();
  body_ += "NULL";
  return *this;
}

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
  guarded(nullptr, [&] { impl_ = std::make_unique<impl>(*conninfo); });
  never_reconnect(impl_->connection);
  const auto setting = [](const char* name, milliseconds value) {
    return std::string{"SET "} + name + "=" + std::to_string(value.count()) + ";";
  };
  begin();
  // A queue's tables change faster than their statistics: an index is right however small the
  // planner believes them to be.
  script(setting("statement_timeout", options.statement_timeout) +
         setting("lock_timeout", options.lock_timeout) +
         setting("idle_in_transaction_session_timeout", options.idle_in_transaction_timeout) +
         "SET synchronous_commit=on;SET enable_seqscan=off;SET jit=off;"
         "SET default_transaction_isolation='read committed'");
  commit();
}

session::~session() {
  rollback();
}

void session::begin() {
  guarded(&impl_->connection,
          [&] { impl_->work = std::make_unique<pqxx::work>(impl_->connection); });
}

void session::commit() {
  const auto work = std::move(impl_->work);
  guarded(&impl_->connection, [&] { work->commit(); });
}

void session::rollback() noexcept {
  if (impl_)
    impl_->work.reset(); // aborts; libpqxx's destructors do not throw
}

answer session::run(std::string_view sql, const parameters& p) {
  return guarded(&impl_->connection, [&] {
    auto [it, fresh] = impl_->prepared.try_emplace(std::string{sql});
    if (fresh) {
      it->second = "boyd_" + std::to_string(impl_->prepared.size());
      impl_->connection.prepare(it->second, it->first);
    }
    auto data = std::make_shared<answer::impl>();
#if PQXX_VERSION_MAJOR < 7
    data->result =
        impl_->work->exec_prepared(it->second, pqxx::prepare::make_dynamic_params(p.values()));
#else
    pqxx::params values;
    for (const auto& v : p.values())
      values.append(v);
    data->result = impl_->work->exec_prepared(it->second, values);
#endif
    return answer{std::move(data)};
  });
}

void session::script(std::string_view sql) {
  guarded(&impl_->connection, [&] { impl_->work->exec(std::string{sql}); });
}

std::string session::server_version() const {
  const int version = impl_->connection.server_version();
  constexpr int major_factor = 10'000;
  return std::to_string(version / major_factor) + "." + std::to_string(version % major_factor);
}

} // namespace boyd::adapters::postgres
