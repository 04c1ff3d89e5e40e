#include "boyd/queue/row_record.hpp"
#include "boyd/record/explain.hpp"
#include "boyd/record/replay.hpp"
#include "support/pch.hpp"

#include <string>

namespace boyd::row_record_test {

using Catch::Matchers::Contains;

namespace {

dispatch ended_row() {
  dispatch d;
  d.dispatch_id = "d1";
  d.kernel_id = "default";
  d.cycle_id = "c1";
  d.agent_id = "disk";
  d.prompt = "Look at it.\n\xff";
  d.status = dispatch_status::failed;
  d.attempt = 2;
  d.fence = 5;
  d.started_at = from_unix_ms(1'800'000'060'000);
  d.finished_at = from_unix_ms(1'800'000'061'500);
  d.outcome.execution = execution_verdict::failed;
  d.outcome.failure = failure_class::deterministic;
  d.outcome.exit_code = 3;
  d.outcome.error = "exit code 3: no oil";
  d.outcome.usage.wall_ms = 1500;
  d.outcome.usage.max_rss_kb = 900;
  d.attempts_json = R"([{"attempt":1,"fence":4,"started_at":"2027-01-15T08:00:00.000Z",
    "ended_at":"2027-01-15T08:00:30.000Z","execution":"timed_out","failure":"transient",
    "error":"timed out after 30 s","output":"x"},7])";
  return d;
}

result<std::string> nothing(const std::string& hash) {
  return fail(errc::not_found, "no content", hash);
}

} // namespace

TEST_CASE("row record: what the database knows can be told and put together", "[row_record]") {
  const auto d = ended_row();
  const auto e = queue::execution_of(d);
  REQUIRE(e.attempts.size() == 2);
  CHECK(e.attempts[0].fence == 4);
  CHECK(e.attempts[1].fence == 5);
  const auto page = record::explain(e);
  CHECK_THAT(page, Contains("**failed**") && Contains("took 1.5 s") && Contains("a program") &&
                       Contains("no oil") && Contains("**Attempts:** 2") &&
                       Contains("it exceeded its time limit"));
  const auto r = record::replay(e, nothing, {}, record::seal_state::whole, "0.1.0");
  CHECK(r.holds());
  REQUIRE(r.texts.size() == 2);
  CHECK(r.texts[1].text == d.prompt);
}

TEST_CASE("row record: scripts, runs under way, and rows that have not run", "[row_record]") {
  auto d = ended_row();
  d.attempts_json = "[]";
  d.outcome = {};
  d.status = dispatch_status::running;
  CHECK(record::fate_of(queue::execution_of(d)) == record::fate::unfinished);
  d.status = dispatch_status::done;
  d.outcome.execution = execution_verdict::succeeded;
  d.outcome.usage.wall_ms = 0;
  CHECK_THAT(record::explain(queue::execution_of(d)), Contains("a script"));
  d.status = dispatch_status::pending;
  d.fence = 0;
  CHECK(queue::execution_of(d).attempts.empty());
  d.attempts_json = "no JSON";
  CHECK(queue::execution_of(d).attempts.empty());
}

} // namespace boyd::row_record_test
