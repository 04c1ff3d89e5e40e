#include "../exit_codes.hpp"
#include "../hints.hpp"
#include "../home.hpp"
#include "../json_view.hpp"
#include "../live_line.hpp"
#include "../signals.hpp"
#include "../terminal.hpp"
#include "adapters/control/control_client.hpp"
#include "adapters/posix/home_lock.hpp"
#include "boyd/core/time.hpp"
#include "boyd/ports/file_system.hpp"
#include "boyd/ports/time_zones.hpp"
#include "commands.hpp"

#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <fcntl.h>
#include <filesystem>
#include <fstream>
#include <optional>
#include <spawn.h>
#include <string>
#include <string_view>
#include <sys/stat.h>
#include <sys/wait.h>
#include <system_error>
#include <unistd.h>
#include <utility>
#include <vector>

/// `boyd node --background`: starts the node in a session of its own and waits until it answers.
namespace boyd::app {

namespace {

/// A node that migrates its database, or whose server is slow, starts for so long.
constexpr milliseconds start_limit = 60s;
constexpr milliseconds look_again = 50ms;
constexpr milliseconds answer_limit = 2s;
constexpr std::size_t shown_lines = 10;
constexpr std::uintmax_t shown_bytes = 8192;
/// A log beyond this is kept as the earlier one at the next start, in the place of the one before.
constexpr std::uintmax_t largest_log = std::uintmax_t{16} << 20;
constexpr int signalled = 128;

/// The attributes of the node's process: a session of its own, no blocked signals.
class session_attributes {
 public:
  session_attributes() {
    ::posix_spawnattr_init(&value_);
    sigset_t none;
    ::sigemptyset(&none);
    ::posix_spawnattr_setsigmask(&value_, &none);
    ::posix_spawnattr_setflags(&value_, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSID);
  }
  ~session_attributes() { ::posix_spawnattr_destroy(&value_); }
  session_attributes(const session_attributes&) = delete;
  session_attributes& operator=(const session_attributes&) = delete;
  const posix_spawnattr_t* get() const { return &value_; }

 private:
  posix_spawnattr_t value_{};
};

/// The size of the log before the node writes to it.
std::uintmax_t prepare_log(const home_layout& layout) {
  std::error_code missing;
  auto size = std::filesystem::file_size(layout.log(), missing);
  if (missing)
    return 0;
  if (size <= largest_log)
    return size;
  std::error_code failed;
  std::filesystem::rename(layout.log(), layout.earlier_log(), failed);
  return failed ? size : 0;
}

std::string this_program() {
  std::error_code failed;
  auto path = std::filesystem::read_symlink("/proc/self/exe", failed).string();
  return failed || ::access(path.c_str(), X_OK) != 0 ? "/proc/self/exe" : path;
}

/// The environment without the width of this terminal: lines of the log are not broken.
std::vector<char*> without_columns() {
  std::vector<char*> all;
  for (char** one = environ; *one != nullptr; ++one)
    if (!std::string_view(*one).starts_with("COLUMNS="))
      all.push_back(*one);
  all.push_back(nullptr);
  return all;
}

result<pid_t> start(const place& where, const arguments& args) {
  std::vector<std::string> words{this_program(), "--home", where.home};
  if (where.has_own_config())
    words.insert(words.end(), {"--config", where.config_path});
  if (args.verbose)
    words.emplace_back("--verbose");
  words.emplace_back("node");
  std::vector<char*> argv;
  argv.reserve(words.size() + 1);
  for (auto& w : words)
    argv.push_back(w.data());
  argv.push_back(nullptr);
  auto env = without_columns();
  const auto log = where.layout().log();
  constexpr int append = O_WRONLY | O_CREAT | O_APPEND;
  constexpr mode_t private_file = 0600;
  ::posix_spawn_file_actions_t files;
  ::posix_spawn_file_actions_init(&files);
  ::posix_spawn_file_actions_addopen(&files, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
  ::posix_spawn_file_actions_addopen(&files, STDOUT_FILENO, log.c_str(), append, private_file);
  ::posix_spawn_file_actions_adddup2(&files, STDOUT_FILENO, STDERR_FILENO);
  const session_attributes attributes;
  // Its agents get the umask that the user has.
  const auto own = ::umask(static_cast<mode_t>(user_umask()));
  pid_t pid = -1;
  const int failed =
      ::posix_spawn(&pid, argv.front(), &files, attributes.get(), argv.data(), env.data());
  ::umask(own);
  ::posix_spawn_file_actions_destroy(&files);
  if (failed != 0)
    return fail(errc::io_error, std::string("cannot start the node: ") + std::strerror(failed), log,
                "check that you can write to this file");
  return pid;
}

/// What the node wrote behind `begin`: its last lines.
std::vector<std::string> last_lines(const std::string& path, std::uintmax_t begin) {
  std::error_code failed;
  const auto size = std::filesystem::file_size(path, failed);
  std::ifstream log(path);
  if (failed || !log)
    return {};
  log.seekg(static_cast<std::streamoff>(
      std::max(begin, size > shown_bytes ? size - shown_bytes : std::uintmax_t{0})));
  std::vector<std::string> lines;
  for (std::string line; std::getline(log, line);)
    lines.push_back(line);
  if (lines.size() > shown_lines)
    lines.erase(lines.begin(), lines.end() - static_cast<std::ptrdiff_t>(shown_lines));
  return lines;
}

/// The exit code, or 128 + signal, of the node when it has ended.
std::optional<int> code_of_end(pid_t pid) {
  int status = 0;
  if (::waitpid(pid, &status, WNOHANG) != pid)
    return std::nullopt;
  return WIFEXITED(status) ? WEXITSTATUS(status) : signalled + WTERMSIG(status);
}

/// This very node answers: nobody else's answer counts.
bool is_answering(const place& where, pid_t pid) {
  const auto owner = adapters::read_home_owner(where.home);
  if (!owner || !*owner || (*owner)->pid != pid)
    return false;
  const auto answer = adapters::control_call(where.layout().control_socket(),
                                             {"GET", "/healthz", {}, {}}, answer_limit);
  return answer && answer->status == 200;
}

/// Nothing: it answers. A value: it has ended, with this code. Errors: `timed_out`, `cancelled`.
result<std::optional<int>> wait_for_answer(const place& where, pid_t pid, signal_watch& signals) {
  const auto until = std::chrono::steady_clock::now() + start_limit;
  while (true) {
    if (const auto code = code_of_end(pid))
      return code;
    if (is_answering(where, pid))
      return std::optional<int>{};
    const auto next = "read its log: " + where.layout().log() + "; to end it: boyd stop";
    if (std::chrono::steady_clock::now() >= until)
      return fail(errc::timed_out,
                  "the node does not answer yet after " + format_duration(start_limit) +
                      "; it continues to start",
                  "process " + std::to_string(pid), next);
    if (!signals.pause(look_again))
      return fail(errc::cancelled, "interrupted; the node continues to start",
                  "process " + std::to_string(pid), next);
  }
}

/// Its words, then that it did not start. What its log has far in are commands to copy.
int report_end(int code, const std::vector<std::string>& lines, const std::string& log,
               const arguments& args) {
  for (const auto& line : lines) {
    const auto text = "  " + printable(line);
    const auto shown =
        (line.starts_with("    ") ? text : folded(text, terminal_of_stderr(args))) + "\n";
    std::fwrite(shown.data(), 1, shown.size(), stderr);
  }
  const error e{errc::io_error,
                lines.empty() ? "the node did not start (exit code " + std::to_string(code) + ")"
                              : "the node did not start; the reason is above",
                "log: " + log, lines.empty() ? "start it in the foreground: boyd node" : ""};
  print_error(e);
  if (args.json)
    print(error_json(e) + "\n");
  return code == exit_code::ok ? exit_code::failure : code;
}

} // namespace

int run_node_in_background(const arguments& args) {
  signal_watch signals;
  const auto where = place_of(args);
  if (!where)
    return report(where.error(), args.json);
  if (auto there = require_home(*where); !there)
    return report(there.error(), args.json);
  if (const auto owner = adapters::read_home_owner(where->home);
      owner && *owner && adapters::is_alive(**owner))
    return report({errc::locked, "a node or another command uses this home already",
                   "process " + std::to_string((*owner)->pid),
                   "see what it does: boyd status\n  or end it: boyd stop"},
                  args.json);
  const auto p = local_ports();
  if (auto settings = load_configuration(where->config_path, *p.files, *p.zones); !settings)
    return report(settings.error(), args.json);
  if (auto made = p.files->make_directories(where->layout().run()); !made)
    return report(made.error(), args.json);
  const auto log = where->layout().log();
  const auto begin = prepare_log(where->layout());
  const auto pid = start(*where, args);
  if (!pid)
    return report(pid.error(), args.json);
  const auto ended = with_live_line(args, "node: waiting for its first answer",
                                    [&] { return wait_for_answer(*where, *pid, signals); });
  if (!ended)
    return report(ended.error(), args.json);
  if (*ended)
    return report_end(**ended, last_lines(log, begin), log, args);
  if (args.json)
    print(json{{"schema", "boyd.node/1"}, {"pid", *pid}, {"log", log}}.dump(
              -1, ' ', false, json::error_handler_t::replace) +
          "\n");
  else if (!args.quiet)
    print("The node runs in the background (process " + std::to_string(*pid) + ").\n" +
          "log: " + log + as_hint("\nstop it with: boyd stop\n"));
  return exit_code::ok;
}

} // namespace boyd::app
