#include "findings.hpp"

#include "acceptance/agreement.hpp"
#include "boyd/state/runtime_block.hpp"
#include "graph_findings.hpp"

#include <algorithm>
#include <filesystem>
#include <fmt/format.h>
#include <set>

namespace boyd::test {

namespace {

using nlohmann::json;

/// docs/queue.md: the fourth loss of its node makes a row failed.
constexpr int most_rescues = 3;
constexpr std::string_view began = "began-";

struct dispatch_story {
  std::set<std::int64_t> fences;
  std::int64_t last = 0;
  int effects = 0;
};

/// What struck that long before a lease's end may still keep the others from the database.
constexpr double longest_outage_s = 4;

double seconds_between(std::int64_t from_ms, std::int64_t to_ms) {
  constexpr double ms_per_s = 1000;
  return static_cast<double>(to_ms - from_ms) / ms_per_s;
}

std::size_t count_of(const std::string& text, const std::string& what) {
  std::size_t n = 0;
  for (auto at = text.find(what); at != std::string::npos; at = text.find(what, at + 1))
    ++n;
  return n;
}

json attempts_of(const json& row) {
  const auto& a = row.at("attempts");
  return a.is_string() ? json::parse(a.get<std::string>()) : a;
}

std::int64_t ms_of(const json& rfc3339) {
  if (!rfc3339.is_string())
    return 0;
  const auto t = parse_rfc3339(rfc3339.get<std::string>());
  return t ? to_unix_ms(*t) : 0;
}

class judge_of {
 public:
  explicit judge_of(chaos_lab& lab) : lab_(lab) {}

  chaos_findings all() {
    read_ledger();
    rows_ = lab_.ask("SELECT dispatch_id, cycle_id, agent_id, status, fence, rescues, started_at, "
                     "finished_at, attempts, error, settled_fence FROM boyd.dispatches LEFT JOIN "
                     "(SELECT dispatch_id, settled_fence FROM boyd.dispatch_results) AS ended "
                     "USING (dispatch_id)");
    out_.dispatches = rows_.size();
    std::set<std::string> known;
    for (const auto& row : rows_) {
      known.insert(row.at("dispatch_id").get<std::string>());
      judge_row(row);
    }
    for (const auto& [id, story] : stories_)
      if (!known.contains(id))
        wrong("ran, but has no row: " + id);
    judge_acknowledged();
    judge_cycles();
    judge_homes();
    judge_graphs();
    std::ranges::sort(out_.elsewhere_s);
    std::ranges::sort(out_.at_home_s);
    return std::move(out_);
  }

 private:
  void wrong(std::string what) { out_.wrong.push_back(std::move(what)); }

  void wrong_for_good(const std::string& what) {
    out_.for_good.push_back(what);
    wrong(what);
  }

  void read_ledger() {
    for (const auto& l : lab_.first().ledger()) {
      auto& story = stories_[l.dispatch];
      if (l.word.starts_with(began)) {
        ++out_.runs;
        const auto fence = std::atoll(l.word.c_str() + began.size());
        if (!story.fences.insert(fence).second)
          wrong_for_good("ran twice under fence " + std::to_string(fence) + ": " + l.dispatch);
        story.last = std::max(story.last, static_cast<std::int64_t>(fence));
      } else if (l.word == "effect") {
        ++story.effects;
      } else if (l.word == "absorbed") {
        ++out_.absorbed;
      }
    }
  }

  void judge_row(const json& row) {
    const auto id = row.at("dispatch_id").get<std::string>();
    const auto status = row.at("status").get<std::string>();
    const auto fence = row.at("fence").get<std::int64_t>();
    const auto& story = stories_[id];
    const bool poisoned = row.at("rescues").get<int>() > most_rescues;
    out_.rescues += row.at("rescues").get<std::size_t>();
    out_.given_up += poisoned ? 1 : 0;
    if (status != "done" && !(status == "failed" && poisoned))
      wrong("not done: " + row.dump());
    // A result that was taken from a stale owner ends the row under a fence that is not the last.
    if (const auto& settled = row.at("settled_fence"); status == "done" && settled != fence)
      wrong_for_good("took the result of fence " + settled.dump() + ": " + row.dump());
    if (status == "done" && story.last != fence)
      wrong("settled under fence " + std::to_string(fence) + ", but it ran under " +
            std::to_string(story.last) + ": " + row.dump());
    if (story.effects > 1)
      wrong_for_good("its effect was made " + std::to_string(story.effects) + " times: " + id);
    const bool effect = std::filesystem::exists(lab_.first().outside("effects/" + id));
    out_.effects += effect ? 1 : 0;
    if (status == "done" && !effect)
      wrong("done without an effect: " + id);
    if (!work_.insert(row.at("cycle_id").get<std::string>() + row.at("agent_id").get<std::string>())
             .second)
      wrong_for_good("two dispatches for one agent of a cycle: " + row.dump());
    judge_attempts(row);
  }

  void judge_attempts(const json& row) {
    const auto attempts = attempts_of(row);
    std::int64_t before = 0;
    for (std::size_t i = 0; i < attempts.size(); ++i) {
      const auto fence = attempts[i].at("fence").get<std::int64_t>();
      if (fence <= before)
        wrong_for_good("fences do not grow: " + row.dump());
      before = fence;
      const auto next = i + 1 < attempts.size()          ? ms_of(attempts[i + 1].at("started_at"))
                        : row.at("started_at").is_null() ? 0
                                                         : row.at("started_at").get<std::int64_t>();
      if (attempts[i].at("to") == "rescue")
        measure(attempts[i], next);
    }
    if (row.at("fence").get<std::int64_t>() <= before &&
        row.at("rescues").get<int>() <= most_rescues)
      wrong("its last fence is not the greatest: " + row.dump());
  }

  void measure(const json& attempt, std::int64_t next_start) {
    const auto node = attempt.at("node").get<std::string>();
    const auto rescued = ms_of(attempt.at("ended_at"));
    const loss* last = nullptr;
    for (const auto& l : lab_.record().losses)
      if (l.node_id == node && l.at_ms <= rescued && l.at_ms >= ms_of(attempt.at("started_at")))
        last = &l;
    if (last == nullptr || next_start < last->at_ms)
      return;
    const auto s = seconds_between(last->at_ms, next_start);
    (last->restarted ? out_.at_home_s : out_.elsewhere_s).push_back(s);
    if (!last->restarted && s > lab_.lease_s() + 1)
      out_.late.push_back(story_of(*last, ms_of(attempt.at("started_at")), rescued, next_start));
  }

  /// What may have held up the rescue.
  std::string story_of(const loss& l, std::int64_t begun, std::int64_t rescued,
                       std::int64_t next) const {
    auto text = fmt::format("begun {:.1f} s, rescued {:.1f} s, begun again {:.1f} s after its node "
                            "was lost;",
                            seconds_between(l.at_ms, begun), seconds_between(l.at_ms, rescued),
                            seconds_between(l.at_ms, next));
    for (const auto& b : lab_.record().blows)
      if (const auto s = seconds_between(l.at_ms, b.at_ms);
          s >= lab_.lease_s() - longest_outage_s && b.at_ms <= next)
        text += fmt::format(" {:.1f} {},", s, b.what);
    return text;
  }

  void judge_acknowledged() {
    std::map<std::string, const json*> by_id;
    for (const auto& row : rows_)
      by_id[row.at("dispatch_id").get<std::string>()] = &row;
    for (const auto& [id, seen] : lab_.record().settled) {
      const auto it = by_id.find(id);
      if (it == by_id.end()) {
        wrong_for_good("was final, is lost: " + seen.dump());
        continue;
      }
      for (const auto& key : {"status", "fence", "started_at", "finished_at", "rescues"})
        if (it->second->at(key) != seen.at(key))
          wrong_for_good("was final, has changed: " + seen.dump() + " to " + it->second->dump());
    }
    std::set<std::string> recorded;
    for (const auto& c : lab_.ask("SELECT cycle_id FROM boyd.cycles WHERE finished_at IS NOT NULL"))
      recorded.insert(c.at("cycle_id").get<std::string>());
    for (const auto& id : lab_.record().acknowledged)
      if (!recorded.contains(id))
        wrong("cycle was admitted, is not recorded: " + id);
  }

  void judge_cycles() {
    for (const auto& row : lab_.ask(
             "SELECT d.cycle_id, d.agent_id FROM boyd.decisions d LEFT JOIN boyd.dispatches x ON "
             "x.cycle_id = d.cycle_id AND x.agent_id = d.agent_id WHERE d.dispatched AND "
             "x.dispatch_id IS NULL"))
      wrong("decided, but never enqueued: " + row.dump());
    for (const auto& row : lab_.ask(
             "SELECT c.cycle_id, c.dispatched, c.succeeded, c.failed, count(x.dispatch_id) AS "
             "rows, count(*) FILTER (WHERE x.status = 'done') AS done FROM boyd.cycles c LEFT JOIN "
             "boyd.dispatches x ON x.cycle_id = c.cycle_id GROUP BY c.cycle_id"))
      if (row.at("dispatched") != row.at("rows") || row.at("succeeded") != row.at("done") ||
          row.at("failed").get<int>() != row.at("rows").get<int>() - row.at("done").get<int>())
        wrong("a cycle's counts are not those of its rows: " + row.dump());
    for (const auto& row : lab_.ask("SELECT scheduled_at, count(*) FROM boyd.occurrences GROUP BY "
                                    "1 HAVING count(*) > 1"))
      wrong_for_good("a slot twice: " + row.dump());
  }

  void judge_homes() {
    for (auto& s : lab_.stations()) {
      auto* m = s.node.get();
      const auto& home = m->home();
      const auto block = state::parse_runtime_block(home.state());
      if (!block || block->history.empty())
        wrong("STATE.md does not parse: " + home.state());
      if (count_of(home.state(), "<!-- KERNEL_RUNTIME:START -->") != 1)
        wrong("STATE.md has not exactly one block: " + home.state());
      if (home.state().find(agents_text) == std::string::npos)
        wrong_for_good("STATE.md has lost the agents' part: " + home.state());
      if (const auto broken = home.fsck(); !broken.empty())
        wrong("git fsck: " + broken);
      std::map<std::string, int> records;
      for (const auto& c : commits_of(home))
        if (c.subject.starts_with("cycle ") && !c.subject.ends_with(": running"))
          ++records[c.subject];
      for (const auto& [subject, n] : records)
        if (n > 1)
          wrong_for_good("committed " + std::to_string(n) + " times: " + subject);
      for (const pid_t pid : m->survivors())
        wrong("a process of a killed node is alive: " + std::to_string(pid));
      const auto log = read_file(home.log_path());
      out_.refused += count_of(log, "came from a stale owner and was refused") +
                      count_of(log, "came too late and was refused");
    }
  }

  /// No later time brings back an edge or takes away its double: the cycles are recorded.
  void judge_graphs() {
    std::map<std::string, std::vector<wanted_edge>> wanted;
    // An end is told by the first cycle of its kernel that is recorded after it; a decision by its
    // own cycle.
    for (const auto& row : lab_.ask(
             "SELECT c.node_id, c.cycle_id, x.dispatch_id, coalesce((SELECT l.node_id FROM "
             "boyd.cycles l WHERE l.kernel_id = c.kernel_id AND l.error = '' AND l.finished_at >= "
             "x.finished_at ORDER BY l.cycle_id <> c.cycle_id, l.finished_at LIMIT 1), '') AS "
             "told_by FROM boyd.cycles c JOIN boyd.dispatches x ON x.cycle_id = c.cycle_id WHERE "
             "c.finished_at IS NOT NULL AND c.error = '' AND x.status = 'done'")) {
      const auto id = row.at("dispatch_id").get<std::string>();
      wanted[row.at("node_id").get<std::string>()].push_back(
          {"decided_by", "exec_" + id, "decision_" + row.at("cycle_id").get<std::string>()});
      if (const auto told_by = row.at("told_by").get<std::string>(); !told_by.empty())
        wanted[told_by].push_back({"resulted_in", "exec_" + id, "outcome_" + id});
    }
    for (auto& s : lab_.stations()) {
      auto* m = s.node.get();
      auto edges = wanted.extract(m->node_id());
      const auto those = edges ? std::move(edges.mapped()) : std::vector<wanted_edge>{};
      out_.edges += those.size();
      for (const auto& fault : graph_faults(m->home(), those))
        wrong_for_good(fault);
    }
    for (const auto& [node, edges] : wanted)
      wrong("a cycle was recorded by a node that is none of these: " + node);
  }

  chaos_lab& lab_;
  chaos_findings out_;
  std::vector<json> rows_;
  std::map<std::string, dispatch_story> stories_;
  std::set<std::string> work_;
};

} // namespace

chaos_findings judge(chaos_lab& lab) {
  return judge_of(lab).all();
}

double percentile(const std::vector<double>& sorted, double share) {
  if (sorted.empty())
    return 0;
  const auto at = static_cast<std::size_t>(share * static_cast<double>(sorted.size()));
  return sorted[std::min(at, sorted.size() - 1)];
}

} // namespace boyd::test
