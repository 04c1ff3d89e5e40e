#include "support/knob.hpp"
#include "support/pch.hpp"
#include "tests/sim/fixture.hpp"
#include "tests/sim/lab/world.hpp"

#include <limits>
#include <memory>
#include <utility>

namespace boyd::recovery_test {

using namespace boyd;
using namespace boyd::sim;

namespace {

constexpr auto for_ever = std::numeric_limits<std::uint64_t>::max();
/// More steps than a start has of any kind: a loop that does not end is a failure.
constexpr std::uint64_t most_steps = 400;
/// A start and the end of the cycle that its predecessor left.
constexpr milliseconds start_time = 20s;

config::configuration two_agents() {
  return half_hourly({"alpha", "beta"}, "{STATE}");
}

std::string content_of(world& w, const char* path) {
  const auto seen = w.disk().look(path);
  return seen.content == nullptr ? "" : *seen.content;
}

/// A machine whose power went in the middle of its second cycle, with all that a start has to
/// repair: runs under way, a torn end of the graph and of the spool, temporary files.
std::unique_ptr<world> left_in_the_middle() {
  auto w = std::make_unique<world>(1, two_agents(), fault_menu{});
  w->boot();
  w->run(std::chrono::hours{1} + 1s);
  w->crash();
  auto& disk = w->disk();
  const std::string home = machine::kernel_home;
  disk.put(machine::graph_path, content_of(*w, machine::graph_path) + R"({"from":"exec_to)");
  disk.put(std::string(machine::home) + "/run/spool.jsonl", R"({"node_id":"node-a","disp)");
  disk.put(home + "/.STATE.md.boyd-tmp-0", "half of a STA");
  disk.put(home + "/.STATE.md.bak.boyd-tmp-0", "");
  return w;
}

bool changes(disk_op op) {
  return op == disk_op::write || op == disk_op::sync || op == disk_op::truncate ||
         op == disk_op::rewrite || op == disk_op::rename || op == disk_op::unlink ||
         op == disk_op::open || op == disk_op::sync_directory || op == disk_op::make_directories;
}

bool leftovers(world& w) {
  return w.disk().look(std::string(machine::kernel_home) + "/.STATE.md.boyd-tmp-0").content !=
         nullptr;
}

/// Everything final, recorded, committed once, and the torn ends cut off.
void check_recovered(world& w) {
  w.settle();
  INFO(joined(w.violations()));
  CHECK(w.violations().empty());
  CHECK(content_of(w, machine::graph_path).find("exec_to{") == std::string::npos);
}

/// The node ends before the n-th change of its start, for every n (or each of the stride).
std::uint64_t end_at_every_step(bool power) {
  for (std::uint64_t step = 0; step < most_steps; step += test::sweep_stride()) {
    auto w = left_in_the_middle();
    w->boot();
    w->first().end_at(cut_unit::changes, step, power);
    const auto before = w->crashes();
    w->run(start_time);
    INFO((power ? "power cut" : "kill") << " before change " << step);
    if (w->crashes() == before)
      return step;
    check_recovered(*w);
    CHECK_FALSE(leftovers(*w));
  }
  return most_steps;
}

} // namespace

TEST_CASE("case 44 fault-during-recovery: a start that ends at any of its steps is followed by one "
          "that succeeds") {
  const quiet log;
  for (const bool power : {false, true}) {
    const auto steps = end_at_every_step(power);
    CHECK(steps > 20);
    CHECK(steps < most_steps);
  }
}

TEST_CASE("case 44 fault-during-recovery: any call of a start may fail once") {
  const quiet log;
  std::uint64_t step = 0;
  int left = 0; // temporary files that could not be removed wait for another start
  for (bool reached = true; reached && step < most_steps; step += test::sweep_stride()) {
    auto w = left_in_the_middle();
    w->boot();
    std::uint64_t seen = 0;
    w->disk().set_fault_plan([&](const disk_call& call) {
      return changes(call.op) && seen++ == step ? disk_fault::io_error : disk_fault::none;
    });
    w->run(start_time);
    INFO("call " << step << " failed");
    reached = seen > step;
    check_recovered(*w);
    left += leftovers(*w) ? 1 : 0;
  }
  CHECK(step > 20);
  CHECK(step < most_steps);
  CHECK(left < 5);
}

TEST_CASE("case 34 eio-fsync: the graph's fsync fails once or for ever, the node is killed, the "
          "power goes") {
  const quiet log;
  for (const std::uint64_t times : {std::uint64_t{1}, std::uint64_t{2}, for_ever})
    for (std::uint64_t seed = 1; seed <= 10; ++seed) {
      world w(seed, two_agents(), fault_menu{});
      w.boot();
      w.run(59min);
      w.disk().fail_next(disk_op::sync, disk_fault::io_error, times, "graph.jsonl");
      // Lines that the disk has not taken stay to be seen: the repair cannot open the file either.
      w.disk().fail_next(disk_op::open, disk_fault::io_error, for_ever, "graph.jsonl");
      w.run(10min);
      w.first().kill_node();
      w.boot();
      w.run(30min);
      w.crash();
      w.boot();
      w.settle();
      INFO("seed " << seed << ", " << times << " times");
      INFO(joined(w.violations()));
      CHECK(w.violations().empty());
    }
}

TEST_CASE("case 35 enospc: the node lives on without room, and goes on by itself when there is "
          "some") {
  const quiet log;
  for (const char* where : {"STATE.md", "graph.jsonl", "kernel/default", ""}) {
    INFO("no room for " << where);
    world w(7, two_agents(), fault_menu{fault::disk_full});
    w.boot();
    w.calm(31min);
    const auto recorded = w.database().all_cycles().size();
    const auto graph = content_of(w, machine::graph_path);
    const auto state = content_of(w, machine::state_path);
    REQUIRE(recorded == 1);
    const std::string part = where;
    w.disk().set_fault_plan([part](const disk_call& call) {
      return call.op == disk_op::write && call.path.find(part) != std::string::npos
                 ? disk_fault::no_space
                 : disk_fault::none;
    });
    w.run(std::chrono::hours{1});
    // The database has room: work goes on, and nothing that was there is torn.
    CHECK(w.database().all_cycles().size() > recorded);
    CHECK(content_of(w, machine::graph_path).starts_with(graph));
    if (part.empty() || part == "STATE.md")
      CHECK(content_of(w, machine::state_path) == state);
    w.first().mend();
    w.calm(31min); // one cycle at least that finds room
    w.settle();
    INFO(joined(w.violations()));
    CHECK(w.violations().empty());
    CHECK(w.crashes() == 0);
    CHECK(content_of(w, machine::graph_path).size() > graph.size());
    CHECK(content_of(w, machine::state_path) != state);
  }
}

TEST_CASE("case 23 clock-step: an hour on, an hour back and a suspend cost no slot twice, and no "
          "lease its owner") {
  const quiet log;
  world_options options;
  options.machines = 2;
  for (std::uint64_t seed = 1; seed <= 3; ++seed) {
    world w(seed, two_agents(), fault_menu{}, options);
    w.boot();
    w.run(31min);
    for (const milliseconds by :
         {milliseconds{1h}, milliseconds{-1h}, milliseconds{-1h}, milliseconds{1h}}) {
      // In the middle of a cycle.
      w.run(29min);
      w.first().clock().jump(by);
      w.run(91min);
    }
    w.settle();
    INFO("seed " << seed);
    INFO(joined(w.violations()));
    CHECK(w.violations().empty());
    std::set<std::string> cycles;
    for (const auto& [key, slot] : w.database().all_slots())
      if (!slot.cycle_id.empty())
        CHECK(cycles.insert(slot.cycle_id).second);
    CHECK(cycles.size() == w.database().all_cycles().size());
    CHECK(cycles.size() >= 12);
    CHECK(w.crashes() == 0);
  }
}

} // namespace boyd::recovery_test
