#include "harness.hpp"

#include "support/wait.hpp"

#include <algorithm>
#include <csignal>
#include <fcntl.h>
#include <filesystem>
#include <fstream>
#include <map>
#include <sstream>
#include <stdexcept>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

namespace boyd::test {

namespace {

constexpr int exec_failed = 127;
constexpr std::chrono::milliseconds between_looks{20};

/// $1: what to say. One write per line, so that lines of several agents do not mix.
const char* preamble =
    R"(say() { printf '%s %s %s %s %s\n' "$BOYD_CYCLE_ID" "$BOYD_AGENT_ID" "$BOYD_DISPATCH_ID" "$1" "$$" >> @SITE@/ledger; }
wait_for() { while [ ! -e "@SITE@/$1" ]; do sleep 0.05; done; }
)";

std::string with_site(std::string text, const std::string& path) {
  const std::string word = "@SITE@";
  for (auto at = text.find(word); at != std::string::npos; at = text.find(word, at))
    text.replace(at, word.size(), path);
  return text;
}

std::string yaml_of(const test_settings& s, const std::string& scripts) {
  std::string text =
      "version: 1\nnode: {log_level: info, " + s.node + "}\nkernels:\n  - kernel_id: default\n";
  std::istringstream keys(s.kernel);
  for (std::string key; std::getline(keys, key, ';');)
    text += "    " + key.substr(key.find_first_not_of(' ')) + "\n";
  text += "    agents:\n";
  for (const auto& a : s.agents) {
    text += "      - agent_id: " + a.id + "\n        prompt: work\n";
    const auto argument = a.argument.empty() ? "" : ", \"" + a.argument + "\"";
    text += "        executor: {type: command, argv: [sh, \"" + scripts + "/" + a.id + ".sh\"" +
            argument + "], cwd: \"" + scripts + "\"}\n";
    std::istringstream more(a.more);
    for (std::string key; std::getline(more, key, ';');)
      text += "        " + key.substr(key.find_first_not_of(' ')) + "\n";
  }
  if (!s.faults.empty())
    text += "faults: " + s.faults + "\n";
  return text;
}

/// pid → (parent, command name, state) of every process.
struct process_row {
  pid_t parent = 0;
  std::string name;
  char state = '?';
};

std::optional<process_row> read_process(const std::string& pid) {
  const auto text = read_file("/proc/" + pid + "/stat");
  const auto open = text.find('(');
  const auto close = text.rfind(')');
  if (open == std::string::npos || close == std::string::npos || close + 4 > text.size())
    return std::nullopt;
  process_row row;
  row.name = text.substr(open + 1, close - open - 1);
  row.state = text[close + 2];
  row.parent = std::atoi(text.c_str() + close + 4);
  return row;
}

std::map<pid_t, process_row> all_processes() {
  std::map<pid_t, process_row> all;
  std::error_code ignored;
  for (const auto& entry : std::filesystem::directory_iterator("/proc", ignored)) {
    const auto name = entry.path().filename().string();
    if (name.find_first_not_of("0123456789") != std::string::npos)
      continue;
    if (auto row = read_process(name))
      all[std::atoi(name.c_str())] = *row;
  }
  return all;
}

/// In one step: a node or a shell may read the file just now.
void replace_file(const std::string& path, const std::string& text) {
  write_file(path + ".new", text);
  std::filesystem::rename(path + ".new", path);
}

} // namespace

bool eventually(const std::function<bool()>& condition, std::chrono::milliseconds limit) {
  std::mutex mutex;
  std::condition_variable never_notified;
  std::unique_lock lock(mutex);
  const auto end = std::chrono::steady_clock::now() + limit;
  while (!condition()) {
    if (std::chrono::steady_clock::now() >= end)
      return condition();
    never_notified.wait_for(lock, between_looks);
  }
  return true;
}

// -- node_process --------------------------------------------------------------------------------

node_process::node_process(std::string home, std::string log_path,
                           const std::map<std::string, std::string>& environment)
    : log_path_(std::move(log_path)), log_from_(read_file(log_path_).size()) {
  const auto binary = boyd_binary();
  const pid_t parent = ::getpid();
  pid_ = ::fork();
  if (pid_ < 0)
    throw std::runtime_error("fork");
  if (pid_ > 0)
    return;
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  const int in = ::open("/dev/null", O_RDONLY);
  const int log = ::open(log_path_.c_str(), O_WRONLY | O_CREAT | O_APPEND, 0600);
  ::dup2(in, STDIN_FILENO);
  ::dup2(log, STDOUT_FILENO);
  ::dup2(log, STDERR_FILENO);
  ::setenv("TERM", "dumb", 1);
  for (const auto& [name, value] : environment)
    ::setenv(name.c_str(), value.c_str(), 1);
  if (::getppid() == parent)
    ::execl(binary.c_str(), binary.c_str(), "--home", home.c_str(), "node", nullptr);
  ::_exit(exec_failed);
}

node_process::~node_process() {
  if (!code_) {
    ::kill(pid_, SIGKILL);
    ::waitpid(pid_, nullptr, 0);
  }
}

std::string node_process::log() const {
  const auto text = read_file(log_path_);
  return text.substr(std::min(log_from_, text.size()));
}

bool node_process::running() {
  int status = 0;
  if (!code_ && ::waitpid(pid_, &status, WNOHANG) == pid_)
    code_ = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  return !code_;
}

bool node_process::wait_for_log(const std::string& text) {
  bool found = false;
  eventually([&] {
    found = log().find(text) != std::string::npos;
    return found || !running();
  });
  return found;
}

void node_process::wait_ready() {
  if (!wait_for_log("ready: node "))
    throw std::runtime_error("the node did not get ready:\n" + log());
}

void node_process::signal(int number) const {
  ::kill(pid_, number);
}

int node_process::wait_end() {
  if (!eventually([&] { return !running(); }))
    throw std::runtime_error("the node did not end:\n" + log());
  return *code_;
}

// -- site ----------------------------------------------------------------------------------------

site::site(const test_settings& settings) : shared_(directory_.file("outside")) {
  std::filesystem::create_directory(shared_);
  configure(settings);
  const auto made = run({"init", "--no-input"});
  if (made.code != 0)
    throw std::runtime_error("boyd init: " + made.err);
}

site::site(const test_settings& settings, const site& other) : shared_(other.shared_) {
  configure(settings);
  const auto made = run({"init", "--no-input"});
  if (made.code != 0)
    throw std::runtime_error("boyd init: " + made.err);
}

void site::configure(const test_settings& settings) const {
  for (const auto& a : settings.agents)
    replace_file(shared_ + "/" + a.id + ".sh", with_site(preamble + a.script + "\n", shared_));
  std::filesystem::create_directory(home());
  std::filesystem::permissions(home(), std::filesystem::perms::owner_all);
  replace_file(home() + "/boyd.yaml", yaml_of(settings, shared_));
}

std::string site::kernel(const std::string& name) const {
  return home() + "/kernel/default" + (name.empty() ? "" : "/" + name);
}

finished site::run(std::vector<std::string> args) const {
  args.insert(args.begin(), {"--home", home()});
  return boyd_run(args);
}

nlohmann::json site::ask(std::vector<std::string> args) const {
  auto what = args.front();
  args.emplace_back("--json");
  const auto r = run(std::move(args));
  auto answer = r.json();
  if (r.code != 0 || !answer.is_object())
    throw std::runtime_error("boyd " + what + " --json ended with " + std::to_string(r.code) +
                             ": " + r.err + r.out);
  return answer;
}

std::vector<nlohmann::json> site::dispatches() const {
  const auto answer = ask({"dispatches", "ls", "--limit", "1000"});
  return answer.at("items").get<std::vector<nlohmann::json>>();
}

std::string site::git(std::vector<std::string> args) const {
  args.insert(args.begin(), {"/usr/bin/git", "-C", kernel()});
  const auto r = program(args, {{"GIT_CONFIG_COUNT", "1"},
                                {"GIT_CONFIG_KEY_0", "safe.directory"},
                                {"GIT_CONFIG_VALUE_0", "*"}})
                     .finish();
  if (r.code != 0)
    throw std::runtime_error("git ended with " + std::to_string(r.code) + ": " + r.err + r.out);
  return r.out;
}

std::vector<std::string> site::git_lines(std::vector<std::string> args) const {
  return lines_of(git(std::move(args)));
}

std::string site::fsck() const {
  try {
    return git({"fsck", "--strict", "--no-dangling", "--no-progress"});
  } catch (const std::exception& e) {
    return e.what();
  }
}

std::vector<site::line> site::ledger() const {
  std::vector<line> all;
  for (const auto& text : lines_of(read_file(outside("ledger")))) {
    std::istringstream words(text);
    line l;
    if (words >> l.cycle >> l.agent >> l.dispatch >> l.word >> l.pid)
      all.push_back(std::move(l));
  }
  return all;
}

std::size_t site::said(const std::string& word) const {
  const auto all = ledger();
  return static_cast<std::size_t>(
      std::ranges::count_if(all, [&](const line& l) { return l.word == word; }));
}

// -- processes, JSON, text -----------------------------------------------------------------------

bool alive(pid_t pid) {
  const auto row = read_process(std::to_string(pid));
  return row && row->state != 'Z' && row->state != 'X';
}

std::size_t descendants_named(pid_t root, const std::string& name) {
  const auto all = all_processes();
  std::size_t count = 0;
  for (const auto& [pid, row] : all) {
    if (row.name != name || row.state == 'Z' || row.state == 'X')
      continue;
    pid_t up = row.parent;
    for (std::size_t depth = 0; depth < all.size() && up > 1 && up != root; ++depth) {
      const auto it = all.find(up);
      up = it == all.end() ? 0 : it->second.parent;
    }
    count += up == root ? 1 : 0;
  }
  return count;
}

int threads_of(pid_t pid) {
  const std::string key = "Threads:";
  for (const auto& text : lines_of(read_file("/proc/" + std::to_string(pid) + "/status")))
    if (text.starts_with(key))
      return std::atoi(text.c_str() + key.size());
  return -1;
}

nlohmann::json row_of(const nlohmann::json& items, const std::string& key,
                      const std::string& value) {
  for (const auto& item : items)
    if (item.value(key, "") == value)
      return item;
  return nullptr;
}

std::vector<std::string> troubles(const nlohmann::json& status) {
  std::vector<std::string> all;
  for (const auto& a : status.at("actors"))
    if (a.at("state") != "running")
      all.push_back(a.at("name").get<std::string>() + " " + a.at("state").get<std::string>() +
                    ": " + a.at("last_error").get<std::string>());
  for (const auto& h : status.at("health"))
    if (h.at("ok") != true)
      all.push_back(h.at("name").get<std::string>() + ": " + h.at("reason").get<std::string>());
  return all;
}

std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> all;
  std::istringstream in(text);
  for (std::string one; std::getline(in, one);)
    all.push_back(one);
  return all;
}

} // namespace boyd::test
