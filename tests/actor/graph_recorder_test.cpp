#include "actors/graph_recorder/actor.hpp"
#include "actors/graph_recorder/performer.hpp"
#include "node_fixture.hpp"
#include "support/pch.hpp"

#include <algorithm>

namespace boyd::graph_recorder_test {

using namespace boyd;
using boyd::test::simulated_node;

namespace {

constexpr const char* log_path = "/boyd/knowledge/graph.jsonl";

graph::edge fact(int n, const std::string& type = "used_in") {
  return {"ctx_" + std::to_string(n), "exec_1", type, utc_time{milliseconds{n}}, "{\"k\": 1}"};
}

bool recorded(graph_session& s, std::vector<graph::edge> facts) {
  std::vector<job<graph_request, graph_reply>> batch;
  batch.emplace_back(graph_request{{}, std::move(facts)});
  s.perform(batch);
  return batch[0].reply.has_value();
}

struct fixture : simulated_node {
  graph_recorder_actor recorder = actors.own(spawn_graph_recorder(actors.system(), context));

  test::asked<graph_reply> ask(std::vector<graph::edge> facts) {
    return actors.ask<graph_reply>(recorder, graph_request{{}, std::move(facts)});
  }
  part_health health() { return actors.ask_now<part_health>(recorder, health_query{}).value(); }
  graph::chain_report report() const { return graph::verify(text()); }
  std::string text() const {
    const auto all = disk->snapshot();
    const auto it = all.find(log_path);
    return it == all.end() ? std::string() : it->second;
  }
};

} // namespace

TEST_CASE("facts become a chain whose head is answered", "[graph_recorder]") {
  fixture f;
  std::vector<test::asked<graph_reply>> all;
  for (int i = 0; i < 10; ++i)
    all.push_back(f.ask({fact(i)}));
  f.actors.run_all();
  for (const auto& a : all)
    REQUIRE(a.ok());
  const auto report = f.report();
  CHECK(report.intact());
  CHECK(report.chained == 10);
  CHECK(all.back().value().head == report.head);
  CHECK(all.front().value().head != report.head);
  auto same = f.ask({});
  f.actors.run_all();
  CHECK(same.value().head == report.head);
}

TEST_CASE("a malformed fact refuses its own request alone", "[graph_recorder]") {
  fixture f;
  auto good = f.ask({fact(1)});
  auto bad = f.ask({fact(2), {"nonsense", "exec_1", "used_in", utc_time{}, "{}"}});
  auto later = f.ask({fact(3)});
  f.actors.run_all();
  CHECK(good.ok());
  REQUIRE(bad.answered());
  CHECK_FALSE(bad.ok());
  CHECK(later.ok());
  CHECK(f.report().chained == 2);
  CHECK(f.health().ok);
}

TEST_CASE("a repeated batch is acknowledged and not written twice", "[graph_recorder]") {
  fixture f;
  auto first = f.ask({fact(1), fact(2)});
  f.actors.run_all();
  auto again = f.ask({fact(1), fact(2), fact(3)});
  f.actors.run_all();
  CHECK(f.report().chained == 3);
  // A new worker reads what the old one wrote.
  graph_session session(f.context);
  std::vector<job<graph_request, graph_reply>> batch;
  batch.emplace_back(graph_request{{}, {fact(3), fact(4)}});
  session.perform(batch);
  REQUIRE(batch[0].reply);
  CHECK(f.report().chained == 4);
  CHECK(f.report().intact());
  CHECK(batch[0].reply->head == f.report().head);
}

TEST_CASE("case R1: a fact told again at another time or in other words is not written twice",
          "[graph_recorder]") {
  const auto told = [](int at, const std::string& meta) {
    return graph::edge{"exec_1", "outcome_1", "resulted_in", utc_time{milliseconds{at}}, meta};
  };
  const auto decided = [](int at, const std::string& meta) {
    return graph::edge{"exec_1", "decision_1", "decided_by", utc_time{milliseconds{at}}, meta};
  };
  fixture f;
  auto first = f.ask({told(1000, R"({"fence":1,"status":"done"})"), decided(1000, "{}")});
  f.actors.run_all();
  const auto head = f.report().head;
  // Within one request, in another, and by a new worker behind a torn line.
  auto again = f.ask({told(4000, R"({"status":"failed","fence":1})"), decided(4000, R"({"a":1})"),
                      told(5000, R"({"fence":1})")});
  f.actors.run_all();
  CHECK(again.value().head == head);
  f.disk->put(log_path, f.text() + "{\"from\":\"exec_1\",\"to\":");
  f.context->written->forget(); // the next session is another node's
  graph_session session(f.context);
  CHECK(recorded(session, {told(6000, R"({"fence":1})"), decided(6000, "{}")}));
  CHECK(f.report().chained == 2);
  // Another attempt's outcome is another fact.
  CHECK(recorded(session, {told(7000, R"({"fence":2})"), told(7000, R"({"fence":2})")}));
  CHECK(f.report().chained == 3);
  CHECK(f.report().intact());
}

TEST_CASE("case R1: facts of thousands of cycles ago are known to a new worker",
          "[graph_recorder]") {
  fixture f;
  {
    graph_session before(f.context);
    for (int part = 0; part < 10; ++part) {
      std::vector<graph::edge> facts;
      for (int n = 0; n < 1000; ++n)
        facts.push_back(fact(part * 1000 + n));
      REQUIRE(recorded(before, facts));
    }
  }
  graph_session session(f.context);
  auto old = fact(3);
  old.timestamp += 1s;
  CHECK(recorded(session, {old}));
  CHECK(f.report().chained == 10000);
}

TEST_CASE("a torn tail is set aside at the start (FAULTS 37)", "[graph_recorder]") {
  fixture f;
  auto first = f.ask({fact(1)});
  f.actors.run_all();
  f.disk->put(log_path, f.text() + "{\"from\":\"ctx_2\",\"to\":\"ex");
  f.context->written->forget(); // the next session is another node's
  graph_session session(f.context);
  std::vector<job<graph_request, graph_reply>> batch;
  batch.emplace_back(graph_request{{}, {fact(3)}});
  session.perform(batch);
  REQUIRE(batch[0].reply);
  CHECK(f.report().intact());
  CHECK(f.report().chained == 2);
}

TEST_CASE("no call of a batch may fail so that an acknowledged fact is lost or doubled",
          "[graph_recorder]") {
  for (const auto fault :
       {sim::disk_fault::io_error, sim::disk_fault::no_space, sim::disk_fault::short_write}) {
    for (std::uint64_t at = 0; at < 30; ++at) {
      simulated_node node;
      graph_session session(node.context);
      const auto send = [&](graph_session& s, int n) {
        std::vector<job<graph_request, graph_reply>> batch;
        batch.emplace_back(graph_request{{}, {fact(n)}});
        s.perform(batch);
        return batch[0].reply.has_value();
      };
      const auto begin = node.disk->calls();
      node.disk->set_fault_plan([=](const sim::disk_call& c) {
        return c.number == begin + at ? fault : sim::disk_fault::none;
      });
      std::vector<std::string> acknowledged;
      for (int n = 1; n <= 3; ++n)
        for (int attempt = 0; attempt < 3; ++attempt)
          if (send(session, n)) {
            acknowledged.push_back("ctx_" + std::to_string(n));
            break;
          }
      CAPTURE(at, static_cast<int>(fault));
      CHECK(acknowledged.size() == 3);
      node.disk->crash(*node.context->ports.random);
      node.disk->clear_faults();
      graph_session after(node.context);
      CHECK(send(after, 4));
      const auto text = node.disk->snapshot().at(log_path);
      const auto report = graph::verify(text);
      CHECK(report.intact());
      CHECK(report.chained == 4);
    }
  }
}

TEST_CASE(
    "case 40 bitflip-jsonl: the recorder tells of a damaged line, keeps a copy of it and goes on",
    "[graph_recorder]") {
  simulated_node node;
  {
    graph_session before(node.context);
    REQUIRE(recorded(before, {fact(1), fact(2), fact(3)}));
    CHECK(before.health().notice.empty());
  }
  auto text = node.disk->snapshot().at(log_path);
  const auto at = text.find("ctx_2") + 4;
  text[at] = '7'; // well-formed, and another fact
  const auto begin = text.rfind('\n', at) + 1;
  const auto damaged = text.substr(begin, text.find('\n', at) - begin + 1);
  node.disk->put(log_path, text);
  for (int start = 0; start < 2; ++start) {
    graph_session session(node.context);
    session.probe();
    CHECK(session.health().ok); // nothing that stops anybody
    CHECK(session.health().notice.find("graph.jsonl:2 is changed") != std::string::npos);
    CHECK(session.health().notice.find("set aside in " + std::string(log_path) + ".damaged") !=
          std::string::npos);
    CHECK(node.disk->snapshot().at(std::string(log_path) + ".damaged") == damaged);
    // The true fact is not there any more, so that it is no repeat; the false one never was.
    REQUIRE(recorded(session, {fact(2), fact(1), fact(7 + start)}));
  }
  const auto now = node.disk->snapshot().at(log_path);
  CHECK(now.starts_with(text));
  const auto report = graph::verify(now);
  CHECK(report.damaged() == std::vector<std::size_t>{2});
  CHECK(report.lines == 6); // three, fact 2 again, facts 7 and 8
}

namespace {

/// Three facts on record, and then the log with something else in its last line.
std::string with_last_line(simulated_node& node, std::string_view good, std::string_view bad) {
  graph_session before(node.context);
  REQUIRE(recorded(before, {fact(1), fact(2), fact(3)}));
  auto text = node.disk->snapshot().at(log_path);
  const auto at = text.rfind(good);
  REQUIRE(at > text.rfind('\n', text.size() - 2));
  text.replace(at, good.size(), bad);
  node.disk->put(log_path, text);
  node.context->written->forget(); // the next session is another node's
  return text;
}

std::string last_line_of(const std::string& text) {
  return text.substr(text.rfind('\n', text.size() - 2) + 1);
}

} // namespace

TEST_CASE(
    "case 40 bitflip-jsonl: a last line that was damaged is not believed, and the chain goes on "
    "behind it",
    "[graph_recorder]") {
  simulated_node node;
  // A letter of an id; the number, which the next line must not go on from.
  const auto [good, bad] =
      GENERATE(std::pair("exec_1", "eyec_1"), std::pair("\"seq\":3", "\"seq\":7"));
  const auto text = with_last_line(node, good, bad);
  for (int start = 0; start < 2; ++start) {
    graph_session session(node.context);
    session.probe();
    CHECK(session.health().ok);
    INFO(session.health().notice);
    CHECK(session.health().notice.find("graph.jsonl:3 is changed") != std::string::npos);
    CHECK(node.disk->snapshot().at(std::string(log_path) + ".damaged") == last_line_of(text));
    // What it had said is gone, so that the same fact is no repeat.
    REQUIRE(recorded(session, {fact(3)}));
  }
  const auto now = node.disk->snapshot().at(log_path);
  CHECK(now.starts_with(text));
  const auto report = graph::verify(now);
  CHECK(report.problems.size() == 1);
  CHECK(report.damaged() == std::vector<std::size_t>{3});
  CHECK(report.lines == 4);
  CHECK(report.last_sequence == 4);
}

TEST_CASE("a last line without a seal is left out, and the chain goes on from the one before",
          "[graph_recorder]") {
  simulated_node node;
  {
    graph_session before(node.context);
    REQUIRE(recorded(before, {fact(1), fact(2), fact(3)}));
  }
  node.context->written->forget(); // the next session is another node's
  const std::string bare = "{\"from\":\"ctx_9\",\"to\":\"exec_1\",\"type\":\"used_in\","
                           "\"timestamp\":1,\"meta\":{}}\n";
  const auto text = node.disk->snapshot().at(log_path) + bare;
  node.disk->put(log_path, text);
  for (int start = 0; start < 2; ++start) {
    graph_session session(node.context);
    session.probe();
    CHECK(session.health().ok);
    INFO(session.health().notice);
    CHECK(session.health().notice.find("graph.jsonl:4 is unchained") != std::string::npos);
    CHECK(node.disk->snapshot().at(std::string(log_path) + ".damaged") == bare);
    REQUIRE(recorded(session, {fact(5 + start)}));
  }
  const auto now = node.disk->snapshot().at(log_path);
  CHECK(now.starts_with(text));
  const auto report = graph::verify(now);
  CHECK(report.problems.size() == 1);
  CHECK(report.damaged() == std::vector<std::size_t>{4});
  // No reader takes a new fact for a repeat of an earlier one.
  const auto first_new = now.substr(text.size(), now.find('\n', text.size()) - text.size());
  CHECK(graph::parse_edge(first_new).value().seq > 3U);
  CHECK(report.chained == 5);
}

TEST_CASE("case 40 bitflip-jsonl: a last line that no longer parses is kept aside and told of",
          "[graph_recorder]") {
  simulated_node node;
  // Its first byte, or its line break.
  const auto [good, bad] =
      GENERATE(std::pair("{\"from\"", "[\"from\""), std::pair("\"}\n", "\"}*"));
  const auto text = with_last_line(node, good, bad);
  graph_session session(node.context);
  session.probe();
  CHECK(session.health().ok);
  INFO(session.health().notice);
  CHECK(session.health().notice.find("the last line was not a fact") != std::string::npos);
  auto cut = text.substr(text.find("ctx_3") - std::string_view("{\"from\":\"").size());
  CHECK(node.disk->snapshot().at(std::string(log_path) + ".torn") == cut + "\n");
  if (cut.back() != '\n')
    cut += '\n';
  CHECK(node.disk->snapshot().at(std::string(log_path) + ".damaged") == cut);
  REQUIRE(recorded(session, {fact(3)}));
  CHECK_FALSE(session.health().notice.empty()); // until somebody has seen it
  const auto report = graph::verify(node.disk->snapshot().at(log_path));
  CHECK(report.intact());
  CHECK(report.chained == 3);
}

TEST_CASE("a disk that fails degrades and recovers without a restart", "[graph_recorder]") {
  fixture f;
  auto first = f.ask({fact(1)});
  f.actors.run_all();
  f.disk->set_fault_plan([](const sim::disk_call& c) {
    return c.op == sim::disk_op::sync ? sim::disk_fault::io_error : sim::disk_fault::none;
  });
  auto lost = f.ask({fact(2)});
  f.actors.run_all();
  REQUIRE(lost.answered());
  CHECK_FALSE(lost.ok());
  CHECK_FALSE(f.health().ok);
  f.actors.advance(5s);
  CHECK_FALSE(f.health().ok); // looked at, and still sick
  f.disk->clear_faults();
  SECTION("it is found out without a fact") {
    f.actors.advance(2s);
    CHECK(f.health().ok);
  }
  SECTION("the next fact is taken at once") {}
  auto again = f.ask({fact(2)});
  f.actors.run_all();
  CHECK(again.ok());
  CHECK(f.health().ok);
  CHECK(f.report().intact());
  CHECK(f.report().chained == 2);
}

TEST_CASE("a log that is taken away is not begun anew", "[graph_recorder]") {
  fixture f;
  auto first = f.ask({fact(1)});
  f.actors.run_all();
  f.files->take_away("/boyd/knowledge");
  auto lost = f.ask({fact(2)});
  f.actors.run_all();
  CHECK_FALSE(lost.ok());
  CHECK_FALSE(f.health().ok);
  CHECK_FALSE(f.files->made_hidden);
  f.actors.advance(3s);
  CHECK_FALSE(f.health().ok);
  f.files->give_back();
  auto again = f.ask({fact(2)});
  f.actors.run_all();
  CHECK(again.ok());
  CHECK(f.report().chained == 2);
}

TEST_CASE("a log that reaches its limit goes on in the next segment", "[graph_recorder]") {
  fixture f;
  constexpr std::size_t limit = 3072;
  auto session = std::make_unique<graph_session>(f.context, limit);
  std::string head;
  const auto record = [&](int n) {
    std::vector<job<graph_request, graph_reply>> batch;
    batch.emplace_back(graph_request{{}, {fact(n)}});
    session->perform(batch);
    REQUIRE(batch.front().reply);
    head = batch.front().reply->head;
  };
  graph::segment_files files(*f.files, "/boyd", nullptr);
  const auto report = [&] { return graph::verify_log(files, {head}).value(); };
  for (int n = 0; n < 40; ++n) {
    record(n);
    if (n % 10 == 9)
      session = std::make_unique<graph_session>(f.context, limit); // a restart
  }
  CHECK(session->health().ok);
  CHECK(session->health().notice.empty());
  const auto segments = report().segments;
  CHECK(segments >= 3);
  CHECK(report().intact());
  CHECK(report().facts == 40);
  const auto all = files.list().value();
  for (const auto& s : all)
    CHECK(files.size(s).value() <= limit);

  // What stands in an earlier segment is not written again.
  for (int n = 0; n < 40; ++n)
    record(n);
  CHECK(report().facts == 40);

  SECTION("a crash may leave an empty new segment") {
    f.disk->put(files.path({static_cast<std::uint32_t>(segments + 1), false}), "");
    session = std::make_unique<graph_session>(f.context, limit);
    record(40);
    CHECK(report().intact());
    CHECK(report().facts == 41);
    CHECK(report().segments == segments + 1);
  }
  SECTION("a segment that was compressed is followed by another") {
    const auto last = files.path({static_cast<std::uint32_t>(segments), false});
    REQUIRE(f.disk->rename(last, last + ".zst")); // its bytes do as if they were compressed
    f.context->ports.unpack = [] {
      return unpack_step([](std::string_view& packed, std::size_t most) {
        const auto piece = packed.substr(0, most);
        packed.remove_prefix(piece.size());
        return result<std::string>(std::string(piece));
      });
    };
    session = std::make_unique<graph_session>(f.context, limit);
    record(40);
    graph::segment_files with(*f.files, "/boyd", f.context->ports.unpack);
    CHECK(graph::verify_log(with, {head})->intact());
    CHECK(graph::verify_log(with, {head})->segments == segments + 1);
  }
  SECTION("damage in an earlier segment is named by its place") {
    const auto path = files.path({static_cast<std::uint32_t>(segments - 1), false});
    auto text = f.disk->snapshot().at(path);
    text[text.find("exec_1")] = 'f';
    f.disk->put(path, text);
    session = std::make_unique<graph_session>(f.context, limit);
    session->probe();
    INFO(session->health().notice);
    CHECK(session->health().notice.find(
              graph::segment{static_cast<std::uint32_t>(segments - 1), false}.name() +
              ":1 is changed") != std::string::npos);
  }
}

TEST_CASE("only the end of a long log is read at an opening, and lines have their true numbers",
          "[graph_recorder]") {
  fixture f;
  // A little longer than what is checked.
  std::vector<graph::edge> some;
  const std::string filler(60'000, 'x');
  for (std::size_t i = 0; i * filler.size() <= checked_graph_bytes + (8u << 20); ++i) {
    auto one = fact(static_cast<int>(i));
    one.meta_json = "{\"k\": \"" + filler + "\"}";
    some.push_back(std::move(one));
    if (some.size() == 60) {
      auto a = f.ask(std::exchange(some, {}));
      f.actors.run_all();
      REQUIRE(a.ok());
    }
  }
  const auto whole = f.text();
  REQUIRE(whole.size() > checked_graph_bytes);
  const auto lines = static_cast<std::size_t>(std::ranges::count(whole, '\n'));
  {
    graph_session sound(f.context);
    sound.probe();
    CHECK(sound.health().ok);
    CHECK(sound.health().notice.empty());
  }
  // A bit flips in the last line but one.
  const auto last = whole.rfind('\n', whole.size() - 2);
  auto damaged = whole;
  damaged[last - 1000] = 'y';
  auto file = f.disk->open(log_path, open_mode::append);
  REQUIRE(file);
  REQUIRE((*file)->truncate(0));
  REQUIRE((*file)->write(damaged));
  graph_session session(f.context);
  session.probe();
  CHECK(session.health().ok);
  INFO(session.health().notice);
  CHECK(session.health().notice.find("graph.jsonl:" + std::to_string(lines - 1) + " is changed") !=
        std::string::npos);
}

} // namespace boyd::graph_recorder_test
