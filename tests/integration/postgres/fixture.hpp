#pragma once

#include "src/adapters/postgres/store.hpp"
#include "support/pch.hpp"
#include "support/postgres/server.hpp"

#include <libpq-fe.h>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

/// A store on the shared server, and others who use its database.
namespace boyd::test::postgres {

inline bool skipped() {
  return shared_postgres() == nullptr;
}

inline std::unique_ptr<dispatch_store> opened(adapters::postgres_options options) {
  auto s = adapters::make_postgres_store(std::move(options));
  const auto ok = s->open();
  if (!ok)
    throw std::runtime_error(to_string(ok.error()));
  return s;
}

inline adapters::postgres_options options_for(const std::string& uri,
                                              const std::string& name = "boyd") {
  adapters::postgres_options o;
  o.uri = uri;
  o.application_name = name;
  return o;
}

inline std::unique_ptr<dispatch_store> opened(const std::string& uri) {
  return opened(options_for(uri));
}

inline std::string query(const std::string& uri, const std::string& sql) {
  return shared_postgres()->query(uri, sql);
}

/// `count` dispatches of one agent, in one cycle each.
inline std::vector<store::operation> cycles(const std::string& name, int count) {
  std::vector<store::operation> batch;
  for (int i = 0; i < count; ++i) {
    dispatch_spec s;
    s.cycle_id = name + "-" + std::to_string(i);
    s.dispatch_id = "dispatch-" + s.cycle_id;
    s.kernel_id = "k";
    s.agent_id = "a";
    batch.emplace_back(store::enqueue_cycle{"k", s.cycle_id, {s}, {}});
  }
  return batch;
}

template <class Op>
typename Op::reply ask(dispatch_store& s, const Op& op) {
  const auto replies = s.apply({store::operation{op}});
  if (!replies)
    throw std::runtime_error(to_string(replies.error()));
  return std::get<typename Op::reply>(replies->front());
}

inline settle_result settle(dispatch_store& s, const claimed_dispatch& c) {
  const settlement done{c.row.dispatch_id, c.row.fence, settle_to::done, 0ms, {}};
  return ask(s, store::settle{c.row.lease_owner, {done}}).at(0);
}

/// Somebody else's session that does what it is told.
class session {
 public:
  explicit session(const std::string& uri) : connection_(PQconnectdb(uri.c_str()), &PQfinish) {
    REQUIRE(PQstatus(connection_.get()) == CONNECTION_OK);
  }
  void run(const char* sql) {
    const std::unique_ptr<PGresult, void (*)(PGresult*)> r(PQexec(connection_.get(), sql),
                                                           &PQclear);
    INFO(PQerrorMessage(connection_.get()));
    const auto status = PQresultStatus(r.get());
    REQUIRE((status == PGRES_COMMAND_OK || status == PGRES_TUPLES_OK));
  }

 private:
  std::unique_ptr<PGconn, void (*)(PGconn*)> connection_;
};

inline void configure(const std::string& uri, const std::string& setting) {
  query(uri, "ALTER SYSTEM " + setting);
  query(uri, "SELECT pg_reload_conf()");
}

} // namespace boyd::test::postgres
