#include "boyd/core/failure_words.hpp"
#include "support/pch.hpp"

namespace boyd::failure_words_test {

using namespace boyd;
using Catch::Matchers::StartsWith;

TEST_CASE("every failed run says why it is not tried again") {
  for (const auto c : {failure_class::transient, failure_class::deterministic,
                       failure_class::environment, failure_class::flaky, failure_class::policy}) {
    const std::string words(why_no_retry(c));
    CAPTURE(words);
    // What is worth another attempt has had all that it may have.
    if (is_retryable(c))
      CHECK(words == "no attempt is left");
    else
      CHECK_THAT(words, StartsWith("not tried again, because "));
  }
  CHECK(why_no_retry(failure_class::none).empty());
}

} // namespace boyd::failure_words_test
