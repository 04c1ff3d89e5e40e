#include "boyd/queue/dispatch_ids.hpp"
#include "boyd/queue/end_in_words.hpp"
#include "support/pch.hpp"

namespace boyd::end_in_words_test {

using namespace boyd;

TEST_CASE("the log's line of a run names what became of it and why") {
  settlement end;
  end.to = settle_to::done;
  end.outcome.summary = "healthy: 337 files";
  end.outcome.usage.wall_ms = 1200;
  CHECK(queue::end_in_words(end) == "done after 1.2 s: healthy: 337 files");
  end.outcome.usage.wall_ms.reset();
  end.outcome.failure = failure_class::transient;
  end.outcome.error = "no answer";
  end.to = settle_to::failed;
  CHECK(queue::end_in_words(end) == "failed (transient): no answer");
  end.to = settle_to::retry;
  end.delay = 4s;
  CHECK(queue::end_in_words(end) == "failed, next attempt in 4.0 s: no answer");
  end.to = settle_to::cancelled;
  CHECK(queue::end_in_words(end) == "cancelled: no answer");
  end.to = settle_to::release;
  end.outcome.error.clear();
  end.outcome.summary.clear();
  CHECK(queue::end_in_words(end) == "returned to the queue");
}

TEST_CASE("an agent's words do not begin a line of their own in the log") {
  settlement end;
  end.to = settle_to::failed;
  end.outcome.error =
      "one\n2026-01-01T00:00:00Z critical node: \x1b[2Jgone" + std::string(500, 'x');
  const auto line = queue::end_in_words(end);
  CHECK(line.find_first_of("\n\x1b") == std::string::npos);
  CHECK(line.size() < 350);
}

TEST_CASE("a part of an id is recognized") {
  CHECK(queue::may_be_random_part("6a2f9d41"));
  CHECK(queue::may_be_random_part("6a2f9d41c7e0"));
  CHECK_FALSE(queue::may_be_random_part("6a2f9d4"));
  CHECK_FALSE(queue::may_be_random_part("6a2f9d41c7e01"));
  CHECK_FALSE(queue::may_be_random_part("019c56e2-1f4"));
  CHECK_FALSE(queue::may_be_random_part("daily-re"));
  CHECK(queue::random_part_of("019c56e2-1f40-7d35-8b0e-6a2f9d41c7e0") == "6a2f9d41c7e0");
  CHECK(queue::random_part_of("short") == "short");
}

} // namespace boyd::end_in_words_test
