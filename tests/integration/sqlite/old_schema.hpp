#pragma once

#include "boyd/ports/clock.hpp"
#include "sqlite_cli.hpp"
#include "src/adapters/sqlite/store.hpp"
#include "support/pch.hpp"

#include <algorithm>
#include <memory>
#include <string>

/// Databases of earlier schemas, with rows in them.
namespace boyd::test {

class wall_clock final : public clock_port {
 public:
  utc_time now() const override {
    return std::chrono::floor<milliseconds>(std::chrono::system_clock::now());
  }
  steady_time steady() const override {
    return std::chrono::floor<milliseconds>(std::chrono::steady_clock::now());
  }
};

inline adapters::sqlite_options options_for(const std::string& path) {
  adapters::sqlite_options o;
  o.path = path;
  o.clock = std::make_shared<wall_clock>();
  return o;
}

/// Schemas before this one kept a dispatch in one table.
inline constexpr int first_schema_in_parts = 5;

/// One row of each status as those schemas have it: pending p, repeated w, running (for the second
/// time) r, done d, failed f in another kernel.
inline constexpr const char* old_dispatches = R"sql(
INSERT INTO dispatches(id, dispatch_id, kernel_id, cycle_id, agent_id, priority, status, metadata,
  attempt, max_attempts, rescues, fence, settled_fence, not_before, lease_owner, last_owner,
  lease_expires_at, created_at, started_at, finished_at, execution, claim, verification,
  failure_class, exit_code, output_cut, session_id, summary, error, usage, attempts) VALUES
(1,'dispatch-p','k','c','p',5,'pending','{}',0,3,0,0,0,1000,'','',NULL,1000,NULL,NULL,
  'none','none','none','none',-1,0,'','','','','[]'),
(2,'dispatch-w','k','c','w',5,'pending','{}',1,3,0,1,1,1500,'','n1',NULL,1000,NULL,NULL,
  'failed','none','none','transient',1,0,'','','again','','[{\"to\":\"retry\"}]'),
(3,'dispatch-r','k','c','r',5,'running','{}',2,3,0,2,1,1200,'n1','n1',9000,1000,1300,NULL,
  'none','none','none','none',-1,0,'','','','','[{\"summary\":\"first\"}]'),
(4,'dispatch-d','k','c','d',5,'done','{}',1,3,0,1,1,1000,'','n1',NULL,1000,1100,1200,
  'succeeded','done','none','none',0,0,'s','good','','','[]'),
(5,'dispatch-f','k2','c','f',5,'failed','{}',3,3,0,3,3,1000,'','n1',NULL,1000,1100,1200,
  'failed','none','none','deterministic',1,0,'','','bad','','[]');
INSERT INTO dispatch_prompts SELECT id, 'work ' || agent_id FROM dispatches;
INSERT INTO dispatch_outputs SELECT id, fence, 'said ' || agent_id FROM dispatches
  WHERE id IN (2, 4);
)sql";

/// A database of an earlier schema that holds old_dispatches, as they were carried over up to it.
inline void make_old(const std::string& path, int version) {
  const auto bring_to = [&path](int schema) {
    auto old = options_for(path);
    old.migrate_to = schema;
    REQUIRE(adapters::make_sqlite_store(old)->open());
  };
  bring_to(std::min(version, first_schema_in_parts - 1));
  REQUIRE(sqlite_cli(path, old_dispatches).empty());
  bring_to(version);
}

/// What the rows of old_dispatches are in a database of today.
inline constexpr const char* old_rows = "dispatch-d|k|d|done|1|1||work d|said d\n"
                                        "dispatch-f|k2|f|failed|3|3||work f|\n"
                                        "dispatch-p|k|p|pending|0|0||work p|\n"
                                        "dispatch-r|k|r|running|2|2|n1|work r|\n"
                                        "dispatch-w|k|w|pending|1|1||work w|said w";

/// The same of a database.
inline std::string rows_of(const std::string& path) {
  return sqlite_cli(path, "SELECT dispatch_id, kernel_id, agent_id, status, attempt, fence, "
                          "lease_owner, prompt, output FROM dispatches ORDER BY 1");
}

} // namespace boyd::test
