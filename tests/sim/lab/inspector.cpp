#include "tests/sim/lab/inspector.hpp"

#include "boyd/core/sha256.hpp"
#include "boyd/core/text.hpp"
#include "boyd/graph/edge_log.hpp"
#include "boyd/state/document.hpp"
#include "boyd/state/runtime_block.hpp"

#include <nlohmann/json.hpp>

#include <algorithm>
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

void inspector::starting(machine& m, const process_spec& spec) {
  if (m.processes().alive() + 1 > static_cast<std::size_t>(expected_.permits))
    violated("more runs than permits on " + m.name());
  for (const auto& [name, value] : spec.environment) {
    if (name != "BOYD_DISPATCH_ID")
      continue;
    const auto row = database_.all_rows().find(value);
    if (row == database_.all_rows().end())
      violated("a run without a row: " + value);
  }
}

void inspector::committed(machine& m) {
  const auto& commits = m.repositories().commits(machine::kernel_home);
  if (!commits.empty() && commits.back().info.subject.starts_with("cycle "))
    known_[&m].state_acked = m.disk().look(machine::state_path).inode;
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

void inspector::stepped(machine& m) {
  const auto inode = m.disk().look(machine::state_path).inode;
  if (std::exchange(known_[&m].state_seen, inode) != inode)
    check_state(m, "while the node ran");
}

void inspector::power_cut(machine& m) {
  check_state(m, "after a power cut");
  const auto file = m.disk().look(machine::state_path);
  if (expected_.sound_disks && file.inode < known_[&m].state_acked)
    violated("an acknowledged STATE.md is gone after a power cut");
}

void inspector::settled() {
  check_queue();
  check_commits();
  for (const auto& m : machines_) {
    check_state(*m, "at the end");
    check_graph(*m);
    if (m->up())
      check_permits(*m);
    if (expected_.one_machine)
      check_latest(*m);
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

/// Every recorded cycle has one `pre-cycle` and, behind it, one `cycle` commit, on the machine that
/// ran it. Another one may commit its rendering of it, once.
void inspector::check_commits() {
  struct seen {
    int before = 0;
    int after = 0;
    bool wrong_order = false;
  };
  std::set<std::string> whole;
  std::set<std::string> ended;
  for (const auto& m : machines_) {
    std::map<std::string, seen> cycles;
    for (const auto& c : m->repositories().commits(machine::kernel_home)) {
      const auto id = trailer(c, "Boyd-Cycle");
      auto& s = cycles[id];
      if (c.info.subject.starts_with("pre-cycle ")) {
        ++s.before;
        s.wrong_order = s.wrong_order || s.after > 0;
      } else if (c.info.subject.starts_with("cycle ")) {
        ++s.after;
      }
      if (!id.empty() && !c.tree.contains("STATE.md"))
        violated("a commit without STATE.md: " + c.info.subject);
    }
    for (const auto& [id, s] : cycles) {
      if (!id.empty() && (s.before > 1 || s.after > 1))
        violated("a commit was made twice for cycle " + id);
      if (s.after == 1)
        ended.insert(id);
      if (s.before == 1 && s.after == 1 && !s.wrong_order)
        whole.insert(id);
    }
  }
  // Whatever fails: what a cycle is owed is made up for.
  for (const auto& [id, c] : database_.all_cycles())
    if (!ended.contains(id))
      violated("cycle " + id + " was never committed");
  if (!expected_.both_commits)
    return;
  for (const auto& [id, c] : database_.all_cycles())
    if (!whole.contains(id))
      violated("cycle " + id + " does not have its two commits");
}

void inspector::check_latest(machine& m) {
  const cycle_record* latest = nullptr;
  for (const auto& [id, c] : database_.all_cycles())
    if (latest == nullptr || c.started_at >= latest->started_at) // by id, when at once
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

/// The chain is whole, has every fact once, and every head that a commit names, in their order.
void inspector::check_graph(machine& m) {
  const auto file = m.disk().look(machine::graph_path);
  if (file.content == nullptr)
    return;
  const auto report = graph::verify(*file.content);
  if (!report.intact()) {
    const auto& p = report.problems.front();
    const auto lines = split(*file.content, '\n');
    violated("the graph's chain is broken: " + std::string(name_of(p.kind)) + " at line " +
             std::to_string(p.line) + " of " + std::to_string(lines.size()) + ": " + p.detail +
             ": " + sanitize_utf8(lines.at(std::min(p.line, lines.size()) - 1)));
  }
  std::map<std::string, std::size_t> line_of{{std::string(graph::genesis), 0}};
  std::set<std::string> facts;
  for (const auto line : split(*file.content, '\n')) {
    if (line.empty())
      continue;
    line_of.emplace(sha256_hex(line), line_of.size());
    if (const auto e = graph::parse_edge(line);
        e && !facts
                  .insert(e->fact.from + ' ' + e->fact.to + ' ' + e->fact.type + ' ' +
                          format_rfc3339(e->fact.timestamp, true) + e->fact.meta_json)
                  .second)
      violated("a fact stands twice in the graph");
  }
  std::size_t last = 0;
  for (const auto& c : m.repositories().commits(machine::kernel_home)) {
    const auto head = trailer(c, "Boyd-Graph-Head");
    if (head.empty())
      continue;
    const auto at = line_of.find(head);
    if (at == line_of.end())
      violated("acknowledged edges are gone from the graph");
    else if (at->second < last)
      violated("acknowledged edges are out of order");
    else
      last = at->second;
  }
}

/// Nothing runs: no permit may be out.
void inspector::check_permits(machine& m) {
  api_request question;
  question.method = "GET";
  question.path = "/api/v1/status";
  // No time passes: a slot that is due in a second would begin a cycle, and take permits.
  const auto answer = m.system().ask_now<api_response>(m.root(), question);
  if (!answer.ok())
    return violated("the node does not say how it is");
  const auto status = nlohmann::json::parse(answer.value().body, nullptr, false);
  if (!status.is_object() || !status.contains("permits") || !status["permits"].contains("in_use"))
    return violated("the node does not say how many permits are out");
  if (status["permits"]["in_use"] != 0)
    violated("permits leaked: " + status["permits"].dump());
}

} // namespace boyd::sim
