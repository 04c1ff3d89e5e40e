#include "bench/cycle/git_replay.hpp"

#include "bench/support/command.hpp"
#include "bench/support/statistics.hpp"

#include <sstream>
#include <utility>

namespace boyd::bench {

namespace {

using variables = std::vector<std::pair<std::string, std::string>>;

/// Nobody's own git settings may change what is measured.
const variables clean{{"GIT_CONFIG_GLOBAL", "/dev/null"}, {"GIT_CONFIG_NOSYSTEM", "1"}};

/// The settings under which Boyd commits: objects, index and refs are durable, nothing is packed on
/// the way, no hook runs.
std::vector<std::string> git_in(const std::string& repository) {
  return {"git",
          "-C",
          repository,
          "-c",
          "core.fsync=all",
          "-c",
          "core.fsyncMethod=fsync",
          "-c",
          "gc.auto=0",
          "-c",
          "core.hooksPath=/dev/null",
          "-c",
          "user.name=boyd",
          "-c",
          "user.email=kernel@boyd.local"};
}

result<std::string> git(const std::string& repository, const std::vector<std::string>& what,
                        const variables& more = {}) {
  auto argv = git_in(repository);
  argv.insert(argv.end(), what.begin(), what.end());
  auto set = clean;
  set.insert(set.end(), more.begin(), more.end());
  return run_command(argv, set);
}

} // namespace

result<std::vector<std::string>> commits_of(const std::string& path) {
  auto text = git(path, {"rev-list", "--reverse", "--first-parent", "HEAD"});
  if (!text)
    return fail(std::move(text.error()));
  std::vector<std::string> all;
  std::istringstream lines(*text);
  for (std::string line; std::getline(lines, line);)
    all.push_back(line);
  return all;
}

result<std::vector<double>> replay_with_git(const std::string& from, const std::string& to,
                                            const std::vector<std::string>& commits) {
  if (auto made = run_command({"git", "init", "-q", "-b", "main", to}, clean); !made)
    return fail(std::move(made.error()));
  std::vector<double> times;
  for (const auto& commit : commits) {
    auto placed = git(from, {"--work-tree=" + to, "checkout", "-q", "-f", commit, "--", "."},
                      {{"GIT_INDEX_FILE", to + ".index"}});
    if (!placed)
      return fail(std::move(placed.error()));
    const auto since = stopwatch_clock::now();
    auto added = git(to, {"add", "-A"});
    auto committed =
        added ? git(to, {"commit", "-q", "--allow-empty", "-m", "cycle " + commit}) : added;
    if (!committed)
      return fail(std::move(committed.error()));
    constexpr double milli = 1e3;
    times.push_back(seconds_since(since) * milli);
  }
  return times;
}

} // namespace boyd::bench
