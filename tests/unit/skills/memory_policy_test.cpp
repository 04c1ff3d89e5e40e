#include "boyd/context/item.hpp"
#include "boyd/graph/learned.hpp"
#include "boyd/skills/memory_policy.hpp"
#include "support/pch.hpp"

#include <nlohmann/json.hpp>
#include <rapidcheck.h>

#include <map>
#include <string>
#include <utility>
#include <vector>

namespace boyd::memory_policy_test {

using namespace boyd;
using namespace boyd::skills;

namespace {

const utc_time now = *parse_rfc3339("2026-03-01T00:00:00Z");

policy_item item(double confidence, std::int64_t success, std::int64_t failure, int idle_days) {
  policy_item i;
  i.id = "ctx_1";
  i.item.path = "docs/guide.md";
  i.item.scope = "repo:1";
  auto& c = i.item.counts;
  c.confidence = confidence;
  c.injected = c.use_count = c.referenced = success + failure;
  c.success_count = c.verified_useful = success;
  c.failure_count = c.verified_not_useful = failure;
  c.created = now - std::chrono::hours{24} * 300;
  c.last_used = now - std::chrono::hours{24} * idle_days;
  return i;
}

memory_action action_of(const policy_item& i) {
  return decide(i, now).action;
}

} // namespace

TEST_CASE("memory policy: the first rule that holds decides", "[memory_policy]") {
  auto good = item(0.95, 8, 0, 0);
  CHECK(action_of(good) == memory_action::promote_to_skill);
  CHECK(decide(good, now).reason == "cited 8 times, useful 8 times");
  good.has_candidate = true;
  CHECK(action_of(good) == memory_action::reinforce);
  good.item.counts.referenced = 5;
  CHECK(action_of(good) == memory_action::keep);

  const auto bad = item(0.0, 0, 6, 90);
  CHECK(action_of(bad) == memory_action::forget);
  CHECK(decide(bad, now).reason == "not useful 6 times, not used for 90 days");
  CHECK(decide(bad, now).confidence > 0.8);
  CHECK(action_of(item(0.0, 0, 6, 20)) == memory_action::archive);
  CHECK(action_of(item(0.6, 1, 1, 10)) == memory_action::keep);

  auto noisy = item(0.7, 1, 0, 1);
  noisy.item.counts.injected = 40;
  CHECK(action_of(noisy) == memory_action::summarize);
  CHECK(decide(noisy, now).reason == "given to 40 runs, used by 1");
  noisy.item.frozen = true;
  CHECK(action_of(noisy) == memory_action::keep);
}

TEST_CASE("memory policy: what was done is not done again", "[memory_policy]") {
  auto i = item(0.0, 0, 6, 20);
  REQUIRE(action_of(i) == memory_action::archive);
  i.item.counts.policy = context::standing::shortened;
  CHECK(action_of(i) == memory_action::keep);
  CHECK(decide(i, now).reason == "archive was done already");
  auto pinned = item(0.95, 9, 0, 0);
  pinned.has_candidate = true;
  pinned.item.counts.policy = context::standing::pinned;
  CHECK(action_of(pinned) == memory_action::keep);
}

TEST_CASE("memory policy: what was done is taken back by a fact of its own", "[memory_policy]") {
  auto pinned = item(0.95, 9, 0, 0);
  pinned.id = "ctx_1";
  pinned.item.path = "a.md";
  pinned.item.counts.policy = context::standing::pinned;
  auto open = pinned; // the same path in another project
  open.id = "ctx_2";
  open.item.counts.policy = context::standing::open;
  const auto all = undone({pinned, open}, "a.md");
  REQUIRE(all.size() == 1);
  CHECK(all[0].id == "ctx_1");
  CHECK(all[0].reason == "it was pinned");
  CHECK(undone({pinned, open}, "ctx_1") == all);
  CHECK(undone({pinned, open}, "ctx_2").empty());
  const auto facts = facts_of(all, {pinned}, "decision_1", "default", "a person", now);
  REQUIRE(facts.size() == 1);
  graph::learner fold({}, [&](index_area area, const std::string& key) {
    const bool is_it = area == index_area::items && key == "ctx_1";
    return result<std::optional<std::string>>(is_it ? std::optional(graph::to_text(pinned.item))
                                                    : std::nullopt);
  });
  REQUIRE(fold.take(facts[0], 1));
  REQUIRE(fold.at_hand("ctx_1") != nullptr);
  CHECK(fold.at_hand("ctx_1")->counts.policy == context::standing::open);
}

TEST_CASE("memory policy: what a person took back is not proposed until something has changed",
          "[memory_policy]") {
  auto bad = item(0.0, 0, 6, 90);
  bad.item.hash = "one";
  bad.item.counts.policy = context::standing::forgotten;
  std::map<std::string, std::string> index{{"ctx_1", graph::to_text(bad.item)}};
  const auto after = [&](const graph::edge& fact) {
    graph::learner fold({}, [&](index_area area, const std::string& key) {
      const auto it = area == index_area::items ? index.find(key) : index.end();
      return result<std::optional<std::string>>(it == index.end() ? std::nullopt
                                                                  : std::optional(it->second));
    });
    REQUIRE(fold.take(fact, 1));
    for (const auto& c : fold.take_changes())
      if (c.area == index_area::items && c.value)
        index[c.key] = *c.value;
    auto known = graph::read_learned_item(index.at("ctx_1"));
    REQUIRE(known);
    return decide({"ctx_1", *known, false}, now);
  };
  const auto used = [&](const char* id, const char* hash, bool cited) {
    return graph::edge{"ctx_1", std::string("exec_") + id, "used_in", now,
                       nlohmann::json{{"path", "docs/guide.md"},
                                      {"hash", hash},
                                      {"cited", cited},
                                      {"used", false},
                                      {"fence", 1},
                                      {"type", "file"}}
                           .dump()};
  };
  const auto undo = [&] {
    const auto known = *graph::read_learned_item(index.at("ctx_1"));
    const auto facts =
        facts_of(undone({{"ctx_1", known, false}}, "ctx_1"), {{"ctx_1", known, false}},
                 "decision_1", "default", "a person", now);
    REQUIRE(facts.size() == 1);
    return after(facts[0]);
  };
  const auto taken_back = undo();
  CHECK(taken_back.action == memory_action::keep);
  CHECK(taken_back.reason == "forget was undone, and nothing has changed since");
  // To be shown it once more is no change; another content is.
  CHECK(after(used("1", "one", false)).action == memory_action::keep);
  CHECK(after(used("2", "two", false)).action == memory_action::forget);

  // And so is a run that uses it.
  auto known = *graph::read_learned_item(index.at("ctx_1"));
  known.counts.policy = context::standing::shortened;
  known.counts.last_used = now;
  index["ctx_1"] = graph::to_text(known);
  CHECK(undo().action == memory_action::keep);
  CHECK(after(used("3", "two", true)).action == memory_action::archive);
  // What was taken back is one thing, what a rule asks for another.
  known.undone = context::standing::pinned;
  known.counts.policy = context::standing::open;
  CHECK(decide({"ctx_1", known, false}, now).action == memory_action::archive);
}

TEST_CASE("memory policy: total, and a better history never leads to forgetting",
          "[memory_policy]") {
  CHECK(rc::check("any statistics have one decision", [] {
    policy_item i;
    auto& c = i.item.counts;
    const auto count = [] { return *rc::gen::inRange<std::int64_t>(0, 50); };
    c.injected = count();
    c.use_count = count();
    c.referenced = count();
    c.success_count = c.verified_useful = count();
    c.failure_count = c.verified_not_useful = count();
    c.confidence = *rc::gen::inRange(0, 101) / 100.0;
    c.created = now - std::chrono::hours{*rc::gen::inRange(0, 5000)};
    i.has_candidate = *rc::gen::arbitrary<bool>();
    const auto d = decide(i, now);
    RC_ASSERT(d == decide(i, now));
    RC_ASSERT(d.confidence >= 0 && d.confidence <= 1);
    RC_ASSERT(!d.reason.empty());
    auto better = i;
    ++better.item.counts.success_count;
    ++better.item.counts.verified_useful;
    better.item.counts.confidence = std::min(1.0, c.confidence + 0.05);
    better.item.counts.last_used = now;
    if (d.action != memory_action::forget)
      RC_ASSERT(decide(better, now).action != memory_action::forget);
    RC_ASSERT(decide(better, now).action != memory_action::forget);
  }));
}

TEST_CASE("memory policy: its facts count together, or not at all", "[memory_policy]") {
  std::vector<policy_item> items;
  for (int n = 0; n < 4; ++n) {
    auto i = n == 0 ? item(0.95, 8, 0, 0) : n == 1 ? item(0.0, 0, 6, 90) : item(0.0, 0, 6, 20);
    i.id = "ctx_" + std::to_string(n);
    i.item.path = "file" + std::to_string(n);
    items.push_back(std::move(i));
  }
  const auto facts =
      facts_of(decide_all(items, now), items, "decision_1", "default", "a person", now);
  REQUIRE(facts.size() == 4);
  graph::edge_chain chain;
  for (const auto& f : facts)
    CHECK(chain.append(f)); // the log takes them

  // Cut behind every part: only all of them change anything.
  for (std::size_t seen = 0; seen <= facts.size(); ++seen) {
    std::map<std::pair<index_area, std::string>, std::string> index;
    const auto look = [&](index_area area, const std::string& key) {
      const auto it = index.find({area, key});
      return result<std::optional<std::string>>(it == index.end() ? std::nullopt
                                                                  : std::optional(it->second));
    };
    for (std::size_t n = 0; n < seen; ++n) {
      graph::learner fold({}, look); // a restart behind each
      REQUIRE(fold.take(facts[n], n + 1));
      for (const auto& c : fold.take_changes())
        if (c.value)
          index[{c.area, c.key}] = *c.value;
        else
          index.erase({c.area, c.key});
    }
    const auto forgotten = index.find({index_area::items, "ctx_1"});
    const bool is_done =
        forgotten != index.end() &&
        graph::read_learned_item(forgotten->second)->counts.policy == context::standing::forgotten;
    INFO(seen << " of " << facts.size());
    CHECK(is_done == (seen == facts.size()));
    bool any = false;
    for (const auto& [key, value] : index)
      any = any || key.first == index_area::candidates;
    CHECK(any == (seen == facts.size()));
  }
}

TEST_CASE("memory policy: a decision that was cut does not stand in the way of the next",
          "[memory_policy]") {
  auto good = item(0.95, 8, 0, 0);
  const auto facts = [&](const char* id, utc_time at) {
    return facts_of(decide_all({good}, now), {good}, id, "default", "a person", at);
  };
  const auto cut = facts("decision_1", now);
  const auto again = facts("decision_2", now + std::chrono::minutes{1});
  REQUIRE(cut.size() == 1);
  CHECK(cut[0].to == again[0].to);
  CHECK(graph::key_of(cut[0]) != graph::key_of(again[0]));
}

} // namespace boyd::memory_policy_test
