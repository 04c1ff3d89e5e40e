#pragma once

#include "support/temp_dir.hpp"

#include <nlohmann/json.hpp>

#include <functional>
#include <map>
#include <string>
#include <sys/types.h>
#include <vector>

namespace boyd::test {

/// What a program left behind.
struct finished {
  int code = -1; ///< exit code, or 128 + signal
  std::string out;
  std::string err;

  /// Standard output as one JSON object; discarded when it is none.
  nlohmann::json json() const { return nlohmann::json::parse(out, nullptr, false); }
};

/// The real binary, running. Ended by SIGKILL at the end of the scope when it has not ended.
class program {
 public:
  /// Starts `argv` with this environment added to a small standard one (HOME is a directory that
  /// does not exist).
  explicit program(const std::vector<std::string>& argv,
                   const std::map<std::string, std::string>& environment = {});
  ~program();
  program(const program&) = delete;
  program& operator=(const program&) = delete;

  /// Reads until standard error has `text`; false when it ends or the patience does.
  bool wait_for_stderr(const std::string& text);
  /// The same, but only in what comes after what an earlier wait found.
  bool wait_for_new_stderr(const std::string& text);
  /// Everything that it has written there so far.
  const std::string& stderr_now();
  /// Reads until standard output has `text`.
  bool wait_for_stdout(const std::string& text);

  void signal(int number) const;
  pid_t pid() const { return pid_; }

  /// Reads to the end of both pipes and waits; kills it when the patience ends (code -2).
  finished finish();

 private:
  bool read_some(int timeout_ms);
  bool wait_for(const std::string& text, std::size_t from);
  /// False when `enough` never held.
  bool read_until(const int& fd, const std::function<bool()>& enough);

  pid_t pid_ = -1;
  int out_fd_ = -1;
  int err_fd_ = -1;
  std::size_t seen_ = 0;
  finished result_;
};

/// The binary under test.
std::string boyd_binary();

/// The environment with which AddressSanitizer, where there is one, heeds `more` as well.
std::map<std::string, std::string> with_asan_options(const std::string& more);

/// Runs `boyd args…` to its end.
finished boyd_run(const std::vector<std::string>& args,
                  const std::map<std::string, std::string>& environment = {});

/// A home made by `boyd init`, and the commands on it.
class home_of_boyd {
 public:
  /// `yaml`: the configuration; empty: the standard one.
  explicit home_of_boyd(const std::string& yaml = {});

  std::string path() const { return directory_.file("home"); }
  std::string file(const std::string& name) const { return path() + "/" + name; }
  void write_configuration(const std::string& yaml) const;

  finished run(std::vector<std::string> args) const;
  /// `boyd --home … node`, not waited for.
  std::vector<std::string> node() const { return {boyd_binary(), "--home", path(), "node"}; }

 private:
  temp_dir directory_;
};

/// One request without a body over the control socket, e.g. "POST /api/v1/cycles"; the whole
/// answer, empty when there is none.
std::string ask_socket(const std::string& socket_path, const std::string& what);
/// The same of a GET of `path`.
std::string get(const std::string& socket_path, const std::string& path);

/// Runs `git arguments` in a directory, without any configuration of this machine; it must go well.
/// What it wrote.
std::string git(const std::string& where, const std::string& arguments);

std::string read_file(const std::string& path);
void write_file(const std::string& path, const std::string& text);

} // namespace boyd::test
