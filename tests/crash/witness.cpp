#include "crash/witness.hpp"

#include "boyd/core/sha256.hpp"
#include "boyd/graph/edge_log.hpp"
#include "boyd/state/runtime_block.hpp"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <sstream>

namespace boyd::crash {

const std::set<std::string> acting{"first", "second"};
const std::string agents_text = "\n## plans\n| a | table |\n|---|---|\nkeep me  \n";

namespace {

using nlohmann::json;

bool is_final(const std::string& status) {
  return status == "done" || status == "failed" || status == "cancelled";
}

template <class F>
void each_line(const std::string& text, F take) {
  std::istringstream in(text);
  for (std::string line; std::getline(in, line);)
    take(line);
}

std::size_t count_of(const std::string& text, const std::string& what) {
  std::size_t n = 0;
  for (auto at = text.find(what); at != std::string::npos; at = text.find(what, at + 1))
    ++n;
  return n;
}

std::string told(const cycle_row& r) {
  return r.status + " " + std::to_string(r.dispatched) + "/" + std::to_string(r.succeeded) + "/" +
         std::to_string(r.failed);
}

bool same(const cycle_row& a, const cycle_row& b) {
  return a.status == b.status && a.dispatched == b.dispatched && a.succeeded == b.succeeded &&
         a.failed == b.failed;
}

struct effect {
  std::string dispatch, cycle, agent;
  std::int64_t fence = 0;
  int pid = 0;
};

/// The pid of a line that is none of ours is 0.
std::vector<effect> effects_in(const std::string& path) {
  std::vector<effect> all;
  each_line(test::read_file(path), [&](const std::string& line) {
    std::istringstream words(line);
    effect e;
    words >> e.dispatch >> e.fence >> e.cycle >> e.agent >> e.pid;
    all.push_back(e);
  });
  return all;
}

} // namespace

/// "12:00:00Z act AGENT done: text" between "… cycle ID begins" and the end is word of an outcome.
void witness::hear_progress(const std::string& text) {
  std::string cycle;
  each_line(text, [&](const std::string& line) {
    std::istringstream words(line);
    std::string at, phase, third, fourth, fifth;
    words >> at >> phase >> third >> fourth >> fifth;
    if (phase == "perceive" && third == "cycle" && fifth == "begins")
      cycle = fourth;
    if (!fourth.empty() && fourth.back() == ':')
      fourth.pop_back();
    if (phase == "act" && !cycle.empty() && is_final(fourth))
      outcomes_[{cycle, third}] = fourth;
  });
}

void witness::heard_cycle(const test::finished& run) {
  hear_progress(run.err);
  const auto answer = run.json();
  if (!answer.is_object() || !answer.contains("dispatched"))
    return;
  const auto id = answer.at("cycle_id").get<std::string>();
  for (const auto& a : answer.at("agents"))
    if (const auto status = a.at("status").get<std::string>(); is_final(status))
      outcomes_[{id, a.at("agent_id").get<std::string>()}] = status;
  record r;
  r.row = {answer.at("status"), answer.at("dispatched"), answer.at("succeeded"),
           answer.at("failed")};
  r.whole = answer.at("problems").empty();
  recorded_[id] = r;
  if (r.whole)
    newest_whole_ = id;
}

void witness::heard_pause(const std::string& agent, bool pause, bool acknowledged) {
  auto& known = paused_[agent];
  known = acknowledged ? std::optional(pause) : std::nullopt;
}

void witness::judge_rows(const disk_view& disk, std::vector<std::string>& out) const {
  std::map<std::pair<std::string, std::string>, std::string> found;
  for (const auto& [id, row] : disk.dispatches) {
    found[{row.cycle_id, row.agent_id}] = row.status;
    if (row.entries != row.fences)
      out.push_back("dispatch " + id + " has a fence twice among its attempts");
    if (row.ended_well > 1)
      out.push_back("dispatch " + id + " was settled well twice");
  }
  for (const auto& [key, status] : outcomes_)
    if (const auto it = found.find(key); it == found.end() || it->second != status)
      out.push_back("acknowledged: " + key.second + " of cycle " + key.first + " " + status +
                    "; on disk: " + (it == found.end() ? "nothing" : it->second));
  for (const auto& [id, r] : recorded_)
    if (const auto it = disk.cycles.find(id); it == disk.cycles.end() || !same(it->second, r.row))
      out.push_back("acknowledged: cycle " + id + " " + told(r.row) +
                    "; on disk: " + (it == disk.cycles.end() ? "nothing" : told(it->second)));
  for (const auto& [agent, known] : paused_)
    if (known && *known != (std::ranges::count(disk.paused, agent) > 0))
      out.push_back("acknowledged: " + agent + (*known ? " paused" : " resumed") +
                    "; on disk it is not");
}

void witness::judge_effects(const disk_view& disk, std::vector<std::string>& out) const {
  std::set<std::pair<std::string, std::int64_t>> seen;
  std::set<std::pair<std::string, std::string>> acted;
  for (const auto& e : effects_in(effects_)) {
    if (e.pid == 0)
      out.emplace_back("the agents' own ledger has a line that cannot be read");
    acted.insert({e.cycle, e.agent});
    if (!seen.insert({e.dispatch, e.fence}).second)
      out.push_back("dispatch " + e.dispatch + " acted twice under fence " +
                    std::to_string(e.fence));
    const auto row = disk.dispatches.find(e.dispatch);
    if (row == disk.dispatches.end() || row->second.fence < e.fence)
      out.push_back("dispatch " + e.dispatch + " acted under fence " + std::to_string(e.fence) +
                    "; on disk: " +
                    (row == disk.dispatches.end() ? "nothing"
                                                  : "fence " + std::to_string(row->second.fence)));
  }
  for (const auto& [key, status] : outcomes_)
    if (acting.count(key.second) > 0 && status == "done" && acted.count(key) == 0)
      out.push_back("acknowledged: " + key.second + " of cycle " + key.first +
                    " done; it never acted");
}

void witness::judge_history(const disk_view& disk, std::vector<std::string>& out) const {
  std::map<std::string, int> commits;
  for (const auto& subject : disk.commits)
    ++commits[subject];
  for (const auto& [subject, n] : commits)
    if (n > 1 && (subject.starts_with("cycle ") || subject.starts_with("pre-cycle ")))
      out.push_back("committed " + std::to_string(n) + " times: " + subject);
  for (const auto& [id, r] : recorded_)
    if (r.whole && commits.count("cycle " + id + ": " + r.row.status) == 0)
      out.push_back("acknowledged: cycle " + id + "; its commit is not there");
  const auto block = state::parse_runtime_block(disk.state);
  if (!block || count_of(disk.state, "<!-- KERNEL_RUNTIME:START -->") != 1)
    out.push_back("STATE.md has not one runtime block:\n" + disk.state);
  if (disk.state.find(agents_text) == std::string::npos)
    out.push_back("STATE.md lost the agents' text:\n" + disk.state);
  if (block && !newest_whole_.empty() && std::ranges::none_of(block->history, [&](const auto& row) {
        return row.cycle_id == newest_whole_;
      }))
    out.push_back("acknowledged: cycle " + newest_whole_ + "; STATE.md does not know it:\n" +
                  disk.state);
}

void witness::judge_graph(const disk_view& disk, std::vector<std::string>& out) const {
  std::set<std::string> edges;
  std::string text;
  for (const auto& line : disk.graph) {
    text += line + "\n";
    const auto edge = json::parse(line, nullptr, false);
    if (!edge.is_object())
      continue; // the chain says so
    const auto name = edge.at("type").get<std::string>() + " " +
                      edge.at("from").get<std::string>() + " " + edge.at("to").get<std::string>();
    if (!edges.insert(name).second)
      out.push_back("graph.jsonl says twice: " + name);
  }
  for (const auto& p : graph::verify(text).problems)
    out.push_back("graph.jsonl, line " + std::to_string(p.line) + ": " +
                  std::string(graph::name_of(p.kind)) + ": " + p.detail);
  for (const auto& [id, row] : disk.dispatches) {
    const auto known = recorded_.find(row.cycle_id);
    if (known == recorded_.end() || !known->second.whole)
      continue;
    for (const auto& edge : {"decided_by exec_" + id + " decision_" + row.cycle_id,
                             "resulted_in exec_" + id + " outcome_" + id})
      if (edges.count(edge) == 0)
        out.push_back("the graph does not know " + edge + " of acknowledged cycle " + row.cycle_id);
  }
}

void witness::judge_records(const disk_view& disk, std::vector<std::string>& out) const {
  for (const auto& [hash, text] : disk.objects)
    if (sha256_hex(text) != hash)
      out.push_back("context/objects/" + hash + " has another content");
  std::set<std::string> ended;
  for (const auto& [id, text] : disk.records) {
    // Of a run that reads nothing nobody waits for the disk.
    if (text.empty())
      continue;
    const auto said = json::parse(text, nullptr, false);
    if (!said.is_object()) {
      out.push_back("half a record: " + id);
      continue;
    }
    for (const auto& attempt : said.at("attempts")) {
      if (!attempt.at("ended_at").is_null())
        ended.insert(id);
      for (const auto& item : attempt.at("turns").at(0).at("snapshot").at("items"))
        if (const auto hash = item.at("hash").get<std::string>();
            !hash.empty() && !disk.objects.contains(hash))
          out.push_back("the record of " + id + " names a content that is not there");
    }
  }
  for (const auto& [id, row] : disk.dispatches)
    if (const auto known = outcomes_.find({row.cycle_id, row.agent_id});
        row.agent_id == "first" && !disk_failed_ && known != outcomes_.end() &&
        known->second == "done" && !ended.contains(id))
      out.push_back("acknowledged: " + id + " done; its record does not say so");
}

std::vector<std::string> witness::judge(const disk_view& disk) const {
  std::vector<std::string> out;
  if (disk.integrity != "ok")
    out.push_back("integrity_check: " + disk.integrity);
  if (!disk.fsck.empty())
    out.push_back("git fsck: " + disk.fsck);
  judge_rows(disk, out);
  judge_effects(disk, out);
  judge_history(disk, out);
  judge_graph(disk, out);
  judge_records(disk, out);
  return out;
}

std::vector<std::string> witness::judge_settled(const disk_view& disk) const {
  auto out = judge(disk);
  std::map<std::string, cycle_row> counted;
  for (const auto& [id, row] : disk.dispatches) {
    if (!is_final(row.status))
      out.push_back("dispatch " + id + " is left over: " + row.status);
    auto& c = counted[row.cycle_id];
    ++c.dispatched;
    c.succeeded += row.status == "done" ? 1 : 0;
    c.failed += row.status == "done" ? 0 : 1;
  }
  for (const auto& [id, row] : disk.cycles) {
    const auto& c = counted[id];
    if (row.status == "running" || row.dispatched != c.dispatched || row.succeeded != c.succeeded ||
        row.failed != c.failed)
      out.push_back("cycle " + id + " says " + told(row) + ", its dispatches " + told(c));
  }
  const auto block = state::parse_runtime_block(disk.state);
  if (block && block->latest.cycle_id != newest_whole_)
    out.push_back("STATE.md's latest cycle is " + block->latest.cycle_id + ", not " +
                  newest_whole_);
  for (const auto& lock : disk.locks)
    out.push_back("left behind: " + lock);
  return out;
}

std::vector<int> witness::agent_pids() const {
  std::vector<int> pids;
  for (const auto& e : effects_in(effects_))
    pids.push_back(e.pid);
  return pids;
}

} // namespace boyd::crash
