#include "crash/campaign.hpp"
#include "e2e/written_log.hpp"
#include "support/pch.hpp"

#include <nlohmann/json.hpp>

#include <cstdlib>
#include <filesystem>
#include <iostream>
#include <map>
#include <string>
#include <vector>

// What a node has learned, killed while it is changed and while it is read.

namespace boyd::crash {

using namespace boyd::test;
using namespace std::chrono_literals;
using nlohmann::json;

namespace {

namespace fs = std::filesystem;

/// A home whose log says something of two texts.
class knowing_home {
 public:
  knowing_home() {
    fs::create_directories(home_.file("knowledge"));
    write_file(log(), written_log::of_two_texts().text);
  }

  std::string log() const { return home_.file("knowledge/graph.jsonl"); }
  finished run(const std::vector<std::string>& args, const fault& f) {
    return program(argv(args), arm(f)).finish();
  }
  std::vector<std::string> argv(std::vector<std::string> args) const {
    args.insert(args.begin(), {boyd_binary(), "--home", home_.path()});
    return args;
  }
  std::map<std::string, std::string> arm(const fault& f) {
    return shim_.arm(fs::canonical(home_.path()), f);
  }
  shim& faults() { return shim_; }
  /// By the node that runs on it; without a fault.
  finished run_beside(const std::vector<std::string>& args) const { return home_.run(args); }
  json ask(std::vector<std::string> args) const {
    args.emplace_back("--json");
    const auto ran = home_.run(args);
    INFO(ran.out << ran.err);
    REQUIRE(ran.code == 0);
    return ran.json();
  }
  std::map<std::string, std::string> actions() const {
    std::map<std::string, std::string> all;
    const auto status = ask({"memory", "status"});
    for (const auto& i : status.at("items"))
      all[i.at("path")] = i.at("action");
    return all;
  }
  /// The index, as text.
  std::string dump() const {
    const auto out = home_.file("dump");
    REQUIRE(std::system(("sqlite3 '" + index() + "' '.dump learned' '.dump learned_lists' " +
                         "'.dump learned_counts' '.dump link_marks' '.dump link_fresh' " +
                         "'.dump link_pages' > '" + out + "'")
                            .c_str()) == 0);
    return read_file(out);
  }
  void remove_index() const {
    for (const char* end : {"", "-wal", "-shm"})
      fs::remove(index() + end);
  }

 private:
  std::string index() const { return home_.file("knowledge/index.db"); }

  home_of_boyd home_;
  shim shim_;
};

bool is_done(const std::map<std::string, std::string>& actions) {
  return actions.at("bad.md") == "keep" && actions.at("good.md") != "promote_to_skill";
}

const std::vector<std::string> apply{"memory", "apply", "--yes", "--force-forget"};

/// So many calls are left out between two that are killed.
std::uint64_t stride_of(const effort& e, std::uint64_t calls) {
  return e.all ? 1 : std::max<std::uint64_t>(1, calls / std::max<std::uint64_t>(e.points, 1));
}

} // namespace

TEST_CASE("memory apply: killed at whatever call, it has done all or nothing", "[crash]") {
  const auto e = effort_of(30, 40s);
  std::uint64_t calls = 0;
  {
    knowing_home f;
    REQUIRE(f.run(apply, {}).code == 0);
    calls = f.faults().calls();
    REQUIRE(is_done(f.actions()));
  }
  REQUIRE(calls > 20);
  tally t(e);
  std::uint64_t done = 0;
  for (std::uint64_t at = 1; at <= calls && !t.enough(); at += stride_of(e, calls), t.one()) {
    knowing_home f;
    const fault kill{.what = action::kill, .at = at};
    const auto before = f.actions();
    const auto dead = f.run(apply, kill);
    INFO(about(e, at, kill) << ": " << f.faults().where() << "\n" << dead.out << dead.err);
    REQUIRE((dead.code == killed || !f.faults().struck()));
    const auto after = f.actions();
    CHECK((after == before || is_done(after)));
    done += is_done(after) ? 1 : 0;
    REQUIRE(f.run(apply, {}).code == 0);
    CHECK(is_done(f.actions()));
    CHECK(f.ask({"kg", "verify"}).at("ok") == true);
  }
  std::cout << "memory apply: " << t.done() << " kills of " << calls << " calls, " << done
            << " of them after its decision was whole\n";
  CHECK(t.done() > 0);
}

TEST_CASE("the index of knowledge is the same, wherever a node is killed that catches up",
          "[crash]") {
  const auto e = effort_of(12, 40s);
  const auto grow = [](const knowing_home& f) {
    auto log = written_log::of_two_texts();
    const auto known = log.text.size();
    for (int i = 0; i < 3000; ++i)
      log.run("text" + std::to_string(i % 70) + ".md", i % 3 != 0, i % 5 != 0,
              written_log::begin + (50 + i) * written_log::day / 50);
    write_file(f.log(), read_file(f.log()) + log.text.substr(known));
  };
  // What the node has read before it is asked, and when it has answered.
  const auto calls_of = [&](std::uint64_t kill_at, bool& struck) {
    knowing_home f;
    (void)f.ask({"kg", "stats"});
    grow(f);
    program node(f.argv({"node"}),
                 f.arm({.what = kill_at == 0 ? action::none : action::kill, .at = kill_at}));
    const bool ready = node.wait_for_stderr("ready: node ");
    const auto begin = f.faults().calls();
    if (ready)
      (void)f.run_beside({"kg", "stats", "--json"});
    const auto end = f.faults().calls();
    struck = f.faults().struck();
    node.signal(SIGKILL);
    (void)node.finish();
    f.faults().disarm();
    (void)f.ask({"kg", "stats"});
    const auto caught_up = f.dump();
    f.remove_index();
    (void)f.ask({"kg", "stats"});
    CHECK(f.dump() == caught_up);
    return std::pair(begin, end);
  };
  bool struck = false;
  const auto [begin, end] = calls_of(0, struck);
  REQUIRE(end > begin);
  tally t(e);
  std::uint64_t strikes = 0;
  for (std::uint64_t at = begin + 1; at <= end && !t.enough();
       at += stride_of(e, end - begin), t.one()) {
    INFO("killed at call " << at);
    (void)calls_of(at, struck);
    strikes += struck ? 1 : 0;
  }
  std::cout << "index: " << strikes << " kills of a node that catches up, " << end - begin
            << " calls\n";
  CHECK(strikes > 0);
}

} // namespace boyd::crash
