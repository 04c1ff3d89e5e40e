#include "program.hpp"
#include "support/pch.hpp"
#include "support/small_disk.hpp"
#include "support/telling.hpp"
#include "support/wait.hpp"

#include <algorithm>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <sstream>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

namespace boyd::scarce_node_test {

using namespace boyd::test;
using namespace std::chrono_literals;
using Catch::Matchers::Contains;
namespace fs = std::filesystem;

namespace {

/// A node whose two agents say outside of its home that they have begun, and end when they may.
class scarce_node {
 public:
  explicit scarce_node(std::string home) : home_(std::move(home)) {
    write_file(outside_.file("from.yaml"), with(R"(version: 1
node: {max_concurrent: 8}
kernels:
  - kernel_id: default
    schedule: "0 0 1 1 *"
    agents:
      - {agent_id: one, prompt: work, executor: {type: command, argv: [sh, "@/agent"]}}
      - {agent_id: two, prompt: work, executor: {type: command, argv: [sh, "@/agent"]}}
)"));
    write_file(outside_.file("agent"), with("echo $BOYD_DISPATCH_ID >> @/begun\n"
                                            "while [ ! -e @/go ]; do sleep 0.05; done\n"
                                            "echo $BOYD_DISPATCH_ID >> @/effects\necho done\n"));
    const auto made = run({"init", "--no-input", "--from", outside_.file("from.yaml")});
    INFO(made.err);
    REQUIRE(made.code == 0);
    let_go();
    node_ =
        std::make_unique<program>(std::vector<std::string>{boyd_binary(), "--home", home_, "node"});
    REQUIRE(node_->wait_for_stderr("ready: node "));
    REQUIRE(run({"cycle"}).code == 0);
  }

  finished run(std::vector<std::string> args) const {
    args.insert(args.begin(), {"--home", home_});
    return boyd_run(args);
  }

  program& node() { return *node_; }
  std::string file(const std::string& name) const { return home_ + "/" + name; }

  void let_go() const { write_file(outside_.file("go"), ""); }

  /// A cycle of which both agents have begun and do not end.
  std::unique_ptr<program> begin_cycle() const {
    fs::remove(outside_.file("go"));
    fs::remove(outside_.file("begun"));
    auto cycle = std::make_unique<program>(
        std::vector<std::string>{boyd_binary(), "--home", home_, "cycle", "--json"});
    REQUIRE(wait_until([&] { return lines("begun") == 2; }));
    return cycle;
  }

  /// Dispatches that are done in the database, as another program reads it.
  int settled_on_disk() const {
    const auto read = program({"/usr/bin/sqlite3", "-readonly", file("boyd.db"),
                               "select count(*) from dispatches where status = 'done'"})
                          .finish();
    INFO(read.err);
    REQUIRE(read.code == 0);
    return std::stoi(read.out);
  }

  /// Lines of a file that the agents write.
  std::ptrdiff_t lines(const std::string& name) const {
    const auto text = read_file(outside_.file(name));
    return std::ranges::count(text, '\n');
  }

 private:
  std::string with(std::string text) const {
    for (auto at = text.find('@'); at != std::string::npos; at = text.find('@'))
      text.replace(at, 1, outside_.path());
    return text;
  }

  temp_dir outside_;
  std::string home_;
  std::unique_ptr<program> node_;
};

/// A process that may open so many descriptors beside those that it has, roughly: gaps below its
/// highest number count as well.
class few_descriptors {
 public:
  few_descriptors(pid_t pid, int more) : pid_(pid) {
    REQUIRE(::prlimit(pid, RLIMIT_NOFILE, nullptr, &before_) == 0);
    ::rlimit few = before_;
    few.rlim_cur = static_cast<rlim_t>(first_free() + more);
    REQUIRE(::prlimit(pid, RLIMIT_NOFILE, &few, nullptr) == 0);
  }

  void no_more() const { REQUIRE(::prlimit(pid_, RLIMIT_NOFILE, &before_, nullptr) == 0); }

 private:
  int first_free() const {
    int free = 0;
    while (fs::is_symlink("/proc/" + std::to_string(pid_) + "/fd/" + std::to_string(free)))
      ++free;
    return free;
  }

  pid_t pid_;
  ::rlimit before_{};
};

/// The helper process from which a node starts programs.
pid_t host_of(pid_t node) {
  const auto parent = "\nPPid:\t" + std::to_string(node) + "\n";
  for (const auto& entry : fs::directory_iterator("/proc")) {
    const auto at = entry.path().string();
    if (read_file(at + "/comm") == "boyd-prochost\n" &&
        read_file(at + "/status").find(parent) != std::string::npos)
      return std::stoi(entry.path().filename().string());
  }
  FAIL("no process host below " << node);
  return -1;
}

int restarts(const scarce_node& n) {
  int all = 0;
  const auto parts = n.run({"actors", "ls", "--json"}).json();
  for (const auto& part : parts.at("items"))
    all += part.at("restarts").get<int>();
  return all;
}

void check_whole(const scarce_node& n, std::size_t cycles) {
  const auto repository = n.file("kernel/default");
  const std::vector<std::string> git{"/usr/bin/git", "-c", "safe.directory=*", "-C", repository};
  auto fsck = git;
  fsck.insert(fsck.end(), {"fsck", "--strict", "--no-dangling"});
  const auto checked = program(fsck).finish();
  INFO(checked.err << checked.out);
  CHECK(checked.code == 0);
  auto log = git;
  log.insert(log.end(), {"log", "--format=%s"});
  const auto subjects = program(log).finish().out;
  std::size_t committed = 0;
  for (auto at = subjects.find("\ncycle "); at != std::string::npos;
       at = subjects.find("\ncycle ", at + 1))
    ++committed;
  CHECK(committed + (subjects.starts_with("cycle ") ? 1 : 0) == cycles);
  std::istringstream graph(read_file(n.file("knowledge/graph.jsonl")));
  std::int64_t last = 0;
  for (std::string line; std::getline(graph, line);) {
    const auto edge = nlohmann::json::parse(line, nullptr, false);
    REQUIRE(edge.is_object());
    REQUIRE(edge.at("seq") == ++last);
  }
  CHECK(last == static_cast<std::int64_t>(cycles) * 4); // two edges for each of two agents
}

/// Processor time of a process so far.
std::chrono::milliseconds used_by(pid_t pid) {
  std::istringstream text(read_file("/proc/" + std::to_string(pid) + "/stat"));
  const std::vector<std::string> words(std::istream_iterator<std::string>(text), {});
  constexpr std::size_t user = 13;
  if (words.size() <= user + 1)
    return 0ms;
  return std::chrono::milliseconds{(std::stol(words[user]) + std::stol(words[user + 1])) * 1000 /
                                   ::sysconf(_SC_CLK_TCK)};
}

std::size_t count_of(const std::string& text, const std::string& word) {
  std::size_t n = 0;
  for (auto at = text.find(word); at != std::string::npos; at = text.find(word, at + 1))
    ++n;
  return n;
}

} // namespace

TEST_CASE(
    "case 35 enospc: a node whose disk is really full says so, and goes on when there is room",
    "[e2e][supervision]") {
  constexpr std::size_t disk_bytes = std::size_t{24} << 20;
  const auto disk = small_disk::mount(disk_bytes);
  if (!disk)
    return;
  scarce_node n(disk->file("home"));
  const auto socket = n.file("run/control.sock");
  const auto cycle = n.begin_cycle();
  disk->fill();
  // What ends now finds no room for its result, neither in the database nor beside it.
  n.let_go();
  REQUIRE(wait_until(
      [&] { return ask_socket(socket, "GET /readyz").find("503") != std::string::npos; }));
  CHECK_THAT(ask_socket(socket, "GET /readyz"), Contains("disk is full"));
  CHECK_THAT(ask_socket(socket, "POST /api/v1/cycles"),
             Contains(" 503 ") && Contains("disk is full") && Contains("free space on its disk"));
  const auto seen = n.run({"status", "--json"});
  CHECK(seen.code == 0);
  CHECK_THAT(seen.out, Contains("disk is full"));
  CHECK(restarts(n) == 0);

  disk->make_room();
  const auto begin = std::chrono::steady_clock::now();
  REQUIRE(wait_until(
      [&] { return ask_socket(socket, "GET /readyz").find("200 OK") != std::string::npos; }));
  const auto took = std::chrono::duration_cast<std::chrono::milliseconds>(
      std::chrono::steady_clock::now() - begin);
  const auto ended = cycle->finish();
  INFO(ended.err << ended.out);
  CHECK(ended.code == 0);
  CHECK(ended.json().value("status", "") == "success");
  CHECK(n.run({"cycle"}).code == 0);
  CHECK(restarts(n) == 0);
  CHECK(promised(n.lines("effects") == 6, "two agents in three cycles act six times"));
  n.node().signal(SIGTERM);
  const auto left = n.node().finish();
  INFO(left.err);
  CHECK(left.code == 0);
  CHECK(count_of(left.err, "store: degraded: ") == 1);
  check_whole(n, 3);
  tell_figure("case 35: a full disk under a node: ready again " + std::to_string(took.count()) +
              " ms after there was room, 0 restarts, 0 results lost");
}

TEST_CASE("case 46 fd-exhaustion: what cannot begin for want of descriptors is on show, and begins "
          "when there are some",
          "[e2e][supervision]") {
  const temp_dir dir;
  scarce_node n(dir.file("home"));
  // The process host alone: the node opens and closes what it likes.
  const few_descriptors few(host_of(n.node().pid()), 0);
  program cycle({boyd_binary(), "--home", n.file(""), "cycle", "--json"});
  finished shown;
  REQUIRE(wait_until([&] {
    shown = n.run({"status"});
    return shown.out.find("dispatcher:default/one") != std::string::npos &&
           shown.out.find("its work cannot begin: ") != std::string::npos;
  }));
  INFO(shown.out);
  CHECK_THAT(shown.out, Contains("Too many open files"));
  CHECK(n.lines("effects") == 2);
  few.no_more();
  const auto ended = cycle.finish();
  INFO(ended.err << ended.out);
  CHECK(ended.json().value("status", "") == "success");
  CHECK(promised(n.lines("effects") == 4, "what was given back for want of room is done once"));
  for (const auto& row : n.run({"dispatches", "--json"}).json().at("items"))
    CHECK(row.at("attempt") == 1);
  CHECK(restarts(n) == 0);
}

TEST_CASE("case 46 fd-exhaustion: a node without a free descriptor settles, waits, and recovers",
          "[e2e][supervision]") {
  const temp_dir dir;
  scarce_node n(dir.file("home"));
  const auto cycle = n.begin_cycle();
  const auto pid = n.node().pid();
  const few_descriptors none(pid, 0);
  std::vector<int> clients;
  ::sockaddr_un at{};
  at.sun_family = AF_UNIX;
  n.file("run/control.sock").copy(at.sun_path, sizeof at.sun_path - 1);
  constexpr int people = 8;
  for (int i = 0; i < people; ++i) {
    clients.push_back(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
    (void)::connect(clients.back(), reinterpret_cast<const ::sockaddr*>(&at), sizeof at);
  }
  REQUIRE(n.node().wait_for_stderr("cannot accept clients"));
  const auto used = used_by(pid);
  REQUIRE(n.settled_on_disk() == 2);
  n.let_go();
  // Nothing announces that nothing happens: the time in which a busy loop would show.
  constexpr std::chrono::milliseconds idle = 3s;
  CHECK_FALSE(wait_until([&] { return !fs::exists("/proc/" + std::to_string(pid)); }, idle));
  const auto spent = used_by(pid) - used;
  CHECK(n.lines("effects") == 4);
  CHECK(promised(n.settled_on_disk() == 4, "results are settled without a free descriptor"));

  none.no_more();
  for (const int fd : clients)
    ::close(fd);
  REQUIRE(n.node().wait_for_stderr("accepting clients again"));
  const auto ended = cycle->finish();
  INFO(ended.err << ended.out);
  // Settled, and without STATE.md and commit for now: those come with the next cycle.
  CHECK(ended.json().value("status", "") == "success");
  CHECK(n.run({"cycle"}).code == 0);
  CHECK(restarts(n) == 0);
  CHECK(promised(n.lines("effects") == 6, "two agents in three cycles act six times"));
  n.node().signal(SIGTERM);
  const auto left = n.node().finish();
  INFO(left.err);
  CHECK(left.code == 0);
  CHECK(count_of(left.err, "cannot accept clients") == 1);
  check_whole(n, 3);
  // A loop without a pause takes all of a core, or what others leave of it.
  CHECK(spent <= idle / 10);
  tell_figure("case 46: a node without a free descriptor used " + std::to_string(spent.count()) +
              " ms of processor time in 3 s");
}

} // namespace boyd::scarce_node_test
