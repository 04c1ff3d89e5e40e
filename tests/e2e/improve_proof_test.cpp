#include "improve_lab.hpp"
#include "on_terminal.hpp"

#include <csignal>

/// What an improvement cycle finds, proves and sets aside, with real programs.
namespace boyd::improve_proof_test {

using namespace boyd::test;
using Catch::Matchers::Contains;

namespace {

constexpr const char* scripted = "  executor: {type: script, file: answers.yaml}\n";

/// Its test wants another word in answer.txt.
std::map<std::string, std::string> files(const std::string& test = "answers") {
  return {{"answer.txt", "wrong\n"},
          {"test.sh", "#!/bin/sh\ngrep -q '^right' answer.txt && echo 'ok 1 - " + test +
                          "' || echo 'not ok 1 - " + test + "'\n"},
          {"README.md", "Run test.sh.\n"}};
}

std::string scanner(const std::string& more = {}) {
  return "  scanners:\n    - {name: tests, source: test, parser: tap, argv: [./test.sh]" + more +
         "}\n";
}

const std::string right = patch_json("answer.txt", "modify", "right\n");
const std::string wrong = patch_json("answer.txt", "modify", "also wrong\n");

} // namespace

TEST_CASE("a detected CTest is built before it proves anything") {
  const repository_lab lab(
      {{"CMakeLists.txt",
        "cmake_minimum_required(VERSION 3.19)\nproject(t CXX)\nenable_testing()\n"
        "add_executable(adds test.cpp)\nadd_test(NAME \"adds (two)\" COMMAND adds)\n"},
       {"add.hpp", "inline int add(int a, int b) { return a - b; }\n"},
       {"test.cpp", "#include \"add.hpp\"\n#include <cstdio>\nint main() {\n"
                    "  std::printf(\"the sum is %d\\n\", add(2, 2));\n"
                    "  return add(2, 2) == 4 ? 0 : 1;\n}\n"},
       {"README.md", "A program.\n"}},
      scripted);
  for (const auto* step : {"cmake -S . -B build", "cmake --build build"}) {
    const auto built =
        program({"/bin/sh", "-c", "cd '" + lab.root() + "' && " + std::string(step)}).finish();
    INFO(built.out << built.err);
    REQUIRE(built.code == 0);
  }
  lab.answers(
      {patch_json("add.hpp", "modify", "inline int add(int a, int b) { return a + b }\n"),
       patch_json("add.hpp", "modify", "inline int add(int a, int b) { return a + b; }\n")});
  const auto broken = lab.improve({"--apply", "--json"});
  INFO(broken.out << broken.err);
  CHECK(broken.json().at("selected_task").at("finding").at("test") == "adds (two)");
  CHECK_THAT(broken.json().at("execution_result").at("evidence").get<std::string>(),
             Contains("the sum is 0"));
  CHECK(broken.json().at("failure_class") == "DETERMINISTIC");
  CHECK_THAT(broken.json().at("reason").get<std::string>(),
             Contains("the proof failed: build: ") && Contains("add.hpp:1:"));
  const auto good = lab.improve({"--apply", "--json"});
  INFO(good.out << good.err);
  CHECK(good.json().at("outcome") == "SUCCESS");
}

TEST_CASE("the name of a test is no command") {
  const repository_lab lab(files("a; touch pwned; $(touch pwned)"),
                           scanner(", proof: [sh, -c, \"./test.sh {test} \\\"{test}\\\"\"]") +
                               scripted);
  lab.answers({right});
  const auto ran = lab.improve({"--apply", "--json"});
  INFO(ran.out << ran.err);
  CHECK(ran.json().at("outcome") == "SUCCESS");
  CHECK_FALSE(std::filesystem::exists(lab.path("pwned")));
}

TEST_CASE("a paused task is taken up again by hand, and says how") {
  const repository_lab lab(files(), scanner() + scripted);
  lab.answers({wrong, wrong, wrong, right});
  for (int i = 0; i < 3; ++i)
    CHECK(lab.improve({"--apply"}).code == 1);
  const auto paused = lab.improve({"--apply"});
  CHECK(paused.code == 3);
  CHECK_THAT(paused.out,
             Contains("paused after 3 failures") && Contains("boyd improve retry TASK"));
  CHECK(lab.improve({"retry", "test-zzz"}).code == 1);
  const auto taken = lab.improve({"retry", "test-"});
  INFO(taken.out << taken.err);
  CHECK(taken.code == 0);
  CHECK_THAT(taken.out, Contains("is taken up again"));
  CHECK(lab.improve({"--apply", "--json"}).json().at("outcome") == "SUCCESS");
}

TEST_CASE("tests that cannot run pause everything, and nobody is asked") {
  const repository_lab lab(
      {{"README.md", "[x](gone.md)\n"}},
      std::string("  scanners:\n    - {name: tests, source: test, parser: tap, argv: "
                  "[no-such-program]}\n") +
          scripted);
  lab.answers({patch_json("README.md", "modify", "x\n")});
  const auto ran = lab.improve({"--apply", "--json"});
  INFO(ran.out << ran.err);
  CHECK(ran.code == 3);
  CHECK(ran.json().at("status") == "PAUSED");
  CHECK_THAT(ran.json().at("reason").get<std::string>(), Contains("no-such-program"));
  CHECK(lab.get("README.md") == "[x](gone.md)\n");
}

TEST_CASE("no secret of the repository gets to who is asked, nor into the records") {
  const std::string key = std::string("AKIA") + "IOSFODNN7EXAMPLQ";
  auto all = files();
  all["answer.txt"] = "wrong\nkey: " + key + "\n";
  all["test.sh"] =
      "#!/bin/sh\ngrep -q '^right' answer.txt && echo 'ok 1 - answers' || { echo 'not ok 1 - "
      "answers'; echo '# answer.txt:1: '; sed 's/^/# /' answer.txt; }\n";
  const repository_lab lab(all, "");
  const auto helper = lab.outside("suggest.sh");
  lab.configure(scanner() + "  executor: {type: command, argv: [sh, " + helper + "]}\n");
  write_file(lab.outside("patch"), "--- a/answer.txt\n+++ b/answer.txt\n@@ -1,1 +1,1 @@\n"
                                   "-wrong\n+right\n");
  write_file(helper, "cat > '" + lab.outside("prompt") + "'; cat '" + lab.outside("patch") + "'\n");
  const auto ran = lab.improve({"--apply", "--json"});
  INFO(ran.out << ran.err);
  CHECK(ran.json().at("outcome") == "SUCCESS");
  CHECK(lab.get("answer.txt") == "right\nkey: " + key + "\n");
  const auto prompt = read_file(lab.outside("prompt"));
  CHECK_THAT(prompt, Contains("[begin of answer.txt]\nwrong\nkey: [redacted]\n") &&
                         Contains("[begin of what tests printed]\nnot ok 1 - answers"));
  for (const auto& directory : {lab.path("_outputs"), lab.path("_logs")})
    for (const auto& entry : std::filesystem::recursive_directory_iterator(directory))
      if (entry.is_regular_file()) {
        INFO(entry.path().string());
        CHECK_THAT(read_file(entry.path().string()), !Contains(key));
      }
  CHECK_THAT(ran.out + ran.err, !Contains(key));
}

TEST_CASE("what was done by hand is in the home's log of facts, with a node and without") {
  home_of_boyd home("version: 1\nkernels: [{agents: []}]\n");
  const repository_lab lab(files(), scanner() + scripted);
  lab.answers({wrong, right});
  const auto improve = [&] {
    auto argv = lab.argv({"--apply", "--auto-commit", "--json"});
    argv.insert(argv.begin() + 1, {"--home", home.path()});
    const auto ran = program(argv).finish();
    INFO(ran.err);
    CHECK_THAT(ran.err, !Contains("the home's log"));
    return ran.json();
  };
  CHECK(improve().at("outcome") == "FAILURE");
  CHECK_THAT(home.run({"kg", "learned"}).out, Contains("\"answers fails\" was not done"));
  {
    program node({boyd_binary(), "--home", home.path(), "node"});
    REQUIRE(node.wait_for_stderr("ready"));
    CHECK(improve().at("outcome") == "SUCCESS");
    const auto learned = home.run({"kg", "learned"});
    INFO(learned.out << learned.err);
    CHECK_THAT(learned.out, Contains("\"answers fails\" was done: mends answer.txt") &&
                                Contains(": 1 succeeded, 1 failed."));
    node.signal(SIGTERM);
    node.finish();
  }
  CHECK(home.run({"kg", "verify"}).code == 0);
}

TEST_CASE("what is done is said: phase, task, who is asked, and which try") {
  const repository_lab lab(files(), scanner() + scripted);
  lab.answers({"no patch", right});
  const auto ran = lab.improve({"--apply"});
  INFO(ran.err);
  CHECK(ran.code == 0);
  CHECK_THAT(ran.err,
             Contains("boyd: SCAN: scanning: tests\n") &&
                 Contains("boyd: EXECUTE: checking again: answers fails\n") &&
                 Contains("boyd: EXECUTE: asking for a patch, try 2 of 3: answers fails\n") &&
                 Contains("boyd: VERIFY: verifying: the gate\n") && Contains("boyd: COMPLETED: "));
}

TEST_CASE("on a terminal one line is rewritten, and tells how long it takes") {
  const repository_lab lab(files(), scanner() + scripted);
  const auto pipe = lab.outside("pipe");
  REQUIRE(::mkfifo(pipe.c_str(), 0600) == 0);
  lab.put("test.sh", "#!/bin/sh\ncat '" + pipe + "'\necho 'ok 1 - answers'\n");
  lab.answers({right});
  auto words = lab.argv({"--dry-run"});
  words.erase(words.begin()); // the program
  on_terminal terminal(words);
  const bool told = terminal.wait_for("SCAN: scanning: tests · 1 s");
  INFO(terminal.text());
  REQUIRE(told);
  write_file(pipe, "");
  terminal.finish();
  CHECK_THAT(terminal.text(), Contains("SCAN: scanning: hygiene · "));
}

} // namespace boyd::improve_proof_test
