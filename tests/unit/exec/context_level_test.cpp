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
  CHECK(shrink_prompt(prompt, metadata, context_level::full) == prompt);
  const auto focused = shrink_prompt(prompt, metadata, context_level::focused);
  CHECK(focused == "Goal: G. State: SSSS. Memory: [MEMORY is left out: an earlier attempt was too "
                   "long or took too long]. Do it.");
  const auto minimal = shrink_prompt(prompt, metadata, context_level::minimal);
  CHECK(minimal.find("SSSS") == std::string::npos);
  CHECK(minimal.starts_with("Goal: G. State: ["));
  // Places that are not of this prompt cut nothing.
  CHECK(shrink_prompt("short", metadata, context_level::minimal) == "short");
  CHECK(shrink_prompt(prompt, R"({"boyd_sections":[["MEMORY",30,99]]})", context_level::minimal) ==
        prompt);
  CHECK(shrink_prompt(prompt, "{}", context_level::minimal) == prompt);
}

} // namespace boyd::context_level_test
