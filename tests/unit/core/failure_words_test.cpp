#include "boyd/core/failure_words.hpp"
#include "support/pch.hpp"

namespace boyd::failure_words_test {

using namespace boyd;

TEST_CASE("a failed run says its cause first, then that nothing tries it again by itself") {
  for (const auto c : {failure_class::transient, failure_class::deterministic,
                       failure_class::environment, failure_class::flaky, failure_class::policy}) {
    // What is worth another attempt has had all that it may have.
    const std::string end = is_retryable(c) ? " (no attempt is left)" : " (no automatic retry)";
    CHECK(after_failed("exit code 1", c) == ": exit code 1" + end);
    CHECK(after_failed("", c) == end);
  }
  CHECK(after_failed("exit code 1", failure_class::none) == ": exit code 1");
  CHECK(after_failed("", failure_class::none).empty());
}

} // namespace boyd::failure_words_test
