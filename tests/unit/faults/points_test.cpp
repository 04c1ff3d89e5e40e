#include "boyd/core/text.hpp"
#include "boyd/faults/faulty_ports.hpp"
#include "boyd/faults/points.hpp"
#include "support/pch.hpp"
#include "support/wait.hpp"

#include <spdlog/spdlog.h>

#include <atomic>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <optional>
#include <set>
#include <stdexcept>
#include <thread>

namespace boyd::faults_test {

using namespace boyd;
using Catch::Matchers::Contains;

namespace {

/// Nothing stays armed behind a test, and nothing is logged.
struct quiet {
  quiet() {
    spdlog::set_level(spdlog::level::off);
    faults::disarm();
  }
  ~quiet() {
    faults::disarm();
    spdlog::set_level(spdlog::level::info);
  }
  quiet(const quiet&) = delete;
  quiet& operator=(const quiet&) = delete;
};

faults::arming error_at(const char* point) {
  faults::arming a;
  a.point = point;
  return a;
}

/// Which of the next `n` passes fail, from 1 on.
std::vector<int> failing(int n) {
  std::vector<int> which;
  for (int i = 1; i <= n; ++i)
    if (!faults::pass("store.apply"))
      which.push_back(i);
  return which;
}

} // namespace

TEST_CASE("faults: nothing armed, nothing happens", "[faults]") {
  const quiet q;
  CHECK_FALSE(faults::any_armed());
  CHECK(faults::pass("store.apply"));
  CHECK_FALSE(faults::meet("store.apply")->what);
  CHECK(faults::armed().empty());
}

TEST_CASE("faults: count, after and every choose the passes", "[faults]") {
  const quiet q;
  auto a = error_at("store.apply");
  SECTION("once") {
    REQUIRE(faults::arm({a}, 1));
    CHECK(failing(5) == std::vector<int>{1});
    CHECK_FALSE(faults::any_armed());
    REQUIRE(faults::armed().size() == 1);
    CHECK(faults::armed().front().spent);
  }
  SECTION("three times, after two, every second") {
    a.count = 3;
    a.after = 2;
    a.every = 2;
    REQUIRE(faults::arm({a}, 1));
    CHECK(failing(12) == std::vector<int>{3, 5, 7});
    CHECK(faults::armed().front().strikes == 3);
  }
  SECTION("without end") {
    a.count = -1;
    a.after = 7;
    REQUIRE(faults::arm({a}, 1));
    CHECK(failing(10) == std::vector<int>{8, 9, 10});
    CHECK(faults::any_armed());
    CHECK(faults::armed().front().passes == 10);
  }
  SECTION("two at one point take turns; both see every pass") {
    auto later = a;
    later.after = 1;
    REQUIRE(faults::arm({a, later}, 1));
    CHECK(failing(4) == std::vector<int>{1, 2});
  }
  SECTION("other points are not concerned") {
    REQUIRE(faults::arm({a}, 1));
    CHECK(faults::pass("store.open"));
    CHECK(failing(1) == std::vector<int>{1});
  }
}

TEST_CASE("faults: chance is decided by the seed alone", "[faults]") {
  const quiet q;
  auto a = error_at("store.apply");
  a.count = -1;
  a.probability = 0.3;
  a.seed = 7;
  const auto run = [&](std::uint64_t other, bool with_noise) {
    faults::disarm();
    auto noise = error_at("store.open");
    noise.count = -1;
    noise.probability = 0.5;
    REQUIRE(faults::arm(with_noise ? std::vector{noise, a} : std::vector{a}, other));
    std::vector<int> which;
    for (int i = 1; i <= 400; ++i) {
      if (with_noise)
        (void)faults::pass("store.open");
      if (!faults::pass("store.apply"))
        which.push_back(i);
    }
    return which;
  };
  const auto first = run(1, false);
  CHECK(first.size() > 60);
  CHECK(first.size() < 180);
  CHECK(run(2, false) == first);
  CHECK(run(3, true) == first);
  a.seed = 8;
  CHECK(run(1, false) != first);

  // One that was drawn is told, and gives the same again.
  a.seed.reset();
  const auto drawn = run(9, false);
  a.seed = faults::armed().front().what.seed;
  REQUIRE(a.seed);
  CHECK_THAT(faults::to_text(a), Contains(", seed " + std::to_string(*a.seed)));
  CHECK(run(10, false) == drawn);
}

TEST_CASE("faults: what each action does", "[faults]") {
  const quiet q;
  auto a = error_at("store.apply");
  SECTION("crash") {
    a.what = faults::action::crash;
    REQUIRE(faults::arm({a}, 1));
    CHECK_THROWS_WITH(faults::meet("store.apply"), Contains("store.apply"));
  }
  SECTION("error") {
    REQUIRE(faults::arm({a}, 1));
    const auto met = faults::meet("store.apply");
    REQUIRE_FALSE(met);
    CHECK(met.error().code == errc::injected);
    CHECK_THAT(met.error().what, Contains("store.apply"));
  }
  SECTION("drop") {
    a.what = faults::action::drop;
    const auto before = faults::triggered("store.apply");
    REQUIRE(faults::arm({a}, 1));
    CHECK(faults::meet("store.apply")->drops());
    CHECK(faults::triggered("store.apply") == before + 1);
  }
  SECTION("a lost notice") {
    a.point = "queue.changed";
    a.what = faults::action::drop;
    REQUIRE(faults::arm({a}, 1));
    CHECK(faults::lost("queue.changed"));
    CHECK_FALSE(faults::lost("queue.changed"));
  }
  SECTION("a delay ends when the faults are disarmed") {
    a.what = faults::action::delay;
    a.delay = std::chrono::hours{1};
    REQUIRE(faults::arm({a}, 1));
    std::thread waits([] { CHECK(faults::pass("store.apply")); });
    while (faults::any_armed())
      std::this_thread::yield();
    // The wait may begin a moment later: until it has ended, it is ended again.
    std::atomic<bool> ended{false};
    std::thread ends([&] {
      while (!ended)
        faults::disarm();
    });
    waits.join();
    ended = true;
    ends.join();
  }
}

TEST_CASE("faults: a changed bit is never UTF-8", "[faults]") {
  const std::string text = "plain äöü € \U0001F600 end\n";
  for (std::uint64_t salt = 0; salt < text.size() * 2; ++salt) {
    const auto bytes = faults::malformed(text, salt);
    REQUIRE(bytes.size() == text.size());
    CHECK(bytes != text);
    CHECK(sanitize_utf8(bytes) != bytes);
  }
  CHECK(faults::malformed("", 3).empty());
}

TEST_CASE("faults: any bit of what has a check sum may change", "[faults]") {
  const std::string text = "4711";
  std::set<std::string> seen;
  for (std::uint64_t salt = 0; salt < text.size() * 8; ++salt)
    seen.insert(faults::damaged(text, salt));
  CHECK(seen.size() == text.size() * 8);
  CHECK_FALSE(seen.contains(text));
  CHECK(seen.contains("5711"));
  CHECK(faults::damaged("", 3).empty());
}

TEST_CASE("faults: what cannot be armed is refused, all or nothing", "[faults]") {
  const quiet q;
  auto a = error_at("store.aply");
  auto r = faults::arm({error_at("store.open"), a}, 1);
  REQUIRE_FALSE(r);
  CHECK(r.error().code == errc::not_found);
  CHECK_THAT(r.error().next, Contains("store.apply"));
  CHECK(faults::armed().empty());
  a.point = "state_writer.rename";
  a.what = faults::action::drop;
  r = faults::check(a);
  REQUIRE_FALSE(r);
  CHECK(r.error().code == errc::refused);
  CHECK(r.error().next == "supported: crash, error or delay");
  a.what = faults::action::delay;
  CHECK(faults::check(a).error().code == errc::invalid_argument);
  a.delay = milliseconds{1};
  CHECK(faults::check(a));
  a.what = faults::action::error;
  CHECK_FALSE(faults::check(a));
  a.delay = milliseconds{0};
  for (auto broken : {&faults::arming::after, &faults::arming::every}) {
    auto b = a;
    b.*broken = -1;
    CHECK_FALSE(faults::check(b));
  }
  a.probability = 1.5;
  CHECK_FALSE(faults::check(a));
  a.probability = 1;
  a.count = 0;
  CHECK_FALSE(faults::check(a));
}

namespace {

/// What a process told, as it arrived.
struct heard {
  std::mutex mutex;
  std::string text;
  test::event_latch ended;

  process_events events() {
    process_events e;
    e.on_output = [this](output_stream, std::string_view bytes) { add(bytes); };
    e.on_exit = [this](const process_exit& x) {
      add("end " + std::to_string(x.exit_code));
      ended.signal();
    };
    return faults::watched(std::move(e), faults::executor_processes);
  }
  void add(std::string_view more) {
    const std::lock_guard lock(mutex);
    text += more;
  }
};

void strike(const char* point, faults::action what, milliseconds delay = 0ms) {
  auto a = error_at(point);
  a.what = what;
  a.delay = delay;
  REQUIRE(faults::arm({a}, 1));
}

process_exit exit_with(int code) {
  process_exit e;
  e.exit_code = code;
  return e;
}

} // namespace

TEST_CASE(
    "faults: what a process tells is lost, changed or late, and nothing overtakes what is late",
    "[faults]") {
  const quiet q;
  heard h;
  const auto told = h.events();
  SECTION("nothing armed") {
    told.on_output(output_stream::out, "one ");
    told.on_exit(exit_with(0));
    CHECK(h.text == "one end 0");
  }
  SECTION("lost") {
    strike("processes.output", faults::action::drop);
    strike("processes.exit", faults::action::drop);
    told.on_output(output_stream::out, "one ");
    told.on_output(output_stream::out, "two ");
    told.on_exit(exit_with(0));
    CHECK(h.text == "two ");
  }
  SECTION("changed") {
    strike("processes.output", faults::action::corrupt);
    told.on_output(output_stream::out, "one ");
    CHECK(h.text.size() == 4);
    CHECK(sanitize_utf8(h.text) != h.text);
  }
  SECTION("late, in order") {
    strike("processes.output", faults::action::delay, 20ms);
    told.on_output(output_stream::out, "one ");
    told.on_output(output_stream::out, "two ");
    told.on_exit(exit_with(3));
    REQUIRE(h.ended.wait());
    CHECK(h.text == "one two end 3");
  }
  SECTION("late, no longer than the faults last") {
    strike("processes.exit", faults::action::delay, std::chrono::hours{1});
    told.on_exit(exit_with(3));
    faults::disarm();
    REQUIRE(h.ended.wait());
    CHECK(h.text == "end 3");
  }
}

TEST_CASE("faults: those of one origin can be ended alone", "[faults]") {
  const quiet q;
  auto a = error_at("store.open");
  a.by = faults::origin::configuration;
  auto b = error_at("store.apply");
  b.by = faults::origin::command;
  REQUIRE(faults::arm({a, b}, 1));
  CHECK(faults::disarm(faults::origin::configuration) == 1);
  CHECK(faults::pass("store.open"));
  CHECK_FALSE(faults::pass("store.apply"));
}

TEST_CASE("faults: a simulation's set is its thread's alone", "[faults]") {
  const quiet q;
  std::optional<faults::isolation> own;
  own.emplace();
  auto a = error_at("store.apply");
  a.count = 2;
  REQUIRE(faults::arm({a}, 1));
  bool passed_elsewhere = false;
  std::thread([&] { passed_elsewhere = faults::pass("store.apply").has_value(); }).join();
  CHECK(passed_elsewhere);
  CHECK_FALSE(faults::pass("store.apply"));
  own.reset();
  CHECK(faults::pass("store.apply"));
  CHECK_FALSE(faults::any_armed());
}

TEST_CASE("faults: the words of the environment", "[faults]") {
  const auto all = faults::parse(
      " store.apply=error,count=3,prob=0.25,after=5,every=2,seed=9 ; executor.run=crash;"
      "git_committer.commit=delay, delay=250ms;");
  REQUIRE(all);
  REQUIRE(all->size() == 3);
  const auto& a = all->front();
  CHECK(a.point == "store.apply");
  CHECK(a.what == faults::action::error);
  CHECK(a.count == 3);
  CHECK(a.probability == 0.25);
  CHECK(a.after == 5);
  CHECK(a.every == 2);
  CHECK(a.seed == 9u);
  CHECK(a.by == faults::origin::environment);
  CHECK((*all)[1].what == faults::action::crash);
  CHECK((*all)[2].delay == milliseconds{250});
  CHECK(faults::parse("")->empty());

  const auto complains = [](const char* words) {
    const auto r = faults::parse(words);
    REQUIRE_FALSE(r);
    return to_string(r.error());
  };
  CHECK_THAT(complains("store.aply=error"), Contains("did you mean store.apply?"));
  CHECK_THAT(complains("store.apply=eror"), Contains("did you mean error?"));
  CHECK_THAT(complains("store.apply"), Contains("is not an action"));
  CHECK_THAT(complains("store.apply=error,cout=3"), Contains("did you mean count?"));
  CHECK_THAT(complains("store.apply=error,count=x"), Contains("not a number"));
  CHECK_THAT(complains("store.apply=error,count"), Contains("has no value"));
  CHECK_THAT(complains("store.apply=delay,delay=soon"), Contains("250ms"));
  CHECK_THAT(complains("state_writer.rename=drop"), Contains("supported: crash, error or delay"));
}

TEST_CASE("faults: every point of the catalogue is passed somewhere", "[faults]") {
  // That each pass names a point of the catalogue is the compiler's to check.
  const char* top = std::getenv("BOYD_SOURCE_DIR");
  const std::filesystem::path source = top != nullptr ? top : ".";
  std::string text;
  for (const char* folder : {"include", "src", "actors", "apps"})
    for (const auto& entry : std::filesystem::recursive_directory_iterator(source / folder)) {
      const auto name = entry.path().filename().string();
      if (!entry.is_regular_file() || name == "catalogue.hpp")
        continue;
      std::ifstream file(entry.path());
      text.append(std::istreambuf_iterator<char>(file), {});
    }
  REQUIRE(text.size() > 1000);
  std::set<std::string_view> seen;
  for (const auto name : faults::points()) {
    INFO(name);
    CHECK(seen.insert(name).second);
    const auto quoted = "\"" + std::string(name) + "\"";
    const bool passed = text.find("point(" + quoted) != std::string::npos ||
                        text.find("pass(" + quoted) != std::string::npos ||
                        text.find("may_crash(" + quoted) != std::string::npos ||
                        text.find("meet(" + quoted) != std::string::npos ||
                        text.find("lost(" + quoted) != std::string::npos ||
                        text.find("after(" + quoted) != std::string::npos ||
                        text.find("points{" + quoted) != std::string::npos;
    CHECK(passed);
    const auto& row = *faults::find(name);
    CHECK(row.can != 0);
    CHECK_FALSE(row.says.empty());
    CHECK(row.says.find('\n') == std::string_view::npos);
  }
}

} // namespace boyd::faults_test
