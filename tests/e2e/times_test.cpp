#include "program.hpp"
#include "support/pch.hpp"

// Times as people write and read them (docs/operations.md, Times).

namespace boyd::times_test {

using namespace boyd::test;
using Catch::Matchers::Contains;

namespace {

const char* one_agent = R"(version: 1
kernels:
  - kernel_id: default
    schedule: "0 0 1 1 *"
    agents:
      - agent_id: clock
        prompt: none
        executor: {type: command, argv: [echo, tick]}
)";

finished in_kolkata(const home_of_boyd& home, std::vector<std::string> args) {
  args.insert(args.begin(), {"--home", home.path()});
  return boyd_run(args, {{"TZ", "Asia/Kolkata"}});
}

} // namespace

TEST_CASE("times: shown in the user's zone with its name; --utc and --json have UTC",
          "[e2e][times]") {
  const home_of_boyd home(one_agent);
  REQUIRE(home.run({"cycle"}).code == 0);
  const auto utc = home.run({"dispatches", "show", "clock", "--json"})
                       .json()
                       .at("dispatch")
                       .at("created_at")
                       .get<std::string>();
  const auto shown = in_kolkata(home, {"dispatches", "show", "clock"}).out;
  CHECK_THAT(shown, Contains(" IST\n"));
  const auto in_utc = utc.substr(0, 10) + " " + utc.substr(11, 8) + "Z";
  CHECK_THAT(shown, !Contains(in_utc));
  CHECK_THAT(in_kolkata(home, {"--utc", "dispatches", "show", "clock"}).out, Contains(in_utc));
  CHECK(in_kolkata(home, {"dispatches", "show", "clock", "--json"})
            .json()["dispatch"]["created_at"] == utc);
  CHECK_THAT(in_kolkata(home, {"why"}).out, Contains(" IST") && Contains("05:30:00"));
  CHECK_THAT(in_kolkata(home, {"why", "--utc"}).out, Contains("-01-01 00:00:00Z"));
  CHECK_THAT(in_kolkata(home, {"state", "log"}).out, Contains(" IST"));
}

TEST_CASE("times: why of an agent looks behind runs of others by hand", "[e2e][times]") {
  const home_of_boyd home("version: 1\nkernels:\n  - schedule: \"0 0 1 1 *\"\n    agents:\n"
                          "      - agent_id: a\n        executor: {type: command, argv: [date]}\n"
                          "      - agent_id: b\n        executor: {type: command, argv: [date]}\n");
  REQUIRE(home.run({"run", "a"}).code == 0);
  REQUIRE(home.run({"run", "b"}).code == 0);
  const auto a = home.run({"why", "a", "--at", "now"});
  INFO(a.out);
  CHECK(a.code == 0);
  CHECK_THAT(a.out, Contains("Agent a was dispatched") && !Contains("No recorded decision"));
  // A minute in which nothing was due, and no node was there yet.
  const auto before = home.run({"why", "a", "--utc", "--at", "2020-05-05T10:15:00Z"});
  CHECK_THAT(before.out, Contains("Agent a did not run at 2020-05-05 10:15:00Z: this home did not "
                                  "exist yet; it was made at "));
  CHECK_THAT(before.out, Contains("Agent a runs next at ") &&
                             Contains(", but no node is running; start one with: boyd node"));
  CHECK_THAT(home.run({"why", "a", "--at", "2099-01-01"}).out,
             Contains("is still to come; see: boyd next a"));
  const auto day = home.run({"why", "a", "--at", "2020-05-05"});
  CHECK_THAT(day.err, Contains("2020-05-05 has no time, so this is about the last cycle of it"));
  // All that ran was run by hand: the kernel's newest is what there is.
  CHECK_THAT(home.run({"why"}).out, Contains("Run by hand since then: Agent b was dispatched"));
}

TEST_CASE("times: why without a name is about all kernels", "[e2e][times]") {
  const std::string agent =
      "    agents: [{agent_id: a, executor: {type: command, argv: [date]}}]\n";
  const home_of_boyd home(
      "version: 1\nkernels:\n  - kernel_id: one\n    schedule: \"0 0 1 1 *\"\n" + agent +
      "  - kernel_id: two\n    schedule: \"0 0 1 1 *\"\n" + agent);
  REQUIRE(home.run({"cycle", "--kernel", "two"}).code == 0);
  const auto all = home.run({"why"}).out;
  INFO(all);
  CHECK_THAT(all, Contains("Kernel one has had no cycle") &&
                      Contains("Kernel two: the cycle asked for at ") &&
                      Contains("Agent a was dispatched"));
  CHECK_THAT(home.run({"why", "--kernel", "two"}).out, !Contains("Kernel one"));
  CHECK(home.run({"why", "--json"}).json()["kernels"] == nlohmann::json::array({"one", "two"}));
}

TEST_CASE("times: --at and --since take what people write", "[e2e][times]") {
  const home_of_boyd home(one_agent);
  REQUIRE(home.run({"cycle"}).code == 0);
  for (const char* since :
       {"-2h", "yesterday 10:00", "yesterday", "2026-01-01", "2026-01-01T10:00:00Z", "3h ago"}) {
    INFO(since);
    const auto listed = home.run({"dispatches", "ls", "--since", since, "--json"});
    INFO(listed.err);
    CHECK(listed.code == 0);
    CHECK(listed.json().at("items").size() == 1);
  }
  CHECK(
      home.run({"dispatches", "ls", "--since", "2099-01-01", "--json"}).json().at("items").empty());
  for (const char* at : {"now", "-0s", "2099-01-01", "tomorrow"}) {
    INFO(at);
    const auto why = home.run({"why", "clock", "--at", at, "--json"});
    CHECK(why.code == (std::string(at) == "tomorrow" ? 2 : 0));
  }
  const auto state = home.run({"state", "show", "--at", "now"});
  INFO(state.err);
  CHECK(state.code == 0);
  CHECK_THAT(state.out, Contains("kernel_runtime"));
  CHECK(home.run({"state", "show", "--at", "HEAD"}).code == 0);
  CHECK(home.run({"cost", "--from", "yesterday", "--to", "today"}).code == 0);
  const auto bad = home.run({"dispatches", "ls", "--since", "noon"});
  CHECK(bad.code == 2);
  CHECK_THAT(bad.err, Contains("--since: not a time: \"noon\"") &&
                          Contains("next: use 10:00, yesterday 10:00"));
  const auto day = home.run({"cost", "--from", "someday"});
  CHECK(day.code == 2);
  CHECK_THAT(day.err, Contains("--from: not a date: \"someday\""));
}

} // namespace boyd::times_test
