#include "program.hpp"
#include "support/pch.hpp"

#include <csignal>
#include <filesystem>

// `boyd agents add` and `rm`: the file is edited in place, as a person would.

namespace boyd::agents_edit_test {

using namespace boyd::test;
using Catch::Matchers::Contains;
namespace fs = std::filesystem;

namespace {

const char* commented = R"(# the team
version: 1
kernels:
  - kernel_id: default   # the first
    schedule: "0 0 1 1 *"
    agents:
      # says hello
      - agent_id: hello
        prompt: |
          Say:

          # hello
        executor: {type: command, argv: [echo, hello]}   # a program

      # says bye
      - agent_id: bye
        after: [hello]
        executor:
          type: command
          argv: [echo, bye]
      # the end of the list
    tz: UTC
  - kernel_id: other
    agents: []  # nobody yet
  - kernel_id: short
    agents: [{agent_id: one, executor: {type: command, argv: ["true"]}}]
)";

std::string text_of(const home_of_boyd& home) {
  return read_file(home.file("boyd.yaml"));
}

std::string replaced(std::string text, const std::string& from, const std::string& to) {
  const auto at = text.find(from);
  REQUIRE(at != std::string::npos);
  return text.replace(at, from.size(), to);
}

} // namespace

TEST_CASE("agents add: behind the last one, everything else as it was", "[e2e][agents]") {
  const home_of_boyd home(commented);
  const auto added = home.run({"agents", "add", "report", "--schedule", "@daily", "--prompt",
                               "Say \"hi\"", "--timeout", "5m", "--", "printf", "%s\n", "--brief"});
  INFO(added.err);
  REQUIRE(added.code == 0);
  CHECK_THAT(added.out, Contains("Added default/report in " + home.file("boyd.yaml")));
  const std::string block = "\n      - agent_id: report\n"
                            "        prompt: \"Say \\\"hi\\\"\"\n"
                            "        executor: {type: command, argv: [\"printf\", \"%s\\n\", "
                            "\"--brief\"]}\n"
                            "        schedule: \"@daily\"\n"
                            "        timeout: 5m\n";
  const auto expected =
      replaced(commented, "          argv: [echo, bye]\n", "          argv: [echo, bye]\n" + block);
  CHECK(text_of(home) == expected);
  CHECK(home.run({"run", "report"}).out.find("--brief") != std::string::npos);
  // Into an empty list, and into one in brackets.
  CHECK(home.run({"agents", "add", "second", "--kernel", "other", "--shell", "date -u"}).code == 0);
  CHECK_THAT(text_of(home), Contains("    agents:  # nobody yet\n      - agent_id: second\n"
                                     "        executor: {type: command, shell: \"date -u\"}\n"));
  CHECK(home.run({"agents", "add", "two", "--kernel", "short", "--json", "--", "true"}).code == 0);
  CHECK_THAT(text_of(home), Contains("agents: [{agent_id: two, executor: {type: command, argv: "
                                     "[\"true\"]}}, {agent_id: one,"));
  CHECK(home.run({"config", "validate"}).code == 0);
}

TEST_CASE("agents add: a comment at the margin does not end an agent", "[e2e][agents]") {
  const std::string text = "version: 1\nkernels:\n  - schedule: \"0 0 1 1 *\"\n    agents:\n"
                           "      - agent_id: last\n"
                           "        executor: {type: command, argv: [date]}\n"
                           "# a remark\n"
                           "        timeout: 7m\n";
  const home_of_boyd home(text);
  const auto added = home.run({"agents", "add", "new", "--", "date", "-u"});
  INFO(added.err);
  REQUIRE(added.code == 0);
  CHECK(text_of(home) == text + "      - agent_id: new\n"
                                "        executor: {type: command, argv: [\"date\", \"-u\"]}\n");
}

TEST_CASE("agents add: what would be wrong is not written", "[e2e][agents]") {
  const home_of_boyd home(commented);
  const auto refused = [&](const std::vector<std::string>& args, const std::string& why) {
    const auto r = home.run(args);
    INFO(r.err);
    CHECK(r.code == 2);
    CHECK_THAT(r.err, Contains(why));
    CHECK(text_of(home) == commented);
  };
  refused({"agents", "add", "hello", "--", "true"}, "the agent is there already: hello");
  refused({"agents", "add", "new"}, "nothing says what runs the agent");
  refused({"agents", "add", "--", "true"}, "nothing says what runs the agent");
  refused({"agents", "add", "new"}, "\n      boyd agents add new --shell 'LINE'\n");
  refused({"agents", "add", "new", "echo hi | cat"}, "agents add new --shell 'echo hi | cat'\n");
  refused({"agents", "add", "n w", "--", "true"}, "is not a valid name");
  refused({"agents", "add", "new", "--schedule", "@hourl", "--", "true"}, "did you mean @hourly?");
  refused({"agents", "add", "new", "--schedule", "9 o'clock", "--", "true"}, "boyd: --schedule: ");
  refused({"agents", "add", "new", "--timeout", "soon", "--", "true"}, "boyd: --timeout: ");
  refused({"agents", "add", "new", "--provider", "nobody"}, "nobody");
  refused({"agents", "add", "new", "--adapter", "claud"}, "did you mean claude?");
}

TEST_CASE("agents add: a schedule that the kernel cannot keep is told", "[e2e][agents]") {
  const home_of_boyd home("version: 1\nkernels:\n  - schedule: \"*/10 * * * *\"\n    agents:\n"
                          "      - agent_id: a\n        executor: {type: command, argv: [date]}\n");
  const auto lost = home.run({"agents", "add", "b", "--schedule", "*/5 * * * *", "--", "date"});
  CHECK(lost.code == 0);
  CHECK_THAT(lost.err,
             Contains("so b runs every 10m at most\n  next: set schedule: \"*/5 * * * *\" "
                      "at the kernel, in line 3 of " +
                      home.file("boyd.yaml") + "\n"));
  CHECK_THAT(home.run({"config", "validate"}).err, Contains("so b runs every 10m at most"));
  const auto kept = home.run({"agents", "add", "c", "--schedule", "@hourly", "--", "date"});
  CHECK(kept.code == 0);
  CHECK_THAT(kept.err, !Contains("warning"));
  CHECK_THAT(kept.out, Contains("\nRuns next: "));
  const auto abroad = boyd_run(
      {"--home", home.path(), "agents", "add", "d", "--schedule", "0 10 * * *", "--", "date"},
      {{"TZ", "Asia/Kolkata"}});
  CHECK_THAT(abroad.out, Contains("15:30:00 IST (the schedule is in UTC, the kernel's tz)\n"));
  const auto always = home.run({"agents", "add", "e", "--", "date"});
  CHECK_THAT(always.out, Contains("\nIt runs in every cycle of its kernel (*/10 * * * *).\n"));
}

TEST_CASE("agents rm: with its comment, and never what others need", "[e2e][agents]") {
  const home_of_boyd home(commented);
  const auto needed = home.run({"agents", "rm", "hello", "--yes"});
  CHECK(needed.code == 2);
  CHECK_THAT(needed.err, Contains("kernels[0].agents[0].after"));
  const auto unasked = home.run({"agents", "rm", "bye"});
  CHECK(unasked.code == 2);
  CHECK_THAT(unasked.err, Contains("boyd: nothing was changed: there is no terminal to ask on\n"
                                   "  next: boyd agents rm bye --yes\n"));
  CHECK_THAT(home.run({"agents", "rm", "byee", "--yes"}).err, Contains("did you mean bye?"));
  CHECK(text_of(home) == commented);
  fs::permissions(home.file("boyd.yaml"), fs::perms::group_read, fs::perm_options::add);
  REQUIRE(home.run({"agents", "rm", "bye", "--yes"}).code == 0);
  CHECK((fs::status(home.file("boyd.yaml")).permissions() & fs::perms::group_read) !=
        fs::perms::none);
  CHECK_THAT(text_of(home), !Contains("bye") && Contains("# the end of the list") &&
                                Contains("# says hello") && Contains("    tz: UTC\n"));
  REQUIRE(home.run({"agents", "rm", "hello", "--yes"}).code == 0);
  CHECK_THAT(text_of(home), Contains("    agents: []\n"));
  CHECK(home.run({"agents", "add", "again", "--", "true"}).code == 0);
  CHECK(home.run({"run", "again"}).code == 0);
}

TEST_CASE("agents rm: queued runs of the agent are cancelled, and it says so", "[e2e][agents]") {
  const home_of_boyd home("version: 1\nkernels:\n  - schedule: \"0 0 1 1 *\"\n    agents:\n"
                          "      - {agent_id: stays, executor: {type: command, argv: [date]}}\n"
                          "      - {agent_id: goes, executor: {type: command, argv: [date]}}\n");
  REQUIRE(home.run({"cycle"}).code == 0);
  REQUIRE(home.run({"dispatches", "retry", "goes"}).code == 0);
  REQUIRE(home.run({"dispatches", "retry", "stays"}).code == 0);
  const auto removed = home.run({"agents", "rm", "goes", "--yes"});
  INFO(removed.err);
  CHECK(removed.code == 0);
  CHECK_THAT(removed.out,
             Contains("Removed default/goes") && Contains("Cancelled its 1 queued run.\n"));
  for (const auto& d : home.run({"dispatches", "ls", "--json"}).json().at("items"))
    CHECK(d.at("status") == (d.at("agent_id") == "goes" ? "cancelled" : "pending"));
  const auto other = home.run({"agents", "rm", "stays", "--yes", "--json"}).json();
  CHECK(other.at("schema") == "boyd.agent_removed/1");
  CHECK(other.at("cancelled") == 1);
  CHECK(other.at("running") == 0);
}

TEST_CASE("agents add: a running node learns of it by reload", "[e2e][agents]") {
  const home_of_boyd home(commented);
  program node(home.node());
  REQUIRE(node.wait_for_stderr("ready"));
  CHECK_THAT(home.run({"agents", "add", "fresh", "--", "echo", "here"}).out,
             Contains("boyd reload"));
  CHECK_THAT(home.run({"reload"}).out, Contains("agent default/fresh added"));
  CHECK(home.run({"run", "fresh"}).code == 0);
  node.signal(SIGTERM);
  CHECK(node.finish().code == 0);
}

} // namespace boyd::agents_edit_test
