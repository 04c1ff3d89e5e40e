#include "crash/disk_view.hpp"

#include "e2e/program.hpp"

#include <cstdlib>
#include <filesystem>
#include <sstream>
#include <stdexcept>

namespace boyd::crash {

namespace {

namespace fs = std::filesystem;

const char* questions = R"(pragma integrity_check;
select 'D', dispatch_id, cycle_id, agent_id, status, fence, json_array_length(attempts),
  (select count(distinct json_extract(value, '$.fence')) from json_each(attempts)),
  (select count(*) from json_each(attempts) where json_extract(value, '$.to') = 'done')
  from dispatches;
select 'C', cycle_id, status, dispatched, succeeded, failed from cycles;
select 'P', agent_id from pauses;)";

std::vector<std::string> split(const std::string& text, char by) {
  std::vector<std::string> parts;
  std::istringstream in(text);
  for (std::string part; std::getline(in, part, by);)
    parts.push_back(part);
  return parts;
}

int number(const std::string& text) {
  return std::atoi(text.c_str());
}

void read_database(const std::string& home, const std::string& scratch, disk_view& view) {
  fs::remove_all(scratch);
  fs::create_directories(scratch);
  for (const char* name : {"/boyd.db", "/boyd.db-wal"})
    if (fs::exists(home + name))
      fs::copy_file(home + name, scratch + name);
  const auto answer =
      test::program({"/usr/bin/sqlite3", "-list", scratch + "/boyd.db", questions}).finish();
  if (answer.code != 0 || !answer.err.empty())
    view.integrity = "sqlite3 ended with " + std::to_string(answer.code) + ": " + answer.err;
  for (const auto& line : split(answer.out, '\n')) {
    const auto cells = split(line, '|');
    if (cells.size() == 9 && cells[0] == "D")
      view.dispatches[cells[1]] = {cells[2],         cells[3],         cells[4],
                                   number(cells[5]), number(cells[6]), number(cells[7]),
                                   number(cells[8])};
    else if (cells.size() == 6 && cells[0] == "C")
      view.cycles[cells[1]] = {cells[2], number(cells[3]), number(cells[4]), number(cells[5])};
    else if (cells.size() == 2 && cells[0] == "P")
      view.paused.push_back(cells[1]);
    else
      view.integrity += (view.integrity.empty() ? "" : "; ") + line;
  }
}

test::finished git(const std::string& repository, std::vector<std::string> args) {
  args.insert(args.begin(), {"/usr/bin/git", "-C", repository});
  return test::program(args, {{"GIT_CONFIG_COUNT", "1"},
                              {"GIT_CONFIG_KEY_0", "safe.directory"},
                              {"GIT_CONFIG_VALUE_0", "*"},
                              {"GIT_OPTIONAL_LOCKS", "0"}})
      .finish();
}

void read_repository(const std::string& repository, disk_view& view) {
  const auto checked = git(repository, {"fsck", "--strict", "--no-dangling", "--no-progress"});
  view.fsck = checked.out + checked.err;
  if (checked.code != 0 && view.fsck.empty())
    view.fsck = "git fsck ended with " + std::to_string(checked.code);
  const auto log = git(repository, {"log", "--format=%s"});
  if (log.code != 0)
    view.fsck += "git log: " + log.err;
  view.commits = split(log.out, '\n');
  for (const auto& entry : fs::recursive_directory_iterator(repository)) {
    const auto name = entry.path().filename().string();
    if (name.ends_with(".lock") || name.find(".boyd-tmp-") != std::string::npos)
      view.locks.push_back(entry.path().string());
  }
}

void read_records(const std::string& home, disk_view& view) {
  if (fs::is_directory(home + "/executions"))
    for (const auto& folder : fs::directory_iterator(home + "/executions"))
      if (const auto file = folder.path() / "record.json"; fs::exists(file))
        view.records[folder.path().filename().string()] = test::read_file(file.string());
  if (fs::is_directory(home + "/context/objects"))
    for (const auto& entry : fs::recursive_directory_iterator(home + "/context/objects"))
      if (const auto name = entry.path().filename().string();
          entry.is_regular_file() && name.find('.') == std::string::npos)
        view.objects[name] = test::read_file(entry.path().string());
}

} // namespace

disk_view look_at_disk(const std::string& home, const std::string& scratch) {
  disk_view view;
  read_database(home, scratch, view);
  read_repository(home + "/kernel/default", view);
  view.state = test::read_file(home + "/kernel/default/STATE.md");
  auto graph = test::read_file(home + "/knowledge/graph.jsonl");
  // A line without its end was never acknowledged.
  graph.resize(graph.find_last_of('\n') == std::string::npos ? 0 : graph.find_last_of('\n') + 1);
  view.graph = split(graph, '\n');
  read_records(home, view);
  return view;
}

} // namespace boyd::crash
