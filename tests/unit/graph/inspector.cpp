#include "boyd/graph/inspector.hpp"

#include "boyd/graph/links.hpp"
#include "support/pch.hpp"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <map>
#include <random>
#include <set>
#include <string>
#include <utility>
#include <vector>

namespace boyd::inspector_test {

using namespace boyd;
using namespace boyd::graph;
using Catch::Matchers::Contains;
using nlohmann::json;

namespace {

const utc_time t0 = *parse_rfc3339("2026-02-01T00:00:00Z");

/// A log in memory, with the fold over it.
struct log_in_memory final : fact_source {
  std::vector<cited_fact> facts;
  std::map<std::pair<index_area, std::string>, std::string> index;
  learner fold{{}, [this](index_area area, const std::string& key) { return value(area, key); }};

  void add(const edge& e) {
    const auto line = facts.size() + 1;
    facts.push_back({e, line, "graph.jsonl:" + std::to_string(line)});
    REQUIRE(fold.take(e, line));
    for (const auto& c : fold.take_changes())
      if (c.value)
        index[{c.area, c.key}] = *c.value;
      else
        index.erase({c.area, c.key});
  }
  /// A run of `agent` that was given `item`, and cited it or did not.
  void run(const std::string& id, const std::string& agent, const std::string& item, bool cited,
           bool good, int day) {
    const auto at = t0 + day * 24h;
    add({"ctx_" + item, "exec_" + id, "used_in", at,
         json{{"path", item + ".md"},
              {"cited", cited},
              {"used", cited},
              {"fence", 1},
              {"type", "file"},
              {"from", "declared"},
              {"section", "high"},
              {"as", "full"}}
             .dump()});
    add({"exec_" + id, "outcome_" + id, "resulted_in", at,
         json{{"agent", agent},
              {"status", good ? "done" : "failed"},
              {"class", good ? "none" : "deterministic"},
              {"execution", good ? "succeeded" : "failed"},
              {"claim", "none"},
              {"verification", "none"},
              {"fence", 1}}
             .dump()});
  }

  result<std::vector<cited_fact>> facts_of(const std::string& node, std::size_t most) override {
    std::vector<cited_fact> found;
    for (auto f = facts.rbegin(); f != facts.rend() && found.size() < most; ++f)
      if (is_found_by(f->fact, node))
        found.push_back(*f);
    return found;
  }
  result<std::vector<cited_fact>> facts_between(const std::vector<std::string>& nodes,
                                                std::size_t) override {
    std::vector<cited_fact> found;
    for (const auto& f : facts)
      if (f.fact.from != f.fact.to && std::ranges::count(nodes, f.fact.from) > 0 &&
          std::ranges::count(nodes, f.fact.to) > 0)
        found.push_back(f);
    return found;
  }
  result<void> backwards(const std::function<bool(const cited_fact&)>& take) override {
    for (auto f = facts.rbegin(); f != facts.rend(); ++f)
      if (!take(*f))
        break;
    return {};
  }
  result<std::optional<learned_item>> item(const std::string& id) override {
    const auto it = index.find({index_area::items, id});
    return it == index.end() ? std::nullopt : read_learned_item(it->second);
  }
  result<std::optional<std::string>> value(index_area area, const std::string& key) override {
    const auto it = index.find({area, key});
    return it == index.end() ? std::nullopt : std::optional(it->second);
  }
  result<std::vector<std::pair<std::string, std::string>>>
  some(index_area area, const std::string& from, std::size_t most) override {
    std::vector<std::pair<std::string, std::string>> found;
    for (auto it = index.lower_bound({area, from});
         it != index.end() && it->first.first == area && found.size() < most; ++it)
      found.emplace_back(it->first.second, it->second);
    return found;
  }
  result<std::uint64_t> count(index_area area, const std::optional<std::string>& before) override {
    return static_cast<std::uint64_t>(std::ranges::count_if(index, [&](const auto& entry) {
      return entry.first.first == area && (!before || entry.first.second < *before);
    }));
  }
  result<std::string> place(std::uint64_t line) override {
    return "graph.jsonl:" + std::to_string(line);
  }
  std::uint64_t left_out() const override { return 2; }
  std::uint64_t lines() const override { return facts.size() + 2; }

  inspection asked(int day = 10) {
    return {*this, t0 + day * 24h, [](const context::item_statistics& s) {
              return std::string(s.referenced > 2 ? "bank" : "context");
            }};
  }
};

/// An item on its way to a skill that later fails.
void tell_a_story(log_in_memory& log) {
  for (int day = 0; day < 3; ++day)
    log.run("r" + std::to_string(day), "writer", "guide", true, true, day);
  log.add({"ctx_guide", "candidate_guide", "promoted_to", t0 + 72h, R"({"confidence":0.85})"});
  log.add({"ctx_guide", "skill_release-notes", "promoted_to", t0 + 73h, R"({"by":"a person"})"});
  log.add({"skill_release-notes", "ctx_guide", "derived_from", t0 + 73h, R"({"weight":1})"});
  for (int day = 4; day < 8; ++day) {
    const auto id = "s" + std::to_string(day);
    log.run(id, day == 4 ? "writer" : "reader", "other", false, day == 4, day);
    log.add({"exec_" + id, "skill_release-notes", "validated_by", t0 + day * 24h,
             day == 4 ? R"({"agent":"writer","success":true})"
                      : R"({"agent":"reader","success":false})"});
  }
  log.add({"skill_release-notes", "decision_1", "managed_by", t0 + 8 * 24h,
           R"({"action":"degrade","reason":"3 failures among the last 4 uses"})"});
}

json answer_of(const result<std::string>& answer) {
  REQUIRE(answer);
  return json::parse(*answer);
}

/// The line that an answer cites holds what it says.
const edge& line(const log_in_memory& log, const json& row) {
  const auto place = row.at("line").get<std::string>();
  return log.facts.at(std::stoul(place.substr(place.find(':') + 1)) - 1).fact;
}

} // namespace

TEST_CASE("inspector: a run is found by `last`, its agent, its id or a part of it", "[inspector]") {
  log_in_memory log;
  tell_a_story(log);
  CHECK(find_execution(log.asked(), "last").value() == "exec_s7");
  CHECK(find_execution(log.asked(), "writer").value() == "exec_s4");
  CHECK(find_execution(log.asked(), "r1").value() == "exec_r1");
  CHECK(find_execution(log.asked(), "exec_r1").value() == "exec_r1");
  CHECK(find_execution(log.asked(), "nobody").error().code == errc::not_found);
  log.run("0198-4f3a91c2b007", "x", "guide", true, true, 9);
  CHECK(find_execution(log.asked(), "4f3a91c2").value() == "exec_0198-4f3a91c2b007");
  CHECK(find_execution(log.asked(), "4f3a91c2b0").value() == "exec_0198-4f3a91c2b007");
  CHECK(find_execution(log.asked(), "4f3a91c2b1").error().code == errc::not_found);
  log.run("0198-aaaa-1", "x", "guide", true, true, 9);
  log.run("0198-aaaa-2", "x", "guide", true, true, 9);
  CHECK(find_execution(log.asked(), "aaaa-2").value() == "exec_0198-aaaa-2");
  const auto both = find_execution(log.asked(), "0198-aaaa");
  CHECK(both.error().code == errc::conflict);
  CHECK_THAT(both.error().next, Contains("0198-aaaa-1") && Contains("0198-aaaa-2"));
}

TEST_CASE("inspector: trace tells of the run's own contexts alone, and cites lines",
          "[inspector]") {
  log_in_memory log;
  tell_a_story(log);
  const auto t = answer_of(trace(log.asked(), "exec_r1"));
  REQUIRE(t.at("contexts").size() == 1);
  CHECK(t["contexts"][0]["id"] == "ctx_guide");
  CHECK(t["contexts"][0]["path"] == "guide.md");
  CHECK(line(log, t["contexts"][0]).to == "exec_r1");
  CHECK(line(log, t["outcome"]).type == "resulted_in");
  REQUIRE(t.at("promotions").size() == 2);
  CHECK(line(log, t["promotions"][1]).to == "skill_release-notes");
  CHECK(t.at("left_out") == 2);
  const auto s = answer_of(trace(log.asked(), "exec_s5"));
  CHECK(s.at("promotions").empty());
  REQUIRE(s.at("skills").size() == 1);
  CHECK(s["skills"][0]["success"] == false);
  // A run whose outcome is not the skill's, and a model that was asked again.
  log.add({"exec_s5", "skill_release-notes", "validated_by", t0 + 9 * 24h, "{}"});
  log.add({"exec_s5", "decision_x", "decided_by", t0, R"({"planner":"static"})"});
  log.add({"exec_s5", "decision_y", "decided_by", t0, R"({"kind":"reevaluation"})"});
  const auto later = answer_of(trace(log.asked(), "exec_s5"));
  CHECK(later["skills"][1]["success"].is_null());
  CHECK(later["decision"]["decision"] == "decision_x");
  CHECK(trace(log.asked(), "exec_unknown").error().code == errc::not_found);
}

TEST_CASE("inspector: stats has the last used item first, with its promotion", "[inspector]") {
  log_in_memory log;
  tell_a_story(log);
  log.run("late", "writer", "late", true, false, 9);
  const auto s = answer_of(stats(log.asked(), 10));
  REQUIRE(s.at("items").size() == 3);
  CHECK(s["items"][0]["path"] == "late.md");
  CHECK(s["items"][0]["failed"] == 1);
  CHECK(s["items"][1]["path"] == "guide.md");
  CHECK(s["items"][1]["used"] == 3);
  CHECK(s["items"][1]["validated"] == 3);
  CHECK(s["items"][1]["promoted"] == "skill_release-notes");
  CHECK(s["items"][1]["stage"] == "bank");
  CHECK(s["items"][2]["last_used"].is_null());
  CHECK(s.at("total") == 3);
  const auto page = answer_of(stats(log.asked(), 1));
  CHECK(page.at("items").size() == 1);
  CHECK(page.at("total") == 3);
}

TEST_CASE("inspector: lineage tells a skill's story in its order", "[inspector]") {
  log_in_memory log;
  tell_a_story(log);
  const auto l = answer_of(lineage(log.asked(), "release-notes"));
  CHECK(l.at("sources")[0]["path"] == "guide.md");
  CHECK(l.at("candidates")[0]["candidate"] == "candidate_guide");
  CHECK(l.at("executions").size() == 3);
  CHECK(l.at("uses").size() == 4);
  CHECK(l.at("decisions")[0]["action"] == "degrade");
  std::vector<std::string> texts;
  for (const auto& s : l.at("story"))
    texts.push_back(s.at("text"));
  REQUIRE(texts.size() == 8);
  CHECK(texts[0] == "guide.md was first read by a run");
  CHECK(texts[1] == "guide.md became a candidate");
  CHECK(texts[2] == "It was approved by a person");
  CHECK(texts[3] == "A run followed it, successfully");
  CHECK(texts[7] == "Decision: degrade, because: 3 failures among the last 4 uses");
  CHECK(lineage(log.asked(), "unknown").error().code == errc::not_found);
  log.add({"ctx_guide", "skill_default/greeting", "promoted_to", t0 + 80h, "{}"});
  CHECK(answer_of(lineage(log.asked(), "greeting")).at("skill") == "skill_default/greeting");
  log.add({"ctx_guide", "skill_other/greeting", "promoted_to", t0 + 81h, "{}"});
  CHECK(lineage(log.asked(), "greeting").error().code == errc::conflict);
  CHECK(answer_of(lineage(log.asked(), "other/greeting")).at("skill") == "skill_other/greeting");
}

TEST_CASE("inspector: why names what the answer cited, and what it was given in vain",
          "[inspector]") {
  log_in_memory log;
  tell_a_story(log);
  const auto w = answer_of(why(log.asked(), "exec_r1"));
  REQUIRE(w.at("contexts").size() == 1);
  CHECK(w["contexts"][0].contains("importance"));
  CHECK(w.at("statements")[1]["text"] == "It cited and used guide.md");
  CHECK(w.at("given_and_not_used") == 0);
  const auto s = answer_of(why(log.asked(), "exec_s5"));
  CHECK(s.at("contexts").empty());
  CHECK(s.at("given_and_not_used") == 1);
  CHECK(s.at("statements")[1]["text"] ==
        "It followed the skill skill_release-notes, unsuccessfully");
}

TEST_CASE("inspector: findings name noise, decay and over-fitting, each with a suggestion",
          "[inspector]") {
  log_in_memory log;
  tell_a_story(log);
  for (int i = 0; i < 12; ++i)
    log.run("n" + std::to_string(i), "writer", "noise", false, true, 9);
  log.add({"ctx_guide", "skill_lonely", "promoted_to", t0, "{}"});
  const auto whole = answer_of(findings(log.asked(), 100));
  const auto all = whole.at("findings");
  std::map<std::string, json> by_kind;
  for (const auto& f : all) {
    CHECK_FALSE(f.at("suggestion").get<std::string>().empty());
    CHECK_FALSE(f.at("line").get<std::string>().empty());
    by_kind[f.at("kind")] = f;
  }
  CHECK(by_kind.at("noisy_context").at("subject") == "ctx_noise");
  CHECK(by_kind.at("decayed_skill").at("subject") == "skill_release-notes");
  CHECK(by_kind.at("overfitted_skill").at("subject") == "skill_release-notes");
  CHECK(by_kind.at("orphaned_skill").at("subject") == "skill_lonely");
  CHECK(line(log, by_kind["noisy_context"]).from == "ctx_noise");
  CHECK(line(log, by_kind["decayed_skill"]).type == "validated_by");
  CHECK(whole.at("total") == all.size());
  // A page says how many there are.
  const auto page = answer_of(findings(log.asked(), 2));
  CHECK(page.at("findings").size() == 2);
  CHECK(page.at("total") == all.size());
  log_in_memory calm;
  calm.run("1", "writer", "guide", true, true, 1);
  CHECK(answer_of(findings(calm.asked(), 100)).at("findings").empty());
  // A skill that nobody follows any more is found when a month has gone by, not before.
  calm.add({"ctx_guide", "skill_calm", "promoted_to", t0, "{}"});
  calm.add({"skill_calm", "ctx_guide", "derived_from", t0, "{}"});
  calm.add({"exec_1", "skill_calm", "validated_by", t0 + 24h, R"({"agent":"a","success":true})"});
  CHECK(answer_of(findings(calm.asked(31), 100)).at("total") == 0);
  const auto idle = answer_of(findings(calm.asked(32), 100)).at("findings");
  REQUIRE(idle.size() == 1);
  CHECK(idle[0].at("kind") == "decayed_skill");
  CHECK(line(calm, idle[0]).type == "validated_by");
  // Followed again, it is not.
  calm.add({"exec_2", "skill_calm", "validated_by", t0 + 5 * 24h, R"({"agent":"a"})"});
  CHECK(answer_of(findings(calm.asked(32), 100)).at("total") == 0);
}

TEST_CASE("inspector: the lists of the fold are what counting over the whole log finds",
          "[inspector]") {
  const auto seed = GENERATE(1U, 2U, 3U, 4U, 5U, 6U);
  std::mt19937 random(seed);
  log_in_memory log;
  const auto some = [&](unsigned most) { return static_cast<int>(random() % most); };
  for (int i = 0; i < 400; ++i) {
    const auto day = i / 20;
    const auto id = std::to_string(i);
    log.run(id, "agent" + std::to_string(some(3)), "c" + std::to_string(some(12)),
            some(10) < some(4), some(3) > 0, day);
    const auto skill = "skill_k/s" + std::to_string(some(6));
    const auto at = t0 + day * 24h;
    const auto meta = json{{"agent", "agent" + std::to_string(some(3))}, {"success", some(2) == 0}};
    if (some(4) == 0)
      log.add({"exec_" + id, skill, "validated_by", at, some(5) == 0 ? "{}" : meta.dump()});
    if (some(30) == 0)
      log.add({"ctx_c" + std::to_string(some(12)), skill, "promoted_to", at, "{}"});
    if (some(60) == 0)
      log.add({skill, "ctx_c1", "derived_from", at, "{}"});
    if (some(40) == 0) // as after a restart: what is at hand is read from the index
      log.fold = learner(
          {}, [&log](index_area area, const std::string& key) { return log.value(area, key); });
  }
  // Counted over the lines, one after the other.
  struct counted_context {
    int given = 0;
    int used = 0;
    std::optional<utc_time> last;
    std::string line, promoted;
  };
  struct counted_skill {
    bool approved = false, has_source = false;
    std::vector<char> uses;
    utc_time last{};
    std::set<std::string> good, bad;
  };
  std::map<std::string, counted_context> contexts;
  std::map<std::string, counted_skill> skills;
  for (const auto& f : log.facts) {
    const auto meta = json::parse(f.fact.meta_json);
    if (f.fact.type == "used_in") {
      auto& c = contexts[f.fact.from];
      ++c.given;
      c.line = f.place;
      if (meta.at("cited").get<bool>())
        ++c.used, c.last = f.fact.timestamp;
    } else if (f.fact.type == "promoted_to") {
      contexts[f.fact.from].promoted = f.fact.to;
      skills[f.fact.to].approved = true;
    } else if (f.fact.type == "derived_from") {
      skills[f.fact.from].has_source = true;
    } else if (f.fact.type == "validated_by") {
      auto& s = skills[f.fact.to];
      s.last = f.fact.timestamp;
      const bool teaches = meta.contains("success");
      const bool good = meta.value("success", false);
      s.uses.push_back(!teaches ? '0' : good ? '+' : '-');
      if (teaches)
        (good ? s.good : s.bad).insert(meta.at("agent").get<std::string>());
    }
  }
  std::set<std::string> expected;
  for (const auto& [id, c] : contexts)
    if (c.given >= 10 && c.used < 0.1 * c.given)
      expected.insert("noisy_context " + id + " " + c.line);
  const auto now = t0 + 45 * 24h;
  for (const auto& [name, s] : skills) {
    if (!s.approved)
      continue;
    if (!s.has_source)
      expected.insert("orphaned_skill " + name);
    const auto newest = std::min<std::size_t>(5, s.uses.size());
    if (std::count(s.uses.end() - static_cast<std::ptrdiff_t>(newest), s.uses.end(), '-') >= 3 ||
        (!s.uses.empty() && now - s.last > 30 * 24h))
      expected.insert("decayed_skill " + name);
    const auto& good = s.good;
    if (good.size() == 1 &&
        std::ranges::any_of(s.bad, [&good](const std::string& a) { return !good.contains(a); }))
      expected.insert("overfitted_skill " + name);
  }
  std::set<std::string> told;
  const auto answer = answer_of(findings(log.asked(45), 1000));
  for (const auto& f : answer.at("findings"))
    told.insert(f.at("kind").get<std::string>() + " " + f.at("subject").get<std::string>() +
                (f.at("kind") == "noisy_context" ? " " + f.at("line").get<std::string>() : ""));
  CHECK(told == expected);
  CHECK(answer.at("total") == expected.size());
  const auto rows = answer_of(stats(log.asked(45), 1000)).at("items");
  for (const auto& row : rows) {
    const auto& c = contexts.at(row.at("id"));
    CHECK(row.at("injected") == c.given);
    CHECK(row.at("used") == c.used);
    CHECK(row.at("promoted") == (c.promoted.empty() ? json(nullptr) : json(c.promoted)));
    CHECK(row.at("last_used") == (c.last ? json(format_rfc3339(*c.last)) : json(nullptr)));
  }
  CHECK(rows.size() == static_cast<std::size_t>(std::ranges::count_if(
                           contexts, [](const auto& c) { return c.second.given > 0; })));
  std::vector<std::string> times;
  for (const auto& row : rows)
    times.push_back(row["last_used"].is_null() ? std::string()
                                               : row["last_used"].get<std::string>());
  CHECK(std::is_sorted(times.begin(), times.end(), std::greater<>{}));
  // A page of them begins the same, and says how many there are.
  const auto page = answer_of(stats(log.asked(45), 3));
  CHECK(page.at("items").size() == 3);
  CHECK(page.at("total") == rows.size());
  CHECK(page["items"][0].at("last_used") == rows[0].at("last_used"));
}

TEST_CASE("inspector: a skill is judged by the runs that followed the text that is in force",
          "[inspector]") {
  log_in_memory log;
  const std::string skill = "skill_default/guide";
  int hour = 0;
  const auto approve = [&](int version, const std::string& hash) {
    const auto at = t0 + std::chrono::hours{++hour};
    log.add({"ctx_guide", skill, "promoted_to", at,
             json{{"fence", version}, {"hash", hash}, {"by", "a person"}}.dump()});
    log.add({skill, "ctx_guide", "derived_from", at, json{{"fence", version}}.dump()});
  };
  const auto follow = [&](bool good, int times) {
    for (int i = 0; i < times; ++i) {
      const auto id = "u" + std::to_string(++hour);
      log.run(id, "writer", "other", false, good, 1);
      log.add({"exec_" + id, skill, "validated_by", t0 + std::chrono::hours{hour},
               json{{"success", good}}.dump()});
    }
  };
  const auto roll_back = [&](int to, const std::string& why) {
    log.add({skill, "decision_" + std::to_string(++hour), "managed_by",
             t0 + std::chrono::hours{hour},
             json{{"action", "rollback"}, {"reason", rollback_reason(to, why)}}.dump()});
  };
  const auto decayed = [&] {
    const auto all = answer_of(findings(log.asked(), 100)).at("findings");
    std::string text;
    for (const auto& f : all)
      if (f.at("kind") == "decayed_skill")
        text += f.at("text").get<std::string>();
    return text;
  };
  approve(1, "one");
  follow(true, 4);
  approve(2, "two");
  CHECK(decayed().empty());
  follow(false, 3);
  CHECK_THAT(decayed(), Contains("failed in 3 of its last 3 uses"));
  approve(3, "one again");
  roll_back(1, "it was better");
  CHECK(decayed().empty());
  // The first version's runs count on, and no others.
  follow(false, 2);
  CHECK(decayed().empty());
  follow(false, 1);
  CHECK_THAT(decayed(), Contains("failed in 3 of its last 5 uses"));
  approve(4, "two again");
  roll_back(2, "");
  CHECK_THAT(decayed(), Contains("failed in 3 of its last 3 uses"));
  approve(5, "three");
  CHECK(decayed().empty());
}

TEST_CASE("the reason of a rollback names its version", "[inspector]") {
  CHECK(rollback_reason(3, "") == "rollback to version 3");
  CHECK(version_in_rollback(rollback_reason(12, "the horn: broken")) == 12);
  CHECK(version_in_rollback("rollback to version 3") == 3);
  CHECK_FALSE(version_in_rollback("rollback to version 3rd"));
  CHECK_FALSE(version_in_rollback("rollback to version "));
  CHECK_FALSE(version_in_rollback("it is better"));
}

TEST_CASE("inspector: learned tells of the time asked for alone", "[inspector]") {
  log_in_memory log;
  tell_a_story(log);
  const auto all = answer_of(learned_since(log.asked(), t0)).at("statements");
  CHECK_THAT(all[0]["text"].get<std::string>(), Contains("7 runs: 4 succeeded, 3 failed."));
  CHECK_THAT(all[1]["text"].get<std::string>(),
             Contains("guide.md: given to 3 runs, which all used it and ended well"));
  CHECK(all.back()["text"] ==
        "skill_release-notes: degrade, because: 3 failures among the last 4 uses");
  const auto late = answer_of(learned_since(log.asked(), t0 + 8 * 24h)).at("statements");
  REQUIRE(late.size() == 1);
  CHECK(line(log, late[0]).type == "managed_by");
  CHECK(answer_of(learned_since(log.asked(), t0 + 30 * 24h)).at("statements").empty());
  // A run that was tried again is one run.
  log_in_memory again;
  again.run("1", "writer", "guide", true, false, 1);
  again.run("1", "writer", "guide", true, true, 2);
  again.run("2", "writer", "guide", true, true, 3);
  const auto counted = answer_of(learned_since(again.asked(), t0)).at("statements");
  CHECK(counted[0]["text"] == "2 runs, 3 attempts: 2 attempts succeeded, 1 failed.");
  CHECK_THAT(counted[1]["text"].get<std::string>(),
             Contains("guide.md: given to 2 runs, which all used it and ended well"));
  again.run("3", "writer", "guide", true, false, 4);
  again.run("4", "writer", "other", true, false, 4);
  again.run("5", "writer", "guide", false, true, 4);
  const auto mixed = answer_of(learned_since(again.asked(), t0)).at("statements");
  CHECK_THAT(mixed[1]["text"].get<std::string>(),
             Contains("guide.md: given to 4 runs; 3 used it: 2 ended well, 1 failed"));
  CHECK_THAT(mixed[2]["text"].get<std::string>(),
             Contains("other.md: given to 1 run, which used it and failed"));
}

TEST_CASE("inspector: query finds facts by their ends, type and time", "[inspector]") {
  log_in_memory log;
  tell_a_story(log);
  const auto count = [&](const fact_filter& f) {
    return answer_of(query(log.asked(), f)).at("facts").size();
  };
  CHECK(count({"ctx_guide", {}, {}, {}, 100}) == 5);
  CHECK(count({"ctx_guide", {}, "promoted_to", {}, 100}) == 2);
  CHECK(count({{}, "skill_release-notes", {}, {}, 100}) == 5);
  CHECK(count({{}, {}, "promoted_to", {}, 100}) == 2);
  CHECK(count({{}, {}, "resulted_in", {}, 100}) == 7);
  CHECK(count({{}, {}, {}, t0 + 8 * 24h, 100}) == 1);
  const auto some = answer_of(query(log.asked(), {{}, {}, {}, {}, 3}));
  CHECK(some.at("facts").size() == 3);
  CHECK(some.at("more") == true);
  CHECK(line(log, some["facts"][0]).type == "managed_by");
  CHECK(answer_of(query(log.asked(), {"ctx_guide", {}, {}, {}, 5})).at("more") == false);
}

TEST_CASE("inspector: a picture around a node grows by its depth, and says when it is cut",
          "[inspector]") {
  log_in_memory log;
  tell_a_story(log);
  const auto nodes = [&](const std::string& around, int depth, std::size_t most) {
    return answer_of(neighbourhood(log.asked(), around, depth, most));
  };
  CHECK(nodes("skill_release-notes", 0, 100).at("nodes").size() == 1);
  const auto one = nodes("skill_release-notes", 1, 100);
  CHECK(one.at("nodes").size() == 7); // itself, its source, four runs, a decision
  CHECK(nodes("skill_release-notes", 2, 100).at("nodes").size() > one.at("nodes").size());
  const auto cut = nodes("skill_release-notes", 2, 3);
  CHECK(cut.at("nodes").size() == 3);
  CHECK(cut.at("cut") == true);
  CHECK(nodes("", 1, 5).at("nodes").size() == 5);
  CHECK(neighbourhood(log.asked(), "ctx_unknown", 1, 5).error().code == errc::not_found);
  // Every edge is between nodes of the picture.
  std::vector<std::string> ids;
  for (const auto& n : one.at("nodes"))
    ids.push_back(n.at("id"));
  for (const auto& e : one.at("edges")) {
    CHECK(std::ranges::find(ids, e.at("from").get<std::string>()) != ids.end());
    CHECK(std::ranges::find(ids, e.at("to").get<std::string>()) != ids.end());
  }
}

TEST_CASE("inspector: a node is called by its path, agent, skill, id or the beginning of one",
          "[inspector]") {
  log_in_memory log;
  tell_a_story(log);
  const auto centre = [&](const std::string& name) {
    const auto p = answer_of(neighbourhood(log.asked(), name, 0, 10));
    return p.at("nodes").at(0).at("id").get<std::string>();
  };
  CHECK(centre("ctx_guide") == "ctx_guide");
  CHECK(centre("guide.md") == "ctx_guide");
  CHECK(centre("ctx_guid") == "ctx_guide");
  CHECK(centre("release-notes") == "skill_release-notes");
  CHECK(centre("skill_rele") == "skill_release-notes");
  CHECK(centre("writer") == "exec_s4");
  CHECK(centre("s7") == "exec_s7");
  CHECK(neighbourhood(log.asked(), "outcome_", 0, 10).error().code == errc::not_found);
  const auto facts = [&](const fact_filter& f) {
    return answer_of(query(log.asked(), f)).at("facts").size();
  };
  CHECK(facts({"guide.md", {}, {}, {}, 100}) == 5);
  CHECK(facts({{}, "release-notes", {}, {}, 100}) == 5);
  CHECK(facts({"nobody", {}, {}, {}, 100}) == 0);
  CHECK(answer_of(lineage(log.asked(), "skill_release-n")).at("skill") == "skill_release-notes");
  // The same path in another workspace.
  log.add({"ctx_twin", "exec_z", "used_in", t0 + 9 * 24h,
           R"({"path":"guide.md","cited":true,"used":true,"fence":1,"type":"file","as":"full",)"
           R"("from":"declared","section":"high"})"});
  log.add({"exec_z", "outcome_z", "resulted_in", t0 + 9 * 24h,
           R"({"agent":"writer","status":"done","class":"none","execution":"succeeded",)"
           R"("claim":"none","verification":"none","fence":1})"});
  const auto both = neighbourhood(log.asked(), "guide.md", 0, 10);
  CHECK(both.error().code == errc::conflict);
  CHECK_THAT(both.error().next, Contains("ctx_guide or ctx_twin"));
  CHECK(query(log.asked(), {"guide.md", {}, {}, {}, 100}).error().code == errc::conflict);
}

TEST_CASE("inspector: a candidate is no skill yet, and that is said", "[inspector]") {
  log_in_memory log;
  log.run("1", "writer", "Hosts", true, true, 0);
  log.add({"ctx_Hosts", "candidate_Hosts", "promoted_to", t0 + 1h, R"({"confidence":0.85})"});
  for (const auto* name : {"hosts", "candidate_Hosts", "Hosts.md"}) {
    const auto told = lineage(log.asked(), name).error();
    CHECK(told.what == std::string(name) + " is a candidate, not a skill yet");
    CHECK(told.next == std::string("see: boyd skills show ") +
                           (name == std::string("hosts") ? "hosts" : "candidate_Hosts"));
  }
  CHECK_THAT(lineage(log.asked(), "host").error().what, Contains("no facts about this skill"));
}

TEST_CASE("inspector: a picture has the score of a skill as of an item", "[inspector]") {
  log_in_memory log;
  tell_a_story(log);
  const std::string skill = "skill_default/guide";
  log.add({"ctx_guide", skill, "promoted_to", t0 + 75h,
           R"({"fence":1,"hash":"abc","by":"a person","confidence":0.9})"});
  log.add({"exec_s4", skill, "validated_by", t0 + 4 * 24h, R"({"success":true})"});
  const auto in = log.asked();
  const auto p = answer_of(neighbourhood(in, skill, 1, 20));
  std::map<std::string, double> scores;
  for (const auto& n : p.at("nodes"))
    scores[n.at("id")] = n.at("score");
  const auto known = read_learned_skill(log.value(index_area::skills, skill).value().value());
  REQUIRE(known);
  CHECK(scores.at(skill) == Approx(context::importance(known->counts, in.now)).margin(1e-4));
  CHECK(scores.at(skill) > 0);
  CHECK(scores.at("ctx_guide") > 0);
  CHECK(scores.at("exec_s4") == 0);
}

} // namespace boyd::inspector_test
