#include "boyd/improve/performer.hpp"
#include "src/adapters/libgit2/repository.hpp"
#include "src/adapters/posix/home_lock.hpp"
#include "src/improve/lock_internal.hpp"
#include "support/pch.hpp"
#include "tree_lab.hpp"

#include <unistd.h>

namespace boyd::lock_test {

using namespace boyd::improve;

namespace {

class hands final : public clock_port {
 public:
  utc_time now() const override { return utc_time(1'800'000'000'000ms + past); }
  steady_time steady() const override { return steady_time(past); }
  milliseconds past{0};
};

/// One repository on which several want to work.
struct place {
  test::tree_lab lab;
  hands clock;
  std::shared_ptr<repository_provider> git = adapters::make_git_repositories();

  improve_ports ports(const std::string& nonce, bool lives = true) {
    return {clock,
            *lab.files,
            *lab.inside,
            *lab.tree,
            *git,
            {},
            {},
            {},
            {1, 1, nonce, "boot"},
            [lives](const lock_holder&) { return lives; },
            {},
            {}};
  }
};

} // namespace

TEST_CASE("a lock that is renewed while somebody waits is not taken over") {
  place p;
  const auto one = p.ports("one");
  const auto two = p.ports("two");
  const auto path = p.lab.path("lock");
  repository_lock mine(path, one);
  REQUIRE(mine.acquire());
  for (int hour = 0; hour < 60; ++hour) {
    p.clock.past += lock_ttl / 2;
    mine.renew();
    CHECK_FALSE(repository_lock(path, two).acquire());
  }
  CHECK(mine.keep());
  // Without that it is.
  p.clock.past += lock_ttl + 1ms;
  repository_lock other(path, two);
  CHECK(other.acquire());
  mine.renew();
  CHECK_FALSE(mine.keep());
  CHECK(other.keep());
}

TEST_CASE("a cycle renews its lock while programs and agents work") {
  place p;
  for (const auto& name : {"a.txt", "README.md"})
    p.lab.put(name, "x\n");
  auto repository = p.git->init(p.lab.root(), {});
  REQUIRE(repository);
  REQUIRE((*repository)->commit(*(*repository)->changes(), "first", p.clock.now()));
  improve_order order;
  order.root = p.lab.root();
  scanner_settings tests;
  tests.name = "tests";
  tests.parser = report_format::tap;
  tests.argv = {"tests"};
  order.settings.scanners = {tests};
  order.settings.executors = {{"agent", false}};
  order.options.apply = true;
  order.options.executors = order.settings.executors;
  int intruders = 0;
  const auto wait = [&](const std::function<void()>& while_waiting) {
    for (int i = 0; i < 4; ++i) {
      p.clock.past += lock_ttl / 2;
      while_waiting();
      const auto other = run_cycle(order, p.ports("other"));
      CHECK((!other && other.error().code == errc::locked));
      ++intruders;
    }
  };
  auto ports = p.ports("mine");
  ports.run = [&](const command_order& o) {
    wait(o.while_waiting);
    command_end end;
    end.out = "not ok 1 - a\n";
    end.exit_code = 1;
    return end;
  };
  ports.agent = [&](const agent_order& o) {
    wait(o.while_waiting);
    return answer_end{{}, failure_kind::environment, "away"};
  };
  const auto s = run_cycle(order, ports);
  INFO((s ? s->reason : to_string(s.error())));
  REQUIRE(s.has_value());
  CHECK(s->status == improve_status::paused);
  CHECK(intruders == 12); // scan, recheck, ask
}

TEST_CASE("a lock of an earlier start of the machine is nobody's, of another namespace anybody's") {
  const adapters::lock_owner me{::getpid(), {}, {}, adapters::own_start_ticks()};
  const auto mark = adapters::boot_mark();
  REQUIRE(mark.find(" pid:[") != std::string::npos);
  CHECK(adapters::is_alive(me, mark));
  CHECK(adapters::is_alive(me, ""));
  CHECK_FALSE(adapters::is_alive(me, "another-start" + mark.substr(mark.find(' '))));
  const adapters::lock_owner nobody{999'999'999, {}, {}, 1};
  CHECK_FALSE(adapters::is_alive(nobody, mark));
  CHECK(adapters::is_alive(nobody, mark.substr(0, mark.find(' ')) + " pid:[1]"));
}

} // namespace boyd::lock_test
