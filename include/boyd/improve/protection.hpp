#pragma once

#include "boyd/improve/finding.hpp"

#include <set>
#include <string>
#include <string_view>
#include <vector>

/// What no patch may touch: a patch does not write its own judge, nor anything that starts
/// programs by itself.
namespace boyd::improve {

struct improve_settings;

struct protection {
  std::vector<std::string> protect;      ///< patterns of the operator's
  std::vector<std::string> judges{};     ///< files_run()
  std::vector<std::string> may_change{}; ///< patterns: what is protected by default is open there
  bool may_change_tests = false;         ///< files that hold tests are open, too
};

/// Files of the repository that a cycle runs, or that say what is run: programs of scanners, their
/// builds, the gate and the executor, scripts that an interpreter among these is given, and every
/// other word of these commands that names one of `known`. Of a linter's words those behind its
/// program are what it looks at, and stay out. Pure.
std::vector<std::string> files_run(const improve_settings& s, const std::string& root,
                                   const std::set<std::string>& known);

/// Whether a file is one of tests, by its name or its directory's: tests/, test_a.py,
/// ShopTest.java.
bool holds_tests(std::string_view path);

/// Why no patch may touch `path`, for whoever proposed it; empty: one may. `path` is plain. Pure.
std::string why_protected(const std::string& path, const protection& p);

/// Why a patch for `task` may not touch `path`: it holds tests, and is not what the task is to
/// mend. A failing test is never mended in the test. Pure.
std::string why_kept(const std::string& path, const finding& task, const protection& p);

} // namespace boyd::improve
