#include "boyd/graph/learned.hpp"

#include "support/pch.hpp"

#include <nlohmann/json.hpp>
#include <rapidcheck.h>

#include <map>
#include <string>
#include <utility>
#include <vector>

namespace boyd::learned_test {

using namespace boyd;
using namespace boyd::graph;
using nlohmann::json;

namespace {

constexpr utc_time t0{milliseconds{1'770'976'800'000}};

edge use_of(const std::string& item, const std::string& run, json more = json::object()) {
  json meta{{"as", "full"},   {"fence", 1},    {"from", "declared"},
            {"hash", "0a"},   {"path", item},  {"section", "high"},
            {"type", "file"}, {"cited", true}, {"used", true}};
  meta.update(more);
  return {"ctx_" + item, "exec_" + run, "used_in", t0, meta.dump()};
}

edge end_of(const std::string& run, json more = json::object()) {
  json meta{{"agent", "a"},          {"status", "done"},         {"class", "none"},
            {"claim", "none"},       {"execution", "succeeded"}, {"fence", 1},
            {"verification", "none"}};
  meta.update(more);
  return {"exec_" + run, "outcome_" + run, "resulted_in", t0 + milliseconds{5}, meta.dump()};
}

/// An index in memory, and the fold that fills it.
struct folding {
  std::map<std::pair<index_area, std::string>, std::string> index;
  std::uint64_t line = 0;
  learner fold = begin();

  learner begin() {
    learner l({}, [this](index_area area, const std::string& key) {
      const auto it = index.find({area, key});
      return result<std::optional<std::string>>(it == index.end() ? std::nullopt
                                                                  : std::optional(it->second));
    });
    for (const auto& [place, value] : index)
      if (place.first == index_area::open_runs)
        l.resume_run(place.second, value);
    return l;
  }
  void take(const edge& e) { REQUIRE(fold.take(e, ++line)); }
  void save() {
    for (const auto& c : fold.take_changes())
      if (c.value)
        index[{c.area, c.key}] = *c.value;
      else
        index.erase({c.area, c.key});
  }
  /// As after a restart.
  void restart() {
    save();
    fold = begin();
  }
  learned_item item(const std::string& name) {
    save();
    const auto it = index.find({index_area::items, "ctx_" + name});
    REQUIRE(it != index.end());
    return read_learned_item(it->second).value();
  }
};

} // namespace

TEST_CASE("learned: a cited item of a run that went well earns its credit", "[graph]") {
  folding f;
  f.take(use_of("a", "1"));
  f.take(use_of("b", "1", {{"cited", false}, {"used", false}}));
  f.take(end_of("1"));
  const auto a = f.item("a");
  CHECK(a.counts.injected == 1);
  CHECK(a.counts.use_count == 1);
  CHECK(a.counts.referenced == 1);
  CHECK(a.counts.success_count == 1);
  CHECK(a.counts.verified_useful == 1);
  CHECK(a.counts.confidence == 0.75);
  CHECK(a.counts.last_used == t0);
  CHECK(a.path == "a");
  // What was only shown is neither praised nor blamed.
  const auto b = f.item("b");
  CHECK(b.counts.injected == 1);
  CHECK(b.counts.use_count == 0);
  CHECK(b.counts.success_count == 0);
  CHECK(b.counts.confidence == 0.7);
}

TEST_CASE("learned: a summary that a policy decided ends with the content it is of", "[graph]") {
  folding f;
  f.take(use_of("a", "1"));
  f.take({"ctx_a", "decision_1", "managed_by", t0, R"({"action":"summarize"})"});
  CHECK(f.item("a").counts.policy == context::standing::shortened);
  CHECK(f.item("a").counts.policy_hash == "0a");
  f.restart();
  f.take(use_of("a", "2"));
  CHECK(f.item("a").counts.policy == context::standing::shortened);
  f.take(use_of("a", "3", {{"hash", "0b"}}));
  CHECK(f.item("a").counts.policy == context::standing::open);
  CHECK(f.item("a").counts.policy_hash.empty());
}

TEST_CASE("learned: what a failure teaches is by its class", "[graph]") {
  struct ending {
    json meta;
    credit what;
  };
  const ending endings[] = {
      {{}, credit::success},
      {{{"verification", "passed"}}, credit::success},
      {{{"weak", true}}, credit::none},
      {{{"verification", "failed"}, {"status", "failed"}}, credit::failure},
      {{{"execution", "failed"}, {"status", "failed"}, {"class", "deterministic"}},
       credit::failure},
      {{{"execution", "failed"}, {"status", "failed"}, {"class", "transient"}}, credit::none},
      {{{"execution", "timed_out"}, {"status", "failed"}, {"class", "transient"}}, credit::none},
      {{{"execution", "failed"}, {"status", "failed"}, {"class", "environment"}}, credit::none},
      {{{"execution", "timed_out"},
        {"status", "failed"},
        {"class", "transient"},
        {"verification", "failed"}},
       credit::none},
      {{{"execution", "failed"}, {"status", "failed"}, {"class", "policy"}}, credit::none},
      {{{"execution", "cancelled"}, {"status", "cancelled"}, {"class", "transient"}},
       credit::none}};
  for (const auto& e : endings) {
    const auto end = end_of("1", e.meta.is_null() ? json::object() : e.meta);
    INFO(end.meta_json);
    CHECK(credit_of(end.meta_json) == e.what);
    folding f;
    f.take(use_of("a", "1"));
    f.take(end);
    const auto a = f.item("a").counts;
    CHECK(a.success_count == (e.what == credit::success ? 1 : 0));
    CHECK(a.failure_count == (e.what == credit::failure ? 1 : 0));
    CHECK(a.verified_not_useful == a.failure_count);
    CHECK(a.use_count == 1);
  }
}

TEST_CASE("learned: a run that cited badly changes no item's worth", "[graph]") {
  folding f;
  f.take(use_of("a", "1", {{"accuracy", 0.4}, {"enforced", true}}));
  f.take(end_of("1"));
  CHECK(f.item("a").counts.confidence == 0.7);
  CHECK(f.item("a").counts.referenced == 1);
  f.take(use_of("a", "2", {{"accuracy", 0.5}, {"enforced", true}}));
  f.take(end_of("2"));
  CHECK(f.item("a").counts.confidence == 0.75);
  // Nobody has to cite where the contract only observes.
  f.take(use_of("a", "3", {{"accuracy", 0.0}}));
  f.take(end_of("3"));
  CHECK(f.item("a").counts.confidence == 0.8);
}

TEST_CASE("learned: another attempt's end is not this one's", "[graph]") {
  folding f;
  f.take(use_of("a", "1", {{"fence", 1}}));
  f.take(end_of("1", {{"fence", 2}}));
  CHECK(f.item("a").counts.success_count == 0);
}

TEST_CASE("learned: a new content is noticed, and confidence stays within its bounds", "[graph]") {
  folding f;
  for (int i = 0; i < 20; ++i) {
    const auto run = std::to_string(i);
    f.take(use_of("a", run, {{"hash", i < 10 ? "0a" : "0b"}}));
    f.take(
        end_of(run, {{"execution", "failed"}, {"status", "failed"}, {"class", "deterministic"}}));
  }
  CHECK(f.item("a").counts.confidence == 0);
  CHECK(f.item("a").counts.changed == t0);
  CHECK(f.item("a").hash == "0b");
}

TEST_CASE("learned: a question is remembered with the entries that answered it", "[graph]") {
  folding f;
  const json memory{{"from", "memory"}, {"type", "generated"}};
  f.take(use_of("m", "1", memory));
  f.take(use_of("file", "1"));
  f.take(end_of("1", {{"question", "who had the pager?"}}));
  f.save();
  const auto learned = f.fold.take_questions();
  REQUIRE(learned.size() == 1);
  CHECK(learned[0] == learned_question{"who had the pager?", {"ctx_m"}, t0 + milliseconds{5}});
  CHECK(f.item("m").counts.confidence == 0.45);
  f.take(use_of("m", "2", memory));
  f.take(end_of("2", {{"question", "q"}, {"weak", true}}));
  CHECK(f.fold.take_questions().empty());
}

TEST_CASE("learned: values come back from their texts", "[graph]") {
  learned_item i;
  i.counts = {1, 2, 3, 4, 5, 6, 7, 0.25, 0.125, t0, t0 + milliseconds{1}, t0 + milliseconds{2}};
  i.path = "a \"b\"";
  i.type = context::item_type::runtime;
  i.hash = "0a";
  i.frozen = true;
  CHECK(read_learned_item(to_text(i)) == i);
  CHECK_FALSE(read_learned_item("[]").has_value());
  i.path = "two words\n17 \xff\x1f";
  i.kernels = {"a", "", "b c"};
  i.referenced_by = {"exec_1", "exec_2"};
  i.stage = "bank";
  i.scope = "repo:1";
  i.counts.policy = context::standing::shortened;
  i.counts.policy_hash = "0b";
  i.counts.changed.reset();
  const auto text = to_text(i);
  CHECK(read_learned_item(text) == i);
  for (std::size_t n = 0; n < text.size(); ++n)
    CHECK_FALSE(read_learned_item(std::string_view(text).substr(0, n)).has_value());
  CHECK_FALSE(read_learned_item(text + "0 ").has_value());
  const learned_question q{"a?", {"ctx_1", "ctx_2"}, from_unix_ms(1737420000000)};
  CHECK(read_learned_question(to_text(q)) == q);
}

TEST_CASE("learned: interrupted anywhere, the fold comes to the same", "[graph]") {
  REQUIRE(rc::check("restarts change nothing", [] {
    const auto runs = *rc::gen::inRange(1, 12);
    std::vector<edge> facts;
    for (int run = 0; run < runs; ++run) {
      const auto name = std::to_string(run);
      for (int item = *rc::gen::inRange(0, 4); item > 0; --item)
        facts.push_back(use_of(std::to_string(*rc::gen::inRange(0, 5)), name,
                               {{"cited", *rc::gen::arbitrary<bool>()},
                                {"used", *rc::gen::arbitrary<bool>()},
                                {"type", *rc::gen::element<std::string>("file", "generated")}}));
      if (*rc::gen::inRange(0, 4) != 0)
        facts.push_back(
            end_of(name, {{"weak", *rc::gen::arbitrary<bool>()}, {"question", "q " + name}}));
    }
    folding whole;
    folding interrupted;
    for (const auto& f : facts) {
      whole.take(f);
      interrupted.take(f);
      if (*rc::gen::inRange(0, 3) == 0)
        interrupted.restart();
    }
    whole.save();
    interrupted.save();
    RC_ASSERT(whole.index == interrupted.index);
  }));
}

} // namespace boyd::learned_test
