#include "messages/node.hpp"
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
  CHECK(again.front().attempts_json.find("for an unknown reason") != std::string::npos);
}

TEST_CASE("output that is lost or damaged changes what is told, and nothing else") {
  for (const auto what : {faults::action::drop, faults::action::corrupt})
    CHECK(day("processes.output", what).tried_again().empty());
}

TEST_CASE("a heartbeat that is not made is no reason to fail anything") {
  for (const auto what : {faults::action::drop, faults::action::error})
    CHECK(day("kernel.heartbeat", what).tried_again().empty());
}

TEST_CASE("a slot that is asked for again before its answer, as by a reload, is run once") {
  const quiet log;
  for (const auto first_reload : {1ms, 500ms, 1100ms, 2100ms}) {
    world w(1, one_agent(), {});
    w.boot();
    w.calm(59min + 59s);
    const auto before = w.database().all_cycles().size();
    faults::arming late;
    late.point = "store.request";
    late.what = faults::action::delay;
    late.delay = 1s;
    late.count = 40;
    REQUIRE(faults::arm({late}, 1));
    const auto again = std::make_shared<const config::configuration>(one_agent());
    w.run(first_reload);
    for (int i = 0; i < 8; ++i) {
      caf::anon_send(w.first().root(), reload_order{{}, again});
      w.run(500ms);
    }
    w.run(10min);
    w.settle();
    INFO("the first reload after " << first_reload.count() << " ms");
    INFO(joined(w.violations()));
    CHECK(w.violations().empty());
    CHECK(faults::triggered("store.request") > 0);
    CHECK(w.database().all_cycles().size() > before);
  }
}

} // namespace boyd::lost_words_test
