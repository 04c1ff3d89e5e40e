#include "program.hpp"
#include "support/pch.hpp"
#include "support/telling.hpp"
#include "support/wait.hpp"

#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <set>
#include <sys/wait.h>

namespace boyd::agent_cli_test {

using namespace boyd::test;
using Catch::Matchers::Contains;
using nlohmann::json;
namespace fs = std::filesystem;

namespace {

std::string data(const std::string& name) {
  const char* top = std::getenv("BOYD_SOURCE_DIR");
  REQUIRE(top != nullptr);
  return std::string(top) + "/tests/data/agent_cli/" + name + ".jsonl";
}

/// A program in the place of an agent's own, and a node that runs it.
class fake {
 public:
  /// `body`: what it does once it has read its prompt into $prompt.
  fake(const std::string& adapter, const std::string& body, const std::string& more = {},
       const std::string& agent = {}, const std::string& beside = {}) {
    write_file(script(), "#!/bin/sh\nprompt=$(cat)\nprintf '%s\\n' \"$@\" > '" + calls() +
                             "'\nprintf '%s' \"$prompt\" > '" + directory_.file("prompt") + "'\n" +
                             body + "\n");
    fs::permissions(script(), fs::perms::owner_all);
    // What these programs tell the test lies beside their directory.
    home.write_configuration(
        "version: 1\n"
        "node: {sandbox: {writable: [" +
        (beside.empty() ? directory_.path() : beside + ", " + directory_.path()) +
        "], readable: [" + fs::path(data("x")).parent_path().string() +
        "]}}\n"
        "kernels:\n"
        "  - kernel_id: default\n"
        "    schedule: \"0 0 1 1 *\"\n"
        "    agents:\n"
        "      - agent_id: coder\n"
        "        prompt: \"-p write hello.txt\"\n" +
        (agent.find("retry") == std::string::npos ? "        retry: {max_attempts: 1}\n" : "") +
        agent + "        executor:\n          type: agent_cli\n          adapter: " + adapter +
        "\n          program: " + script() + "\n" + more);
  }

  std::string script() const { return directory_.file("agent"); }
  std::string calls() const { return directory_.file("calls"); }
  std::string file(const std::string& name) const { return directory_.file(name); }
  std::string prompt() const { return read_file(directory_.file("prompt")); }

  json cycle() const {
    const auto ended = home.run({"cycle"});
    INFO(ended.err);
    return last();
  }

  json last() const {
    const auto all = home.run({"dispatches", "ls", "--json"}).json();
    REQUIRE(all.is_object());
    REQUIRE_FALSE(all["items"].empty());
    const std::string id = all["items"][0]["dispatch_id"];
    return home.run({"dispatches", "show", id, "--json"}).json()["dispatch"];
  }

 private:
  temp_dir directory_;

 public:
  home_of_boyd home{"version: 1\nkernels: [{agents: []}]\n"};
};

/// Somebody's repository with one commit.
void make_repository(const std::string& path) {
  fs::create_directories(path);
  write_file(path + "/a.txt", "one\n");
  git(path, "init -q -b main .");
  git(path, "add -A");
  git(path, "commit -q -m first");
}

/// What the runs of a dispatch changed, one file each, the first run first.
std::vector<std::string> patches_of(const home_of_boyd& home, const json& row) {
  std::vector<std::string> found;
  for (const auto& entry :
       fs::directory_iterator(home.file("executions/" + row["dispatch_id"].get<std::string>())))
    if (entry.path().extension() == ".diff")
      found.push_back(entry.path());
  std::ranges::sort(found);
  REQUIRE_FALSE(found.empty());
  return found;
}

} // namespace

TEST_CASE("agent CLI: each attempt keeps its own patch", "[e2e][agent_cli]") {
  const temp_dir other;
  const auto repo = other.file("repo");
  make_repository(repo);
  const fake f("claude",
               "if [ -e '" + other.file("again") + "' ]; then echo second > b.txt; cat '" +
                   data("claude_success") + "'; else echo > '" + other.file("again") +
                   "'; echo first > b.txt; exit 75; fi",
               "          worktree: {repo: " + repo + "}\n",
               "        retry: {max_attempts: 2, base: 1ms, cap: 1ms}\n", other.path());
  const auto row = f.cycle();
  INFO(row.dump(1));
  const auto patches = patches_of(f.home, row);
  REQUIRE(patches.size() == 2);
  CHECK_THAT(read_file(patches[0]), Contains("+first"));
  CHECK_THAT(read_file(patches[1]), Contains("+second"));
  CHECK_THAT(row["output"].get<std::string>(), Contains(fs::path(patches[1]).filename().string()));
}

TEST_CASE("agent CLI: a recorded run of claude through the real node", "[e2e][agent_cli]") {
  const fake f("claude", "cat '" + data("claude_success") + "'",
               "          model: sonnet\n          permission: acceptEdits\n");
  const auto row = f.cycle();
  CHECK(row["status"] == "done");
  CHECK(row["summary"] == "Done: hello.txt is written.");
  CHECK(row["output"] == "Done: hello.txt is written.");
  CHECK(row["usage"]["provider"] == "claude");
  CHECK(row["usage"]["input_tokens"] == 320);
  CHECK(row["usage"]["cost_microusd"] == 1374);
  CHECK(f.prompt() == "-p write hello.txt"); // a dash is no flag on the standard input
  CHECK(read_file(f.calls()) == "-p\n--output-format=stream-json\n--verbose\n--model=sonnet\n"
                                "--permission-mode=acceptEdits\n");
  const auto cost = f.home.run({"cost", "--by", "model", "--json"});
  CHECK_THAT(cost.out, Contains("claude/claude-sonnet-4-5"));
}

TEST_CASE("agent CLI: the final event comes before the exit code", "[e2e][agent_cli]") {
  {
    const fake f("claude", "head -n 4 '" + data("claude_success") + "'; exit 0");
    const auto row = f.cycle();
    CHECK(row["status"] == "failed");
    CHECK(row["execution"] == "indeterminate");
    CHECK_THAT(row["error"].get<std::string>(), Contains("no final event: exit code 0"));
  }
  {
    const fake f("codex", "cat '" + data("codex_error") + "'; exit 0");
    const auto row = f.cycle();
    CHECK(row["execution"] == "failed");
    CHECK_THAT(row["error"].get<std::string>(), Contains("the local endpoint refuses"));
  }
  {
    const fake f("codex", "cat '" + data("codex_success") + "'; echo oops >&2; exit 1");
    const auto row = f.cycle();
    CHECK(row["status"] == "done"); // case 16
    CHECK(row["exit_code"] == 1);
    CHECK(row["usage"]["ended"] == "exit code 1: oops");
  }
}

TEST_CASE("agent CLI: denials, noise and lines of 10 MB", "[e2e][agent_cli]") {
  {
    const fake f("claude", "cat '" + data("claude_denied") + "'");
    const auto row = f.cycle();
    CHECK(row["status"] == "failed");
    CHECK(row["failure_class"] == "policy");
    CHECK(row["error"] == "denied: Bash");
  }
  const fake f("codex", "echo warning\nhead -c 10485760 /dev/zero | tr '\\0' x\necho\ncat '" +
                            data("codex_success") + "'");
  const auto row = f.cycle();
  CHECK(row["status"] == "done");
  CHECK(row["summary"] == "Done: hello.txt is written.");
  CHECK(row["usage"]["no_json_lines"] == 1);
  CHECK(row["usage"]["too_long_lines"] == 1);
}

TEST_CASE("agent CLI: a silent start and a silence are told apart", "[e2e][agent_cli]") {
  {
    const fake f("claude", "echo waiting >&2; exec sleep 600",
                 "          startup_timeout: 300ms\n");
    const auto row = f.cycle();
    CHECK(row["execution"] == "stalled");
    CHECK(row["failure_class"] == "transient");
    CHECK_THAT(row["error"].get<std::string>(), Contains("no first event within 300ms"));
  }
  const fake f("claude", "head -n 1 '" + data("claude_success") + "'; exec sleep 600", {},
               "        no_output_timeout: 300ms\n");
  CHECK_THAT(f.cycle()["error"].get<std::string>(), Contains("no output for 300ms"));
}

TEST_CASE("agent CLI: the next run goes on with the session", "[e2e][agent_cli]") {
  const fake f("codex", "cat '" + data("codex_success") + "'", "          resume: agent\n");
  CHECK(f.cycle()["status"] == "done");
  CHECK_THAT(read_file(f.calls()), !Contains("resume"));
  CHECK(f.cycle()["status"] == "done");
  CHECK_THAT(read_file(f.calls()), Contains("resume\n01a2048b-9cb9-7732-a77e-4c3034aef391\n-\n"));
  // A run that fails may have failed for its session: the next one starts afresh.
  write_file(f.script(), "#!/bin/sh\ncat > /dev/null\nexit 1\n");
  CHECK(f.cycle()["status"] == "failed");
  CHECK_FALSE(fs::exists(f.home.file("run/sessions/default/coder")));
}

TEST_CASE("agent CLI: a run in a worktree leaves a patch", "[e2e][agent_cli]") {
  const temp_dir other;
  const auto repo = other.file("repo");
  make_repository(repo);
  const fake f("claude",
               "pwd > '" + other.file("where") + "'\necho two >> a.txt\necho new > b.txt\ncat '" +
                   data("claude_success") + "'",
               "          worktree: {repo: " + repo + ", base: main}\n",
               "        require: [\"artifact b.txt\", {command: [grep, two, a.txt]}]\n",
               other.path());
  const auto row = f.cycle();
  INFO(row.dump(1));
  CHECK(row["status"] == "done");
  CHECK(row["verification"] == "passed"); // the checks look into the worktree
  CHECK(row["usage"]["worktree"]["files"] == 2);
  CHECK(row["usage"]["worktree"]["added"] == 2);
  CHECK_THAT(row["output"].get<std::string>(), Contains("2 files changed, +2 -0"));
  const auto patch = patches_of(f.home, row).back();
  git(repo, "apply '" + patch + "'");
  CHECK(read_file(repo + "/b.txt") == "new\n");
  CHECK_THAT(read_file(other.file("where")), Contains(f.home.file("run/worktrees/")));
  CHECK(fs::is_empty(f.home.file("run/worktrees")));
  CHECK(git(repo, "branch --list 'boyd/*'").empty());
  CHECK_THAT(git(repo, "worktree list"), !Contains("run/worktrees"));
}

TEST_CASE("agent CLI: what a patch changes shows what the run has used", "[e2e][agent_cli]") {
  const temp_dir other;
  const auto repo = other.file("repo");
  make_repository(repo);
  write_file(repo + "/guide.md", "seven quick brown foxes jump over eleven lazy dogs at dawn\n");
  write_file(repo + "/unread.md", "nobody has ever looked at these words of wisdom before\n");
  git(repo, "add .");
  git(repo, "commit -qm guide");
  const fake f(
      "claude",
      "echo two >> a.txt\nhead -1 guide.md > copy.txt\ncat '" + data("claude_success") + "'",
      "          worktree: {repo: " + repo + ", base: main}\n",
      "        context: {items: [\"@a.txt\", \"@guide.md\", \"@unread.md\"], contract: observe}\n",
      other.path());
  const auto row = f.cycle();
  INFO(row.dump(1));
  CHECK(row["status"] == "done");
  const auto record = nlohmann::json::parse(read_file(
      f.home.file("executions/" + row["dispatch_id"].get<std::string>() + "/record.json")));
  INFO(record.dump(1));
  std::set<std::string> uncited; // used, though the answer does not say so
  for (const auto& item : record["citations"]["uncited"])
    uncited.insert(item["path"].get<std::string>());
  CHECK(uncited == std::set<std::string>{"a.txt", "guide.md"});
}

TEST_CASE("agent CLI: its prompt has the context, and who uses it without a word is weak",
          "[e2e][agent_cli]") {
  const temp_dir other;
  const auto repo = other.file("repo");
  make_repository(repo);
  write_file(repo + "/guide.md", "seven quick brown foxes jump over eleven lazy dogs at dawn\n");
  git(repo, "add .");
  git(repo, "commit -qm guide");
  const fake f("claude", "head -1 guide.md > copy.txt\ncat '" + data("claude_success") + "'",
               "          worktree: {repo: " + repo + ", base: main}\n",
               "        context: [\"@guide.md\"]\n", other.path());
  const auto row = f.cycle();
  INFO(row.dump(1));
  CHECK(row["status"] == "done");
  INFO(f.prompt());
  CHECK_THAT(f.prompt(),
             Contains("[C1] guide.md") && Contains("seven quick brown foxes jump over"));
  const auto record = nlohmann::json::parse(read_file(
      f.home.file("executions/" + row["dispatch_id"].get<std::string>() + "/record.json")));
  INFO(record["citations"].dump(1));
  CHECK(record["citations"]["weak"] == true); // enforce is the default of agent CLIs
}

TEST_CASE("agent CLI: what its own tools read counts as used, and can be cited",
          "[e2e][agent_cli]") {
  const temp_dir other;
  const auto folder = other.file("repo");
  fs::create_directories(folder);
  const std::string owls = "owls sleep by day and hunt by night over the wet meadows";
  write_file(folder + "/guide.md", "seven quick brown foxes jump over eleven lazy dogs at dawn\n");
  write_file(folder + "/other.md", owls + "\n");
  // In the stream-json of Claude Code: a tool for each file, then the answer.
  const auto says = [&](const std::string& answer, const std::vector<std::string>& files) {
    std::string stream;
    const auto add = [&](const std::string& who, const json& block) {
      json event{{"type", who}, {"session_id", "s"}};
      event["message"]["content"] = json::array();
      event["message"]["content"].push_back(block);
      stream += event.dump() + "\n";
    };
    for (const auto& name : files) {
      const auto path = folder + "/" + name;
      const bool is_there = fs::exists(path);
      json use{{"type", "tool_use"}, {"id", name}, {"name", "Read"}};
      use["input"]["file_path"] = path;
      add("assistant", use);
      add("user", json{{"type", "tool_result"},
                       {"tool_use_id", name},
                       {"is_error", !is_there},
                       {"content", is_there ? read_file(path) : std::string("no such file")}});
    }
    stream += json{{"type", "result"}, {"subtype", "success"}, {"result", answer}}.dump() + "\n";
    write_file(other.file("stream.jsonl"), stream);
  };
  const fake f("claude", "cat '" + other.file("stream.jsonl") + "'",
               "          cwd: " + folder + "\n", "        context: [\"@guide.md\"]\n",
               other.path());
  const auto record_of = [&](const json& row) {
    return json::parse(read_file(
        f.home.file("executions/" + row["dispatch_id"].get<std::string>() + "/record.json")));
  };
  says("As [C1] says.\nAnd " + owls + ".\n[Reference] file: other.md (other.md)\n",
       {"guide.md", "other.md"});
  auto row = f.cycle();
  INFO(row.dump(1));
  CHECK(row["status"] == "done");
  auto record = record_of(row);
  INFO(record.dump(1));
  const auto& cited = record["citations"];
  CHECK(cited["contract"] == "enforce");
  CHECK(cited["valid"].size() == 2);
  CHECK(cited["used"].size() == 2);
  CHECK(cited["used"][0]["path"] == "guide.md");
  CHECK(cited["invented"].empty());
  CHECK(cited["uncited"].empty());
  CHECK(cited["weak"] == false);
  const auto& turn = record["attempts"][0]["turns"][0];
  REQUIRE(turn["action"]["tools"].size() == 2);
  CHECK_THAT(turn["action"]["tools"][1]["call"].get<std::string>(),
             Contains("Read {\"path\":") && Contains("other.md"));
  CHECK(turn["result"]["tools"][1]["ok"] == true);
  const std::string hash = turn["result"]["tools"][1]["hash"];
  CHECK(read_file(f.home.file("context/objects/" + hash.substr(0, 2) + "/" + hash)) == owls + "\n");
  const std::string id = row["dispatch_id"];
  CHECK(f.home.run({"replay", id, "--strict"}).code == 0);
  CHECK_THAT(f.home.run({"explain", id}).out,
             Contains("the program ran and reported 2 tool calls") && Contains("step 2"));

  // Without a word of it the run is weak; what it could not read it cannot cite.
  says("Done: " + owls + ".", {"guide.md", "other.md"});
  record = record_of(f.cycle());
  CHECK(record["citations"]["uncited"].size() == 2);
  CHECK(record["citations"]["weak"] == true);
  says("[Reference] file: gone.md\n", {"gone.md"});
  record = record_of(f.cycle());
  CHECK(record["citations"]["invented"].size() == 1);
  CHECK(record["citations"]["weak"] == true);
}

TEST_CASE("case 56 secret-in-answer: a patch keeps the secret that a run wrote, and the run tells",
          "[e2e][agent_cli]") {
  const temp_dir other;
  const auto repo = other.file("repo");
  make_repository(repo);
  const auto key = std::string("gh") + "p_" + "a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8";
  const fake f("claude",
               "echo '" + key + "' > key.txt\necho 'it is " + key + "'\ncat '" +
                   data("claude_success") + "'",
               "          worktree: {repo: " + repo + "}\n", {}, other.path());
  const auto row = f.cycle();
  INFO(row.dump(1));
  const auto patch = patches_of(f.home, row).back();
  CHECK_THAT(read_file(patch), Contains("+" + key)); // it must apply
  CHECK_THAT(row["output"].get<std::string>(),
             Contains("the patch seems to contain a secret, not redacted"));
  for (const auto& entry : fs::recursive_directory_iterator(f.home.path())) {
    INFO(entry.path());
    if (entry.is_regular_file() && entry.path() != patch)
      CHECK_THAT(read_file(entry.path()), !Contains(key));
  }
}

TEST_CASE("agent CLI: a run in a worktree moves no reference but its agent's", "[e2e][agent_cli]") {
  const temp_dir other;
  const auto repo = other.file("repo");
  make_repository(repo);
  const std::string run = "GIT_CONFIG_NOSYSTEM=1 GIT_CONFIG_GLOBAL=/dev/null git -c user.name=a "
                          "-c user.email=a@example.org ";
  // What came of each goes into the patch.
  const auto each = [](const std::string& command) {
    return "(" + command + ") >> said 2>&1 && printf 'ok ' >> codes || printf 'no ' >> codes\n";
  };
  const fake f("claude",
               "echo two >> a.txt\n" + each(run + "commit -q -a -m second") +
                   each(run + "update-ref refs/heads/main HEAD") + each(run + "tag later") +
                   each(run + "replace HEAD~1 HEAD") +
                   each(run + "update-ref refs/heads/boyd/other/x HEAD") +
                   each("echo x > '" + repo + "/.git/packed-refs'") + "cat '" +
                   data("claude_success") + "'",
               "          worktree: {repo: " + repo + ", base: main}\n");
  if (f.home.run({"doctor"}).out.find("Landlock ABI") == std::string::npos)
    return tell_skipped("references of a worktree", "no Landlock on this machine");
  const auto before = git(repo, "rev-parse main");
  const auto row = f.cycle();
  INFO(row.dump(1));
  const auto patch = read_file(patches_of(f.home, row).back());
  INFO(patch);
  CHECK(row["status"] == "done");
  CHECK(row["usage"]["worktree"]["commits"] == true);
  CHECK(row["usage"]["worktree"]["moved"] == 0);
  CHECK_THAT(patch, Contains("+two"));
  CHECK_THAT(patch, Contains("+ok no no no no no "));
  CHECK(git(repo, "rev-parse main") == before);
  const auto all = git(repo, "for-each-ref --format='%(refname)'");
  CHECK_THAT(all, Catch::Matchers::Matches("refs/heads/boyd/coder/[^\n]*\nrefs/heads/main\n"));
}

TEST_CASE("case W6: no agent CLI writes the kernel's home", "[e2e][agent_cli]") {
  const auto body = [](const std::string& home) {
    return "(echo x > '" + home +
           "/kernel/default/STATE.md') 2>/dev/null && echo wrote STATE >&2\n" + "(echo x > '" +
           home + "/boyd.yaml') 2>/dev/null && echo wrote the configuration >&2\n" +
           "(echo x > new.txt) 2>/dev/null && echo wrote a file >&2\n" + "cat '" +
           data("claude_success") + "'";
  };
  for (const std::string more : {"", "          cwd: HOME\n", "          cwd: HOME/kernel\n"}) {
    fake f("claude", "exit 1", more);
    write_file(f.script(), "#!/bin/sh\ncat > /dev/null\n" + body(f.home.path()) + "\n");
    auto settings = read_file(f.home.file("boyd.yaml"));
    if (const auto at = settings.find("HOME"); at != std::string::npos)
      settings.replace(at, 4, f.home.path());
    // Nor does a setting open it.
    const std::string writable = "writable: [";
    settings.insert(settings.find(writable) + writable.size(),
                    f.home.file("kernel/default") + ", ");
    write_file(f.home.file("boyd.yaml"), settings);
    if (f.home.run({"doctor"}).out.find("Landlock ABI") == std::string::npos)
      return tell_skipped("a home that is closed", "no Landlock on this machine");
    const auto row = f.cycle();
    INFO(row.dump(1));
    CHECK(row["status"] == "done");
    CHECK_THAT(row["output"].get<std::string>(), !Contains("wrote"));
    CHECK_FALSE(fs::exists(f.home.file("kernel/default/new.txt")));
  }
}

TEST_CASE("case W6: TMPDIR and a program's own directories last in its sandbox",
          "[e2e][agent_cli]") {
  const temp_dir person;
  const fake f("claude",
               "mkdir -p \"$TMPDIR/a/b\" && echo x > \"$TMPDIR/a/b/c\" || exit 9\n"
               "mkdir -p ~/.claude/x && echo again >> ~/.claude/x/log || exit 8\ncat '" +
                   data("claude_success") + "'",
               "          env: {HOME: " + person.path() + "}\n");
  CHECK(f.cycle()["status"] == "done");
  CHECK(f.cycle()["status"] == "done");
  CHECK(read_file(person.file(".claude/x/log")) == "again\nagain\n");
}

TEST_CASE("case W6: codex leaves temporary directories alone, and a home it only reads",
          "[e2e][agent_cli]") {
  const fake f("codex", "cat '" + data("codex_success") + "'");
  CHECK(f.cycle()["status"] == "done");
  const auto calls = read_file(f.calls());
  CHECK_THAT(calls,
             Contains("--config=sandbox_workspace_write.exclude_slash_tmp=true\n") &&
                 Contains("--config=sandbox_workspace_write.exclude_tmpdir_env_var=true\n") &&
                 Contains("--sandbox=read-only\n"));
  const fake writes("codex", "cat '" + data("codex_success") + "'",
                    "          permission: workspace-write\n");
  const auto row = writes.cycle();
  CHECK(row["failure_class"] == "environment");
  CHECK_THAT(row["error"].get<std::string>(),
             Contains("could write in the kernel's home") && Contains("set cwd or worktree"));
  CHECK_FALSE(fs::exists(writes.calls()));
  const temp_dir elsewhere;
  const fake well("codex", "cat '" + data("codex_success") + "'",
                  "          permission: workspace-write\n          cwd: " + elsewhere.path() +
                      "\n");
  CHECK(well.cycle()["status"] == "done");
}

TEST_CASE("agent CLI: a worktree that cannot be made fails the run", "[e2e][agent_cli]") {
  const temp_dir other;
  make_repository(other.file("repo"));
  const fake f("claude", "cat '" + data("claude_success") + "'",
               "          worktree: {repo: " + other.file("repo") + ", base: nowhere}\n");
  const auto row = f.cycle();
  CHECK(row["status"] == "failed");
  CHECK(row["failure_class"] == "environment");
  CHECK_THAT(row["error"].get<std::string>(), Contains("no commit nowhere"));
  CHECK_FALSE(fs::exists(f.calls()));
}

TEST_CASE("fault points: a worktree that fails, is late or takes its run with it",
          "[e2e][agent_cli][faults]") {
  const temp_dir other;
  const auto repo = other.file("repo");
  make_repository(repo);
  const fake f("claude", "echo new > b.txt\ncat '" + data("claude_success") + "'",
               "          worktree: {repo: " + repo + "}\n",
               "        retry: {max_attempts: 2, base: 1ms, cap: 1ms}\n", other.path());
  const auto cycle_with = [&](const std::string& faults) {
    const auto ended = boyd_run({"--home", f.home.path(), "cycle"}, {{"BOYD_FAULTS", faults}});
    auto row = f.last();
    row["told"] = {ended.code, ended.out, ended.err};
    return row;
  };
  for (const std::string point : {"worktrees.make", "worktrees.close"}) {
    INFO(point);
    const auto failed = cycle_with(point + "=error,count=2");
    INFO(failed.dump(1));
    CHECK(failed["status"] == "failed");
    CHECK(failed["failure_class"] == "environment");
    CHECK_THAT(failed["error"].get<std::string>(), Contains("fault point " + point));
    const auto late = cycle_with(point + "=delay,delay=50ms");
    INFO(late.dump(1));
    CHECK(late["status"] == "done");
    const auto repeated = cycle_with(point + "=crash");
    INFO(repeated.dump(1));
    CHECK(repeated["status"] == "done");
    CHECK(repeated["attempt"] == 2);
    REQUIRE(repeated["attempts"].size() == 1); // the earlier ones
    CHECK_THAT(repeated["attempts"][0]["error"].get<std::string>(),
               Contains("fault point " + point + ": crash"));
    CHECK_THAT(read_file(patches_of(f.home, repeated).back()), Contains("+new"));
    CHECK(
        (!fs::exists(f.home.file("run/worktrees")) || fs::is_empty(f.home.file("run/worktrees"))));
  }
  CHECK(git(repo, "branch --list 'boyd/*'").empty());
}

TEST_CASE("agent CLI: kill -9 during a run in a worktree", "[e2e][agent_cli]") {
  const temp_dir other;
  const auto repo = other.file("repo");
  make_repository(repo);
  const auto begun = other.file("begun");
  const fake f("claude", "echo half > b.txt\necho > '" + begun + "'\nexec sleep 600",
               "          worktree: {repo: " + repo + "}\n", {}, other.path());
  {
    program node(f.home.node());
    REQUIRE(node.wait_for_stderr("ready: node "));
    program cycle({boyd_binary(), "--home", f.home.path(), "cycle"});
    REQUIRE(wait_until([&] { return fs::exists(begun); }));
    CHECK_THAT(git(repo, "worktree list"), Contains("run/worktrees/"));
    node.signal(SIGKILL);
    node.finish();
    cycle.finish();
  }
  // The next node keeps what was done and takes the worktree away, then runs the dispatch again.
  write_file(f.script(), "#!/bin/sh\ncat > /dev/null\ntest ! -e b.txt || exit 1\n"
                         "echo whole > b.txt\ncat '" +
                             data("claude_success") + "'\n");
  program node(f.home.node());
  REQUIRE(node.wait_for_stderr("removed 1 worktrees of an earlier node"));
  REQUIRE(node.wait_for_stderr("ready: node "));
  REQUIRE(wait_until([&] { return f.last()["status"] == "done"; }));
  CHECK_THAT(read_file(patches_of(f.home, f.last()).back()), Contains("+whole"));
  CHECK(fs::is_empty(f.home.file("run/worktrees")));
  CHECK(git(repo, "branch --list 'boyd/*'").empty());
  node.signal(SIGTERM);
  CHECK(node.finish().code == 0);
}

} // namespace boyd::agent_cli_test
