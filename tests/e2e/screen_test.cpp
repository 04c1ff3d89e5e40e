#include "on_terminal.hpp"
#include "program.hpp"
#include "skills_lab.hpp"
#include "support/pch.hpp"

#include <algorithm>
#include <csignal>
#include <filesystem>
#include <optional>

// What a person sees on a terminal of 80 columns.

namespace boyd::screen_test {

using namespace boyd::test;
using Catch::Matchers::Contains;

namespace {

const char* long_words =
    "a summary that has so many words that no screen of eighty columns has room for all of them";

std::string team() {
  return "version: 1\nnode: {budget_day: {tokens: 1000000}}\nkernels:\n"
         "  - kernel_id: a-kernel-with-a-long-name\n    schedule: \"0 0 1 1 *\"\n    agents:\n"
         "      - agent_id: quarterly-report-of-the-warehouse\n        prompt: none\n"
         "        executor: {type: command, argv: [echo, \"" +
         std::string(long_words) +
         "\"]}\n"
         "      - agent_id: nightly-import-of-all-invoices\n        prompt: none\n"
         "        retry: {max_attempts: 1}\n"
         "        executor: {type: command, shell: \"echo " +
         std::string(long_words) +
         " >&2; exit 3\"}\n"
         "      - {agent_id: short, enabled: false, executor: {type: command, argv: [\"true\"]}}\n"
         "  - {kernel_id: another, schedule: \"0 0 1 1 *\"}\n";
}

/// No row is wider than the screen; the whole output.
std::string shown(const home_of_boyd& home, std::vector<std::string> args) {
  std::string words;
  for (const auto& a : args)
    words += a + " ";
  args.insert(args.begin(), {"--home", home.path()});
  on_terminal t(args);
  CHECK(t.finish() == 0);
  std::istringstream lines(t.text());
  for (std::string line; std::getline(lines, line);) {
    INFO(words << ": " << line);
    CHECK(width_of(line) <= columns);
  }
  return t.text();
}

} // namespace

TEST_CASE("no row of a table is wider than 80 columns", "[e2e][screen]") {
  const home_of_boyd home(team());
  const auto cycle = home.run({"cycle", "--kernel", "a-kernel-with-a-long-name"});
  REQUIRE(cycle.code == 3);
  CHECK_THAT(cycle.out, Contains("nightly-import-of-all-invoices failed") &&
                            Contains(" (no automatic retry)\n"));
  const std::vector<std::vector<std::string>> verbs{{"dispatches", "ls"},
                                                    {"agents", "ls"},
                                                    {"status"},
                                                    {"status", "--parts"},
                                                    {"cost"},
                                                    {"approvals"},
                                                    {"next"},
                                                    {"skills", "ls"},
                                                    {"kg", "stats"},
                                                    {"memory", "status"},
                                                    {"context", "ls"},
                                                    {"plan"},
                                                    {"state", "log"},
                                                    {"tools", "ls"},
                                                    {"patches", "ls"},
                                                    {"chaos", "ls"},
                                                    {"actors", "ls"}};
  for (const auto& args : verbs)
    shown(home, args);
  for (const auto& args : std::vector<std::vector<std::string>>{{"dispatches"}, {"agents"}})
    CHECK_THAT(shown(home, args), Contains("a summary that has so"));
  const auto status = shown(home, {"status"});
  CHECK_THAT(status, !Contains("RESTARTS") && Contains("a-kernel-with"));
  CHECK_THAT(shown(home, {"status", "--parts"}), Contains("RESTARTS") && Contains("librarian"));
  CHECK_THAT(home.run({"status"}).out, Contains("failed: ") && Contains(" (no automatic retry)\n"));
  CHECK_THAT(home.run({"why", "nightly-import-of-all-invoices"}).out,
             Contains("It failed: ") && Contains(" (no automatic retry)."));
  // Each had one attempt.
  CHECK_THAT(home.run({"dispatches"}).out, !Contains("ATTEMPT"));
}

TEST_CASE("what was learned fits 80 columns, and a pipe gets its ids whole", "[e2e][screen]") {
  const skills_lab::learning_home h;
  const auto candidate = h.candidate();
  CHECK_THAT(shown(h.home, {"skills", "review"}), Contains("skills approve "));
  shown(h.home, {"skills"});
  h.call({"approve", candidate, "--reason", long_words});
  h.call({"disable", "release", "--reason", long_words});
  const std::vector<std::vector<std::string>> verbs{{"kg", "query"},
                                                    {"kg", "why", "last"},
                                                    {"kg", "lineage", "release"},
                                                    {"kg", "findings"},
                                                    {"kg", "learned"},
                                                    {"context", "bank"},
                                                    {"kg", "verify"},
                                                    {"skills"},
                                                    {"graph", "--text"},
                                                    {"skills", "show", "release"}};
  for (const auto& args : verbs)
    shown(h.home, args);
  CHECK_THAT(shown(h.home, {"kg", "trace", "last"}), Contains("CITED: its answer names the item"));
  CHECK_THAT(shown(h.home, {"kg", "stats"}), Contains("GIVEN counts the runs that were shown it"));
  const auto facts = h.home.run({"kg", "query", "--type", "resulted_in", "--json"}).json();
  const std::string whole = facts["facts"][0]["to"];
  REQUIRE(whole.size() > 40);
  CHECK_THAT(h.home.run({"kg", "query"}).out, Contains(whole));
  CHECK_THAT(h.home.run({"graph", "--text"}).out, Contains(" -> " + whole + "  resulted_in"));
}

TEST_CASE("paragraphs of explain fill the rows of the screen", "[e2e][screen]") {
  const home_of_boyd home("version: 1\nkernels:\n  - schedule: \"0 0 1 1 *\"\n    agents:\n"
                          "      - {agent_id: a, executor: {type: command, argv: [date]}}\n");
  REQUIRE(home.run({"run", "a"}).code == 0);
  // The page has a line break within this.
  CHECK_THAT(home.run({"explain", "a"}).out, !Contains("run, which also has"));
  on_terminal page({"--home", home.path(), "explain", "a"});
  CHECK(page.finish() == 0);
  CHECK_THAT(page.text(), Contains("run, which also has"));
  // What has nothing to show is one line there, and a section of the record's own page.
  CHECK_THAT(home.run({"explain", "a"}).out, Contains("## Skill Suggestions\n\n- (none)\n"));
  CHECK_THAT(page.text(), Contains("Nothing to show under: Skill Suggestions, ") &&
                              !Contains("(none)") && !Contains("#") &&
                              Contains("Evidence & Provenance") && Contains("In its own words"));
}

TEST_CASE("explain: a program that wrote nothing has no words of its own", "[e2e][screen]") {
  const home_of_boyd home("version: 1\nkernels:\n  - schedule: \"0 0 1 1 *\"\n    agents:\n"
                          "      - {agent_id: mute, retry: {max_attempts: 1}, executor: {type: "
                          "command, argv: [\"false\"]}}\n");
  REQUIRE(home.run({"run", "mute"}).code == 1);
  CHECK_THAT(home.run({"explain", "mute"}).out,
             Contains("What went wrong") && !Contains("In its own words"));
}

TEST_CASE("status --watch has the screen for itself, and q ends it", "[e2e][screen]") {
  const home_of_boyd home(team());
  std::optional<program> node(std::in_place, home.node());
  REQUIRE(node->wait_for_stderr("ready"));
  on_terminal watch({"--home", home.path(), "status", "--watch", "--parts"});
  REQUIRE(watch.wait_for("\x1b[?1049h"));
  REQUIRE(watch.wait_for("as process " + std::to_string(node->pid())));
  REQUIRE(watch.wait_for("more lines: boyd status"));
  node->signal(SIGTERM);
  CHECK(node->finish().code == 0);
  REQUIRE(watch.wait_for("waiting for the node"));
  node.emplace(home.node());
  REQUIRE(node->wait_for_stderr("ready"));
  REQUIRE(watch.wait_for("as process " + std::to_string(node->pid())));
  watch.type("q");
  CHECK(watch.finish() == 0);
  CHECK_THAT(watch.text(), Catch::Matchers::EndsWith("\x1b[?25h\x1b[?1049l"));
  // One page is no longer than the screen.
  const auto page = watch.text().substr(watch.text().rfind("\x1b[H"));
  CHECK(std::count(page.begin(), page.end(), '\n') == rows - 1);
  node->signal(SIGTERM);
  CHECK(node->finish().code == 0);
}

TEST_CASE("init asks again after a bad answer", "[e2e][screen]") {
  const temp_dir dir;
  on_terminal init({"--home", dir.file("home"), "init"});
  REQUIRE(init.wait_for("Name of the kernel"));
  init.type("my kernel\n");
  REQUIRE(init.wait_for("A name has"));
  REQUIRE(init.wait_for("Name of the kernel"));
  init.type("mine\n");
  REQUIRE(init.wait_for("Schedule, in the time zone America/Argentina/Buenos_Aires"));
  init.type("@hourl\n");
  REQUIRE(init.wait_for("Not a schedule"));
  REQUIRE(init.wait_for("Schedule"));
  init.type("@hourly\n");
  CHECK(init.finish() == 0);
  CHECK_THAT(read_file(dir.file("home/boyd.yaml")),
             Contains("- kernel_id: \"mine\"\n") && Contains("schedule: \"@hourly\""));
  CHECK(std::filesystem::exists(dir.file("home/kernel/mine/STATE.md")));
}

TEST_CASE("agents add asks for what is not given", "[e2e][screen]") {
  const home_of_boyd home(team());
  on_terminal add({"--home", home.path(), "agents", "add"});
  REQUIRE(add.wait_for("Name of the agent"));
  add.type("short\n");
  REQUIRE(add.wait_for("This name is taken."));
  REQUIRE(add.wait_for("Name of the agent"));
  add.type("a name\n");
  REQUIRE(add.wait_for("A name has"));
  REQUIRE(add.wait_for("Name of the agent"));
  add.type("fresh\n");
  REQUIRE(add.wait_for("What runs it"));
  add.type("chat\n");
  REQUIRE(add.wait_for("No provider of AI models is configured yet"));
  REQUIRE(add.wait_for("What runs it"));
  add.type("\n");
  REQUIRE(add.wait_for("Command:"));
  add.type("date -u\n");
  REQUIRE(add.wait_for("Prompt:"));
  add.type("tell the time\n");
  REQUIRE(add.wait_for("Schedule"));
  add.type("\n");
  CHECK(add.finish() == 0);
  CHECK_THAT(read_file(home.file("boyd.yaml")),
             Contains("      - agent_id: fresh\n        prompt: \"tell the time\"\n"
                      "        executor: {type: command, shell: \"date -u\"}\n"));
}

TEST_CASE("agents add checks an answer before the next question, and can be left",
          "[e2e][screen]") {
  const home_of_boyd home(team());
  const auto before = read_file(home.file("boyd.yaml"));
  on_terminal add({"--home", home.path(), "agents", "add", "fresh"});
  REQUIRE(add.wait_for("What runs it"));
  add.type("cli\n");
  REQUIRE(add.wait_for("Which one"));
  add.type("claud\n");
  REQUIRE(add.wait_for("did you mean claude?"));
  REQUIRE(add.wait_for("Which one"));
  add.type("\x04"); // Ctrl-D
  CHECK(add.finish() != 0);
  CHECK_THAT(add.text(), Contains("stopped; nothing was written"));
  CHECK(read_file(home.file("boyd.yaml")) == before);
}

TEST_CASE("init copies a file without its secrets, and over an empty .git", "[e2e][screen]") {
  const temp_dir dir;
  write_file(dir.file("team.yaml"), "version: 1\nkernels:\n  - agents:\n"
                                    "      - agent_id: a\n        executor: {type: command, argv: "
                                    "[echo], env: {TOKEN: \"${NOT_SET_HERE}\"}}\n");
  std::filesystem::create_directories(dir.file("home/kernel/default/.git"));
  std::filesystem::permissions(dir.file("home"), std::filesystem::perms::owner_all);
  std::filesystem::create_directories(dir.file(".git"));
  const auto made =
      boyd_run({"--home", dir.file("home"), "init", "--no-input", "--from", dir.file("team.yaml")});
  INFO(made.err);
  CHECK(made.code == 0);
  CHECK_THAT(made.err, Contains("NOT_SET_HERE is not set here"));
  CHECK_THAT(read_file(dir.file("home/boyd.yaml")), Contains("${NOT_SET_HERE}"));
}

} // namespace boyd::screen_test
