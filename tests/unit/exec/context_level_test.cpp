#include "boyd/exec/context_level.hpp"
#include "support/pch.hpp"

namespace boyd::context_level_test {

using namespace boyd::exec;

TEST_CASE("context: only failures of time and size take something away") {
  CHECK(level_for("") == context_level::full);
  CHECK(level_for("[]") == context_level::full);
  CHECK(level_for("damaged") == context_level::full);
  CHECK(level_for(R"([{"execution":"failed","usage":null}])") == context_level::full);
  CHECK(level_for(R"([{"execution":"timed_out"}])") == context_level::focused);
  CHECK(level_for(R"([{"execution":"failed","usage":{"too_long":true}}])") ==
        context_level::focused);
  CHECK(level_for(
            R"([{"execution":"timed_out"},{"execution":"failed","usage":{"too_long":true}}])") ==
        context_level::minimal);
}

TEST_CASE("context: what is left out is said, what stays is whole") {
  const std::string prompt = "Goal: G. State: SSSS. Memory: MMM. Do it.";
  const auto metadata = R"({"boyd_sections":[["GOAL",6,1],["STATE",16,4],["MEMORY",30,3]]})";
  CHECK(make_attempt_prompt(prompt, metadata, context_level::full) == prompt);
  const auto focused = make_attempt_prompt(prompt, metadata, context_level::focused);
  CHECK(focused == "Goal: G. State: SSSS. Memory: [MEMORY is left out: an earlier attempt was too "
                   "long or took too long]. Do it.");
  const auto minimal = make_attempt_prompt(prompt, metadata, context_level::minimal);
  CHECK(minimal.find("SSSS") == std::string::npos);
  CHECK(minimal.starts_with("Goal: G. State: ["));
  // Places that are not of this prompt cut nothing.
  CHECK(make_attempt_prompt("short", metadata, context_level::minimal) == "short");
  CHECK(make_attempt_prompt(prompt, R"({"boyd_sections":[["MEMORY",30,99]]})",
                            context_level::minimal) == prompt);
  CHECK(make_attempt_prompt(prompt, "{}", context_level::minimal) == prompt);
}

TEST_CASE("context levels: the context stands at its place, else behind the prompt", "[exec]") {
  const std::string prompt = "task: now";
  const auto metadata = R"({"boyd_sections":[["CONTEXT",6,0],["STATE",6,3],["CONTEXT",9,0]]})";
  CHECK(make_attempt_prompt(prompt, metadata, context_level::full, "<items> ") ==
        "task: <items> now");
  CHECK(make_attempt_prompt(prompt, metadata, context_level::full) == prompt);
  const auto minimal = make_attempt_prompt(prompt, metadata, context_level::minimal, "<items> ");
  CHECK(minimal.starts_with("task: <items> [STATE is left out"));
  CHECK(make_attempt_prompt(prompt, "{}", context_level::full, "<items>") ==
        "task: now\n\n<items>");
  CHECK(make_attempt_prompt("", "{}", context_level::full, "<items>") == "<items>");
}

} // namespace boyd::context_level_test
