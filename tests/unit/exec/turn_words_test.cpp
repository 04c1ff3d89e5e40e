#include "boyd/exec/turn_words.hpp"
#include "support/pch.hpp"

using boyd::exec::turn_in_words;

TEST_CASE("turn words: what somebody who waits is told", "[exec]") {
  const auto said = [](const char* line) { return turn_in_words(line).text; };
  CHECK(said(R"({"event":"action","turn":2,"tool":"read_file","decision":"allow"})") ==
        "turn 2: read_file");
  CHECK(
      said(R"({"event":"action","turn":2,"tool":"write_file","decision":"deny","reason":"no"})") ==
      "turn 2: write_file denied: no");
  CHECK(said(R"({"event":"action","turn":2,"tool":"run_command","decision":"ask"})").empty());
  CHECK(said(R"({"event":"result","turn":2,"tool":"run_command","ok":false})") ==
        "turn 2: run_command failed");
  CHECK(said(R"({"event":"result","turn":2,"tool":"run_command","ok":true})").empty());
  const auto asked = turn_in_words(R"({"event":"approval","what":"asked","step":1,)"
                                   R"("approval_id":"019c56e2-1f40-7d35-8b0e-6a2f9d41c7e0"})");
  CHECK(asked.text == "needs approval: boyd approvals approve 019c56e2-1f40-7d35");
  CHECK(asked.is_delay);
  const auto slow = turn_in_words(R"({"event":"trouble","provider":"local","kind":"rate_limited",)"
                                  R"("what":"slow down","next":"again in 2s"})");
  CHECK(slow.text == "local: rate_limited: slow down; again in 2s");
  CHECK(slow.is_delay);
}

TEST_CASE("turn words: what cannot be read has none", "[exec]") {
  for (const auto* line : {"", "{", "[]", "7", R"({"event":7})", R"({"event":"begin"})",
                           R"({"event":"action"})", R"({"event":"result","ok":"no"})"}) {
    CAPTURE(line);
    CHECK(turn_in_words(line).text.empty());
  }
}
