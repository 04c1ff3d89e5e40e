#include "program.hpp"
#include "support/pch.hpp"
#include "support/temp_dir.hpp"

#include <cstdlib>
#include <filesystem>
#include <sys/stat.h>
#include <unistd.h>

namespace boyd::init_test {

using namespace boyd::test;
using Catch::Matchers::Contains;

namespace {

unsigned mode_of(const std::string& path) {
  struct ::stat info {};
  return ::stat(path.c_str(), &info) == 0 ? info.st_mode & 0777U : 0U;
}

std::string source_file(const std::string& name) {
  const char* top = std::getenv("BOYD_SOURCE_DIR");
  return std::string(top == nullptr ? "." : top) + "/" + name;
}

constexpr const char* one_worker =
    "version: 1\n"
    "kernels:\n"
    "  - kernel_id: default\n"
    "    schedule: \"0 0 1 1 *\"\n"
    "    agents:\n"
    "      - agent_id: worker\n"
    "        prompt: work\n"
    "        executor: {type: command, argv: [\"echo\", \"done\"]}\n";

} // namespace

TEST_CASE("init makes a private home and repeats harmlessly", "[e2e]") {
  const home_of_boyd home;
  for (const char* directory : {"", "/run", "/kernel", "/kernel/default"})
    CHECK(mode_of(home.path() + directory) == 0700U);
  for (const char* file : {"boyd.yaml", "boyd.schema.json", "boyd.db", "run/node_id", "run/lock",
                           "kernel/default/STATE.md"})
    CHECK(mode_of(home.file(file)) == 0600U);
  CHECK(read_file(home.file("kernel/default/STATE.md")) ==
        "# Kernel State\n## identity\ndefault autonomous kernel\n## recent_actions\n(none yet)\n");

  write_file(home.file("kernel/default/STATE.md"), "mine\n");
  const auto configuration = read_file(home.file("boyd.yaml"));
  const auto id = read_file(home.file("run/node_id"));
  const auto again = home.run({"init", "--no-input", "--json"});
  CHECK(again.code == 0);
  CHECK(again.json()["schema"] == "boyd.init/1");
  CHECK(again.json()["made"].empty());
  CHECK(read_file(home.file("kernel/default/STATE.md")) == "mine\n");
  CHECK(read_file(home.file("boyd.yaml")) == configuration);
  CHECK(read_file(home.file("run/node_id")) == id);
}

TEST_CASE("init makes an empty directory private and refuses a foreign one", "[e2e]") {
  const temp_dir dir;
  const auto empty = dir.file("empty");
  std::filesystem::create_directory(empty);
  REQUIRE(::chmod(empty.c_str(), 0755) == 0);
  CHECK(boyd_run({"--home", empty, "init", "--no-input"}).code == 0);
  CHECK(mode_of(empty) == 0700U);
  REQUIRE(::chmod(empty.c_str(), 0755) == 0);
  CHECK(boyd_run({"--home", empty, "init", "--no-input"}).code == 0);
  CHECK(mode_of(empty) == 0700U);

  const auto foreign = dir.file("foreign");
  std::filesystem::create_directory(foreign);
  write_file(foreign + "/thesis.txt", "mine\n");
  REQUIRE(::chmod(foreign.c_str(), 0755) == 0);
  const auto refused = boyd_run({"--home", foreign, "init", "--no-input"});
  CHECK(refused.code == 1);
  CHECK_THAT(refused.err, Contains("chmod 0700 " + foreign));
  CHECK(mode_of(foreign) == 0755U);
  CHECK_FALSE(std::filesystem::exists(foreign + "/boyd.yaml"));
}

TEST_CASE("init writes the name and schedule it is told", "[e2e]") {
  const temp_dir dir;
  const auto home = dir.file("home");
  const auto made =
      boyd_run({"--home", home, "init", "--no-input", "--name", "tower", "--schedule", "@hourly"},
               {{"TZ", "Europe/Berlin"}});
  REQUIRE(made.code == 0);
  CHECK_THAT(read_file(home + "/kernel/tower/STATE.md"), Contains("tower autonomous kernel"));
  CHECK_FALSE(std::filesystem::exists(home + "/kernel/default"));
  const auto shown = boyd_run({"--home", home, "config", "show"});
  CHECK_THAT(shown.out, Contains("@hourly"));
  // Schedules are in the zone of the machine, and the file says so.
  CHECK_THAT(read_file(home + "/boyd.yaml"),
             Contains("\n    tz: Europe/Berlin            # the time zone of the schedules\n"));
  const auto utc = dir.file("utc");
  REQUIRE(boyd_run({"--home", utc, "init", "--no-input"}, {{"TZ", "Etc/UTC"}}).code == 0);
  CHECK_THAT(read_file(utc + "/boyd.yaml"), Contains("\n    tz: UTC    "));
}

TEST_CASE("init refuses what it would not do, and names the flag", "[e2e]") {
  const temp_dir dir;
  const auto home = dir.file("home");
  const auto refused = [&](const std::vector<std::string>& more) {
    std::vector<std::string> args{"--home", home, "init", "--no-input"};
    args.insert(args.end(), more.begin(), more.end());
    auto r = boyd_run(args);
    CHECK_FALSE(std::filesystem::exists(home));
    return r;
  };
  for (const auto* flag : {"--name", "--schedule"}) {
    const auto r =
        refused({"--from", source_file("config/examples/briefing.yaml"), flag, "@daily"});
    CHECK(r.code == 2);
    CHECK_THAT(r.err, Contains("--name and --schedule cannot be combined with --from"));
  }
  const auto name = refused({"--name", "watch tower"});
  CHECK(name.code == 2);
  CHECK_THAT(name.err, Contains("(--name \"watch tower\")") && Contains("letters, digits"));
  const auto schedule = refused({"--schedule", "99 * *"});
  CHECK(schedule.code == 2);
  CHECK_THAT(schedule.err, Contains("(--schedule \"99 * *\")") && Contains("five fields"));
  CHECK_THAT(schedule.err, !Contains("boyd.yaml"));
  for (const auto& file : {dir.file("nofile"), std::string("/dev/null")}) {
    const auto r = refused({"--from", file});
    CHECK(r.code == 4);
    CHECK_THAT(r.err, Contains(file) && !Contains("init writes one"));
  }
}

TEST_CASE("a home whose configuration is elsewhere says how to name it", "[e2e]") {
  const temp_dir dir;
  write_file(dir.file("mine.yaml"), one_worker);
  const auto home = dir.file("home");
  REQUIRE(
      boyd_run({"--home", home, "--config", dir.file("mine.yaml"), "init", "--no-input"}).code ==
      0);
  const auto r = boyd_run({"--home", home, "status"});
  CHECK(r.code == 1);
  CHECK_THAT(r.err, Contains("boyd.yaml is missing") && Contains("--config FILE"));
}

TEST_CASE("init --from keeps the meaning of relative paths, and comments", "[e2e]") {
  const temp_dir dir;
  const auto example = source_file("config/examples/briefing.yaml");
  const auto home = dir.file("home");
  REQUIRE(boyd_run({"--home", home, "init", "--no-input", "--from", example}).code == 0);
  const auto top = std::filesystem::weakly_canonical(source_file(".")).string();
  const auto text = read_file(home + "/boyd.yaml");
  CHECK_THAT(text, Contains("# Fails on purpose"));
  CHECK_THAT(text, Contains("${BOYD_DEMO_REPO:-"));
  CHECK_THAT(text, Contains("$schema=./boyd.schema.json"));
  CHECK_THAT(text, !Contains(":-../..}"));
  CHECK(boyd_run({"--home", home, "config", "validate"}).code == 0);
}

TEST_CASE("init --from rewrites every kind of relative path", "[e2e]") {
  const temp_dir dir;
  write_file(dir.file("answers.yaml"), "- output: hello\n");
  write_file(dir.file("from.yaml"), R"(version: 1
kernels:
  - kernel_id: default
    schedule: "@hourly"
    senses:
      - {name: load, argv: [uptime], cwd: sub/dir}
    agents:
      - agent_id: a
        prompt: hi
        executor: {type: script, file: 'answers.yaml'} # kept
      - agent_id: b
        prompt: hi
        executor: {type: command, argv: ["true"], cwd: "${NOWHERE:-sub}/deep"}
        wake: {inputs: [one.txt, /etc/hostname]}
)");
  const auto home = dir.file("home");
  const auto made =
      boyd_run({"--home", home, "init", "--no-input", "--from", dir.file("from.yaml")});
  INFO(made.err);
  REQUIRE(made.code == 0);
  const auto text = read_file(home + "/boyd.yaml");
  for (const auto& part :
       std::vector<std::string>{"cwd: \"" + dir.file("sub/dir") + "\"",
                                "file: \"" + dir.file("answers.yaml") + "\"} # kept",
                                "\"${NOWHERE:-" + dir.file("sub") + "}/deep\"",
                                "[\"" + dir.file("one.txt") + "\", /etc/hostname]"})
    CHECK_THAT(text, Contains(part));
}

TEST_CASE("init --from refuses what a copy would change", "[e2e]") {
  const temp_dir dir;
  write_file(dir.file("from.yaml"), R"(version: 1
kernels:
  - kernel_id: default
    schedule: "@hourly"
    agents:
      - agent_id: a
        prompt: hi
        executor: {type: command, argv: ["true"], cwd: "${PLACE}"}
)");
  const auto init = [&](const std::string& place) {
    return boyd_run(
        {"--home", dir.file("home"), "init", "--no-input", "--from", dir.file("from.yaml")},
        {{"PLACE", place}});
  };
  const auto refused = init("relative");
  CHECK(refused.code == 1);
  CHECK_THAT(refused.err, Contains("the file cannot be copied"));
  CHECK_THAT(refused.err, Contains("agent a"));
  CHECK_FALSE(std::filesystem::exists(dir.file("home/boyd.yaml")));
  CHECK(init("/srv").code == 0);
}

TEST_CASE("a bad configuration gives every finding with its place, and exit code 4", "[e2e]") {
  const temp_dir dir;
  write_file(dir.file("bad.yaml"), R"(version: 1
node: {max_concurent: 8}
kernels:
  - kernel_id: default
    schedule: "61 * * * *"
    agents: []
)");
  const auto home = dir.file("home");
  const auto r = boyd_run({"--home", home, "init", "--no-input", "--from", dir.file("bad.yaml")});
  CHECK(r.code == 4);
  CHECK_THAT(r.err, Contains("bad.yaml:2:8"));
  CHECK_THAT(r.err, Contains("max_concurrent"));
  CHECK_THAT(r.err, Contains("bad.yaml:5:"));
  CHECK_FALSE(std::filesystem::exists(home));

  const auto checked = boyd_run({"--config", dir.file("bad.yaml"), "config", "validate", "--json"});
  CHECK(checked.code == 4);
  CHECK(checked.json()["schema"] == "boyd.config_validate/1");
  CHECK(checked.json()["findings"].size() >= 2);
}

TEST_CASE("config validate warns of what is valid and not meant", "[e2e]") {
  const temp_dir dir;
  write_file(dir.file("boyd.yaml"), R"(version: 1
providers:
  - {provider_id: local, base_url: "http://127.0.0.1:1/v1", model: m}
kernels:
  - agents:
      - agent_id: a
        prompt: p
        executor: {type: chat, provider: local, fallback: [{provider: local}]}
        tools: [write_file]
        require: [tool_action]
        policy:
          rules:
            - {tool: write_file, decision: allow}
            - {tool: write_file, path: "secret/**", decision: deny}
)");
  const std::vector<std::string> asked{"--config", dir.file("boyd.yaml"), "config", "validate"};
  const auto said = boyd_run(asked);
  CHECK(said.code == 0);
  CHECK_THAT(said.out, Contains("valid, 1 kernel, 1 agent"));
  CHECK_THAT(said.err,
             Contains("warning: " + dir.file("boyd.yaml") +
                      ":14:15: kernels[0].agents[0].policy.rules[1]: this rule is never used") &&
                 Contains("executor.fallback[0]: repeats local/m") &&
                 Contains("expected the narrower rule first"));
  auto json = asked;
  json.emplace_back("--json");
  const auto told = boyd_run(json).json();
  CHECK(told["valid"] == true);
  CHECK(told["findings"].empty());
  REQUIRE(told["warnings"].size() == 2);
  CHECK(told["warnings"][1]["key"] == "kernels[0].agents[0].policy.rules[1]");
  CHECK(told["warnings"][1]["line"] == 14);
}

TEST_CASE("init inside another work tree is refused and leaves nothing", "[e2e]") {
  const temp_dir root;
  for (const auto* part : {"project/.git/objects", "project/.git/refs"})
    std::filesystem::create_directories(root.file(part));
  write_file(root.file("project/.git/HEAD"), "ref: refs/heads/main\n");
  const auto inside = root.file("project/home");
  const auto r = boyd_run({"--home", inside, "init", "--no-input"});
  CHECK(r.code == 1);
  CHECK_THAT(r.err, Contains("another git work tree, " + root.file("project")));
  CHECK_THAT(r.err, Contains("next: add it to "));
  CHECK_FALSE(std::filesystem::exists(inside));
  // A directory that was there is left as it was.
  std::filesystem::create_directory(inside);
  std::filesystem::permissions(inside, std::filesystem::perms(0755));
  CHECK(boyd_run({"--home", inside, "init", "--no-input"}).code == 1);
  CHECK(std::filesystem::is_empty(inside));
  CHECK(std::filesystem::status(inside).permissions() == std::filesystem::perms(0755));
}

TEST_CASE("case W12: an empty .git above a home is no repository", "[e2e]") {
  const temp_dir root;
  std::filesystem::create_directories(root.file("project/.git"));
  const auto home = root.file("project/home");
  const auto r = boyd_run({"--home", home, "init", "--no-input"});
  INFO(r.err);
  CHECK(r.code == 0);
  CHECK(std::filesystem::exists(home + "/kernel/default/.git/HEAD"));
}

TEST_CASE("a git repository that an agent made inside a kernel's home is named", "[e2e]") {
  const home_of_boyd home;
  std::filesystem::create_directories(home.file("kernel/default/tool/.git"));
  write_file(home.file("kernel/default/tool/.git/HEAD"), "ref: refs/heads/main\n");
  std::filesystem::create_directories(home.file("kernel/default/tool/.git/objects"));
  std::filesystem::create_directories(home.file("kernel/default/tool/.git/refs"));
  write_file(home.file("kernel/default/tool/notes"), "mine\n");
  const auto r = home.run({"doctor"});
  CHECK(r.code == 0);
  CHECK_THAT(r.out, Contains("warn  kernel default: " + home.file("kernel/default/tool/") +
                             " is a separate git repository"));
}

TEST_CASE("doctor finds a sound home sound and a broken one broken", "[e2e]") {
  const home_of_boyd home;
  const auto sound = home.run({"doctor", "--json"});
  CHECK(sound.code == 0);
  CHECK(sound.json()["schema"] == "boyd.doctor/1");
  CHECK(sound.json()["ok"] == true);
  CHECK(sound.json()["checks"].size() >= 7);

  std::filesystem::remove_all(home.file("kernel/default/.git"));
  home.write_configuration("version: 2\n");
  const auto broken = home.run({"doctor"});
  CHECK(broken.code == 4);
  CHECK_THAT(broken.out, Contains("fail  configuration"));
  // A home that is missing is not a wrong configuration.
  CHECK(boyd_run({"--home", home.path() + "-none", "doctor"}).code == 1);
  CHECK_THAT(broken.out, Contains("next: "));
}

TEST_CASE("doctor verifies the knowledge graph's chain and names the damaged lines", "[e2e]") {
  const home_of_boyd home(one_worker);
  const auto graph = home.file("knowledge/graph.jsonl");
  CHECK_THAT(home.run({"doctor"}).out, Contains("ok    knowledge graph: no facts yet") &&
                                           Contains("note  node: not running"));
  for (int cycles = 0; cycles < 2; ++cycles)
    REQUIRE(home.run({"cycle"}).code == 0);
  const auto sound = read_file(graph);
  const auto examined = [&](const std::string& content) {
    write_file(graph, content);
    const auto r = home.run({"doctor"});
    INFO(r.out);
    const auto at = r.out.find("knowledge graph: ");
    REQUIRE(at != std::string::npos);
    const auto failed = r.out.find("fail  knowledge graph: ") != std::string::npos;
    CHECK(r.code == (failed ? 1 : 0));
    return r.out.substr(at - 6, r.out.find('\n', at) - at + 6);
  };
  CHECK(examined(sound) == "ok    knowledge graph: 4 facts, hash chain whole");

  const auto second = sound.find('\n') + 1;
  const auto third = sound.find('\n', second) + 1;
  const auto last = sound.rfind('\n', sound.size() - 2) + 1;
  auto changed = sound;
  changed.replace(changed.find("exec_", second), 6, "exec_#");
  CHECK_THAT(examined(changed), Contains("graph.jsonl:2 changed: "));
  CHECK_THAT(examined(sound.substr(0, second) + sound.substr(third)),
             Contains("graph.jsonl:2 removed: seq 2 to 2 are missing"));
  CHECK_THAT(examined(sound.substr(0, second) + "no fact\n" + sound.substr(third)),
             Contains("graph.jsonl:2 malformed: "));
  // The end is held by a commit, not by another line.
  CHECK_THAT(examined(sound.substr(0, last)), Contains("head_missing: "));
  CHECK_THAT(examined(sound + R"({"from":"exec_)"),
             Contains("warn  knowledge graph: 4 facts, hash chain whole; "));
  std::filesystem::remove(graph);
  CHECK_THAT(home.run({"doctor"}).out, Contains("is missing, although commits refer to it"));
}

TEST_CASE("a lost database is told of, and replaced by init alone", "[e2e]") {
  const home_of_boyd home(one_worker);
  const auto database = home.file("boyd.db");
  const auto lose = [&] {
    std::filesystem::rename(database, home.file("away"));
    for (const char* more : {"-wal", "-shm"})
      std::filesystem::remove(database + more);
  };
  // Nothing is known yet: nothing is lost.
  std::filesystem::remove(database);
  REQUIRE(home.run({"cycle"}).code == 0);
  lose();
  for (const char* command : {"node", "cycle", "status"}) {
    const auto r = home.run({command});
    INFO(command << r.out << r.err);
    CHECK(r.code == 1);
    CHECK_THAT(r.err, Contains("the database is missing") && Contains(database) &&
                          Contains("restore the file") && Contains("init"));
    CHECK_FALSE(std::filesystem::exists(database));
  }
  CHECK_THAT(home.run({"doctor"}).out, Contains("the database is missing"));
  std::filesystem::rename(home.file("away"), database);
  CHECK(home.run({"cycle"}).code == 0);
  lose();
  CHECK_THAT(home.run({"init", "--no-input"}).out, Contains("made " + database));
  CHECK(home.run({"cycle"}).code == 0);
}

TEST_CASE("a lost repository is told of, and replaced by init alone", "[e2e]") {
  const home_of_boyd home(one_worker);
  const auto git = home.file("kernel/default/.git");
  // Nothing is known yet: nothing is lost.
  std::filesystem::remove_all(git);
  REQUIRE(home.run({"cycle"}).code == 0);
  REQUIRE(std::filesystem::exists(git));
  std::filesystem::rename(git, home.file("away"));
  const auto without = home.run({"cycle"});
  INFO(without.out << without.err);
  CHECK(without.code == 3); // the kernel goes on without its history
  CHECK_FALSE(std::filesystem::exists(git));
  CHECK_THAT(home.run({"doctor"}).out, Contains("no git repository"));
  std::filesystem::rename(home.file("away"), git);
  CHECK(home.run({"cycle"}).code == 0);
  std::filesystem::remove_all(git);
  CHECK_THAT(home.run({"init", "--no-input"}).out, Contains("made " + git));
  CHECK(home.run({"cycle"}).code == 0);
}

TEST_CASE("init seeds nothing over what a node would restore", "[e2e]") {
  const home_of_boyd home(one_worker);
  const auto state = home.file("kernel/default/STATE.md");
  REQUIRE(home.run({"cycle"}).code == 0);
  write_file(state, read_file(state) + "\nwhat an agent knows\n");
  REQUIRE(home.run({"cycle"}).code == 0);
  REQUIRE(home.run({"cycle"}).code == 0);
  REQUIRE_THAT(read_file(state + ".bak"), Contains("what an agent knows"));
  std::filesystem::remove(state);
  std::filesystem::remove_all(home.file("kernel/default/.git"));
  REQUIRE(home.run({"init", "--no-input"}).code == 0);
  CHECK_THAT(read_file(state + ".bak"), Contains("what an agent knows"));
  REQUIRE(home.run({"cycle"}).code == 0);
  CHECK_THAT(read_file(state), Contains("what an agent knows"));
}

TEST_CASE("a kernel's directory that is gone is told of, and not made anew but by init", "[e2e]") {
  const home_of_boyd home(one_worker);
  REQUIRE(home.run({"cycle"}).code == 0);
  const auto kernel = home.file("kernel/default");
  std::filesystem::rename(kernel, home.file("away"));
  const auto without = home.run({"cycle"});
  CHECK_THAT(without.err, Contains("directory is missing") && Contains("restore it"));
  CHECK_FALSE(std::filesystem::exists(kernel));

  SECTION("it is put back") {
    std::filesystem::rename(home.file("away"), kernel);
    CHECK(home.run({"cycle"}).code == 0);
    CHECK_THAT(read_file(kernel + "/STATE.md"), Contains("kernel_runtime"));
    CHECK(home.run({"doctor"}).code == 0);
  }
  SECTION("a new one is accepted") {
    REQUIRE(home.run({"init", "--no-input"}).code == 0);
    CHECK(home.run({"cycle"}).code == 0);
    CHECK(std::filesystem::exists(kernel + "/.git"));
  }
}

TEST_CASE("init with a configuration elsewhere leaves nothing beside it", "[e2e]") {
  const temp_dir dir;
  std::filesystem::create_directory(dir.file("mine"));
  write_file(dir.file("mine/boyd.yaml"), "version: 1\nkernels:\n  - kernel_id: default\n");
  const auto home = dir.file("home");
  REQUIRE(boyd_run({"--home", home, "--config", dir.file("mine/boyd.yaml"), "init", "--no-input"})
              .code == 0);
  CHECK(std::filesystem::exists(home + "/boyd.schema.json"));
  CHECK_FALSE(std::filesystem::exists(dir.file("mine/boyd.schema.json")));
}

TEST_CASE("a home that may not be looked at is not reported as missing", "[e2e]") {
  const home_of_boyd home;
  // The superuser may look everywhere, unless that is taken away.
  std::vector<std::string> argv;
  if (::geteuid() == 0)
    argv = {"/usr/bin/setpriv", "--bounding-set=-all"};
  argv.insert(argv.end(), {boyd_binary(), "--home", home.path(), "status"});
  REQUIRE(::chmod(home.path().c_str(), 0) == 0);
  const auto r = program(argv).finish();
  REQUIRE(::chmod(home.path().c_str(), 0700) == 0);
  CHECK(r.code == 1);
  CHECK_THAT(r.err, Contains("permission denied"));
  CHECK_THAT(r.err, Contains("next: run boyd as the owner of the home"));
  CHECK_THAT(r.err, !Contains("init"));
}

} // namespace boyd::init_test
