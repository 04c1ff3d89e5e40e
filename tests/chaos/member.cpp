#include "member.hpp"

#include <algorithm>
#include <csignal>
#include <filesystem>
#include <map>
#include <sstream>

namespace boyd::test {

namespace {

/// `boyd node`'s exit code when the home is taken (docs/operations.md).
constexpr int exit_locked = 5;
constexpr std::size_t told_bytes = 2000;

struct stat_line {
  std::string name;
  pid_t parent = 0;
  char state = '?';
  std::uint64_t start_ticks = 0;
};

/// /proc/PID/stat, proc(5): the name in parentheses, then state, ppid, and the start as field 22.
std::optional<stat_line> stat_of(const std::string& pid) {
  const auto text = read_file("/proc/" + pid + "/stat");
  const auto open = text.find('(');
  const auto close = text.rfind(')');
  if (open == std::string::npos || close == std::string::npos)
    return std::nullopt;
  stat_line line;
  line.name = text.substr(open + 1, close - open - 1);
  std::istringstream rest(text.substr(close + 1));
  rest >> line.state >> line.parent;
  constexpr int between = 17; // fields 5 to 21
  std::string skipped;
  for (int i = 0; i < between; ++i)
    rest >> skipped;
  rest >> line.start_ticks;
  return line;
}

std::map<pid_t, stat_line> all_processes() {
  std::map<pid_t, stat_line> all;
  std::error_code ignored;
  for (const auto& entry : std::filesystem::directory_iterator("/proc", ignored)) {
    const auto name = entry.path().filename().string();
    if (name.find_first_not_of("0123456789") != std::string::npos)
      continue;
    if (auto line = stat_of(name))
      all[std::atoi(name.c_str())] = std::move(*line);
  }
  return all;
}

} // namespace

bool process_mark::there() const {
  const auto now = stat_of(std::to_string(pid));
  return now && now->start_ticks == start_ticks && now->state != 'Z' && now->state != 'X';
}

std::vector<process_mark> processes_below(pid_t root) {
  const auto all = all_processes();
  std::vector<process_mark> found;
  for (const auto& [pid, line] : all) {
    pid_t up = line.parent;
    for (std::size_t depth = 0; depth < all.size() && up > 1 && up != root; ++depth) {
      const auto it = all.find(up);
      up = it == all.end() ? 0 : it->second.parent;
    }
    if (up == root)
      found.push_back({pid, line.start_ticks});
  }
  return found;
}

pid_t host_of(pid_t node) {
  for (const auto& [pid, line] : all_processes())
    if (line.parent == node && line.name == "boyd-prochost")
      return pid;
  return -1;
}

std::string member::node_id() const {
  auto text = read_file(home_->home() + "/run/node_id");
  while (!text.empty() && text.back() == '\n')
    text.pop_back();
  return text;
}

void member::start() {
  process_ = std::make_unique<node_process>(home_->home(), home_->log_path());
  state_ = condition::up;
}

void member::kill(clock::time_point until) {
  const auto below = processes_below(process_->pid());
  left_behind_.insert(left_behind_.end(), below.begin(), below.end());
  process_->signal(SIGKILL);
  process_->wait_end();
  std::erase_if(left_behind_, [](const process_mark& p) { return !p.there(); });
  state_ = condition::down;
  until_ = until;
}

void member::stop(clock::time_point until, bool whole) {
  process_->signal(SIGSTOP);
  if (whole)
    for (const auto& p : processes_below(process_->pid()))
      if (::kill(p.pid, SIGSTOP) == 0)
        frozen_.push_back(p.pid);
  state_ = condition::stopped;
  until_ = until;
}

void member::resume() {
  for (const pid_t pid : frozen_)
    ::kill(pid, SIGCONT);
  frozen_.clear();
  process_->signal(SIGCONT);
  state_ = condition::up;
}

bool member::kill_host() {
  const pid_t host = host_of(process_->pid());
  return host > 0 && ::kill(host, SIGKILL) == 0;
}

std::optional<std::string> member::look() {
  if (state_ != condition::up || process_->running())
    return std::nullopt;
  const int code = process_->wait_end();
  const auto log = process_->log();
  start();
  if (code == exit_locked) {
    ++waited_for_lock_;
    return std::nullopt;
  }
  return "a node ended by itself with " + std::to_string(code) + ": " +
         log.substr(log.size() - std::min(log.size(), told_bytes));
}

std::vector<pid_t> member::survivors() const {
  std::vector<pid_t> found;
  for (const auto& p : left_behind_)
    if (p.there())
      found.push_back(p.pid);
  return found;
}

} // namespace boyd::test
