#include "boyd/graph/edge_log.hpp"
#include "fixture.hpp"
#include "support/pch.hpp"
#include "tests/sim/lab/world.hpp"

#include <string>
#include <vector>

namespace boyd::inspector_test {

using namespace boyd;
using namespace boyd::sim;

namespace {

/// A graph as it is written, and what its watcher says of it.
struct watched_graph {
  graph_watch watch;
  graph::edge_chain chain;
  std::string text;
  std::vector<std::string> said;

  watched_graph() {
    watch.violated = [this](const std::string& what) { said.push_back(what); };
  }

  void append(const std::string& from) {
    text += chain.append({from, "outcome_1", "resulted_in", from_unix_ms(1000), "{}"}).value();
    text += '\n';
  }
  void look(bool whole = false) { watch.look(text, 1, whole); }
  bool says(const std::string& what) const {
    return said.size() == 1 && said.front().find(what) != std::string::npos;
  }
};

config::configuration one_agent() {
  return half_hourly({"a"}, "work");
}

bool says(const world& w, const std::string& what) {
  for (const auto& v : w.violations())
    if (v.find(what) != std::string::npos)
      return true;
  return false;
}

} // namespace

TEST_CASE("the graph's watcher: what was not acknowledged may go and be written anew") {
  watched_graph g;
  g.append("exec_1");
  g.look();
  g.watch.anchored(g.chain.head());
  const auto whole = g.text;
  const auto chain = g.chain;
  g.append("exec_2");
  g.look();
  g.text = whole;
  g.chain = chain;
  g.append("exec_3"); // as long as the line that was there
  g.look();
  g.watch.anchored(g.chain.head());
  g.text += "torn";
  g.look();
  CHECK(g.said.empty());
  g.watch.look_at_end(g.text, 1);
  CHECK(g.says("broken at its end"));
}

TEST_CASE("the graph's watcher: an acknowledged line that goes, by a cut or a changed byte") {
  watched_graph g;
  g.append("exec_1");
  g.append("exec_2");
  g.look();
  g.watch.anchored(g.chain.head());
  SECTION("a cut") {
    g.text.resize(g.text.size() - 1);
    g.look();
    CHECK(g.says("an acknowledged edge is gone from the graph: line 2"));
  }
  SECTION("a byte of long ago") {
    g.text[10] ^= 1;
    g.look();
    CHECK(g.said.empty());
    g.look(true);
    CHECK_FALSE(g.said.empty());
  }
}

TEST_CASE("the graph's watcher: a line out of its chain, twice, or behind a torn one") {
  watched_graph g;
  g.append("exec_1");
  const auto first = g.text;
  g.look();
  SECTION("out of the chain") {
    g.text += first;
    g.look();
    CHECK_FALSE(g.said.empty());
    CHECK(g.said.front().find("chain is broken at line 2") != std::string::npos);
  }
  SECTION("twice") {
    g.append("exec_1");
    g.look();
    CHECK(g.says("a fact stands twice"));
  }
  SECTION("behind a torn one") {
    g.text += "{\"from\":\n";
    g.look();
    CHECK(g.said.empty()); // nobody has written behind it yet
    g.append("exec_2");
    g.look();
    CHECK(g.says("a bad line before line 2"));
  }
  SECTION("a head that nobody has written") {
    g.append("exec_2");
    g.watch.anchored(g.chain.head());
    CHECK(g.says("names a head that is not in the graph"));
  }
}

TEST_CASE("the inspector sees a damaged STATE.md and a commit of it before anything settles") {
  const quiet log;
  world w(1, one_agent(), {});
  w.boot();
  w.calm(45min);
  REQUIRE(w.violations().empty());
  auto text = *w.disk().look(machine::state_path).content;
  text.replace(text.find(agents_text), 3, "###");
  w.disk().put(machine::state_path, text);
  w.calm(30min);
  CHECK(says(w, "the agents' part of STATE.md is damaged while the node ran"));
  CHECK(says(w, "a commit without the agents' part of STATE.md"));
}

TEST_CASE("the inspector compares all of the graph and the queue after a crash") {
  const quiet log;
  world w(1, one_agent(), {});
  w.boot();
  w.calm(100min);
  REQUIRE(w.violations().empty());
  REQUIRE(w.disk().corrupt(machine::graph_path, 20));
  w.crash();
  CHECK(says(w, "an acknowledged edge is gone from the graph"));
}

} // namespace boyd::inspector_test
