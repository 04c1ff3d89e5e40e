#include "actors/graph_recorder/performer.hpp"
#include "boyd/graph/foreign_lines.hpp"
#include "node_fixture.hpp"
#include "support/pch.hpp"

#include <algorithm>

// Nobody but the recorder writes the log of facts while a node runs.

namespace boyd::foreign_lines_test {

using namespace boyd;
using boyd::test::simulated_node;
using Catch::Matchers::Contains;

namespace {

constexpr const char* folder = "/boyd/knowledge/";
constexpr const char* log_path = "/boyd/knowledge/graph.jsonl";

graph::edge fact(int n) {
  return {"ctx_" + std::to_string(n), "exec_1", "used_in", utc_time{milliseconds{n}}, "{\"k\": 1}"};
}

bool recorded(graph_session& s, std::vector<graph::edge> facts) {
  std::vector<job<graph_request, graph_reply>> batch;
  batch.emplace_back(graph_request{{}, std::move(facts)});
  s.perform(batch);
  return batch[0].reply.has_value();
}

std::string last_line(const std::string& text) {
  const auto begin = text.rfind('\n', text.size() - 2) + 1;
  return text.substr(begin, text.size() - 1 - begin);
}

/// A line that goes on well behind this text.
std::string forged(const std::string& text, int n) {
  auto chain = graph::edge_chain::resume(text.empty() ? std::string() : last_line(text)).value();
  return chain.append(fact(n)).value() + "\n";
}

struct fixture : simulated_node {
  std::string text() const { return disk->snapshot().at(log_path); }
  /// What was set aside, by name.
  std::map<std::string, std::string> aside() const {
    std::map<std::string, std::string> all;
    for (const auto& [path, bytes] : disk->snapshot())
      if (path.starts_with(folder) && path.find(".foreign-") != path.npos)
        all[path.substr(std::string_view(folder).size())] = bytes;
    return all;
  }
  /// Another program appends a line that goes on behind the last one, whatever that is.
  void append_forged(int n) {
    const auto before = text();
    if (!before.ends_with('\n'))
      return;
    auto log = disk->open(log_path, open_mode::append).value();
    REQUIRE(log->write(forged(before, n)));
  }
  graph::log_report verify() const {
    graph::segment_files segments(*files, "/boyd", nullptr);
    return graph::verify_log(segments).value();
  }
};

} // namespace

TEST_CASE("a line that another program appends is set aside, and the chain goes on",
          "[graph_recorder]") {
  fixture f;
  graph_session session(f.context);
  REQUIRE(recorded(session, {fact(1), fact(2)}));
  const auto own = f.text();
  const auto evil = forged(own, 9);
  const auto tail = GENERATE_COPY(as<std::string>(), evil, evil + forged(own + evil, 8),
                                  evil + "{\"from\":\"ctx");
  f.disk->put(log_path, own + tail);
  SECTION("found by the next fact") {}
  SECTION("found without one") {
    session.probe();
    CHECK(f.text() == own);
  }
  REQUIRE(recorded(session, {fact(3), fact(9)}));
  CHECK(f.text().starts_with(own));
  CHECK(graph::verify(f.text()).intact());
  CHECK(graph::verify(f.text()).chained == 4); // fact 9 was none before
  const auto aside = f.aside();
  REQUIRE(aside.size() == 1);
  CHECK(aside.begin()->second == tail);
  CHECK_THAT(aside.begin()->first, Contains("-line-3.jsonl"));
  CHECK(session.health().ok);
  CHECK_THAT(session.health().notice, Contains("graph.jsonl:3") && Contains("another program"));
  // Told by the check of the log and by the next node, until somebody has deleted the file.
  REQUIRE(f.verify().problems.size() == 1);
  CHECK(f.verify().problems[0].kind == graph::chain_problem_kind::foreign);
  CHECK_THAT(f.verify().problems[0].detail, Contains(std::to_string(tail.size()) + " bytes"));
  CHECK(f.verify().facts == 4);
  f.context->written->forget();
  graph_session later(f.context);
  later.probe();
  CHECK_THAT(later.health().notice, Contains("another program"));
  REQUIRE(f.disk->unlink(folder + aside.begin()->first));
  later.probe();
  CHECK(later.health().notice.empty());
  CHECK(f.verify().intact());
}

TEST_CASE("a last line that another program replaces is not built on", "[graph_recorder]") {
  fixture f;
  graph_session session(f.context);
  REQUIRE(recorded(session, {fact(1)}));
  const auto first = f.text();
  REQUIRE(recorded(session, {fact(2)}));
  // Of the same length; and another one more.
  auto evil = forged(first, 7);
  REQUIRE(evil.size() == f.text().size() - first.size());
  const bool is_longer = GENERATE(false, true);
  if (is_longer)
    evil += forged(first + evil, 8);
  f.disk->put(log_path, first + evil);
  // The fact that was overwritten is gone: whoever wants the next one written is told first.
  if (!recorded(session, {fact(3)}))
    REQUIRE(recorded(session, {fact(3)}));
  CHECK(f.text().starts_with(first));
  CHECK(graph::verify(f.text()).intact());
  CHECK(graph::verify(f.text()).chained == 2);
  REQUIRE(f.aside().size() == 1);
  CHECK(f.aside().begin()->second == evil);
}

TEST_CASE("a segment that another program begins is set aside", "[graph_recorder]") {
  fixture f;
  constexpr std::size_t limit = 1024;
  graph_session session(f.context, limit);
  REQUIRE(recorded(session, {fact(1)}));
  const auto evil = forged(f.text(), 9);
  f.disk->put(folder + std::string("graph-000002.jsonl"), evil);
  for (int n = 2; n < 12; ++n)
    if (!recorded(session, {fact(n)}))
      REQUIRE(recorded(session, {fact(n)}));
  REQUIRE(f.aside().size() == 1);
  CHECK(f.aside().begin()->second == evil);
  CHECK(f.aside().begin()->first.starts_with("graph-000002.foreign-"));
  const auto report = f.verify();
  CHECK(report.segments >= 2);
  CHECK(report.facts == 11);
  REQUIRE(report.problems.size() == 1);
  CHECK(report.problems[0].kind == graph::chain_problem_kind::foreign);
  // Nor does a line count behind the end of a segment that is full.
  const auto full = f.text();
  f.disk->put(log_path, full + forged(full, 9));
  for (int n = 12; n < 22; ++n)
    if (!recorded(session, {fact(n)}))
      REQUIRE(recorded(session, {fact(n)}));
  CHECK(f.text() == full);
  CHECK(f.aside().size() == 2);
}

TEST_CASE("a line that another program appends between two looks is none of the log",
          "[graph_recorder]") {
  std::uint64_t calls = 0;
  for (std::uint64_t at = 0; at == 0 || at < calls; ++at) {
    fixture f;
    graph_session session(f.context);
    REQUIRE(recorded(session, {fact(1), fact(2)}));
    f.append_forged(9); // so that the log is opened again
    const auto begin = f.disk->calls();
    bool is_busy = false;
    f.disk->set_fault_plan([&](const sim::disk_call& c) {
      if (!is_busy && c.number == begin + at) {
        is_busy = true;
        f.append_forged(8);
      }
      return sim::disk_fault::none;
    });
    bool done = false;
    for (int attempt = 0; attempt < 4 && !done; ++attempt)
      done = recorded(session, {fact(3)});
    calls = std::max(calls, f.disk->calls() - begin);
    f.disk->clear_faults();
    CAPTURE(at);
    CHECK(done);
    REQUIRE(recorded(session, {fact(4)}));
    CHECK(f.text().find("ctx_8") == std::string::npos);
    CHECK(f.text().find("ctx_9") == std::string::npos);
    CHECK(graph::verify(f.text()).intact());
    CHECK(graph::verify(f.text()).chained == 4);
    CHECK(f.context->written->ends().at(1) == f.text().size());
  }
  CHECK(calls > 20);
}

TEST_CASE("a program that appends whenever the log is opened stops the recorder, and adds nothing",
          "[graph_recorder]") {
  fixture f;
  graph_session session(f.context);
  REQUIRE(recorded(session, {fact(1), fact(2)}));
  const auto own = f.text();
  f.append_forged(9);
  bool is_busy = false;
  f.disk->set_fault_plan([&](const sim::disk_call& c) {
    if (!is_busy && c.op == sim::disk_op::open && c.path == log_path) {
      is_busy = true;
      f.append_forged(8);
      is_busy = false;
    }
    return sim::disk_fault::none;
  });
  CHECK_FALSE(recorded(session, {fact(3)}));
  session.probe();
  CHECK_FALSE(session.health().ok);
  CHECK_THAT(session.health().reason, Contains("another program keeps on writing to the log"));
  CHECK(f.context->written->ends().at(1) == own.size());
  f.disk->clear_faults();
  REQUIRE(recorded(session, {fact(3)}));
  CHECK(session.health().ok);
  CHECK(f.text().starts_with(own));
  CHECK(graph::verify(f.text()).intact());
  CHECK(graph::verify(f.text()).chained == 3);
}

TEST_CASE("setting aside may fail at each of its calls, and loses nothing", "[graph_recorder]") {
  for (const auto fault :
       {sim::disk_fault::io_error, sim::disk_fault::no_space, sim::disk_fault::short_write}) {
    for (std::uint64_t at = 0; at < 60; ++at) {
      fixture f;
      graph_session session(f.context);
      REQUIRE(recorded(session, {fact(1), fact(2)}));
      const auto own = f.text();
      const auto evil = forged(own, 9);
      f.disk->put(log_path, own + evil);
      const auto begin = f.disk->calls();
      f.disk->set_fault_plan([=](const sim::disk_call& c) {
        return c.number == begin + at ? fault : sim::disk_fault::none;
      });
      bool done = false;
      for (int attempt = 0; attempt < 4 && !done; ++attempt)
        done = recorded(session, {fact(3)});
      CAPTURE(at, static_cast<int>(fault));
      CHECK(done);
      f.disk->clear_faults();
      f.disk->crash(*f.context->ports.random);
      CHECK(f.text().starts_with(own));
      CHECK(graph::verify(f.text()).intact());
      CHECK(graph::verify(f.text()).chained == 3);
      const auto aside = f.aside();
      CHECK(std::ranges::any_of(aside, [&](const auto& file) { return file.second == evil; }));
    }
  }
}

TEST_CASE("the log is the node's from its start on, before the recorder has opened it",
          "[graph_recorder]") {
  fixture f;
  std::string own;
  if (GENERATE(true, false)) { // else there is no log yet
    graph_session before(f.context);
    REQUIRE(recorded(before, {fact(1), fact(2)}));
    own = f.text();
    f.context->written->forget();
  }
  REQUIRE(graph::take_log_as_found(*f.files, "/boyd", *f.context->written));
  const auto evil = forged(own, 9);
  REQUIRE(f.disk->make_directories("/boyd/knowledge"));
  f.disk->put(log_path, own + evil);
  graph_session session(f.context);
  REQUIRE(recorded(session, {fact(3)}));
  CHECK(f.text().starts_with(own));
  CHECK(f.text().find("ctx_9") == std::string::npos);
  REQUIRE(f.aside().size() == 1);
  CHECK(f.aside().begin()->second == evil);
  CHECK(graph::verify(f.text()).intact());
}

TEST_CASE("what a recorder had begun is no other program's", "[graph_recorder]") {
  fixture f;
  graph_session session(f.context);
  REQUIRE(recorded(session, {fact(1)}));
  const auto own = f.text();
  // Its worker was given up in the middle of a batch, which came to the disk nevertheless.
  const auto batch = forged(own, 2);
  f.context->written->begin(1, batch);
  f.disk->put(log_path, own + batch.substr(0, GENERATE(std::size_t{20}, std::size_t{10'000})));
  graph_session next(f.context);
  REQUIRE(recorded(next, {fact(2)}));
  CHECK(f.text() == own + batch);
  CHECK(f.aside().empty());
  CHECK(f.verify().intact());
}

} // namespace boyd::foreign_lines_test
