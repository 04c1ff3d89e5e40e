#include "boyd/faults/points.hpp"
#include "boyd/state/runtime_block.hpp"
#include "support/knob.hpp"
#include "support/pch.hpp"
#include "tests/sim/lab/world.hpp"

#include <algorithm>

namespace boyd::record_test {

using namespace boyd;
using namespace boyd::sim;

namespace {

constexpr const char* kernel_home = "/home/boyd/kernel/default";
constexpr int seconds_of_a_cycle = 420; ///< from the start of the node, and to spare
const fault_menu no_faults;

/// A kernel whose agents always say the same.
config::configuration agents_named(std::initializer_list<const char*> ids) {
  config::configuration c;
  config::kernel k;
  k.when.expression = "@every 5m";
  for (const char* id : ids) {
    config::agent a;
    a.agent_id = id;
    a.prompt = "{TIME}";
    config::command_executor run;
    run.argv = {"agent"};
    a.run = run;
    k.agents.push_back(a);
  }
  c.kernels.push_back(k);
  return c;
}

std::ptrdiff_t commits_called(world& w, const std::string& subject) {
  return std::ranges::count_if(w.repositories().commits(kernel_home), [&](const sim_commit& c) {
    return c.info.subject.starts_with(subject);
  });
}

/// Every recorded cycle has one `pre-cycle` and, behind it, one `cycle` commit, whose STATE.md
/// shows it.
void check_commits(world& w) {
  const auto& commits = w.repositories().commits(kernel_home);
  for (const auto& [id, cycle] : w.database().cycles()) {
    const std::string own = "cycle " + id + ": ";
    INFO("cycle " << id);
    CHECK(commits_called(w, "pre-cycle " + id) == 1);
    CHECK(commits_called(w, own) == 1);
    const auto is = [](std::string subject) {
      return
          [s = std::move(subject)](const sim_commit& c) { return c.info.subject.starts_with(s); };
    };
    const auto before = std::ranges::find_if(commits, is("pre-cycle " + id));
    const auto at = std::ranges::find_if(commits, is(own));
    if (at == commits.end())
      continue;
    CHECK(before < at);
    const auto text = at->tree.find("STATE.md");
    REQUIRE(text != at->tree.end());
    const auto block = state::parse_runtime_block(*text->second);
    REQUIRE(block);
    CHECK(block->latest.cycle_id == id);
    CHECK(at->info.trailers.front() == std::pair<std::string, std::string>("Boyd-Cycle", id));
  }
}

bool some_cycle_runs(world& w) {
  return std::ranges::any_of(w.database().all_cycles(), [](const auto& c) {
    return c.second.status == cycle_status::running;
  });
}

/// Until a cycle more is recorded and none runs.
void rest(world& w) {
  w.calm(6min);
  for (int i = 0; i < 40 && some_cycle_runs(w); ++i)
    w.calm(30s);
}

/// What is counted until the power goes.
enum class unit : std::uint8_t {
  changes,  ///< of the disk and the repository
  messages, ///< between actors
};

/// Lets the power go before the n-th unit, counted from the first cycle's row on: from then on
/// nothing lasts, until the world crashes.
class power_cut {
 public:
  power_cut(world& w, unit counted, int at) : world_(w), at_(at) {
    const bool changes = counted == unit::changes;
    w.disk().set_fault_plan([this, changes](const disk_call& call) {
      if (changes && call.op != disk_op::read)
        step();
      return gone_ ? disk_fault::io_error : disk_fault::none;
    });
    w.repositories().set_fault_hook([this, changes](git_op op, const std::string& path) {
      if (changes && (op == git_op::commit || op == git_op::commit_moved))
        step();
      return gone_ ? std::optional(error{errc::repository_unavailable, "no power", path, {}})
                   : std::nullopt;
    });
    if (!changes)
      w.system().choose_by([this](std::size_t) {
        step();
        return std::size_t{0};
      });
  }

  ~power_cut() { world_.repositories().set_fault_hook({}); }
  power_cut(const power_cut&) = delete;
  power_cut& operator=(const power_cut&) = delete;

  bool gone() const { return gone_; }

 private:
  void step() {
    if (gone_ || (seen_ == 0 && world_.database().cycles().empty()) || seen_++ < at_)
      return;
    gone_ = true;
    world_.database().faults.unavailable = true;
  }

  world& world_;
  int at_;
  int seen_ = 0;
  bool gone_ = false;
};

/// Boots, and runs until the power is cut in the first cycle, or that one is over; true when it
/// was.
bool cut_in_first_cycle(world& w, unit counted, int at) {
  w.boot();
  power_cut cut(w, counted, at);
  for (int second = 0; second < seconds_of_a_cycle && !cut.gone(); ++second)
    w.system().advance(1s);
  w.crash();
  return cut.gone();
}

std::string told(const std::vector<std::string>& lines) {
  std::string all;
  for (const auto& l : lines)
    all += l + "\n";
  return all;
}

} // namespace

TEST_CASE("a power cut at any moment of a cycle costs none of its commits, and doubles none") {
  // Every change of disk or repository, and messages in between, where the database's are.
  const auto [counted, stride] =
      GENERATE(std::pair{unit::changes, 1}, std::pair{unit::messages, 7});
  constexpr int most = 10'000;
  int runs = 0;
  int at = 0;
  for (bool cut = true; cut && at < most; at += stride, ++runs) {
    world w(static_cast<std::uint64_t>(at), agents_named({"alpha", "beta"}), no_faults);
    cut = cut_in_first_cycle(w, counted, at);
    w.boot();
    rest(w);
    INFO("the power went before " << (counted == unit::changes ? "change " : "message ") << at);
    check_commits(w);
    w.check_settled();
    INFO(told(w.violations()));
    CHECK(w.violations().empty());
    CHECK(w.database().cycles().size() >= 2);
  }
  CHECK(runs > 20);
  CHECK(at < most);
}

TEST_CASE("cycles that change nothing, or say the same within a second, have two commits each") {
  world w(1, agents_named({}), no_faults);
  w.boot();
  rest(w);
  rest(w);
  check_commits(w);
  CHECK(w.database().cycles().size() >= 2);
}

TEST_CASE("cycles whose commits failed get them afterwards, in their order") {
  const auto failing = GENERATE(git_op::commit, git_op::changes);
  const bool crashes = GENERATE(false, true);
  const bool in_a_cycle = GENERATE(false, true);
  INFO("crash: " << crashes << ", mended in a cycle: " << in_a_cycle);
  world w(1, agents_named({"alpha"}), no_faults);
  w.boot();
  rest(w);
  bool fails = true;
  w.repositories().set_fault_hook([&](git_op op, const std::string& path) {
    return fails && op == failing ? std::optional(error{errc::refused, "not now", path, {}})
                                  : std::nullopt;
  });
  const auto committed = commits_called(w, "cycle ");
  // Without the world's own calm, which ends every fault.
  for (int second = 0; second < 2 * seconds_of_a_cycle; ++second)
    w.system().advance(1s);
  CHECK(w.database().cycles().size() >= 3);
  CHECK(commits_called(w, "cycle ") == committed);
  for (int i = 0; in_a_cycle && i < 400 && !some_cycle_runs(w); ++i)
    w.system().advance(1s);
  if (crashes) {
    w.crash();
    w.boot();
  }
  fails = false;
  rest(w);
  check_commits(w);
  std::vector<std::string> in_order;
  for (const auto& c : w.repositories().commits(kernel_home))
    if (c.info.subject.starts_with("cycle "))
      in_order.push_back(c.info.trailers.front().second);
  CHECK(in_order.size() >= 3);
  CHECK(std::ranges::is_sorted(in_order)); // a cycle's id begins with its time
  w.check_settled();
  INFO(told(w.violations()));
  CHECK(w.violations().empty());
  w.repositories().set_fault_hook({});
}

TEST_CASE("a planner's error is in the record, whenever the node crashes after it") {
  // Enough to reach the end of a cycle without dispatches.
  constexpr int most = 160;
  int broken = 0;
  for (int at = 0; at < most; at += static_cast<int>(test::sweep_stride())) {
    world w(static_cast<std::uint64_t>(at), agents_named({"alpha"}), no_faults);
    REQUIRE(faults::arm({{"planner.plan", faults::action::error, 1, 1.0, {}}}, 1));
    cut_in_first_cycle(w, unit::messages, at);
    faults::disarm();
    w.boot();
    rest(w);
    INFO("the power went before message " << at);
    const auto cycles = w.database().cycles();
    for (const auto& [id, c] : cycles) {
      // A crash before the decisions were written asks the planner again.
      const bool planned = c.dispatched > 0;
      CHECK(c.status == (planned ? cycle_status::success : cycle_status::error));
      CHECK((c.error.find("planner") == std::string::npos) == planned);
      broken += planned ? 0 : 1;
    }
    check_commits(w);
  }
  CHECK(broken > 0);
}

TEST_CASE("actors and nodes that die at random cost no cycle its commits, and double none") {
  const fault_menu deaths{fault::power_cut, fault::node_kill, fault::actor_kill, fault::restart};
  world_options often;
  often.slot = 5min;
  often.between = 5min;
  for (const std::uint64_t seed : {1U, 2U, 3U}) {
    world w(seed, agents_named({"alpha", "beta"}), deaths, often);
    w.boot();
    w.run(3h);
    rest(w);
    INFO("seed " << seed);
    check_commits(w);
    w.check_settled();
    INFO(told(w.violations()));
    CHECK(w.violations().empty());
    CHECK(w.kills() + w.crashes() > 3);
  }
}

} // namespace boyd::record_test
