#pragma once

#include "boyd/ports/clock.hpp"
#include "boyd/ports/repository.hpp"
#include "src/adapters/libgit2/repository.hpp"
#include "support/pch.hpp"
#include "support/temp_dir.hpp"

#include <array>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <memory>
#include <optional>
#include <string>
#include <sys/wait.h>
#include <vector>

namespace boyd::test {

/// What a shell command said.
struct said {
  int exit_code = -1;
  std::string text; ///< stdout and stderr
};

/// Runs a shell command in `dir`, without any configuration of this machine.
inline said shell(const std::string& dir, const std::string& command) {
  const std::string line = "cd '" + dir +
                           "' && export GIT_CONFIG_NOSYSTEM=1 GIT_CONFIG_GLOBAL=/dev/null"
                           " GIT_EDITOR=true && unset GIT_DIR GIT_WORK_TREE GIT_INDEX_FILE; ( " +
                           command + " ) 2>&1";
  said out;
  FILE* pipe = ::popen(line.c_str(), "r");
  REQUIRE(pipe != nullptr);
  std::array<char, 4096> part{};
  for (std::size_t n = 0; (n = std::fread(part.data(), 1, part.size(), pipe)) > 0;)
    out.text.append(part.data(), n);
  const int status = ::pclose(pipe);
  out.exit_code = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  return out;
}

inline void put(const std::string& path, const std::string& text) {
  std::filesystem::create_directories(std::filesystem::path(path).parent_path());
  std::ofstream(path, std::ios::binary | std::ios::trunc) << text;
}

inline std::string get(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

inline utc_time at(std::int64_t unix_seconds) {
  return utc_time{seconds{unix_seconds}};
}

inline constexpr std::int64_t noon = 1'770'984'000; ///< 2026-02-13T12:00:00Z

/// A repository of its own in a temporary directory, seen through the adapter and through git.
struct git_home {
  temp_dir root;
  std::string path = root.file("home");
  git_identity who;
  std::shared_ptr<repository_provider> provider = adapters::make_git_repositories();
  std::unique_ptr<repository> repo;

  git_home() {
    auto made = provider->init(path, who);
    INFO((made ? std::string() : to_string(made.error())));
    REQUIRE(made);
    repo = std::move(*made);
  }

  std::string file(const std::string& name) const { return path + "/" + name; }

  said git(const std::string& arguments) const {
    return shell(path,
                 "git -c safe.directory='*' -c user.name=person -c user.email=person@example.org " +
                     arguments);
  }

  /// Commits everything that changed, if anything did; fails the test on an error.
  std::optional<std::string> commit_all(const std::string& message, std::int64_t when = noon) {
    const auto changes = repo->changes();
    INFO((changes ? std::string() : to_string(changes.error())));
    REQUIRE(changes);
    if (changes->empty())
      return std::nullopt; // without a path the commit would be meant to be empty
    return commit(*changes, message, when);
  }

  std::optional<std::string> commit(const std::vector<path_change>& paths,
                                    const std::string& message, std::int64_t when = noon) {
    const auto done = repo->commit(paths, message, at(when));
    INFO((done ? std::string() : to_string(done.error())));
    REQUIRE(done);
    return *done;
  }

  /// What must hold after everything: git's own judgement.
  void check_sound() const {
    const auto fsck = git("fsck --strict --no-dangling");
    INFO(fsck.text);
    CHECK(fsck.exit_code == 0);
    CHECK(fsck.text.find("error") == std::string::npos);
    CHECK(fsck.text.find("missing") == std::string::npos);
  }

  void check_clean() const { CHECK(git("status --porcelain").text.empty()); }

  std::vector<std::string> subjects() const {
    std::vector<std::string> out;
    std::istringstream in(git("log --format=%s").text);
    for (std::string line; std::getline(in, line);)
      out.push_back(line);
    return out;
  }
};

} // namespace boyd::test
