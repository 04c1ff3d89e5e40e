#include "promises.hpp"

#include "boyd/core/home_layout.hpp"
#include "boyd/state/runtime_block.hpp"

#include <algorithm>
#include <fstream>
#include <sstream>

namespace boyd::app {

std::string text_in(const std::string& path) {
  std::ifstream file(path);
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

namespace {

/// "FROM TO" of each edge that says which cycle decided a dispatch.
std::set<std::string> decisions_in(const std::string& path) {
  std::set<std::string> all;
  std::istringstream lines(text_in(path));
  for (std::string line; std::getline(lines, line);)
    if (const auto edge = object_of(line); text_of(edge, "type") == "decided_by")
      all.insert(text_of(edge, "from") + " " + text_of(edge, "to"));
  return all;
}

/// The cycles that a STATE.md knows.
std::set<std::string> cycles_in(const std::string& path) {
  std::set<std::string> all;
  const auto block = state::parse_runtime_block(text_in(path));
  if (!block)
    return all;
  all.insert(block->latest.cycle_id);
  for (const auto& row : block->history)
    all.insert(row.cycle_id);
  return all;
}

} // namespace

void crash_promises::heard(const json& answer) {
  const auto id = text_of(answer, "cycle_id");
  if (id.empty() || !answer.contains("problems") || !rows_of(answer, "problems").empty())
    return;
  whole_cycle cycle{
      id, text_of(answer, "kernel_id"), "cycle " + id + ": " + text_of(answer, "status"), {}};
  for (const auto& agent : rows_of(answer, "agents"))
    if (text_of(agent, "status") == "done")
      cycle.done.push_back(text_of(agent, "dispatch_id"));
  cycles_.push_back(std::move(cycle));
}

std::vector<std::string>
crash_promises::broken(const std::string& home,
                       const std::map<std::string, std::set<std::string>>& commits) const {
  std::vector<std::string> out;
  const home_layout layout(home);
  const auto decisions = decisions_in(layout.graph_log());
  std::map<std::string, std::string> newest;
  for (const auto& cycle : cycles_) {
    newest[cycle.kernel] = cycle.id;
    const auto known = commits.find(cycle.kernel);
    if (known != commits.end() && known->second.count(cycle.subject) == 0)
      out.push_back("cycle " + cycle.id + " was told to be whole; its commit is not there");
    for (const auto& dispatch : cycle.done)
      if (decisions.count("exec_" + dispatch + " decision_" + cycle.id) == 0)
        out.push_back("the graph does not know dispatch " + dispatch + " of cycle " + cycle.id);
  }
  // The history has an end: of each kernel it is asked for the newest.
  for (const auto& [kernel, id] : newest)
    if (cycles_in(layout.kernel(kernel) + "/STATE.md").count(id) == 0)
      out.push_back("cycle " + id + " was told to be whole; STATE.md does not know it");
  return out;
}

} // namespace boyd::app
