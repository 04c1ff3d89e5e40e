#include "agreement.hpp"

#include "boyd/state/runtime_block.hpp"
#include "support/telling.hpp"

#include <algorithm>
#include <filesystem>
#include <map>
#include <set>

namespace boyd::test {

namespace {

std::string trim_end(std::string text) {
  while (!text.empty() && (text.back() == '\n' || text.back() == ' '))
    text.pop_back();
  return text;
}

std::size_t count_of(const std::string& text, const std::string& what) {
  std::size_t n = 0;
  for (auto at = text.find(what); at != std::string::npos; at = text.find(what, at + 1))
    ++n;
  return n;
}

struct counts {
  int dispatched = 0;
  int done = 0;
  int failed = 0;
  int open = 0;
};

std::map<std::string, counts> counts_by_cycle(const site& s) {
  std::map<std::string, counts> all;
  for (const auto& row : s.dispatches()) {
    auto& c = all[row.at("cycle_id").get<std::string>()];
    const auto status = row.at("status").get<std::string>();
    ++c.dispatched;
    c.done += status == "done" ? 1 : 0;
    c.failed += status == "failed" || status == "cancelled" ? 1 : 0;
    c.open += status == "pending" || status == "running" ? 1 : 0;
  }
  return all;
}

void compare_row(const cycle_record& row, const counts& rows, std::vector<std::string>& out) {
  const auto says = [&](const std::string& what, int block, int database) {
    if (block != database)
      out.push_back("cycle " + row.cycle_id + ": STATE.md says " + what + " " +
                    std::to_string(block) + ", the rows " + std::to_string(database));
  };
  says("dispatched", row.dispatched, rows.dispatched);
  says("succeeded", row.succeeded, rows.done);
  says("failed", row.failed, rows.failed);
  says("unfinished", 0, rows.open);
}

/// Executions whose record does not give every byte back: each is put together again once, by `boyd
/// replay --strict`. A run whose record could not be begun was none, and has failed.
void add_unreplayable(const site& s, std::vector<std::string>& out) {
  constexpr std::size_t most_at_once = 300;
  static std::map<std::string, std::set<std::string>> replayed; // by home
  auto& known = replayed[s.home()];
  std::size_t done = 0;
  for (const auto& row : s.dispatches()) {
    const auto id = row.at("dispatch_id").get<std::string>();
    const bool is_one = row.at("status") == "done" ||
                        std::filesystem::exists(s.home() + "/executions/" + id + "/record.json");
    if (!is_one || known.contains(id) || done == most_at_once)
      continue;
    ++done;
    known.insert(id);
    const auto replay = s.run({"replay", id, "--strict", "--diff"});
    if (!promised(replay.code == 0, "execution " + id + " is replayed byte for byte"))
      out.push_back("boyd replay " + id + " --strict: " + replay.out + replay.err);
  }
}

} // namespace

std::vector<commit_line> commits_of(const site& s) {
  const auto trailer = [](const std::string& key) {
    return "%(trailers:key=" + key + ",valueonly=true,separator=%x20)";
  };
  std::vector<commit_line> all;
  for (const auto& line :
       s.git_lines({"log", "--reverse",
                    "--format=%H%x09%s%x09" + trailer("Boyd-Cycle") + "%x09" +
                        trailer("Boyd-Node") + "%x09" + trailer("Boyd-Graph-Head")})) {
    std::vector<std::string> cells(1);
    for (const char c : line)
      if (c == '\t')
        cells.emplace_back();
      else
        cells.back() += c;
    cells.resize(5);
    all.push_back({cells[0], cells[1], trim_end(cells[2]), trim_end(cells[3]), trim_end(cells[4])});
  }
  return all;
}

std::size_t records_of(const site& s, const std::string& cycle_id) {
  const auto all = commits_of(s);
  const auto start = "cycle " + cycle_id + ": ";
  return static_cast<std::size_t>(std::ranges::count_if(all, [&](const commit_line& c) {
    return c.subject.starts_with(start) && c.subject != start + "running";
  }));
}

std::vector<std::string> disagreements(const site& s) {
  std::vector<std::string> out;
  const auto text = s.state();
  const auto block = state::parse_runtime_block(text);
  if (!block)
    return {"STATE.md has no runtime block"};
  if (count_of(text, "\n<!-- KERNEL_RUNTIME:START -->") != 1)
    out.push_back("STATE.md has not exactly one block");
  const auto rows = counts_by_cycle(s);
  for (const auto& row : block->history) {
    const auto at = rows.find(row.cycle_id);
    compare_row(row, at == rows.end() ? counts{} : at->second, out);
    const auto shown = s.run({"state", "show", "--at", row.cycle_id}).out;
    const auto then = state::parse_runtime_block(shown);
    if (!then || then->latest.cycle_id != row.cycle_id || then->latest.status != row.status)
      out.push_back("the state at cycle " + row.cycle_id + " is not its record:\n" + shown);
    if (!promised(records_of(s, row.cycle_id) <= 1, "a cycle is committed once: " + row.cycle_id))
      out.push_back("cycle " + row.cycle_id + " is committed more than once");
  }
  if (block->history.empty() || block->history.front().cycle_id != block->latest.cycle_id)
    out.push_back("latest_cycle_id is not the first row of the history");
  if (const auto dirty = s.git({"status", "--porcelain"}); !dirty.empty())
    out.push_back("git status: " + dirty);
  if (const auto broken = s.fsck(); !promised(broken.empty(), "git fsck: " + broken))
    out.push_back("git fsck: " + broken);
  add_unreplayable(s, out);
  return out;
}

std::string told(const std::vector<std::string>& lines) {
  std::string text;
  for (const auto& l : lines)
    text += l + "\n";
  return text;
}

} // namespace boyd::test
