#include "on_terminal.hpp"
#include "program.hpp"
#include "support/pch.hpp"
#include "support/telling.hpp"

#include <filesystem>

// Completion as people meet it: real shells, a home that is named with ~ and has a blank.

namespace boyd::completion_test {

using namespace boyd::test;
using Catch::Matchers::Contains;
namespace fs = std::filesystem;

namespace {

/// A person with a home directory, a shell and a home of Boyd's.
struct person {
  temp_dir directory;
  std::map<std::string, std::string> environment;

  explicit person(const std::string& shell) {
    const auto home = directory.file("my home");
    REQUIRE(boyd_run({"--home", home, "init", "--no-input"}).code == 0);
    write_file(home + "/boyd.yaml", "version: 1\nkernels:\n  - kernel_id: work\n"
                                    "    schedule: \"0 0 1 1 *\"\n    agents:\n"
                                    "      - {agent_id: report, executor: {type: command, argv: "
                                    "[\"true\"]}}\n"
                                    "      - {agent_id: review, executor: {type: command, argv: "
                                    "[\"true\"]}}\n");
    write_file(directory.file("script"), boyd_run({"completion", shell}).out);
    write_file(directory.file("a backup.tar"), "");
    environment = {{"HOME", directory.path()},
                   {"PATH", fs::path(boyd_binary()).parent_path().string() + ":/usr/bin:/bin"}};
  }
};

/// Nothing: it is not installed.
std::string shell_at(const std::string& name) {
  for (const std::string folder : {"/usr/bin/", "/bin/"})
    if (fs::exists(folder + name))
      return folder + name;
  tell_skipped("completion in " + name, name + " is not installed");
  return {};
}

} // namespace

TEST_CASE("fish completes verbs, agents and paths of a home with ~ and a blank",
          "[e2e][completion]") {
  const auto fish = shell_at("fish");
  if (fish.empty())
    return;
  const person p("fish");
  const auto complete = [&](const std::string& line) {
    const auto r =
        program({fish, "-N", "-c", "cd; source script; complete -C '" + line + "'"}, p.environment)
            .finish();
    INFO(line << ": " << r.err);
    CHECK(r.err.empty());
    return r.out;
  };
  CHECK_THAT(complete(R"(boyd --home ~/my\\ home run re)"),
             Contains("report\n") && Contains("review\n"));
  CHECK_THAT(complete(R"(boyd --home "~/none" run re)"), !Contains("report"));
  CHECK_THAT(complete(R"(boyd --home ~/my\\ home stat)"),
             Contains("status\t") && Contains("state\t"));
  CHECK_THAT(complete(R"(boyd --home ~/my\\ home dispatches re)"), Contains("retry\t"));
  CHECK_THAT(complete(R"(boyd --home ~/my\\ home plan --kernel )"), Contains("work\t"));
  CHECK_THAT(complete("boyd dispatches ls --status fa"), Contains("failed\t"));
  CHECK_THAT(complete("boyd restore a"), Contains("a\\ backup.tar") || Contains("a backup.tar"));
  CHECK_THAT(complete("boyd dispatches show --"),
             Contains("--attempt") && !Contains("--run") && !Contains("--status"));
}

TEST_CASE("zsh completes verbs, agents and paths of a home with ~ and a blank",
          "[e2e][completion]") {
  const auto zsh = shell_at("zsh");
  if (zsh.empty())
    return;
  const person p("zsh");
  on_terminal shell({"-f", "-i"}, p.environment, zsh);
  shell.type("cd; autoload -Uz compinit; compinit -u -D; source ./script\n"
             "said() { zle -I; print -r -- \"<<$BUFFER>>\"; BUFFER= }; zle -N said\n"
             "bindkey '^G' said; bindkey '^I' complete-word; setopt no_beep; PS1='ready''> '\n");
  REQUIRE(shell.wait_for("ready> "));
  const auto completes = [&](const std::string& line, const std::string& to) {
    INFO(line << "\n" << shell.text());
    shell.type(line + "\t\a");
    CHECK(shell.wait_for("<<" + to + ">>"));
    REQUIRE(shell.wait_for("ready> "));
  };
  completes(R"(boyd --home ~/my\ home run rep)", R"(boyd --home ~/my\ home run report )");
  completes(R"(boyd --home "$HOME/none" run rep)", R"(boyd --home "$HOME/none" run rep)");
  completes("boyd --home '~/none' statu", "boyd --home '~/none' status ");
  completes(R"(boyd --home ~/my\ home dispatches ret)",
            R"(boyd --home ~/my\ home dispatches retry )");
  completes(R"(boyd --home ~/my\ home plan --kernel w)",
            R"(boyd --home ~/my\ home plan --kernel work )");
  completes("boyd restore a", R"(boyd restore a\ backup.tar )");
}

TEST_CASE("bash completes agents of a home with ~ and a blank", "[e2e][completion]") {
  const person p("bash");
  on_terminal shell({"--norc", "--noprofile", "-i"}, p.environment, "/bin/bash");
  shell.type("cd; source ./script; said() { printf '<<%s>>\\n' \"$READLINE_LINE\"; "
             "READLINE_LINE=; }; bind -x '\"\\C-g\": said'; PS1='ready''> '\n");
  REQUIRE(shell.wait_for("ready> "));
  const auto completes = [&](const std::string& line, const std::string& to) {
    INFO(line << "\n" << shell.text());
    shell.type(line + "\t\a");
    CHECK(shell.wait_for("<<" + to + ">>"));
  };
  completes(R"(boyd --home ~/my\ home run rep)", R"(boyd --home ~/my\ home run report )");
  completes(R"(boyd --home "my home" run rev)", R"(boyd --home "my home" run review )");
  completes("boyd restore a", R"(boyd restore a\ backup.tar )");
}

} // namespace boyd::completion_test
