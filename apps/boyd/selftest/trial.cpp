#include "trial.hpp"

#include "../child.hpp"
#include "../home.hpp"
#include "../json_view.hpp"
#include "adapters/control/control_client.hpp"
#include "adapters/sqlite/integrity.hpp"
#include "boyd/core/home_layout.hpp"
#include "boyd/ports/clock.hpp"
#include "boyd/ports/entropy.hpp"
#include "promises.hpp"

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <set>
#include <sstream>
#include <utility>

namespace boyd::app {

namespace {

namespace fs = std::filesystem;

constexpr const char* this_program = "/proc/self/exe";
/// A child that takes longer is broken.
constexpr milliseconds child_limit = std::chrono::minutes{2};
/// A kill comes at a random moment of a cycle, or a little after its usual end.
constexpr std::uint64_t beyond_percent = 120;
/// So many kills of cycles and of nodes, then cycles that may end, and an examination.
constexpr int kills_between = 4;
/// Small jobs that a node has in hand when it is killed.
constexpr int jobs_of_batch = 40;
/// How often a node is asked what it has done.
constexpr milliseconds listen_every{20};
/// One question to a node that may die meanwhile.
constexpr milliseconds question_patience{5000};
/// Rows that are read at a time: the most that one answer has.
constexpr std::size_t rows_at_once = 1000;
/// The only agent that does nothing outside of the home.
constexpr const char* idle_agent = "script";

const char* configuration = R"(version: 1
node: {max_concurrent: 4}
kernels:
  - kernel_id: default
    schedule: "0 0 1 1 *"
    agents:
      - agent_id: first
        prompt: work
        executor: {type: command, argv: [sh, "@/agent.sh"], cwd: "@"}
      - agent_id: second
        prompt: "work on {STATE}"
        executor: {type: command, argv: [sh, "@/agent.sh", "{prompt_file}"], cwd: "@"}
      - agent_id: script
        prompt: work
        executor: {type: script, answers: [{output: fine}]}
  - kernel_id: batch
    schedule: "0 0 1 1 *"
    agents:
)";

/// One of the batch; the number comes behind it.
const char* job_of_batch =
    R"(      - {prompt: work, executor: {type: command, argv: [sh, "@/agent.sh"], cwd: "@"}, agent_id: job)";

/// One write per line: lines of several agents do not mix.
const char* agent =
    R"(printf '%s %s\n' "$BOYD_DISPATCH_ID" "$BOYD_FENCE" >> "@/effects"
echo done
)";

std::string with_directory(std::string text, const std::string& directory) {
  for (auto at = text.find('@'); at != std::string::npos; at = text.find('@', at)) {
    text.replace(at, 1, directory);
    at += directory.size();
  }
  return text;
}

std::string whole_configuration() {
  std::string text = configuration;
  for (int i = 0; i < jobs_of_batch; ++i)
    text += job_of_batch + std::to_string(i) + "}\n";
  return text;
}

class trial_run {
 public:
  trial_run(const crash_trial& trial, signal_watch& signals)
      : trial_(trial), signals_(signals), ports_(local_ports()) {}

  result<crash_trial_report> run();

 private:
  struct ended {
    int code = 0;
    bool killed = false;
  };

  std::string file(const std::string& name) const { return report_.scratch + "/" + name; }
  std::string home() const { return file("home"); }
  std::string socket() const { return home_layout(home()).control_socket(); }

  result<void> make_scratch();
  result<ended> boyd(std::vector<std::string> args, milliseconds limit);
  result<void> cycle_to_the_end(const std::string& kernel, milliseconds& usual);
  result<void> to_the_end();
  result<void> cycle_and_kill();
  result<void> batch_and_kill();
  bool wait_until_it_answers(const child& node);
  void hear();
  void listen();
  milliseconds random_moment(milliseconds usual);
  void remember_fences();
  result<void> examine();
  void compare(const json& rows);
  result<int> git(const std::string& kernel, std::vector<std::string> args);
  result<void> examine_repository(const std::string& kernel);
  void found(std::string what) { report_.violations.push_back(std::move(what)); }
  bool is_over() {
    report_.interrupted = report_.interrupted || signals_.interrupted();
    // Without a kill nothing would have been tried, however slow the disk.
    return report_.interrupted || !report_.violations.empty() ||
           (report_.kills > 0 && report_.batch_kills > 0 &&
            ports_.clock->steady() - start_ >= trial_.time);
  }

  crash_trial trial_;
  signal_watch& signals_;
  ports ports_;
  crash_trial_report report_;
  steady_time start_{};
  milliseconds usual_{0};                   ///< how long a cycle takes here
  milliseconds usual_batch_{0};             ///< and the batch
  std::map<std::string, std::string> told_; ///< dispatch: status
  std::map<std::string, std::int64_t> told_fences_;
  crash_promises promises_;
  std::map<std::string, std::set<std::string>> commits_; ///< subjects, by kernel
};

result<void> trial_run::make_scratch() {
  auto pattern = trial_.directory + "/boyd-selftest-XXXXXX";
  if (::mkdtemp(pattern.data()) == nullptr)
    return fail(errc::io_error, "cannot make a scratch directory", trial_.directory,
                "use another directory: --dir DIR");
  report_.scratch = pattern;
  if (pattern.find_first_of("\"@\\") != std::string::npos)
    return fail(errc::invalid_argument, "the path has a quote, a backslash or an at sign", pattern,
                "use another directory: --dir DIR");
  std::error_code failed;
  fs::create_directory(home(), failed);
  std::ofstream(home_layout(home()).configuration())
      << with_directory(whole_configuration(), report_.scratch);
  std::ofstream(file("agent.sh")) << with_directory(agent, report_.scratch);
  std::ofstream(file("effects")) << std::flush; // there, and empty
  auto made = boyd({"init", "--no-input"}, child_limit);
  if (!made)
    return fail(std::move(made.error()));
  if (made->code != 0)
    return fail(errc::io_error, "the scratch home cannot be made: " + text_in(file("err")), home());
  return {};
}

/// Runs this program on the scratch home; kills it when `limit` is over.
result<trial_run::ended> trial_run::boyd(std::vector<std::string> args, milliseconds limit) {
  args.insert(args.begin(), {this_program, "--home", home()});
  auto started = child::start(std::move(args), {file("out"), file("err")});
  if (!started)
    return fail(std::move(started.error()));
  const auto how = started->wait(limit, signals_.descriptor());
  if (how == child::end::exited)
    return ended{started->code(), false};
  return ended{started->kill(), true};
}

/// What the latest `cycle --json` acknowledged.
void trial_run::hear() {
  const auto answer = object_of(text_in(file("out")));
  for (const auto& a : rows_of(answer, "agents")) {
    const auto status = text_of(a, "status");
    if (status == "done" || status == "failed")
      told_[text_of(a, "dispatch_id")] = status;
  }
  promises_.heard(answer);
  remember_fences();
  report_.acknowledged = told_.size();
}

/// The answer about a cycle has no fences: what a dispatch did until its end was told, it did under
/// this one at most.
void trial_run::remember_fences() {
  std::istringstream effects(text_in(file("effects")));
  std::map<std::string, std::int64_t> acted;
  for (std::string id, fence; effects >> id >> fence;)
    acted[id] = std::max<std::int64_t>(acted[id], std::strtoll(fence.c_str(), nullptr, 10));
  for (const auto& [id, status] : told_)
    if (const auto it = acted.find(id); it != acted.end())
      told_fences_.emplace(id, it->second);
}

/// What a running node acknowledges: the ends that it tells of.
void trial_run::listen() {
  const auto answer = adapters::control_call(
      socket(), {"GET", "/api/v1/dispatches", {{"kernel", "batch"}, {"limit", "100"}}, {}},
      question_patience);
  if (!answer)
    return; // it was not asked in time: nothing was acknowledged
  for (const auto& row : rows_of(object_of(answer->body), "items")) {
    const auto status = text_of(row, "status");
    if (status != "done" && status != "failed")
      continue;
    const auto id = text_of(row, "dispatch_id");
    told_[id] = status;
    told_fences_[id] = number_of(row, "fence");
  }
  report_.acknowledged = told_.size();
}

milliseconds trial_run::random_moment(milliseconds usual) {
  const auto most = static_cast<std::uint64_t>(usual.count()) * beyond_percent / 100 + 1;
  return milliseconds{static_cast<std::int64_t>(ports_.random->next() % most)};
}

result<void> trial_run::cycle_to_the_end(const std::string& kernel, milliseconds& usual) {
  const auto began = ports_.clock->steady();
  auto end = boyd({"cycle", "--kernel", kernel, "--json"}, child_limit);
  if (!end)
    return fail(std::move(end.error()));
  if (end->killed && signals_.interrupted()) {
    report_.interrupted = true;
    return {};
  }
  if (usual.count() == 0)
    usual = std::chrono::duration_cast<milliseconds>(ports_.clock->steady() - began);
  hear();
  if (end->code != 0)
    found("a cycle that nobody killed ended with " + std::to_string(end->code) + ": " +
          text_in(file("err")) + text_in(file("out")));
  else
    ++report_.whole_cycles;
  return {};
}

/// What was cut short and one more cycle of each kernel.
result<void> trial_run::to_the_end() {
  auto good = cycle_to_the_end("default", usual_);
  if (good && !report_.interrupted)
    good = cycle_to_the_end("batch", usual_batch_);
  return good;
}

result<void> trial_run::cycle_and_kill() {
  auto end = boyd({"cycle", "--json"}, random_moment(usual_));
  if (!end)
    return fail(std::move(end.error()));
  report_.kills += end->killed ? 1 : 0;
  if (!end->killed && end->code != 0)
    found("a cycle ended with " + std::to_string(end->code) + ": " + text_in(file("err")));
  hear();
  return {};
}

/// False: the node ended, or a signal came.
bool trial_run::wait_until_it_answers(const child& node) {
  const auto until = ports_.clock->steady() + child_limit;
  while (!adapters::control_call(socket(), {"GET", "/healthz", {}, {}}, question_patience)) {
    const auto how = node.wait(listen_every, signals_.descriptor());
    if (how != child::end::timed_out || ports_.clock->steady() >= until)
      return false;
  }
  return true;
}

/// A node gets a batch of jobs, tells of those that are done, and is killed in the middle.
result<void> trial_run::batch_and_kill() {
  auto node =
      child::start({this_program, "--home", home(), "node"}, {file("node.out"), file("node.err")});
  if (!node)
    return fail(std::move(node.error()));
  if (!wait_until_it_answers(*node)) {
    if (!signals_.interrupted())
      found("a node does not start: " + text_in(file("node.err")));
    return {};
  }
  auto cycle =
      child::start({this_program, "--home", home(), "cycle", "--kernel", "batch", "--json"},
                   {file("out"), file("err")});
  if (!cycle)
    return fail(std::move(cycle.error()));
  const auto until = ports_.clock->steady() + random_moment(usual_batch_);
  auto how = child::end::timed_out;
  while (how == child::end::timed_out && ports_.clock->steady() < until) {
    const auto left = std::chrono::duration_cast<milliseconds>(until - ports_.clock->steady());
    how = node->wait(std::min(left, listen_every), signals_.descriptor());
    if (how == child::end::timed_out)
      listen();
  }
  if (how == child::end::exited)
    found("a node that nobody killed ended: " + text_in(file("node.err")));
  // Who waits for the batch has no answer yet: the node is in the middle of it.
  report_.batch_kills += cycle->wait(milliseconds{0}, -1) == child::end::exited ? 0 : 1;
  node->kill();
  // It sees the node go, or has its answer.
  if (cycle->wait(child_limit, -1) != child::end::exited)
    found("a cycle whose node was killed does not end");
  hear();
  return {};
}

void trial_run::compare(const json& rows) {
  std::map<std::string, std::pair<std::string, std::int64_t>> there;
  std::map<std::string, std::string> agents;
  for (const auto& row : rows) {
    const auto status = text_of(row, "status");
    const auto id = text_of(row, "dispatch_id");
    there[id] = {status, number_of(row, "fence")};
    agents[id] = text_of(row, "agent_id");
    if (status == "pending" || status == "running")
      found("dispatch " + id + " is left over as " + status);
  }
  for (const auto& [id, status] : told_)
    if (const auto it = there.find(id); it == there.end() || it->second.first != status)
      found("dispatch " + id + " was told to be " + status + "; the database says " +
            (it == there.end() ? "nothing" : it->second.first));
  std::set<std::pair<std::string, std::int64_t>> seen;
  std::set<std::string> acted;
  std::istringstream effects(text_in(file("effects")));
  report_.effects = 0;
  for (std::string id, fence; effects >> id >> fence; ++report_.effects) {
    const auto number = std::strtoll(fence.c_str(), nullptr, 10);
    acted.insert(id);
    if (!seen.insert({id, number}).second)
      found("dispatch " + id + " ran twice under fence " + fence);
    if (const auto told = told_fences_.find(id);
        told != told_fences_.end() && number > told->second)
      found("dispatch " + id + " ran again, under fence " + fence + ", after its end was told");
    if (const auto it = there.find(id); it == there.end() || it->second.second < number)
      found("dispatch " + id + " ran under fence " + fence + "; the database does not know it");
  }
  for (const auto& [id, status] : told_)
    if (status == "done" && agents[id] != idle_agent && acted.count(id) == 0)
      found("dispatch " + id + " was told to be done; it never acted");
}

/// Its exit code; what it said is in the files "out" and "err".
result<int> trial_run::git(const std::string& kernel, std::vector<std::string> args) {
  // What a shell says when there is no such program.
  constexpr int no_such_program = 127;
  args.insert(args.begin(),
              {"git", "-c", "safe.directory=*", "-C", home_layout(home()).kernel(kernel)});
  auto started = child::start(std::move(args), {file("out"), file("err")});
  if (!started)
    return no_such_program;
  if (started->wait(child_limit, -1) != child::end::exited)
    return fail(errc::timed_out, "git does not end", home());
  const int code = started->code();
  report_.git_was_there = report_.git_was_there || code != no_such_program;
  return code;
}

result<void> trial_run::examine_repository(const std::string& kernel) {
  auto checked = git(kernel, {"fsck", "--strict", "--no-dangling", "--no-progress"});
  if (!checked)
    return fail(std::move(checked.error()));
  if (!report_.git_was_there)
    return {};
  if (const auto said = text_in(file("out")) + text_in(file("err")); *checked != 0 || !said.empty())
    found("git fsck: " + said);
  auto listed = git(kernel, {"log", "--format=%s"});
  if (!listed)
    return fail(std::move(listed.error()));
  if (*listed != 0)
    found("git log: " + text_in(file("err")));
  auto& subjects = commits_[kernel];
  subjects.clear();
  std::istringstream lines(text_in(file("out")));
  for (std::string line; std::getline(lines, line);)
    subjects.insert(line);
  return {};
}

result<void> trial_run::examine() {
  ++report_.examinations;
  for (const char* kernel : {"default", "batch"})
    if (auto looked = examine_repository(kernel); !looked)
      return looked;
  json rows = json::array();
  for (auto page = rows_at_once; page == rows_at_once;) {
    std::vector<std::string> args{"dispatches", "ls", "--json", "--limit",
                                  std::to_string(rows_at_once)};
    if (!rows.empty())
      args.insert(args.end(), {"--before", text_of(rows.back(), "dispatch_id")});
    auto listed = boyd(std::move(args), child_limit);
    if (!listed)
      return fail(std::move(listed.error()));
    if (listed->killed)
      return {}; // interrupted
    if (listed->code != 0)
      found("the dispatches cannot be read: " + text_in(file("err")));
    auto items = rows_of(object_of(text_in(file("out"))), "items");
    page = items.size();
    for (auto& row : items)
      rows.push_back(std::move(row));
  }
  compare(rows);
  if (auto sound = adapters::check_sqlite_integrity(home_layout(home()).database()); !sound)
    found(sound.error().what);
  for (auto& broken : promises_.broken(home(), commits_))
    found(std::move(broken));
  return {};
}

result<crash_trial_report> trial_run::run() {
  start_ = ports_.clock->steady();
  auto good = make_scratch();
  if (good)
    good = to_the_end();
  while (good && !is_over()) {
    for (int i = 0; i < kills_between && good && !is_over(); ++i) {
      good = cycle_and_kill();
      if (good && !is_over())
        good = batch_and_kill();
    }
    if (good && !report_.interrupted)
      good = to_the_end();
    if (good && !report_.interrupted)
      good = examine();
  }
  report_.spent = std::chrono::duration_cast<milliseconds>(ports_.clock->steady() - start_);
  std::error_code ignored;
  if (report_.violations.empty() && !report_.scratch.empty())
    fs::remove_all(report_.scratch, ignored);
  if (!good)
    return fail(std::move(good.error()));
  return std::move(report_);
}

} // namespace

result<crash_trial_report> run_crash_trial(const crash_trial& trial, signal_watch& signals) {
  return trial_run(trial, signals).run();
}

} // namespace boyd::app
