#include "support/pch.hpp"
#include "tests/sim/fixture.hpp"
#include "tests/sim/lab/world.hpp"

namespace boyd::lost_words_test {

using namespace boyd;
using namespace boyd::sim;

namespace {

config::configuration one_agent() {
  auto c = half_hourly({"a"}, "work");
  c.kernels.front().heartbeat_url = "http://monitor.invalid/";
  return c;
}

/// A day of a node with one agent in which `what` strikes at `point` once, in the second cycle.
struct day {
  quiet log;
  world w{1, one_agent(), {}};

  day(const char* point, faults::action what) {
    w.boot();
    w.calm(45min);
    faults::arming a;
    a.point = point;
    a.what = what;
    REQUIRE(faults::arm({a}, 1));
    w.run(40min);
    CHECK(faults::triggered(point) == 1);
    w.settle();
    INFO(point);
    INFO(joined(w.violations()));
    CHECK(w.violations().empty());
  }

  /// Rows that needed more than one attempt.
  std::vector<dispatch> tried_again() {
    std::vector<dispatch> all;
    for (const auto& [id, row] : w.database().all_rows())
      if (row.d.attempt > 1)
        all.push_back(row.d);
    return all;
  }
};

} // namespace

TEST_CASE("a program whose end is not reported is found out, long before its time is over") {
  day d("processes.exit", faults::action::drop);
  const auto again = d.tried_again();
  REQUIRE(again.size() == 1);
  CHECK(again.front().status == dispatch_status::done);
  CHECK(again.front().attempts_json.find("nobody reported how") != std::string::npos);
}

TEST_CASE("output that is lost or damaged changes what is told, and nothing else") {
  for (const auto what : {faults::action::drop, faults::action::corrupt})
    CHECK(day("processes.output", what).tried_again().empty());
}

TEST_CASE("a heartbeat that is not made is no reason to fail anything") {
  for (const auto what : {faults::action::drop, faults::action::error})
    CHECK(day("kernel.heartbeat", what).tried_again().empty());
}

} // namespace boyd::lost_words_test
