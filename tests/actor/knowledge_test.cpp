#include "boyd/core/sha256.hpp"
#include "boyd/graph/edge_log.hpp"
#include "boyd/graph/links.hpp"
#include "knowledge_fixture.hpp"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

namespace boyd::knowledge_test {

using namespace boyd;
using Catch::Matchers::Contains;
using fixture = test::knowledge_fixture;
using test::entry;
using texts = std::vector<std::string>;

namespace {

graph::edge use_of(const std::string& item, const std::string& run, const std::string& question) {
  return {item, "exec_" + run, "used_in", *parse_rfc3339("2026-05-02T00:00:00Z"),
          R"({"cited":true,"fence":1,"from":")" +
              std::string(question.empty() ? "declared" : "memory") +
              R"(","hash":"0a","path":"a.md","type":")" +
              (question.empty() ? "file" : "generated") + R"(","used":true})"};
}

graph::edge end_of(const std::string& run, const std::string& question) {
  return {"exec_" + run, "outcome_" + run, "resulted_in", *parse_rfc3339("2026-05-02T00:00:01Z"),
          R"({"claim":"none","class":"none","execution":"succeeded","fence":1,"question":")" +
              question + R"(","status":"done","verification":"none"})"};
}

/// A log of runs that used an item each.
struct fact_log {
  const fixture& f;
  graph::edge_chain chain{};

  std::string path() const { return f.home.file("knowledge/graph.jsonl"); }
  void add(const std::vector<graph::edge>& facts) {
    std::filesystem::create_directories(f.home.file("knowledge"));
    std::ofstream out(path(), std::ios::binary | std::ios::app);
    for (const auto& fact : facts)
      out << chain.append(fact).value() << "\n";
  }
  void add_run(const std::string& item, const std::string& run, const std::string& question = {}) {
    add({use_of(item, run, question), end_of(run, question)});
  }
  std::string text() const {
    std::ifstream in(path(), std::ios::binary);
    return {std::istreambuf_iterator<char>(in), {}};
  }
  void put(const std::string& text) const {
    std::ofstream(path(), std::ios::binary | std::ios::trunc) << text;
  }
};

std::int64_t successes(fixture& f, const std::string& item) {
  const auto reply = f.ask(know_items{{item, "ctx_unknown"}});
  REQUIRE(reply);
  CHECK_FALSE(reply->items.contains("ctx_unknown"));
  const auto it = reply->items.find(item);
  return it == reply->items.end() ? -1 : it->second.success_count;
}

} // namespace

TEST_CASE("knowledge: the index follows the log of facts, also after a restart", "[knowledge]") {
  fixture f;
  fact_log log{f};
  CHECK(successes(f, "ctx_1") == -1);
  log.add_run("ctx_1", "1");
  CHECK(successes(f, "ctx_1") == 1);
  // The outcome comes after a restart.
  log.add({use_of("ctx_1", "2", {})});
  CHECK(successes(f, "ctx_1") == 1);
  f.restart();
  log.add({end_of("2", {})});
  CHECK(successes(f, "ctx_1") == 2);
}

TEST_CASE("knowledge: a log that was put back or cut is read from its beginning", "[knowledge]") {
  fixture f;
  fact_log log{f};
  log.add_run("ctx_1", "1");
  const auto earlier = log.text();
  log.add_run("ctx_1", "2");
  CHECK(successes(f, "ctx_1") == 2);
  log.put(earlier);
  CHECK(successes(f, "ctx_1") == 1);
  // Half a line is none yet.
  log.put(log.text() + earlier.substr(0, 40));
  CHECK(successes(f, "ctx_1") == 1);
  std::filesystem::remove(log.path());
  CHECK(successes(f, "ctx_1") == -1);
}

TEST_CASE("knowledge: what stands behind the end that the recorder has written is not read",
          "[knowledge]") {
  fixture f;
  fact_log log{f};
  log.add_run("ctx_1", "1");
  const auto own = log.text();
  f.context->written->opened({{1, own.size()}}, {});
  log.add_run("ctx_1", "2");
  CHECK(successes(f, "ctx_1") == 1);
  // Neither from the beginning, nor in a segment that the recorder does not know.
  f.restart();
  std::filesystem::remove(f.index());
  CHECK(successes(f, "ctx_1") == 1);
  std::filesystem::rename(log.path(), f.home.file("whole"));
  log.put(own);
  std::filesystem::copy(f.home.file("whole"), f.home.file("knowledge/graph-000002.jsonl"));
  CHECK(successes(f, "ctx_1") == 1);
  std::filesystem::remove(f.home.file("knowledge/graph-000002.jsonl"));
  // When the recorder has written it, it counts.
  std::filesystem::rename(f.home.file("whole"), log.path());
  f.context->written->opened({{1, log.text().size()}}, {});
  CHECK(successes(f, "ctx_1") == 2);
  // An index that had read further is made anew.
  f.context->written->opened({{1, own.size()}}, {});
  CHECK(successes(f, "ctx_1") == 1);
}

TEST_CASE("knowledge: a log whose last line is not the recorder's is not read", "[knowledge]") {
  fixture f;
  fact_log log{f};
  log.add_run("ctx_1", "1");
  const auto own = log.text();
  const auto begin = own.rfind('\n', own.size() - 2) + 1;
  const auto hash = sha256_hex(own.substr(begin, own.size() - 1 - begin));
  f.context->written->opened({{1, own.size()}}, {{begin, own.size(), hash}});
  CHECK(successes(f, "ctx_1") == 1);
  // Another log of the same length.
  graph::edge_chain chain;
  std::string other;
  for (const auto& fact : {use_of("ctx_2", "1", {}), end_of("1", {})})
    other += chain.append(fact).value() + "\n";
  REQUIRE(other.size() == own.size());
  log.put(other);
  f.restart();
  std::filesystem::remove(f.index());
  CHECK(successes(f, "ctx_2") == -1);
  log.put(own);
  CHECK(successes(f, "ctx_1") == 1);
}

TEST_CASE("knowledge: damaged lines are passed over, the others count", "[knowledge]") {
  fixture f;
  fact_log log{f};
  log.add_run("ctx_1", "1");
  const auto first = log.text();
  log.add_run("ctx_1", "2");
  auto text = log.text();
  text.replace(first.size() + text.substr(first.size()).find("ctx_1"), 5, "ctx_2");
  const std::string binary("\0\xff\xc3\n", 4);
  log.put(text + "{not json\n" + binary + "\n" + std::string(100'000, '[') + "\n" +
          "{\"type\":7,\"from\":null,\"to\":{}}\n" + std::string(2u << 20, 'x') + "\n" + first);
  CHECK(successes(f, "ctx_1") == 1);
  CHECK(successes(f, "ctx_2") == -1);
  // A replay passes over the same ones: changed, no JSON, bytes that are no text, too deep, of
  // other types, empty, too long, repeated.
  const auto replayed = f.ask(replay_policy{});
  REQUIRE(replayed);
  CHECK(replayed->looked_at == 3);
  CHECK(replayed->left_out > 0);
}

TEST_CASE("knowledge: lines without a seal count before the first sealed one alone",
          "[knowledge]") {
  // As versions wrote them that had no chain.
  const auto bare = [](const std::string& item, const std::string& run) {
    graph::edge_chain chain;
    std::string text;
    for (const auto& fact : {use_of(item, run, {}), end_of(run, {})}) {
      const auto line = chain.append(fact).value();
      text += line.substr(0, line.find(",\"seq\":")) + "}\n";
    }
    return text;
  };
  fixture f;
  fact_log log{f};
  log.add_run("ctx_1", "1");
  const bool is_older = GENERATE(false, true);
  if (is_older)
    log.put(bare("ctx_2", "2") + log.text());
  CHECK(successes(f, "ctx_2") == (is_older ? 1 : -1));
  log.put(log.text() + bare("ctx_3", "3"));
  CHECK(successes(f, "ctx_3") == -1);
  log.add_run("ctx_1", "4");
  CHECK(successes(f, "ctx_1") == 2);
  CHECK(successes(f, "ctx_3") == -1);
  const auto replayed = f.ask(replay_policy{});
  REQUIRE(replayed);
  CHECK(replayed->looked_at == (is_older ? 6 : 4));
  // Nor does a question that looks at the lines themselves find it.
  inspect_graph all;
  all.what = inspect_graph::kind::query;
  const auto found = f.ask(all);
  REQUIRE(found);
  CHECK(found->inspected.find("exec_4") != std::string::npos);
  CHECK(found->inspected.find("exec_3") == std::string::npos);
}

TEST_CASE("knowledge: the index is made anew from the log, the same", "[knowledge]") {
  fixture f;
  fact_log log{f};
  const auto dump = [&] {
    const auto reply = f.ask(know_items{{"ctx_1", "ctx_2", "ctx_3"}});
    REQUIRE(reply);
    std::string all;
    for (const auto& [id, s] : reply->items)
      all += id + " " + std::to_string(s.use_count) + " " + std::to_string(s.confidence) + "\n";
    return all;
  };
  for (int i = 0; i < 30; ++i) {
    log.add_run("ctx_" + std::to_string(i % 3 + 1), std::to_string(i));
    if (i % 7 == 0)
      (void)dump();
  }
  const auto grown = dump();
  f.memory.reset();
  std::filesystem::remove(f.index());
  f.restart();
  CHECK(dump() == grown);
}

TEST_CASE("knowledge: what answered a question well is found first by the next such question",
          "[knowledge]") {
  fixture f;
  fact_log log{f};
  REQUIRE(f.write(import_memory{"default",
                                {entry("the pump was repaired", "2026-04-12T09:00:00Z"),
                                 entry("the pump was painted", "2026-04-13T09:00:00Z")}}));
  CHECK(f.recall("what about the pump?").front() == "the pump was repaired");
  recall_memory what{"default", {{"painted", *parse_rfc3339("2100-01-01T00:00:00Z")}}, 1000, 1};
  const auto id = f.ask(what)->answers.front().front().row.id;
  log.add_run(id, "1", "what about the pump?");
  CHECK(f.recall("what about the pump?").front() == "the pump was painted");
  f.restart();
  CHECK(f.recall("what about the pump?").front() == "the pump was painted");
  // Before that run ended nobody knew.
  const auto score_at = [&](const char* time) {
    recall_memory then{"default", {{"what about the pump?", *parse_rfc3339(time)}}, 1000, 1};
    return f.ask(then)->answers.front().front().score;
  };
  CHECK(score_at("2026-05-02T00:00:01Z") > score_at("2026-05-02T00:00:00Z") + 0.1);
  // Of many questions each has its own past, whatever their order.
  const std::vector<const char*> times{"2026-05-02T00:00:01Z", "2026-05-01T00:00:00Z",
                                       "2100-01-01T00:00:00Z", "2026-05-02T00:00:00Z",
                                       "2026-05-02T00:00:01Z"};
  log.add_run(id, "2", "what about the pump?");
  recall_memory all{"default", {}, 1000, 1};
  for (const auto* time : times)
    all.questions.push_back({"what about the pump?", *parse_rfc3339(time)});
  const auto answers = f.ask(all)->answers;
  REQUIRE(answers.size() == times.size());
  for (std::size_t i = 0; i < times.size(); ++i)
    CHECK(answers[i].front().score == score_at(times[i]));
}

// -- questions about the log ----------------------------------------------------------------------

namespace {

nlohmann::json inspected(fixture& f, inspect_graph what) {
  const auto reply = f.ask(std::move(what));
  if (!reply)
    return to_string(reply.error());
  return nlohmann::json::parse(reply->inspected);
}

inspect_graph about(inspect_graph::kind what, const std::string& subject = {}) {
  inspect_graph q;
  q.what = what;
  q.subject = subject;
  return q;
}

/// All that the index has learned and linked, as the sqlite3 program reads it.
std::string dump_of(fixture& f) {
  f.memory.reset(); // closes it
  const auto out = f.home.file("dump");
  REQUIRE(std::system(("sqlite3 '" + f.index() + "' \".dump learned\" \".dump link_marks\" " +
                       "\".dump learned_lists\" \".dump learned_counts\" \".dump link_fresh\" "
                       "\".dump link_pages\" > '" +
                       out + "'")
                          .c_str()) == 0);
  f.restart();
  std::ifstream in(out, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

} // namespace

TEST_CASE("knowledge: questions are answered from the log, with the places of their lines",
          "[knowledge]") {
  using kind = inspect_graph::kind;
  fixture f;
  fact_log log{f};
  for (int i = 0; i < 200; ++i)
    log.add_run("ctx_" + std::to_string(i % 3), std::to_string(i));
  const auto trace = inspected(f, about(kind::trace, "100"));
  REQUIRE(trace.at("contexts").size() == 1);
  CHECK(trace["contexts"][0]["id"] == "ctx_1");
  CHECK(trace["contexts"][0]["line"] == "graph.jsonl:201");
  CHECK(trace["outcome"]["line"] == "graph.jsonl:202");
  CHECK(inspected(f, about(kind::trace, "last")).at("execution") == "exec_199");
  const auto stats = inspected(f, about(kind::stats));
  REQUIRE(stats.at("items").size() == 3);
  CHECK(stats["items"][0]["used"].get<int>() + stats["items"][1]["used"].get<int>() +
            stats["items"][2]["used"].get<int>() ==
        200);
  auto query = about(kind::query);
  query.from = "ctx_2";
  query.most = 10;
  const auto facts = inspected(f, query);
  REQUIRE(facts.at("facts").size() == 10);
  CHECK(facts["facts"][0]["to"] == "exec_197");
  CHECK(facts["facts"][0]["line"] == "graph.jsonl:395");
  CHECK(facts["more"] == true);
  // Damage is left out, and said.
  auto text = log.text();
  text.replace(text.find("exec_100"), 8, "exec_900");
  log.put(text);
  f.memory.reset();
  std::filesystem::remove(f.index());
  f.restart();
  const auto damaged = inspected(f, about(kind::trace, "100"));
  CHECK(damaged.at("contexts").empty());
  CHECK(damaged.at("left_out") == 1);
}

TEST_CASE("knowledge: questions have a session of their own, which reads what another one keeps",
          "[knowledge]") {
  using kind = inspect_graph::kind;
  fixture f;
  fact_log log{f};
  knowledge_session inspector(f.context, nullptr, knowledge_session::task::questions);
  const auto asked = [&](auto what) {
    std::vector<job<knowledge_request, knowledge_reply>> batch;
    knowledge_request request;
    request.what = std::move(what);
    batch.emplace_back(std::move(request));
    inspector.perform(batch);
    return batch[0].reply;
  };
  const auto uses = [&] {
    const auto stats = nlohmann::json::parse(asked(about(kind::stats))->inspected);
    return stats.at("items").empty() ? 0 : stats["items"][0]["used"].get<int>();
  };
  log.add_run("ctx_1", "1");
  // Nobody has made the index; this one does not.
  CHECK(asked(about(kind::stats)).error().code == errc::store_unavailable);
  CHECK_FALSE(std::filesystem::exists(f.index()));
  REQUIRE(f.ask(catch_up{}));
  CHECK(uses() == 1);
  log.add_run("ctx_1", "2");
  CHECK(uses() == 1);
  REQUIRE(f.ask(catch_up{}));
  CHECK(uses() == 2);
  CHECK(asked(about(kind::trace, "2"))->inspected == f.ask(about(kind::trace, "2"))->inspected);
  CHECK_FALSE(asked(judge_memory{"default"})->judged.empty());
  CHECK(asked(replay_policy{})->looked_at == 4);
  // The other one makes it anew.
  f.memory.reset();
  std::filesystem::remove(f.index());
  f.restart();
  log.add_run("ctx_1", "3");
  REQUIRE(f.ask(catch_up{}));
  CHECK(uses() == 3);
  // Somebody removes, replaces or damages it while both go on.
  REQUIRE(f.write(append_memory{"default", {}, "Facts", "the gate code is 1234"}));
  REQUIRE(f.recall("gate") == texts{"the gate code is 1234"});
  SECTION("removed") {
    std::filesystem::remove(f.index());
  }
  SECTION("replaced") {
    std::ofstream(f.home.file("other"), std::ios::binary) << std::string(20'000, 'x');
    std::filesystem::rename(f.home.file("other"), f.index());
  }
  SECTION("damaged") {
    // All of it stands in the file, and nothing in its log.
    CHECK(std::system(("sqlite3 '" + f.index() + "' 'PRAGMA wal_checkpoint(TRUNCATE)' > '" +
                       f.home.file("out") + "'")
                          .c_str()) == 0);
    std::ofstream(f.index(), std::ios::binary | std::ios::trunc) << std::string(20'000, 'x');
  }
  // Nothing is made up until the other one looks again.
  if (const auto reply = asked(about(kind::stats)); !reply)
    CHECK(reply.error().code == errc::store_unavailable);
  else
    CHECK(nlohmann::json::parse(reply->inspected).at("items").size() == 1);
  log.add_run("ctx_1", "4");
  REQUIRE(f.ask(catch_up{}));
  CHECK(uses() == 4);
  CHECK(f.recall("gate") == texts{"the gate code is 1234"});
  log.add_run("ctx_1", "5");
  REQUIRE(f.ask(catch_up{}));
  CHECK(uses() == 5);
  CHECK(asked(recall_memory{"default", {{"x", {}}}, 10, 1}).error().code == errc::bug);
}

TEST_CASE("knowledge: lines are found across segments, and keep their places", "[knowledge]") {
  using kind = inspect_graph::kind;
  fixture f;
  fact_log log{f};
  for (int i = 0; i < 100; ++i)
    log.add_run("ctx_1", std::to_string(i));
  (void)inspected(f, about(kind::stats));
  // The log goes on in its next segment.
  std::string second;
  for (int i = 100; i < 200; ++i)
    for (const auto& e : {use_of("ctx_1", std::to_string(i), {}), end_of(std::to_string(i), {})})
      second += log.chain.append(e).value() + "\n";
  std::ofstream(f.home.file("knowledge/graph-000002.jsonl"), std::ios::binary) << second;
  const auto late = inspected(f, about(kind::trace, "150"));
  CHECK(late["contexts"][0]["line"] == "graph-000002.jsonl:101");
  CHECK(inspected(f, about(kind::trace, "50"))["contexts"][0]["line"] == "graph.jsonl:101");
  CHECK(successes(f, "ctx_1") == 200);
  const auto grown = dump_of(f);
  f.memory.reset();
  std::filesystem::remove(f.index());
  f.restart();
  CHECK(successes(f, "ctx_1") == 200);
  CHECK(dump_of(f) == grown);
}

TEST_CASE("knowledge: a packed segment that is damaged is left out, the others are served",
          "[knowledge]") {
  using kind = inspect_graph::kind;
  fixture f;
  fact_log log{f};
  for (int i = 0; i < 10; ++i)
    log.add_run("ctx_1", std::to_string(i));
  std::string second;
  for (const auto& e : {use_of("ctx_2", "20", {}), end_of("20", {})})
    second += log.chain.append(e).value() + "\n";
  std::ofstream(f.home.file("knowledge/graph-000002.jsonl"), std::ios::binary) << second;
  f.context->ports.unpack = [] {
    return unpack_step([](std::string_view&, std::size_t) {
      return result<std::string>(fail(errc::corrupt, "torn"));
    });
  };
  f.restart();
  CHECK(successes(f, "ctx_1") == 10);
  std::filesystem::rename(log.path(), log.path() + ".zst");
  // What the index knows stays; the lines themselves are left out of answers, which say so.
  CHECK(successes(f, "ctx_2") == 1);
  auto query = about(kind::query);
  query.from = "ctx_1";
  const auto answer = inspected(f, query);
  CHECK(answer.at("facts").empty());
  CHECK(answer.at("left_out") == 10);
  const auto replayed = f.ask(replay_policy{});
  REQUIRE(replayed);
  CHECK(replayed->looked_at == 2);
  CHECK(replayed->left_out == 20);
  // Made anew, it knows what is left.
  f.memory.reset();
  std::filesystem::remove(f.index());
  f.restart();
  CHECK(successes(f, "ctx_1") == -1);
  CHECK(successes(f, "ctx_2") == 1);
  CHECK(f.ask(replay_policy{})->looked_at == 2);
  CHECK(f.ask(replay_policy{})->left_out >= 1);
}

namespace {

/// Each look at it takes two seconds.
struct hurried_clock final : clock_port {
  mutable milliseconds elapsed{0};

  utc_time now() const override { return test::virtual_clock::start; }
  steady_time steady() const override {
    elapsed += 2s;
    return steady_time{milliseconds{1'000'000}} + elapsed;
  }
};

} // namespace

TEST_CASE("knowledge: how outcomes are learned decides what the bank offers first", "[knowledge]") {
  using context::learning_method;
  fixture f;
  fact_log log{f};
  int run = 0;
  const auto live = [&](const std::string& item, const std::string& outcomes) {
    for (const char outcome : outcomes) {
      const auto id = std::to_string(++run);
      auto use = use_of(item, id, {});
      use.meta_json.insert(1, R"("kernel":"default","scope":"repo:1",)");
      use.meta_json.replace(use.meta_json.find("a.md"), 4, "lamp/" + item + ".md");
      auto end = end_of(id, {});
      if (outcome == '-')
        end.meta_json.replace(end.meta_json.find(R"("class":"none")"), 14,
                              R"("class":"deterministic")");
      log.add({use, end});
    }
  };
  live("ctx_early", "++++++++++--"); // well for long, badly of late
  live("ctx_late", "----++++++++");
  const auto first = [&](context::confidence_rule rule) {
    const auto reply = f.ask(offer_learned{"default", "trim the lamp", rule});
    REQUIRE(reply);
    REQUIRE(reply->bank.size() == 2);
    CHECK(reply->bank[0].score > reply->bank[1].score);
    return reply->bank[0].id;
  };
  CHECK(first({learning_method::linear, 0}) == "ctx_early");
  CHECK(first({learning_method::ema, 0}) == "ctx_late");
  std::set<std::string> drawn;
  for (std::uint64_t seed = 0; seed < 200; ++seed) {
    const auto one = first({learning_method::bandit, seed});
    CHECK(first({learning_method::bandit, seed}) == one);
    drawn.insert(one);
  }
  CHECK(drawn.size() == 2);
}

TEST_CASE("knowledge: how outcomes are learned decides which entries a run recalls",
          "[knowledge]") {
  using context::learning_method;
  fixture f;
  fact_log log{f};
  REQUIRE(f.write(append_memory{"default", {}, "Facts", "the lamp of the early keeper"}));
  REQUIRE(f.write(append_memory{"default", {}, "Facts", "the lamp of the late keeper"}));
  const auto asked = [&](context::confidence_rule rule) {
    recall_memory what{
        "default", {{"lamp keeper", *parse_rfc3339("2100-01-01T00:00:00Z")}}, 1000, 0};
    what.ranking = rule;
    const auto reply = f.ask(what);
    REQUIRE(reply);
    REQUIRE(reply->answers.front().size() == 2);
    return reply->answers.front();
  };
  std::map<std::string, std::string> ids; // by a word of the text
  for (const auto& [row, score] : asked({}))
    ids[row.text.find("early") != std::string::npos ? "early" : "late"] = row.id;
  int run = 0;
  const auto live = [&](const std::string& id, const std::string& outcomes) {
    for (const char outcome : outcomes) {
      const auto name = std::to_string(++run);
      auto end = end_of(name, {});
      if (outcome == '-')
        end.meta_json.replace(end.meta_json.find(R"("class":"none")"), 14,
                              R"("class":"deterministic")");
      log.add({use_of(id, name, "lamp"), end});
    }
  };
  live(ids.at("early"), "++++++++++--");
  live(ids.at("late"), "----++++++++");
  const auto first = [&](context::confidence_rule rule) { return asked(rule).front().row.id; };
  CHECK(first({learning_method::linear, 0}) == ids.at("early"));
  CHECK(first({learning_method::ema, 0}) == ids.at("late"));
  CHECK(first({learning_method::linear, 7}) == ids.at("early"));
}

TEST_CASE("knowledge: a long history is replayed in turns", "[knowledge]") {
  fixture f;
  fact_log log{f};
  for (int i = 0; i < 1100; ++i)
    log.add_run("ctx_1", std::to_string(i));
  replay_policy what;
  what.numbers.learning.success_step = 0;
  const auto at_once = f.ask(what);
  REQUIRE(at_once);
  CHECK_FALSE(at_once->goes_on);
  CHECK(at_once->looked_at == 2200);
  REQUIRE_FALSE(at_once->differences.empty());
  const auto clock = std::make_shared<hurried_clock>();
  f.context->ports.clock = clock;
  what.id = "mine";
  auto other = what;
  other.id = "another";
  const auto first = f.ask(what);
  REQUIRE(first);
  CHECK(first->goes_on);
  CHECK(first->lines == 1000);
  CHECK(first->lines_of == 2200);
  CHECK(first->differences.empty());
  CHECK(f.ask(other).error().code == errc::overloaded);
  SECTION("it ends where the log ended when it began") {
    log.add_run("ctx_1", "late");
    CHECK(f.ask(what)->goes_on);
    const auto last = f.ask(what);
    REQUIRE(last);
    CHECK_FALSE(last->goes_on);
    CHECK(last->looked_at == 2200);
    CHECK(last->differences == at_once->differences);
  }
  SECTION("nobody goes on with it") {
    clock->elapsed += 60s;
    CHECK(f.ask(other));
  }
  SECTION("the log becomes another one") {
    log.put(log.text().substr(0, log.text().size() / 4));
    CHECK(f.ask(what).error().code == errc::conflict);
    CHECK(f.ask(other));
  }
}

TEST_CASE("knowledge: by itself a policy leaves texts of other kernels, and changed ones, alone",
          "[knowledge]") {
  fixture f;
  auto configured = std::make_shared<config::configuration>();
  configured->kernels.emplace_back();
  configured->kernels.back().kernel_id = "default";
  configured->kernels.back().memory.policy_auto = {"summarize"};
  f.memory = std::make_unique<knowledge_session>(f.context, configured);
  fact_log log{f};
  int runs = 0;
  const auto give = [&](const std::string& item, const std::string& kernel, const std::string& hash,
                        int times) {
    for (int i = 0; i < times; ++i)
      log.add({{item, "exec_" + std::to_string(++runs), "used_in",
                *parse_rfc3339("2026-05-02T00:00:00Z"),
                nlohmann::json{{"fence", 1},
                               {"from", "declared"},
                               {"hash", hash},
                               {"kernel", kernel},
                               {"path", item},
                               {"type", "file"}}
                    .dump()}});
  };
  give("ctx_mine", "default", "0a", 12);
  give("ctx_shared", "default", "0a", 12);
  give("ctx_shared", "other", "0a", 1);
  give("ctx_changed", "default", "0a", 12);
  give("ctx_changed", "default", "0b", 1);
  const auto summarized = [&](const char* time) {
    draw_lessons what;
    what.kernel_id = "default";
    what.cycle_id = "c";
    what.at = *parse_rfc3339(time);
    what.about.items = {"ctx_mine", "ctx_shared", "ctx_changed"};
    const auto reply = f.ask(what);
    REQUIRE(reply);
    texts ids;
    for (const auto& fact : reply->facts)
      if (nlohmann::json::parse(fact.meta_json).value("action", "") == "summarize")
        ids.push_back(fact.from);
    return ids;
  };
  CHECK(summarized("2026-05-03T00:00:00Z") == texts{"ctx_mine"});
  CHECK(summarized("2026-05-10T00:00:00Z") == texts{"ctx_changed", "ctx_mine"});
}

TEST_CASE("knowledge: blocks of links are the same, whether they came at once or one by one",
          "[knowledge]") {
  fixture f;
  // As the reader hands them over; a few links a line are enough.
  const auto dump_with = [&](std::uint64_t blocks_at_once) {
    f.memory.reset();
    std::filesystem::create_directories(f.home.file("knowledge"));
    std::filesystem::remove(f.index());
    {
      auto index = adapters::make_sqlite_knowledge_index(f.index());
      REQUIRE(index->open(index_use::keep));
      graph::link_collector links;
      for (std::uint64_t line = 1; line <= 3 * lines_of_block + 100; ++line) {
        links.begin_line({line, 1, line, line == 1});
        if (line % 40 == 0)
          links.take({"ctx_" + std::to_string(line % 7), "exec_1", "used_in", utc_time{}, "{}"},
                     line);
        if (!graph::link_collector::is_full(line))
          continue;
        links.end_block();
        if (line / lines_of_block % blocks_at_once == 0)
          REQUIRE(index->change({}, links.take_changes()));
      }
      REQUIRE(index->change({}, links.take_changes()));
      const auto lines = index->lines_of(graph::node_hash("ctx_0"), 1'000'000, 10'000).value();
      CHECK(lines.size() == (3 * lines_of_block + 100) / 280);
      CHECK(lines.back() == 280);
      CHECK(index->lines_of(graph::node_hash("exec_1"), 81, 100).value() ==
            std::vector<std::uint64_t>{80, 40});
    }
    return dump_of(f);
  };
  CHECK(dump_with(1) == dump_with(8));
}

TEST_CASE("knowledge: links that went ahead of a look that was cut off are gathered again",
          "[knowledge]") {
  fixture f;
  const auto dump_with = [&](bool is_cut_off) {
    f.memory.reset();
    std::filesystem::create_directories(f.home.file("knowledge"));
    std::filesystem::remove(f.index());
    auto index = adapters::make_sqlite_knowledge_index(f.index());
    REQUIRE(index->open(index_use::keep));
    graph::link_collector links;
    // The second segment begins at the line `second`.
    const auto gather = [&](std::uint64_t from, std::uint64_t to, std::uint64_t step,
                            std::uint64_t second) {
      for (auto line = from; line <= to; ++line) {
        links.begin_line({line, line < second ? 1U : 2U, line, line == 1 || line == second});
        if (line % step == 0)
          links.take({"ctx_" + std::to_string(line % 7), "exec_1", "used_in", utc_time{}, "{}"},
                     line);
        if (graph::link_collector::is_full(line))
          links.end_block();
        if (graph::link_collector::is_full(line) || line == to)
          REQUIRE(index->change({}, links.take_changes()));
      }
    };
    gather(1, lines_of_block, 40, 1'000'000);
    // It has not said that it came further, and what stood behind that block is another log now.
    if (is_cut_off)
      gather(lines_of_block + 1, 3 * lines_of_block, 3, lines_of_block + 500);
    links.resume({}, lines_of_block);
    gather(lines_of_block + 1, 2 * lines_of_block + 77, 40, lines_of_block + 2'000);
    CHECK(index->lines_of(graph::node_hash("exec_1"), 10'000'000, 10'000).value().size() ==
          (2 * lines_of_block + 77) / 40);
    CHECK(index->segment_of(lines_of_block + 3'000).value()->line == lines_of_block + 2'000);
    index.reset();
    return dump_of(f);
  };
  CHECK(dump_with(true) == dump_with(false));
}

TEST_CASE("knowledge: the index of a long log is the same, however it was gathered",
          "[knowledge]") {
  using kind = inspect_graph::kind;
  fixture f;
  fact_log log{f};
  constexpr int runs = 33'500; // two lines each: more than a block
  const auto begin = [](int i) {
    return use_of("ctx_" + std::to_string(i % 50), std::to_string(i), {});
  };
  {
    std::vector<graph::edge> facts;
    for (int i = 0; i < runs; ++i) {
      facts.push_back(begin(i));
      facts.push_back(end_of(std::to_string(i), {}));
      if (i % 11'000 == 10'999) {
        log.add(std::exchange(facts, {}));
        (void)successes(f, "ctx_1");
        f.restart();
      }
    }
    log.add(facts);
  }
  CHECK(successes(f, "ctx_7") == runs / 50);
  const auto early = inspected(f, about(kind::trace, "57"));
  CHECK(early["contexts"][0]["line"] == "graph.jsonl:115");
  const auto late = inspected(f, about(kind::trace, "33499"));
  CHECK(late["contexts"][0]["line"] == "graph.jsonl:66999");
  auto query = about(kind::query);
  query.from = "ctx_7";
  query.most = 1000;
  CHECK(inspected(f, query).at("facts").size() == runs / 50);
  const auto grown = dump_of(f);
  f.memory.reset();
  std::filesystem::remove(f.index());
  f.restart();
  CHECK(successes(f, "ctx_7") == runs / 50);
  CHECK(dump_of(f) == grown);
}

} // namespace boyd::knowledge_test
