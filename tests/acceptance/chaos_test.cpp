#include "agreement.hpp"
#include "harness.hpp"
#include "support/pch.hpp"
#include "support/telling.hpp"

#include <algorithm>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <thread>

namespace boyd::chaos_test {

using namespace boyd::test;
using nlohmann::json;

namespace {

/// Nodes that are swept side by side, each through its share of the points.
constexpr std::size_t nodes_at_once = 6;
/// The root gives up at more failures than this in a minute (docs/architecture.md).
constexpr int restarts_allowed = 2;
/// A cancelled run is gone after this long at most, and not after the 60 s that it would sleep: a
/// lost notice is repeated after 2 s, a lost TERM is followed by a KILL after 5 s.
constexpr std::chrono::seconds cancel_patience{30};

/// Two agents that pass what there is to pass: a prompt file, inputs to hash and a check that says
/// something else each time, a long run on request, a heartbeat.
test_settings settings_of_sweep() {
  test_settings t;
  t.node = "max_concurrent: 8, chaos: true, lease: 4s, lease_renewal: 1s";
  // Nobody listens there.
  t.kernel = "schedule: \"0 0 1 1 *\"; max_cycle_history: 10; heartbeat_url: "
             "\"http://127.0.0.1:9/\"";
  const std::string retry = "retry: {max_attempts: 4, base: 10ms}";
  t.agents = {{"first",
               "say began; cat \"$1\" >/dev/null || exit 75; [ ! -e @SITE@/long ] || sleep $(cat "
               "@SITE@/long); echo done",
               retry + "; wake: {argv: [date, +%N], timeout: 2s}", "{prompt_file}"},
              {"second", "say began; echo \"$BOYD_DISPATCH_ID\" > @SITE@/input; echo done",
               retry + "; wake: {inputs: [INPUT_PATH]}"}};
  return t;
}

/// What must be arranged so that a cycle passes a point: commands of `boyd chaos inject` that come
/// with the fault, and questions asked beside the cycle.
struct way {
  std::vector<std::vector<std::string>> also{};
  std::vector<std::string> ask{"status"};
  std::string long_run{}; ///< for how many seconds the first agent sleeps
  bool cancels = false;   ///< the operator ends what runs
  bool new_goal = false;  ///< a person writes another GOAL.md: snapshots follow it
  bool reloads = false;   ///< the configuration is read again
};

way way_to(const std::string& point) {
  const auto dies = [](const std::string& at) {
    return std::vector<std::vector<std::string>>{{at, "--crash"}};
  };
  // A store that is away while results come: they are spooled, and recorded when it is back.
  const std::vector<std::vector<std::string>> outage{{"store.settle", "--error", "--count", "2"}};
  static const std::map<std::string, std::string> behind{
      {"store.open", "store.apply"},
      {"graph_recorder.open", "graph_recorder.append"},
      {"graph_recorder.read", "graph_recorder.append"},
      {"repository.open", "git_committer.commit"},
      {"kernel.load", "kernel.step"},
      {"parts.subscribe", "kernel.step"},
      {"supervision.start", "planner.plan"},
      {"supervision.stop", "permits.grant"},
      {"dispatchers.recover", "permits.grant"}};
  if (const auto it = behind.find(point); it != behind.end())
    return {dies(it->second)};
  // A line that was not written whole is cut off.
  if (point == "graph_recorder.repair")
    return {{{"graph_recorder.bytes", "--error"}}};
  // A temporary file that was not synced is removed.
  if (point == "state_writer.unlink")
    return {{{"state_writer.sync", "--error"}}};
  if (point == "spool.repair")
    return {{outage.front(), {"spool.bytes", "--error"}}};
  if (point.starts_with("spool."))
    return {outage};
  if (point == "dispatchers.cancel" || point == "executor.cancel" || point == "processes.signal")
    return {{}, {"status"}, "60", true};
  // A cycle leaves staging and its directory to the commits; a kernel that loads writes its
  // snapshots and does both itself.
  if (point == "repository.stage" || point == "state_writer.sync_directory")
    return {dies("kernel.step"), {"status"}, {}, false, true};
  if (point == "repository.read")
    return {{}, {"state", "log"}};
  if (point == "parts.reload")
    return {{}, {"status"}, {}, false, false, true};
  return {{}, {"status"}, point == "store.renew" ? "2" : ""};
}

/// Passed only where a cycle does not come: another node's wake-up, packing after 500 objects, a
/// look for old rows after a minute, the start of a node (tests/e2e/chaos_test.cpp,
/// tests/e2e/supervision_test.cpp), a chat
/// (tests/e2e/chat_test.cpp), a tool server (tests/e2e/mcp_test.cpp), a run that asks a person
/// or uses file tools (tests/actor), one in a worktree (tests/e2e/agent_cli_test.cpp), a record of
/// a run or another durable file (tests/actor/workspace_test.cpp), a new graph.jsonl
/// (tests/unit/faults/ports_test.cpp), the end of a node, a lease that ran out and runs that a
/// crash ended (tests/actor/order_faults_test.cpp), a sandbox
/// (tests/integration/process/sandbox_test.cpp), a planner's question (tests/actor), a question to
/// the memory (tests/actor/memory_test.cpp).
bool out_of_reach(const std::string& point) {
  static const std::set<std::string> points{"approvals.answer",
                                            "approvals.ask",
                                            "approvals.end",
                                            "approvals.notify",
                                            "approvals.use",
                                            "governor.answer",
                                            "governor.place",
                                            "governor.release",
                                            "home.lock",
                                            "home.crash_note",
                                            "models.answer",
                                            "graph_recorder.sync_directory",
                                            "models.call",
                                            "repository.pack",
                                            "retention.run",
                                            "dispatcher.drain",
                                            "dispatcher.hurry",
                                            "dispatcher.expired",
                                            "dispatchers.drained",
                                            "kernel.stop",
                                            "permits.pace",
                                            "planner.stop",
                                            "sandbox.remove",
                                            "store.migrate",
                                            "store.wakeup",
                                            "workspace.rename",
                                            "workspace.repair",
                                            "workspace.sync",
                                            "workspace.sync_directory"};
  return points.contains(point) || point.starts_with("mcp.") || point.starts_with("file_tools.") ||
         point.starts_with("worktrees.") || point.starts_with("knowledge.");
}

/// One node and the points it goes through; what went wrong is in `found`.
class sweep {
 public:
  explicit sweep(std::vector<std::pair<std::string, std::string>> faults)
      : faults_(std::move(faults)), settings_(settings_of_sweep()), site_(settings_) {
    auto& more = settings_.agents[1].more;
    more.replace(more.find("INPUT_PATH"), std::string("INPUT_PATH").size(), site_.outside("input"));
    write_file(site_.outside("input"), "0\n");
    site_.configure(settings_);
  }

  void run() try {
    for (const auto& [point, action] : faults_)
      strike(point, action);
    stop();
    for (const auto& wrong : disagreements(site_))
      note("at the end", wrong);
    check_rows();
  } catch (const std::exception& e) {
    note("the sweep ended early", e.what());
  }

  const std::vector<std::string>& found() const { return found_; }

 private:
  void note(const std::string& where, const std::string& what) {
    found_.push_back(where + ": " + what);
  }

  void start() {
    node_ = std::make_unique<node_process>(site_.home(), site_.log_path());
    node_->wait_ready();
  }

  void stop() {
    if (!node_)
      return;
    node_->signal(SIGTERM);
    if (const int code = node_->wait_end(); code != 0)
      note("shutdown", "ended with " + std::to_string(code) + "\n" + node_->log());
    node_.reset();
  }

  /// Fewer restarts than the root allows are behind this node.
  void have_fresh_node() {
    if (node_ && node_->running()) {
      int restarts = 0;
      const auto status = site_.status();
      for (const auto& a : status.at("actors"))
        restarts += a.at("depth") == 1 ? a.at("restarts").get<int>() : 0;
      if (restarts < restarts_allowed)
        return;
    }
    stop();
    start();
  }

  bool is_well() {
    const auto r = site_.run({"status", "--json"});
    const auto status = r.json();
    if (r.code != 0 || !status.is_object())
      return false;
    const auto& kernel = status.at("kernels")[0];
    return troubles(status).empty() && status.at("queue").at("pending") == 0 &&
           status.at("queue").at("running") == 0 && kernel.at("cycle_id") == "" &&
           kernel.at("problem") == "";
  }

  void inject(std::vector<std::string> words) {
    words.insert(words.begin(), {"chaos", "inject"});
    if (const auto r = site_.run(words); r.code != 0)
      note(words[2], "not armed: " + r.err);
  }

  std::int64_t strikes_at(const std::string& point) {
    const auto r = site_.run({"chaos", "status", "--json"});
    const auto body = r.json();
    std::int64_t n = 0;
    if (r.code == 0 && body.is_object())
      for (const auto& f : body.at("faults"))
        n += f.at("point") == point ? f.at("strikes").get<std::int64_t>() : 0;
    return n;
  }

  /// A cycle whose first agent would sleep for long is begun, and that run is cancelled: it ends.
  void cancel_what_runs(const std::string& where) {
    std::thread cycle([&] { (void)site_.run({"cycle"}); });
    const auto running = [&] {
      return site_.ask({"dispatches", "ls", "--status", "running", "--agent", "first"}).at("items");
    };
    if (!eventually([&] { return !running().empty(); }))
      note(where, "nothing runs that could be cancelled");
    for (const auto& row : running()) {
      cancelled_.insert(row.at("dispatch_id").get<std::string>());
      (void)site_.run({"dispatches", "cancel", row.at("dispatch_id").get<std::string>()});
    }
    if (!eventually([&] { return running().empty(); }, cancel_patience))
      note(where, "what was cancelled goes on");
    cycle.join();
  }

  void strike(const std::string& point, const std::string& action) {
    have_fresh_node();
    const auto log_before = node_->log().size();
    const auto arranged = way_to(point);
    if (!arranged.long_run.empty())
      write_file(site_.outside("long"), arranged.long_run);
    if (arranged.new_goal)
      write_file(site_.kernel("GOAL.md"), "Goal number " + std::to_string(++goals_) + ".\n");
    std::vector<std::string> words{point, "--" + action};
    if (action == "delay")
      words.emplace_back("50");
    inject(words);
    for (const auto& more : arranged.also)
      inject(more);
    if (arranged.cancels)
      cancel_what_runs(point + " " + action);
    else
      (void)site_.run({"cycle"}); // the fault may take the answer away
    if (arranged.reloads)
      node_->signal(SIGHUP);
    (void)site_.run(arranged.ask);
    const bool struck = eventually([&] { return strikes_at(point) > 0 || !node_->running(); });
    std::filesystem::remove(site_.outside("long"));
    const auto where = point + " " + action;
    if (!struck || !node_->running()) {
      note(where,
           (struck ? "the node is gone\n" : "it never struck\n") + node_->log().substr(log_before));
      stop();
      return;
    }
    (void)site_.run({"chaos", "clear"});
    if (!eventually([&] { return is_well(); }))
      note(where,
           "it did not recover: " + site_.run({"status"}).out + node_->log().substr(log_before));
    const auto cycle = site_.run({"cycle", "--json"});
    const auto body = cycle.json();
    if (cycle.code != 0 || !body.is_object() || body.value("succeeded", 0) != 2)
      note(where, "the next cycle: " + cycle.out + cycle.err + node_->log().substr(log_before));
  }

  /// Nothing is lost, nothing is done twice under one fence.
  void check_rows() {
    std::set<std::string> began;
    for (const auto& line : site_.ledger())
      began.insert(line.dispatch);
    for (const auto& row : site_.dispatches()) {
      const bool ended = row.at("status") == "cancelled" &&
                         cancelled_.contains(row.at("dispatch_id").get<std::string>());
      if (row.at("status") != "done" && !ended)
        note("a row is not done", row.dump());
      if (!began.contains(row.at("dispatch_id").get<std::string>()))
        note("a row was never run", row.dump());
      std::set<std::string> fences;
      int good = 0;
      for (const auto& a : row.at("attempts")) {
        if (!promised(fences.insert(a.at("fence").dump()).second, "a fence once: " + row.dump()))
          note("a fence twice", row.dump());
        good += a.value("to", "") == "done" ? 1 : 0;
      }
      if (!promised(good <= 1, "done once: " + row.dump()))
        note("done twice", row.dump());
    }
  }

  std::vector<std::pair<std::string, std::string>> faults_;
  test_settings settings_;
  site site_;
  std::unique_ptr<node_process> node_;
  std::set<std::string> cancelled_; ///< by us
  int goals_ = 0;                   ///< written by us
  std::vector<std::string> found_;
};

/// The standard sweep: a crash wherever one can be, else the loss of what can be lost, else an
/// error; but not what only the poll of 30 s makes good.
bool is_standard(const std::string& point, const json& can, const std::string& action) {
  if (point == "queue.changed" || point == "dispatcher.due")
    return false;
  const auto has = [&](const char* a) { return std::ranges::find(can, a) != can.end(); };
  return action == (has("crash") ? "crash" : has("drop") ? "drop" : "error");
}

/// BOYD_FAULT_SWEEP: nothing for the standard one; "all", or the name of an action; or names of
/// points, then with all their actions.
std::vector<std::pair<std::string, std::string>> faults_to_sweep() {
  const char* wish = std::getenv("BOYD_FAULT_SWEEP");
  const std::string wanted = wish == nullptr ? "standard" : wish;
  std::vector<std::pair<std::string, std::string>> all;
  const auto listed = boyd_run({"chaos", "ls", "--json"}).json();
  for (const auto& p : listed.at("items")) {
    const auto point = p.at("point").get<std::string>();
    const bool named = wanted.find('.') != std::string::npos;
    if (out_of_reach(point) || (named && wanted.find(point) == std::string::npos))
      continue;
    for (const auto& action : p.at("can"))
      if (named || wanted == "all" || action == wanted ||
          (wanted == "standard" && is_standard(point, p.at("can"), action.get<std::string>())))
        all.emplace_back(point, action.get<std::string>());
  }
  return all;
}

} // namespace

TEST_CASE("chaos: a running node loses nothing at any fault point", "[acceptance]") {
  const auto faults = faults_to_sweep();
  REQUIRE_FALSE(faults.empty());
  std::mutex mutex;
  std::vector<std::string> found;
  std::vector<std::thread> threads;
  for (std::size_t i = 0; i < std::min(nodes_at_once, faults.size()); ++i)
    threads.emplace_back([&, i] {
      std::vector<std::pair<std::string, std::string>> share;
      for (std::size_t k = i; k < faults.size(); k += nodes_at_once)
        share.push_back(faults[k]);
      sweep one(share);
      one.run();
      const std::lock_guard lock(mutex);
      found.insert(found.end(), one.found().begin(), one.found().end());
    });
  for (auto& t : threads)
    t.join();
  INFO(told(found));
  CHECK(found.empty());
}

} // namespace boyd::chaos_test
