#pragma once

#include <iostream>
#include <string>

namespace boyd::test {

/// What a test has to say beside its verdict: one line of standard output each, which .ci/stage
/// finds in ctest's log also when the test passes. The forms are agreed with .ci/run.

/// A measured outcome: "case 11: ended after 23 ms".
inline void tell_figure(const std::string& line) {
  std::cout << line << std::endl;
}

/// What this machine does not allow to be shown, and why.
inline void tell_skipped(const std::string& what, const std::string& why) {
  std::cout << "SKIPPED: " << what << " (" << why << ")" << std::endl;
}

/// Something of the product's promises does not hold. Unlike a time that ran out it fails the run
/// even when a second attempt passes: a loss that comes once in many runs is a loss.
inline void tell_broken(const std::string& what) {
  auto line = what.substr(0, what.find_last_not_of('\n') + 1);
  for (auto& c : line)
    c = c == '\n' ? ' ' : c;
  std::cout << "PROMISE BROKEN: " << line << std::endl;
}

/// The same for a condition: CHECK(promised(rows == 1, "one row")).
inline bool promised(bool holds, const std::string& what) {
  if (!holds)
    tell_broken(what);
  return holds;
}

} // namespace boyd::test
