#pragma once

#include "bench/support/arguments.hpp"
#include "boyd/core/result.hpp"

#include <functional>
#include <string>
#include <vector>

namespace boyd::bench {

/// A benchmark as a program: its command line and what it does.
struct program {
  const char* name = "";
  const char* usage = "";
  std::vector<std::string> keys; ///< take a value; --json and --help are understood by all
  std::function<result<void>(const arguments&)> run;
};

/// Reads the command line, runs `p` and tells what failed. Returns main's exit code: 0, 1 for a
/// failure, 2 for a wrong command line.
int start(int argc, char** argv, const program& p);

} // namespace boyd::bench
