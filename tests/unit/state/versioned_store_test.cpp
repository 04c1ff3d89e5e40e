#include "boyd/core/limits.hpp"
#include "boyd/ports/clock.hpp"
#include "boyd/state/versioned_store.hpp"
#include "support/pch.hpp"
#include "support/sim/disk.hpp"
#include "support/sim/repository.hpp"
#include "support/sim/seeded_entropy.hpp"

namespace boyd::versioned_store_test {

using namespace boyd;
using namespace boyd::state;

namespace {

class hand_clock final : public clock_port {
 public:
  utc_time now() const override { return utc_time{milliseconds{1'770'984'000'000}} + passed; }
  steady_time steady() const override { return steady_time{passed}; }

  milliseconds passed{0};
};

constexpr const char* home = "/home/kernel/default";

struct world {
  hand_clock clock;
  sim::sim_disk disk{&clock};
  sim::sim_repositories repositories{disk};
  versioned_store store{disk, repositories, clock, {home, {}, true, true}};

  world() { REQUIRE(store.init()); }

  std::string on_disk(const std::string& file) {
    return disk.read(std::string(home) + "/" + file, 1 << 20).value_or("(none)");
  }
  const std::vector<sim::sim_commit>& commits() { return repositories.commits(home); }
};

} // namespace

TEST_CASE("a message carries its trailers and cannot be forged") {
  CHECK(commit_message("cycle c1: success", {"c1", "n1", "g1"}) ==
        "cycle c1: success\n\nBoyd-Cycle: c1\nBoyd-Node: n1\nBoyd-Graph-Head: g1\n");
  CHECK(commit_message("plain", {}) == "plain\n");
  CHECK(commit_message("a\nBoyd-Node: evil", {"c1\nBoyd-Node: evil", "", ""}) ==
        "a Boyd-Node: evil\n\nBoyd-Cycle: c1 Boyd-Node: evil\n");
}

TEST_CASE("write, commit, read back at every point in time") {
  world w;
  REQUIRE(w.store.write("STATE.md", "one\n"));
  const auto c1 = w.store.commit_all("cycle c1: success", {"c1", "n", "g"});
  REQUIRE(c1);
  REQUIRE(*c1);
  w.clock.passed = 60s;
  REQUIRE(w.store.write("STATE.md", "two\n"));
  REQUIRE(w.store.commit_all("pre-cycle c2", {"c2", "n", ""}).value());
  w.clock.passed = 61s;
  REQUIRE(w.store.write("STATE.md", "three\n"));
  REQUIRE(w.store.commit_all("cycle c2: failed", {"c2", "n", ""}).value());
  CHECK_FALSE(w.store.commit_all("nothing").value());
  CHECK_FALSE(w.store.has_changes().value());
  CHECK(w.store.read_at("c1", "STATE.md").value() == "one\n");
  CHECK(w.store.read_at("c2", "STATE.md").value() == "three\n");
  CHECK(w.store.read_at((*c1)->substr(0, 8), "STATE.md").value() == "one\n");
  CHECK(w.store.read_at("2026-02-13T12:01:00Z", "STATE.md").value() == "two\n");
  CHECK(w.store.read_at("2026-02-13T11:00:00Z", "STATE.md").error().code == errc::not_found);
  CHECK(w.store.read_at("c9", "STATE.md").error().code == errc::not_found);
  CHECK(w.store.read_at("c1", "../x").error().code == errc::invalid_argument);
  CHECK(w.store.diff("c1", "c2").value().find("-one\n+three\n") != std::string::npos);
  CHECK(w.store.history("STATE.md", 2).value().size() == 2);
}

TEST_CASE("a dirty tree is committed before a write, when asked for") {
  world w;
  REQUIRE(w.store.write("STATE.md", "one\n"));
  REQUIRE(w.store.commit_all("base").value());
  w.disk.put(std::string(home) + "/notes.md", "an agent's");
  REQUIRE(w.store.write("STATE.md", "two\n"));
  REQUIRE(w.commits().size() == 2);
  CHECK(w.commits()[1].message == "auto: pre-write snapshot\n");
  CHECK(w.commits()[1].tree.count("notes.md") == 1);
  CHECK(*w.commits()[1].tree.at("STATE.md") == "one\n");
  versioned_store plain(w.disk, w.repositories, w.clock, {home, {}, false, false});
  REQUIRE(plain.init());
  REQUIRE(plain.write("STATE.md", "three\n"));
  CHECK(w.commits().size() == 2);
}

TEST_CASE("a seed never overwrites") {
  world w;
  CHECK(w.store.seed("STATE.md", "seed\n").value());
  CHECK_FALSE(w.store.seed("STATE.md", "other\n").value());
  CHECK(w.on_disk("STATE.md") == "seed\n");
}

TEST_CASE("names outside the store are refused") {
  world w;
  for (const char* name : {"", "/etc/passwd", "../x", "a/../b", "a//b", ".git/config", "a/."}) {
    INFO(name);
    CHECK(w.store.write(name, "x").error().code == errc::invalid_argument);
    CHECK(w.store.read(name).error().code == errc::invalid_argument);
  }
  CHECK(w.store.write("research/long.md", "x"));
  CHECK(w.store.read("research/long.md").value() == "x");
}

TEST_CASE("a mass deletion is refused and says how to go on") {
  world w;
  for (const char* name : {"a", "b", "c", "d"})
    REQUIRE(w.store.write(name, "x"));
  REQUIRE(w.store.commit_all("base").value());
  for (const char* name : {"a", "b"})
    REQUIRE(w.disk.unlink(std::string(home) + "/" + name));
  SECTION("half is allowed") {
    CHECK(w.store.commit_all("half").value());
  }
  SECTION("more is not") {
    REQUIRE(w.disk.unlink(std::string(home) + "/c"));
    const auto before = w.commits().size();
    const auto done = w.store.commit_all("most");
    REQUIRE_FALSE(done);
    CHECK(done.error().code == errc::refused);
    CHECK(done.error().next.find("git commit") != std::string::npos);
    CHECK(w.store.health().failed_commits == 1);
    CHECK_FALSE(w.store.health().degraded);
    // Writing goes on, without the snapshot.
    CHECK(w.store.write("d", "y"));
    CHECK(w.commits().size() == before);
    REQUIRE(w.store.write("a", "x"));
    CHECK(w.store.commit_all("back").value());
    CHECK(w.store.health().last_error.empty());
  }
}

TEST_CASE("without its repository the store writes on, says so, and recovers by itself") {
  world w;
  REQUIRE(w.store.write("STATE.md", "one\n"));
  REQUIRE(w.store.commit_all("base").value());
  w.repositories.set_available(home, false);
  w.clock.passed = 10s;
  REQUIRE(w.store.write("STATE.md", "two\n"));
  CHECK(w.on_disk("STATE.md") == "two\n");
  CHECK(w.store.health().degraded);
  CHECK(w.store.health().since == w.clock.now());
  CHECK_FALSE(w.store.health().reason.empty());
  CHECK(w.store.commit_all("x").error().code == errc::repository_unavailable);
  CHECK(w.store.read("STATE.md").value() == "two\n");
  w.repositories.set_available(home, true);
  // Not before the backoff has passed, then at once.
  CHECK(w.store.has_changes().error().code == errc::repository_unavailable);
  w.clock.passed += limits::backoff_cap;
  CHECK(w.store.has_changes().value());
  CHECK_FALSE(w.store.health().degraded);
  CHECK(w.store.health().degradations == 1);
  CHECK(w.store.commit_all("again").value());
}

TEST_CASE("retries to open keep to the backoff") {
  world w;
  int opened = 0;
  w.repositories.set_fault_hook([&](sim::git_op op, const std::string&) -> std::optional<error> {
    opened += op == sim::git_op::open ? 1 : 0;
    return error{errc::repository_unavailable, "broken", "", ""};
  });
  for (int i = 0; i < 6000; ++i) {
    CHECK_FALSE(w.store.has_changes());
    w.clock.passed += 10ms;
  }
  CHECK(opened >= 8);
  CHECK(opened <= 12);
}

TEST_CASE("a directory that is gone is an error and is not made again") {
  hand_clock clock;
  sim::sim_disk disk{&clock};
  sim::sim_repositories repositories{disk};
  versioned_store store(disk, repositories, clock, {home, {}, true, true});
  const auto written = store.write("STATE.md", "x");
  REQUIRE_FALSE(written);
  CHECK(written.error().code == errc::io_error);
  CHECK(written.error().what == "state directory is missing");
  CHECK(store.read("STATE.md").error().code == errc::io_error);
  CHECK(disk.stat(home)->kind == file_kind::missing);
  REQUIRE(store.init());
  CHECK(store.write("STATE.md", "x"));
}

TEST_CASE("an edit takes a concurrent change in") {
  world w;
  REQUIRE(w.store.write("STATE.md", "base\n"));
  int runs = 0;
  REQUIRE(w.store.update("STATE.md", [&](std::string_view current) -> result<std::string> {
    const std::string made = std::string(current) + "ours\n";
    if (++runs == 1)
      w.disk.put(std::string(home) + "/STATE.md", "base\ntheirs\n");
    return made;
  }));
  CHECK(runs == 2);
  CHECK(w.on_disk("STATE.md") == "base\ntheirs\nours\n");
}

TEST_CASE("an edit gives up when the file never rests, and leaves it alone") {
  world w;
  REQUIRE(w.store.write("STATE.md", "0"));
  int runs = 0;
  const auto done = w.store.update("STATE.md", [&](std::string_view) -> result<std::string> {
    w.disk.put(std::string(home) + "/STATE.md", std::to_string(++runs));
    return "ours";
  });
  CHECK(done.error().code == errc::conflict);
  CHECK(runs == limits::update_attempts);
  CHECK(w.on_disk("STATE.md") == std::to_string(runs));
  CHECK(w.store
            .update("STATE.md",
                    [](std::string_view) -> result<std::string> {
                      return fail(errc::limit_exceeded, "too long");
                    })
            .error()
            .code == errc::limit_exceeded);
}

TEST_CASE("a failing disk fails the write; a failing commit does not") {
  world w;
  REQUIRE(w.store.write("STATE.md", "one\n"));
  w.disk.fail_next(sim::disk_op::sync, sim::disk_fault::io_error);
  CHECK_FALSE(w.store.write("STATE.md", "two\n"));
  CHECK(w.on_disk("STATE.md") == "one\n");
  w.disk.clear_faults();
  w.disk.put(std::string(home) + "/notes.md", "dirty");
  w.repositories.set_fault_hook([](sim::git_op op, const std::string&) -> std::optional<error> {
    if (op == sim::git_op::commit || op == sim::git_op::stage)
      return error{errc::locked, "held", "", ""};
    return std::nullopt;
  });
  CHECK(w.store.write("STATE.md", "three\n"));
  CHECK(w.on_disk("STATE.md") == "three\n");
  CHECK(w.store.health().failed_commits >= 1);
  CHECK_FALSE(w.store.health().degraded);
}

TEST_CASE("a replacement whose last step failed is not taken for done by the repetition") {
  const auto two = [](std::string_view) -> result<std::string> { return "two\n"; };
  for (std::uint64_t seed = 0; seed < 50; ++seed) {
    world w;
    REQUIRE(w.store.write("STATE.md", "one\n"));
    w.disk.fail_next(sim::disk_op::sync_directory, sim::disk_fault::io_error, 2, "default");
    for (int i = 0; i < 2; ++i) {
      REQUIRE_FALSE(w.store.update("STATE.md", two));
      REQUIRE(w.on_disk("STATE.md") == "two\n"); // seen, but not durable
    }
    REQUIRE(w.store.update("STATE.md", two));
    sim::seeded_entropy random(seed);
    w.disk.crash(random);
    REQUIRE(w.on_disk("STATE.md") == "two\n");
  }
}

TEST_CASE("a start makes durable what a killed process has left to be seen") {
  for (std::uint64_t seed = 0; seed < 50; ++seed) {
    world w;
    REQUIRE(w.store.write("STATE.md", "one\n"));
    w.disk.fail_next(sim::disk_op::sync_directory, sim::disk_fault::io_error, 1, "default");
    REQUIRE_FALSE(w.store.write("STATE.md", "two\n"));
    w.disk.kill_process();
    versioned_store next(w.disk, w.repositories, w.clock, {home, {}, true, true});
    REQUIRE(next.init());
    REQUIRE(next.read("STATE.md").value() == "two\n");
    sim::seeded_entropy random(seed);
    w.disk.crash(random);
    REQUIRE(w.on_disk("STATE.md") == "two\n");
  }
}

TEST_CASE("packing waits until it is worth it") {
  world w;
  REQUIRE(w.store.write("STATE.md", "x"));
  REQUIRE(w.store.commit_all("base").value());
  CHECK(w.store.maintain().value() == 0);
  for (int i = 0; i < 200; ++i) {
    REQUIRE(w.store.write("STATE.md", std::to_string(i)));
    REQUIRE(w.store.commit_all("c").value());
  }
  CHECK(w.store.maintain().value() >= limits::pack_loose_objects);
  CHECK(w.store.maintain().value() == 0);
}

TEST_CASE("what was committed survives a power cut of the node") {
  world w;
  REQUIRE(w.store.write("STATE.md", "one\n"));
  REQUIRE(w.store.commit_all("base", {"c1", "", ""}).value());
  w.disk.kill_process();
  w.repositories.crash();
  versioned_store next(w.disk, w.repositories, w.clock, {home, {}, true, true});
  REQUIRE(next.init());
  CHECK(next.read_at("c1", "STATE.md").value() == "one\n");
  CHECK_FALSE(next.has_changes().value());
}

namespace {

const commit_trailers of_c1{"c1", "n", ""};
const earlier_version with_old_block{
    "STATE.md", [](const std::string& at_head, const std::string& later) {
      return (at_head.empty() ? "none" : at_head.substr(0, at_head.find('\n'))) +
             later.substr(later.find('\n'));
    }};

result<std::string> commit_c1(versioned_store& store, bool restarted = false) {
  return store.commit_cycle("pre-cycle c1", "cycle c1: success", of_c1, with_old_block, restarted);
}

result<void> render(versioned_store& store, const std::string& text, bool overwrites = false) {
  return store.update_before_commit(
      "STATE.md", [&](std::string_view) -> result<std::string> { return text; },
      [=](std::string_view) { return overwrites; });
}

std::vector<std::string> subjects(world& w) {
  std::vector<std::string> all;
  for (const auto& c : w.commits())
    all.push_back(c.info.subject);
  return all;
}

} // namespace

TEST_CASE("the two commits of a cycle differ in its block alone, and are made once") {
  world w;
  REQUIRE(w.store.write("STATE.md", "old block\ntext\n"));
  REQUIRE(w.store.commit_all("base").value());
  w.disk.put(std::string(home) + "/notes.md", "an agent's");
  REQUIRE(render(w.store, "new block\nmerged\n"));
  const auto later = commit_c1(w.store);
  REQUIRE(later);
  const auto both = std::vector<std::string>{"base", "pre-cycle c1", "cycle c1: success"};
  CHECK(subjects(w) == both);
  CHECK(w.store.read_at("HEAD", "STATE.md").value() == "new block\nmerged\n");
  const auto& earlier = w.commits()[1];
  CHECK(*earlier.tree.at("STATE.md") == "old block\nmerged\n");
  CHECK(*earlier.tree.at("notes.md") == "an agent's");
  CHECK(earlier.info.trailers == w.commits()[2].info.trailers);
  // Asked for again by the same life, and by the next one, which commits what came since.
  CHECK(commit_c1(w.store).value() == *later);
  w.disk.put(std::string(home) + "/notes.md", "more");
  versioned_store next(w.disk, w.repositories, w.clock, {home, {}, true, true});
  CHECK(commit_c1(next, true).value() == *later);
  CHECK(subjects(w).size() == both.size() + 1);
  CHECK(subjects(w).back() == "auto: pre-write snapshot");
}

TEST_CASE("of a cycle's two commits the one that stands is not made again") {
  world w;
  REQUIRE(w.store.commit_boundary("pre-cycle c1", of_c1, false));
  REQUIRE(render(w.store, "new block\n"));
  const auto later = commit_c1(w.store);
  REQUIRE(later);
  CHECK(subjects(w) == std::vector<std::string>{"pre-cycle c1", "cycle c1: success"});
  CHECK(commit_c1(w.store).value() == *later);
}

TEST_CASE("a cycle's commits fail together") {
  world w;
  REQUIRE(render(w.store, "new block\n"));
  w.repositories.set_fault_hook([](sim::git_op op, const std::string&) -> std::optional<error> {
    return op == sim::git_op::commit ? std::optional(error{errc::locked, "held", "", ""})
                                     : std::nullopt;
  });
  CHECK(commit_c1(w.store).error().code == errc::locked);
  CHECK(w.commits().empty());
  CHECK(w.store.health().failed_commits == 1);
  w.repositories.set_fault_hook({});
  CHECK(commit_c1(w.store));
  CHECK(w.commits().size() == 2);
}

TEST_CASE("what a cycle's commits have survives a power cut, with the file's name") {
  enum { both_made, one_stood, edited_again, edited_by_another, ways };
  for (int seed = 0; seed < 50 * ways; ++seed) {
    const int way = seed % ways;
    world w;
    REQUIRE(w.store.write("STATE.md", "one\n"));
    if (way == one_stood)
      REQUIRE(w.store.commit_boundary("pre-cycle c1", of_c1, false));
    REQUIRE(render(w.store, "two\n"));
    versioned_store other(w.disk, w.repositories, w.clock, {home, {}, true, true});
    if (way == both_made || way == one_stood)
      REQUIRE(commit_c1(w.store));
    else // without them, the next edit sees to it, also that of a worker in the place of the first
      REQUIRE(render(way == edited_again ? w.store : other, "two\n"));
    sim::seeded_entropy random(static_cast<std::uint64_t>(seed));
    w.disk.crash(random);
    REQUIRE(w.on_disk("STATE.md") == "two\n");
    REQUIRE(w.on_disk("STATE.md.bak") == "two\n");
  }
}

TEST_CASE("an edit before a cycle's commits takes a snapshot of what it overwrites") {
  world w;
  REQUIRE(w.store.write("STATE.md", "mine\n"));
  REQUIRE(render(w.store, "two\n", true));
  CHECK(subjects(w) == std::vector<std::string>{"auto: pre-write snapshot"});
  CHECK(*w.commits().front().tree.at("STATE.md") == "mine\n");
  REQUIRE(render(w.store, "three\n", false));
  CHECK(w.commits().size() == 1);
}

} // namespace boyd::versioned_store_test
