#pragma once

#include "e2e/program.hpp"
#include "support/temp_dir.hpp"

#include <nlohmann/json.hpp>

#include <chrono>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <sys/types.h>
#include <vector>

namespace boyd::test {

/// For events that take a whole node on a busy machine, perhaps under sanitizers.
inline constexpr std::chrono::milliseconds long_patience{120'000};

/// `wait_until` with `long_patience`; looks less often, because a look may be a whole command.
bool eventually(const std::function<bool()>& condition,
                std::chrono::milliseconds limit = long_patience);

/// `boyd node` on a home, its log in a file. Killed and reaped by the destructor; killed by the
/// kernel when the test process dies.
class node_process {
 public:
  /// Starts it, with this added to its environment; `wait_ready` waits until it answers.
  node_process(std::string home, std::string log_path,
               const std::map<std::string, std::string>& environment = {});
  ~node_process();
  node_process(const node_process&) = delete;
  node_process& operator=(const node_process&) = delete;

  /// Throws with the log when it ends first or the patience does.
  void wait_ready();
  bool wait_for_log(const std::string& text);
  /// This process's part of the log.
  std::string log() const;

  pid_t pid() const { return pid_; }
  bool running();
  void signal(int number) const;
  /// Waits for its end; exit code, or 128 + signal. Throws with the log when the patience ends.
  int wait_end();

 private:
  std::string log_path_;
  std::size_t log_from_ = 0;
  pid_t pid_ = -1;
  std::optional<int> code_;
};

/// One agent of a configuration under test: `sh script`.
struct test_agent {
  std::string id;
  std::string script;     ///< shell; @SITE@ is the site's directory
  std::string more{};     ///< more keys, semicolons between: "timeout: 5s; require: [exit_zero]"
  std::string argument{}; ///< one more word of the command line, such as {prompt_file}
};

/// What a configuration under test varies.
struct test_settings {
  std::vector<test_agent> agents;
  std::string node = "max_concurrent: 8";         ///< keys of `node`
  std::string kernel = "schedule: \"0 0 1 1 *\""; ///< keys of the kernel, semicolons between
  std::string faults{};                           ///< "[{point: …}]"
};

/// A home made by `boyd init`, with a directory beside it for what agents leave outside: their
/// ledger (one line per event, appended) and their gates (files they wait for).
class site {
 public:
  explicit site(const test_settings& settings);
  /// A second home whose agents use this site's ledger and gates.
  site(const test_settings& settings, const site& other);

  /// The configuration anew (the scripts, too).
  void configure(const test_settings& settings) const;

  std::string home() const { return directory_.file("home"); }
  std::string kernel(const std::string& name = {}) const;
  std::string outside(const std::string& name) const { return shared_ + "/" + name; }
  std::string log_path() const { return directory_.file("node.log"); }

  finished run(std::vector<std::string> args) const;
  /// The JSON of a reading command; throws when it fails.
  nlohmann::json ask(std::vector<std::string> args) const;
  nlohmann::json status() const { return ask({"status"}); }
  /// All rows, newest first.
  std::vector<nlohmann::json> dispatches() const;
  std::string state() const { return read_file(kernel("STATE.md")); }

  /// Standard output of `git -C kernel args…`; throws when it fails.
  std::string git(std::vector<std::string> args) const;
  std::vector<std::string> git_lines(std::vector<std::string> args) const;
  /// fsck --strict says nothing; empty when all is well, else what it says.
  std::string fsck() const;

  /// `boyd cycle --json`, not waited for.
  program start_cycle() const {
    return program({boyd_binary(), "--home", home(), "cycle", "--json"});
  }

  /// Lines that agents wrote with `say` (see configure): "<cycle> <agent> <dispatch> <word> <pid>".
  struct line {
    std::string cycle, agent, dispatch, word;
    pid_t pid = 0;
  };
  std::vector<line> ledger() const;
  std::size_t said(const std::string& word) const;
  void open_gate(const std::string& name) const { write_file(outside(name), ""); }

 private:
  temp_dir directory_;
  std::string shared_;
};

/// A process that is there and no zombie.
bool alive(pid_t pid);
/// Descendants of `root` whose command name is `name`.
std::size_t descendants_named(pid_t root, const std::string& name);
/// "Threads:" of /proc/PID/status.
int threads_of(pid_t pid);

/// The row of `items` whose `key` is `value`; null when there is none.
nlohmann::json row_of(const nlohmann::json& items, const std::string& key,
                      const std::string& value);
/// Parts that are not well, "name: reason" each; empty when all are.
std::vector<std::string> troubles(const nlohmann::json& status);

std::vector<std::string> lines_of(const std::string& text);

} // namespace boyd::test
