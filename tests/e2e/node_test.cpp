#include "integration/control/raw_client.hpp"
#include "program.hpp"
#include "support/pch.hpp"
#include "support/sanitized.hpp"
#include "support/wait.hpp"

#include <csignal>
#include <filesystem>

namespace boyd::node_test {

using namespace boyd::test;
using Catch::Matchers::Contains;

namespace {

std::string one_agent(const std::string& command, const std::string& more = {}) {
  return "version: 1\n"
         "node: {max_concurrent: 4, drain_grace: 30s" +
         more +
         "}\n"
         "kernels:\n"
         "  - kernel_id: default\n"
         "    schedule: \"0 0 1 1 *\"\n"
         "    agents:\n"
         "      - agent_id: worker\n"
         "        prompt: work\n"
         "        executor: {type: command, argv: [\"sh\", \"-c\", \"" +
         command + "\"]}\n";
}

/// What must be the same whoever answers: no times of this moment, no process.
nlohmann::json steady_part(nlohmann::json status) {
  for (const char* key : {"health", "actors", "permits", "nodes"})
    status.erase(key);
  for (const char* key : {"pid", "started_at", "running", "state", "sandbox"})
    status["node"].erase(key);
  return status;
}

/// Requests on one connection, one after the other.
void ask_often(const std::string& socket, int times) {
  raw_client client(socket);
  for (int i = 0; i < times; ++i) {
    REQUIRE(client.send("GET /nothing/" + std::to_string(i) + " HTTP/1.1\r\nHost: boyd\r\n\r\n"));
    REQUIRE(client.read_until("/nothing/" + std::to_string(i)).find("timeout") ==
            std::string::npos);
  }
}

/// What the process holds of its own, in KiB (proc(5): RssAnon).
long private_kib(pid_t pid) {
  const auto status = read_file("/proc/" + std::to_string(pid) + "/status");
  const std::string key = "RssAnon:";
  const auto at = status.find(key);
  return at == std::string::npos ? -1 : std::atol(status.c_str() + at + key.size());
}

/// A connection, as a socket among its descriptors.
bool has_socket(pid_t pid) {
  std::error_code gone;
  for (const auto& fd :
       std::filesystem::directory_iterator("/proc/" + std::to_string(pid) + "/fd", gone))
    if (std::filesystem::read_symlink(fd, gone).string().starts_with("socket:"))
      return true;
  return false;
}

} // namespace

TEST_CASE("a node raises its limit of open files, and says when that is not enough", "[e2e]") {
  const home_of_boyd home(one_agent("ulimit -Sn"));
  const auto under = [&](const std::string& limits) {
    return std::vector<std::string>{"/bin/sh", "-c", limits + "; exec \"$0\" \"$@\""};
  };
  const auto with = [](std::vector<std::string> argv, const std::vector<std::string>& more) {
    argv.insert(argv.end(), more.begin(), more.end());
    return argv;
  };
  program node(with(under("ulimit -Sn 200"), home.node()));
  REQUIRE(node.wait_for_stderr("ready"));
  const auto limits = read_file("/proc/" + std::to_string(node.pid()) + "/limits");
  std::istringstream line(limits.substr(limits.find("Max open files") + 14));
  std::string soft;
  std::string hard;
  line >> soft >> hard;
  CHECK(soft == hard);
  CHECK(soft != "200");
  // Its programs have what it was started with.
  CHECK(home.run({"cycle"}).code == 0);
  CHECK_THAT(home.run({"dispatches", "ls", "--json"}).out, Contains("\"200\""));
  node.signal(SIGTERM);
  CHECK_THAT(node.finish().err, !Contains("limit of open files"));

  program poor(with(under("ulimit -n 260"), home.node()));
  CHECK(poor.wait_for_stderr(
      "the limit of open files is 260, but node.max_concurrent: 4 may need 268"));
  poor.signal(SIGTERM);
  CHECK(poor.finish().code == 0);
}

TEST_CASE("a node starts, answers, and stops in order on SIGTERM", "[e2e]") {
  const home_of_boyd home(one_agent("echo done"));
  program node(home.node());
  REQUIRE(node.wait_for_stderr("ready: node "));
  const auto cycle = home.run({"cycle", "--json"});
  INFO(cycle.err);
  CHECK(cycle.code == 0);
  CHECK(cycle.json()["succeeded"] == 1);
  const auto status = home.run({"status", "--json"}).json();
  CHECK(status["node"]["running"] == true);
  CHECK(status["node"]["pid"] == node.pid());
  CHECK(status["actors"].back()["name"] == "process_host");
  CHECK(status["actors"].back()["state"] == "running");
  node.signal(SIGTERM);
  const auto ended = node.finish();
  INFO(ended.err);
  CHECK(ended.code == 0);
  CHECK(ended.out.empty());
  CHECK_FALSE(std::filesystem::exists(home.file("run/control.sock")));
}

TEST_CASE("a second node on the same home is refused with the owner", "[e2e]") {
  const home_of_boyd home(one_agent("echo done"));
  program node(home.node());
  REQUIRE(node.wait_for_stderr("ready: node "));
  const auto second = program(home.node()).finish();
  CHECK(second.code == 5);
  CHECK_THAT(second.err, Contains("process " + std::to_string(node.pid()) + ", started 20"));
  CHECK(home.run({"init", "--no-input"}).code == 5);
  CHECK(home.run({"doctor"}).code == 0);
  node.signal(SIGINT);
  CHECK(node.finish().code == 0);
}

TEST_CASE("SIGTERM lets a running attempt finish", "[e2e]") {
  const home_of_boyd home(one_agent("echo begun > begun; while [ ! -e go ]; do sleep 0.05; done; "
                                    "echo finished"));
  program node(home.node());
  REQUIRE(node.wait_for_stderr("ready: node "));
  program cycle({boyd_binary(), "--home", home.path(), "cycle"});
  const auto kernel = home.file("kernel/default/");
  REQUIRE(wait_until([&] { return std::filesystem::exists(kernel + "begun"); }));
  node.signal(SIGTERM);
  REQUIRE(node.wait_for_stderr("node: stopping"));
  write_file(kernel + "go", "");
  const auto ended = node.finish();
  INFO(ended.err);
  CHECK(ended.code == 0);
  cycle.finish();
  const auto row = home.run({"dispatches", "ls", "--json"}).json()["items"][0];
  CHECK(row["status"] == "done");
}

TEST_CASE("a second signal stops at once and gives the work back", "[e2e]") {
  const home_of_boyd home(one_agent("echo begun > begun; sleep 600"));
  program node(home.node());
  REQUIRE(node.wait_for_stderr("ready: node "));
  program cycle({boyd_binary(), "--home", home.path(), "cycle"});
  REQUIRE(wait_until([&] { return std::filesystem::exists(home.file("kernel/default/begun")); }));
  node.signal(SIGTERM);
  REQUIRE(node.wait_for_stderr("node: stopping"));
  node.signal(SIGTERM);
  const auto ended = node.finish();
  INFO(ended.err);
  CHECK(ended.code == 0);
  const auto left = cycle.finish();
  CHECK(left.code == 1);
  CHECK_THAT(left.err, Contains("the node stopped; the cycle will be resumed at the next start"));
  const auto row = home.run({"dispatches", "ls", "--json"}).json()["items"][0];
  CHECK(row["status"] == "pending");
  CHECK(row["attempt"] == 0);
}

TEST_CASE("SIGHUP reloads; a bad file keeps the old configuration", "[e2e]") {
  const home_of_boyd home(one_agent("echo old"));
  program node(home.node());
  REQUIRE(node.wait_for_stderr("ready: node "));
  auto good = one_agent("echo new");
  good.replace(good.find("worker"), 6, "second");

  home.write_configuration("version: 1\nnonsense: true\nmore: 1\nyet: 2\n");
  node.signal(SIGHUP);
  REQUIRE(node.wait_for_stderr("the previous one stays active"));
  REQUIRE(node.wait_for_stderr("boyd.yaml:2:1"));
  const auto status = home.run({"status"}).out;
  CHECK_THAT(status, Contains("boyd.yaml:1:1: kernels: missing"));
  CHECK_THAT(status, Contains("(and 3 more: boyd config validate)") && !Contains("boyd.yaml:2:1"));
  CHECK(home.run({"agents", "--json"}).json()["items"][0]["agent_id"] == "worker");

  home.write_configuration(good);
  node.signal(SIGHUP);
  REQUIRE(node.wait_for_stderr("configuration reloaded"));
  CHECK(home.run({"agents", "--json"}).json()["items"][0]["agent_id"] == "second");
  CHECK(home.run({"cycle", "--json"}).json()["agents"][0]["agent_id"] == "second");

  // The gateway that is asked is itself renewed, and answers again as soon as the reload is over.
  home.write_configuration(good + "  - kernel_id: other\n");
  const auto socket = home.file("run/control.sock");
  CHECK_THAT(ask_socket(socket, "POST /api/v1/reload"), Contains("\"reloaded\":true"));
  CHECK_THAT(get(socket, "/api/v1/cycles?kernel=other"), Contains("200 OK"));
  CHECK(home.run({"cycle", "--kernel", "other"}).code == 0);
  node.signal(SIGTERM);
  CHECK(node.finish().code == 0);
}

TEST_CASE("status --watch ends when nobody reads it any more, also while the node is away",
          "[e2e]") {
  const home_of_boyd home(one_agent("echo done"));
  std::optional<program> node(std::in_place, home.node());
  REQUIRE(node->wait_for_stderr("ready: node "));
  program watch({"/bin/sh", "-c",
                 boyd_binary() + " --home " + home.path() +
                     " status --watch --json | while read -r line; do case $line in"
                     " *boyd.error*) echo \"$line\"; exit;; *) echo shown >&2;; esac; done"});
  REQUIRE(watch.wait_for_stderr("shown"));
  node->signal(SIGKILL);
  static_cast<void>(node->finish());
  const auto seen = watch.finish();
  INFO(seen.out << seen.err);
  CHECK(seen.code == 0);
  CHECK(seen.json()["schema"] == "boyd.error/1");
}

TEST_CASE("status --watch goes on over a restart of the node", "[e2e]") {
  const home_of_boyd home(one_agent("echo done"));
  const auto shown = [](const program& node) { return "\"pid\":" + std::to_string(node.pid()); };
  std::optional<program> node(std::in_place, home.node());
  REQUIRE(node->wait_for_stderr("ready: node "));
  program watch({boyd_binary(), "--home", home.path(), "status", "--watch", "--json"});
  REQUIRE(watch.wait_for_stdout(shown(*node)));
  node->signal(SIGTERM);
  CHECK(node->finish().code == 0);
  REQUIRE(watch.wait_for_stderr("the display continues when the node answers"));
  node.emplace(home.node());
  REQUIRE(node->wait_for_stderr("ready: node "));
  CHECK(watch.wait_for_stdout(shown(*node)));
  // It follows the new node's events: a question holds its connection for a moment only.
  int looks = 0;
  CHECK(wait_until([&] { return (looks = has_socket(watch.pid()) ? looks + 1 : 0) == 100; }));
  watch.signal(SIGINT);
  CHECK(watch.finish().code == 0);
  node->signal(SIGTERM);
  CHECK(node->finish().code == 0);
}

TEST_CASE("with or without a node the answers are the same", "[e2e]") {
  const home_of_boyd home(one_agent("echo done"));
  REQUIRE(home.run({"cycle"}).code == 0);
  const std::vector<std::vector<std::string>> questions{
      {"agents", "--json"}, {"dispatches", "ls", "--json"}, {"state", "show", "--json"},
      {"plan", "--json"},   {"state", "diff", "--json"},    {"dispatches", "ls"},
      {"state", "show"}}; // `agents` promises no run without a node
  std::vector<std::string> offline;
  for (const auto& q : questions)
    offline.push_back(home.run(q).out);
  const auto status_offline = steady_part(home.run({"status", "--json"}).json());
  program node(home.node());
  REQUIRE(node.wait_for_stderr("ready: node "));
  for (std::size_t i = 0; i < questions.size(); ++i) {
    INFO(questions[i].front());
    CHECK(home.run(questions[i]).out == offline[i]);
  }
  CHECK(steady_part(home.run({"status", "--json"}).json()) == status_offline);
  node.signal(SIGTERM);
  CHECK(node.finish().code == 0);
}

TEST_CASE("a node refuses a bad configuration with every finding", "[e2e]") {
  const home_of_boyd home(one_agent("echo done"));
  home.write_configuration("version: 1\nnode: {max_concurrent: 0}\nkernles: []\n");
  const auto r = program(home.node()).finish();
  CHECK(r.code == 4);
  CHECK_THAT(r.err, Contains("boyd.yaml:2:"));
  CHECK_THAT(r.err, Contains("did you mean kernels"));
}

TEST_CASE("a home behind a symbolic link is refused", "[e2e]") {
  const home_of_boyd home(one_agent("echo done"));
  const auto link = home.path() + "-link";
  std::filesystem::create_directory_symlink(home.path(), link);
  const auto r = boyd_run({"--home", link, "node"});
  std::filesystem::remove(link);
  CHECK(r.code == 1);
  CHECK_THAT(r.err, Contains("symbolic link"));
}

TEST_CASE("kill -9 leaves a home that the next command takes at once", "[e2e]") {
  const home_of_boyd home(one_agent("echo begun > begun; sleep 600"));
  {
    program node(home.node());
    REQUIRE(node.wait_for_stderr("ready: node "));
    program cycle({boyd_binary(), "--home", home.path(), "cycle"});
    REQUIRE(wait_until([&] { return std::filesystem::exists(home.file("kernel/default/begun")); }));
    node.signal(SIGKILL);
    node.finish();
    CHECK(cycle.finish().code != 0);
  }
  const auto status = home.run({"status", "--json"});
  INFO(status.err);
  CHECK(status.code == 0);
  CHECK(status.json()["node"]["running"] == false);
}

TEST_CASE("a reload takes the log level and names what waits for a restart", "[e2e]") {
  const home_of_boyd home(one_agent("echo done"));
  program node(home.node());
  REQUIRE(node.wait_for_stderr("ready: node "));
  home.write_configuration(
      one_agent("echo done", ", store: \"postgres://nobody@localhost/none\", log_level: warn"));
  node.signal(SIGHUP);
  REQUIRE(node.wait_for_stderr("node.store has changed; restart the node"));
  const auto status = home.run({"status", "--json"}).json()["node"];
  CHECK(status["restart_needed"] == nlohmann::json{"node.store"});
  CHECK(status["store"] == "sqlite");
  CHECK_THAT(home.run({"status"}).out, Contains("! node.store has changed"));
  CHECK(home.run({"cycle"}).code == 0);
  node.signal(SIGTERM);
  const auto ended = node.finish();
  CHECK(ended.code == 0);
  CHECK_THAT(ended.err, !Contains("node: ended")); // info is not logged any more
}

TEST_CASE("a cycle in a running node shows all of its progress", "[e2e]") {
  const home_of_boyd home(one_agent("echo done"));
  program node(home.node());
  REQUIRE(node.wait_for_stderr("ready: node "));
  for (int i = 0; i < 10; ++i) {
    const auto r = home.run({"cycle"});
    REQUIRE(r.code == 0);
    const std::string before = "cycle ";
    REQUIRE(r.out.starts_with(before));
    const auto id = r.out.substr(before.size(), r.out.find(':') - before.size());
    INFO(r.err);
    CHECK_THAT(r.err, Contains("perceive cycle " + id + " begins"));
    CHECK_THAT(r.err, Contains("worker dispatched"));
    CHECK_THAT(r.err, Contains("worker done: done"));
    CHECK_THAT(r.err, Contains("done cycle " + id + ": success"));
  }
  node.signal(SIGTERM);
  CHECK(node.finish().code == 0);
}

TEST_CASE("prompt files of a killed node are removed by the next start", "[e2e]") {
  const home_of_boyd home("version: 1\nkernels:\n  - schedule: \"0 0 1 1 *\"\n    agents:\n"
                          "      - agent_id: worker\n        prompt: a secret\n        executor: "
                          "{type: command, argv: [sh, -c, \"echo b > begun; sleep 600\", x, "
                          "\"{prompt_file}\"]}\n");
  const auto prompts = home.file("run/prompts");
  const auto files = [&] {
    return std::distance(std::filesystem::directory_iterator(prompts),
                         std::filesystem::directory_iterator{});
  };
  {
    program node(home.node());
    REQUIRE(node.wait_for_stderr("ready: node "));
    program cycle({boyd_binary(), "--home", home.path(), "cycle"});
    REQUIRE(wait_until([&] { return std::filesystem::exists(home.file("kernel/default/begun")); }));
    REQUIRE(files() == 1);
    node.signal(SIGKILL);
    node.finish();
    cycle.finish();
  }
  REQUIRE(files() == 1);
  CHECK(home.run({"status"}).code == 0);
  CHECK(files() == 0);
}

TEST_CASE("requests of the control API leave nothing in the node's memory", "[e2e]") {
  const home_of_boyd home(one_agent("echo done"));
  program node(home.node());
  REQUIRE(node.wait_for_stderr("ready: node "));
  const auto socket = home.file("run/control.sock");
  // A sanitizer's allocator keeps what was freed, and looks for leaks by itself.
  const bool sanitized = test::sanitized();
  const int requests = sanitized ? 100 : 3000;
  ask_often(socket, requests / 6);
  const auto before = private_kib(node.pid());
  ask_often(socket, requests);
  const auto grown = private_kib(node.pid()) - before;
  WARN(requests << " requests: " << grown << " KiB more");
  if (!sanitized)
    CHECK(grown < requests / 2); // half a KiB for each; a watch that was left cost more than one
  node.signal(SIGTERM);
  CHECK(node.finish().code == 0);
}

} // namespace boyd::node_test
