#include "tests/sim/lab/inspector.hpp"

#include "boyd/core/text.hpp"
#include "boyd/plan/llm_planner.hpp"
#include "boyd/state/document.hpp"
#include "boyd/state/runtime_block.hpp"

#include <algorithm>
#include <cstdlib>
#include <string_view>
#include <utility>

namespace boyd::sim {

namespace {

constexpr std::size_t most_violations = 20;

std::string trailer(const sim_commit& c, const char* name) {
  for (const auto& [key, value] : c.info.trailers)
    if (key == name)
      return value;
  return {};
}

/// What a status says of permits, as its text has it; empty when it says nothing. Its names stand
/// as they are in no text of it, where quotes are escaped. (To parse the whole answer would take
/// longer than to give it.)
std::string_view permits_of(std::string_view status) {
  constexpr std::string_view name = "\"permits\":";
  const auto at = status.find(name);
  return at == std::string_view::npos ? std::string_view{} : status.substr(at + name.size());
}

} // namespace

inspector::inspector(sim_database& database, const machines& all, expectations expected)
    : database_(database), machines_(all), expected_(expected) {
  database_.audit.broken = [this](const std::string& what) { violated(what); };
}

void inspector::violated(const std::string& what) {
  if (std::ranges::find(violations_, what) == violations_.end() &&
      violations_.size() < most_violations)
    violations_.push_back(what);
}

/// How often its node was kept from doing anything while time passed.
std::uint64_t inspector::hindrances_of(const machine& m) const {
  auto all = m.stops();
  for (const auto& each : machines_)
    all += each->slowed();
  return all;
}

inspector::run inspector::run_of(const machine& m, const process_spec& spec) const {
  run r;
  r.on = &m;
  r.handle = m.processes().started() + 1;
  r.hindrances = hindrances_of(m);
  r.is_check = !spec.argv.empty() && spec.argv.front() == machine::check_program;
  for (const auto& [name, value] : spec.environment) {
    if (name == "BOYD_DISPATCH_ID")
      r.dispatch_id = value;
    else if (name == "BOYD_FENCE")
      r.fence = std::strtoll(value.c_str(), nullptr, 10);
  }
  return r;
}

void inspector::starting(machine& m, const process_spec& spec, const sim_program& program) {
  std::erase_if(runs_, [](const run& r) { return !r.on->processes().alive(r.handle); });
  auto r = run_of(m, spec);
  if (r.dispatch_id.empty())
    return;
  check_owner(r);
  if (program.start_errno != 0)
    return;
  check_alone(r);
  if (!r.is_check && !attempts_.emplace(r.dispatch_id, r.fence).second)
    violated("an attempt was started twice: " + r.dispatch_id);
  runs_.push_back(std::move(r));
  const auto here = std::ranges::count(runs_, &m, &run::on);
  if (here > expected_.permits)
    violated("more runs than permits on " + m.name());
}

/// Who starts it holds its row under the very fence that it is started with.
void inspector::check_owner(const run& r) {
  const auto found = database_.all_rows().find(r.dispatch_id);
  if (found == database_.all_rows().end())
    return violated("a run without a row: " + r.dispatch_id);
  const auto& d = found->second.d;
  const bool owns =
      d.status == dispatch_status::running && d.fence == r.fence && d.lease_owner == r.on->name();
  if (!owns)
    violated(r.dispatch_id + " was started by " + r.on->name() + " with fence " +
             std::to_string(r.fence) + ", but is " + std::string(name_of(d.status)) + " with " +
             std::to_string(d.fence) + " at " + d.lease_owner);
}

/// The program of a lost attempt has ended before the work is given out again, wherever; but nobody
/// can end it whose node stands still.
void inspector::check_alone(const run& r) {
  for (const auto& other : runs_)
    if (other.dispatch_id == r.dispatch_id && other.hindrances == hindrances_of(*other.on))
      violated("a program of " + r.dispatch_id + " with fence " + std::to_string(other.fence) +
               " lives on " + other.on->name() + " while " + r.on->name() + " starts another");
}

void inspector::committed(machine& m) {
  const auto& commits = m.repositories().commits(machine::kernel_home);
  if (commits.empty() || !commits.back().info.subject.starts_with("cycle "))
    return;
  auto& k = known_of(m);
  const auto inode = m.disk().look(machine::state_path).inode;
  if (!k.disk_failed && inode > k.state_doubtful)
    k.state_acked = inode;
}

void inspector::check_state(machine& m, const char* when) {
  const auto file = m.disk().look(machine::state_path);
  if (file.content == nullptr)
    return violated(std::string("STATE.md is gone ") + when);
  if (state::agents_part(*file.content).find(agents_text) == std::string::npos)
    violated(std::string("the agents' part of STATE.md is damaged ") + when);
  if (file.content->find("kernel_runtime") != std::string::npos &&
      !state::parse_runtime_block(*file.content))
    violated(std::string("STATE.md does not parse ") + when);
}

inspector::known& inspector::known_of(machine& m) {
  auto [at, fresh] = known_.try_emplace(&m);
  if (fresh)
    at->second.graph.violated = [this](const std::string& what) { violated(what); };
  return at->second;
}

void inspector::check_state_if_new(machine& m, const char* when) {
  const auto inode = m.disk().look(machine::state_path).inode;
  if (std::exchange(known_of(m).state_seen, inode) != inode)
    check_state(m, when);
}

void inspector::stepped(machine& m) {
  auto& k = known_of(m);
  const bool fails = m.disk_fails();
  if (std::exchange(k.disk_failed, fails) || fails)
    k.state_doubtful = m.disk().look(machine::state_path).inode;
  check_state_if_new(m, "while the node ran");
  check_graph(m, false);
  check_new_commits(m);
}

void inspector::crashed(machine& m, bool power) {
  check_state(m, power ? "after a power cut" : "after a kill");
  const auto file = m.disk().look(machine::state_path);
  if (file.inode < known_of(m).state_acked)
    violated("an acknowledged STATE.md is gone after a crash");
  check_graph(m, true);
  check_memory(m);
  check_new_commits(m);
  check_rows();
}

void inspector::booted(machine& m) {
  check_state(m, "after a start");
  check_graph(m, true);
  check_new_commits(m);
  check_rows();
}

/// A row that was not final goes only when it has become so.
void inspector::check_rows() {
  const auto& rows = database_.all_rows();
  for (const auto& id : unfinished_)
    if (!rows.contains(id))
      violated("a dispatch is lost: " + id);
  unfinished_.clear();
  for (const auto& [id, row] : rows)
    if (!is_final(row.d.status))
      unfinished_.insert(unfinished_.end(), id);
}

void inspector::idle(machine& m, milliseconds now) {
  constexpr milliseconds seldom = 2h;
  auto& asked = known_of(m).asked_at;
  if (now - asked < seldom)
    return;
  const auto works = [](const auto& entry) { return !is_final(entry.second.d.status); };
  if (m.processes().alive() > 0 || std::ranges::any_of(database_.all_rows(), works))
    return;
  asked = now;
  check_permits(m, false);
}

void inspector::settled() {
  check_rows();
  check_queue();
  check_plans();
  for (const auto& m : machines_) {
    const auto file = m->disk().look(machine::graph_path);
    if (file.content != nullptr)
      known_of(*m).graph.look_at_end(*file.content, file.inode);
    check_new_commits(*m);
    check_state(*m, "at the end");
    check_memory(*m);
    if (m->up())
      check_permits(*m, true);
    if (expected_.one_machine)
      check_latest(*m);
  }
  check_commits();
  check_edges();
}

/// Whatever failed: each dispatch of a recorded cycle has its edges in the graph of a machine.
void inspector::check_edges() {
  for (const auto& [id, row] : database_.all_rows()) {
    const auto cycle = database_.all_cycles().find(row.d.cycle_id);
    if (cycle == database_.all_cycles().end() || cycle->second.status == cycle_status::running)
      continue;
    const std::string execution = "exec_" + id;
    const std::string decision = "decision_" + row.d.cycle_id;
    const auto decided = [&](const auto& m) {
      return known_of(*m).graph.has_edge(execution, decision, "decided_by");
    };
    if (std::ranges::none_of(machines_, decided))
      violated("dispatch " + id + " has no edge to the decision of its cycle");
  }
}

void inspector::check_queue() {
  for (const auto& [id, row] : database_.all_rows())
    if (!is_final(row.d.status))
      violated("not final after the calm: " + id + " " + std::string(name_of(row.d.status)));
  for (const auto& [id, c] : database_.all_cycles())
    if (c.status == cycle_status::running)
      violated("a cycle was never recorded: " + id);
  for (const auto& [key, o] : database_.all_slots())
    if (o.state == occurrence_state::open)
      violated("a slot was never ended: " + format_rfc3339(o.scheduled_at));
  if (database_.all_cycles().empty())
    violated("no cycle ran");
}

/// What has been committed since the last look: at most one `pre-cycle` and one `cycle` for each
/// cycle, which the store knows; STATE.md in it with the agents' part; a head that is in the graph.
/// What a model chose is what was dispatched, within the limits.
void inspector::check_plans() {
  for (const auto& [key, row] : database_.all_decisions()) {
    if (row.decision.agent_id != plan::planner_voice)
      continue;
    const auto record = plan::read_plan_record(row.decision.detail);
    if (!record)
      violated("the plan of cycle " + row.cycle_id + " is on record, but cannot be read");
    if (!record || record->asked.fell_back != plan::fallback_reason::none)
      continue;
    std::size_t dispatched = 0;
    for (const auto& [id, d] : database_.all_rows()) {
      if (d.d.cycle_id != row.cycle_id)
        continue;
      ++dispatched;
      if (std::ranges::find(record->wishes, d.d.agent_id, &plan::wish::agent_id) ==
          record->wishes.end())
        violated(d.d.agent_id + " ran in cycle " + row.cycle_id + ", unwished");
    }
    if (dispatched > expected_.most_chosen)
      violated("more was dispatched in cycle " + row.cycle_id + " than a model may choose");
  }
}

void inspector::check_new_commits(machine& m) {
  auto& k = known_of(m);
  const auto& commits = m.repositories().commits(machine::kernel_home);
  if (commits.size() < k.commits_seen)
    violated("commits are gone from the repository");
  for (; k.commits_seen < commits.size(); ++k.commits_seen) {
    const auto& c = commits[k.commits_seen];
    const auto id = trailer(c, "Boyd-Cycle");
    if (const auto head = trailer(c, "Boyd-Graph-Head"); !head.empty())
      k.graph.anchored(head);
    if (id.empty())
      continue;
    auto& s = k.cycles[id];
    if (c.info.subject.starts_with("pre-cycle ")) {
      ++s.before;
      s.wrong_order = s.wrong_order || s.after > 0;
    } else if (c.info.subject.starts_with("cycle ")) {
      ++s.after;
    }
    if (s.before > 1 || s.after > 1)
      violated("a commit was made twice for cycle " + id);
    if (!database_.all_cycles().contains(id))
      violated("a commit of a cycle that nobody knows: " + c.info.subject);
    const auto state = c.tree.find("STATE.md");
    if (state == c.tree.end())
      violated("a commit without STATE.md: " + c.info.subject);
    else if (state->second->find(agents_text) == std::string::npos)
      violated("a commit without the agents' part of STATE.md: " + c.info.subject);
  }
}

/// Every recorded cycle has one `pre-cycle` and, behind it, one `cycle` commit, on the machine that
/// ran it. Another one may commit its rendering of it, once. One that was hindered may have failed
/// in a `pre-cycle` commit.
void inspector::check_commits() {
  std::set<std::string> whole;
  std::set<std::string> ended;
  for (const auto& m : machines_)
    for (const auto& [id, s] : known_of(*m).cycles) {
      if (s.after == 1)
        ended.insert(id);
      if (s.before == 1 && s.after == 1 && !s.wrong_order)
        whole.insert(id);
    }
  // Whatever fails: what a cycle is owed is made up for.
  for (const auto& [id, c] : database_.all_cycles())
    if (!ended.contains(id))
      violated("cycle " + id + " was never committed");
  for (const auto& [id, c] : database_.all_cycles())
    if (!whole.contains(id))
      violated("cycle " + id + " does not have its two commits");
}

void inspector::check_latest(machine& m) {
  const cycle_record* latest = nullptr; // whatever the clock said, which may have been set back
  for (const auto& [id, c] : database_.all_cycles())
    if (latest == nullptr || database_.cycle_number(id) > database_.cycle_number(latest->cycle_id))
      latest = &c;
  const auto file = m.disk().look(machine::state_path);
  if (latest == nullptr || file.content == nullptr)
    return;
  const auto block = state::parse_runtime_block(*file.content);
  if (!block || block->latest.cycle_id != latest->cycle_id ||
      block->latest.status != latest->status)
    violated("STATE.md does not show the latest cycle");
  const auto& commits = m.repositories().commits(machine::kernel_home);
  const auto in_head = commits.empty() ? nullptr : [&]() -> const std::string* {
    const auto& tree = commits.back().tree;
    const auto at = tree.find("STATE.md");
    return at == tree.end() ? nullptr : at->second.get();
  }();
  if (in_head == nullptr || *in_head != *file.content)
    violated("STATE.md is not committed as it stands");
}

void inspector::check_graph(machine& m, bool whole) {
  const auto file = m.disk().look(machine::graph_path);
  if (file.content != nullptr)
    known_of(m).graph.look(*file.content, file.inode, whole);
}

void inspector::remembered(machine& m, const std::string& text) {
  // What is written while the disk fails need not last.
  if (!known_of(m).disk_failed)
    known_of(m).entries.push_back(text);
}

std::size_t inspector::entries() const {
  std::size_t n = 0;
  for (const auto& [m, of_machine] : known_)
    n += of_machine.entries.size();
  return n;
}

/// MEMORY.md, and what has left it.
void inspector::check_memory(machine& m) {
  if (known_of(m).entries.empty())
    return;
  const std::string kernel = machine::kernel_home;
  std::string all;
  for (const auto& [path, content] : m.disk().snapshot())
    if (path == kernel + "/MEMORY.md" || path.starts_with(kernel + "/archive/") ||
        path.starts_with(kernel + "/research/"))
      all += content;
  for (const auto& text : known_of(m).entries)
    if (all.find(text) == std::string::npos)
      violated("an acknowledged entry of the memory is gone: " + text);
}

/// Nothing runs: no permit may be out.
void inspector::check_permits(machine& m, bool must_answer) {
  api_request question;
  question.method = "GET";
  question.path = "/api/v1/status";
  // No time passes: a slot that is due in a second would begin a cycle, and take permits.
  const auto answer = m.system().ask_now<api_response>(m.root(), question);
  const auto permits = permits_of(answer.ok() ? answer.value().body : std::string_view{});
  constexpr std::string_view in_use = "\"in_use\":";
  const auto at = permits.find(in_use);
  const bool says = at != std::string_view::npos;
  if (!says && must_answer)
    violated("the node does not say how many permits are out");
  if (!says)
    return; // somebody is being restarted
  if (!permits.substr(at).starts_with("\"in_use\":0,"))
    violated("permits leaked: " + std::string(permits.substr(0, permits.find('}', at))));
}

} // namespace boyd::sim
