#include "boyd/skills/bank.hpp"
#include "boyd/skills/lessons.hpp"
#include "support/pch.hpp"

#include <nlohmann/json.hpp>
#include <rapidcheck.h>

#include <map>

namespace boyd::lessons_test {

using namespace boyd;
using namespace boyd::skills;
using graph::edge;
using nlohmann::json;

namespace {

constexpr utc_time t0{milliseconds{1'770'976'800'000}};
constexpr auto day = std::chrono::hours{24};
const std::string item_key = "ctx_0011223344556677";
const std::string skill_key = graph::skill_id("default", "release");

/// The log's fold in memory.
struct learning {
  std::map<std::pair<index_area, std::string>, std::string> index;
  std::uint64_t line = 0;
  std::vector<edge> log;

  void take(const std::vector<edge>& facts) {
    graph::learner fold({}, [this](index_area area, const std::string& key) {
      const auto it = index.find({area, key});
      return result<std::optional<std::string>>(it == index.end() ? std::nullopt
                                                                  : std::optional(it->second));
    });
    for (const auto& [place, value] : index)
      if (place.first == index_area::open_runs)
        fold.resume_run(place.second, value);
    for (const auto& f : facts) {
      log.push_back(f);
      REQUIRE(fold.take(f, ++line));
    }
    for (const auto& c : fold.take_changes())
      if (c.value)
        index[{c.area, c.key}] = *c.value;
      else
        index.erase({c.area, c.key});
  }
  graph::learned_item item() const {
    const auto it = index.find({index_area::items, item_key});
    return it == index.end() ? graph::learned_item{} : *graph::read_learned_item(it->second);
  }
  graph::learned_skill skill() const {
    const auto it = index.find({index_area::skills, skill_key});
    return it == index.end() ? graph::learned_skill{} : *graph::read_learned_skill(it->second);
  }
  graph::learned_candidate candidate() const {
    const auto it = index.find({index_area::candidates, candidate_id(item_key)});
    return it == index.end() ? graph::learned_candidate{}
                             : *graph::read_learned_candidate(it->second);
  }
  lesson_input lessons(const std::string& cycle, utc_time at, std::int64_t successes = 0,
                       std::int64_t failures = 0) const {
    lesson_input in;
    in.kernel_id = "default";
    in.cycle_id = cycle;
    in.at = at;
    in.items = {{item_key, item()}};
    in.skills = {{skill_key, skill(), successes, failures}};
    for (const auto& [place, value] : index)
      if (place.first == index_area::candidates)
        in.candidates.insert(place.second);
    return in;
  }
};

/// A run that cited the item, and how it ended.
std::vector<edge> run(int number, bool good, utc_time at, bool frozen = false) {
  const auto exec = "exec_" + std::to_string(number);
  json use{{"as", "full"},       {"cited", true}, {"fence", number},
           {"from", "declared"}, {"hash", "0a"},  {"path", "docs/release.md"},
           {"type", "file"},     {"used", true},  {"scope", "repo:1"},
           {"kernel", "default"}};
  if (frozen)
    use["frozen"] = true;
  const json end{{"status", good ? "done" : "failed"},
                 {"class", good ? "none" : "deterministic"},
                 {"execution", good ? "succeeded" : "failed"},
                 {"verification", "none"},
                 {"claim", "none"},
                 {"fence", number}};
  return {{item_key, exec, "used_in", at, use.dump()},
          {exec, "outcome_" + std::to_string(number), "resulted_in", at, end.dump()}};
}

edge approval(std::int64_t version, const std::string& hash, utc_time at) {
  return {item_key, skill_key, "promoted_to", at,
          json{{"by", "ann"},
               {"hash", hash},
               {"fence", version},
               {"confidence", 0.8},
               {"candidate", candidate_id(item_key)}}
              .dump()};
}

edge use(int number, std::optional<bool> good, utc_time at) {
  json meta{{"fence", number}};
  if (good)
    meta["success"] = *good;
  return {"exec_u" + std::to_string(number), skill_key, "validated_by", at, meta.dump()};
}

json meta_of(const edge& e) {
  return json::parse(e.meta_json);
}

std::vector<std::string> actions_in(const std::vector<edge>& facts) {
  std::vector<std::string> all;
  for (const auto& f : facts)
    all.push_back(f.type == "managed_by" ? meta_of(f)["action"].get<std::string>() : f.type);
  return all;
}

using texts = std::vector<std::string>;

} // namespace

TEST_CASE("lessons: an item goes to the bank, then makes one candidate", "[skills]") {
  learning l;
  for (int i = 1; i <= 5; ++i) {
    const auto at = t0 + i * day;
    l.take(run(i, true, at));
    const auto cycle = "c" + std::to_string(i);
    const auto facts = lessons_of(l.lessons(cycle, at));
    INFO(i);
    if (i == 3) {
      REQUIRE(actions_in(facts) == texts{"stage"});
      CHECK(meta_of(facts[0])["from"] == "context");
      CHECK(meta_of(facts[0])["to"] == "bank");
      CHECK(meta_of(facts[0])["path"] == "docs/release.md");
      CHECK(facts[0].to == "decision_c3");
    } else if (i == 5) {
      REQUIRE(actions_in(facts) == texts{"stage", "promoted_to"});
      CHECK(facts[1].to == candidate_id(item_key));
    } else {
      CHECK(facts.empty());
    }
    l.take(facts);
    // Drawn once more, as after a crash, they add nothing.
    CHECK(lessons_of(l.lessons(cycle, at)).empty());
  }
  const auto c = l.candidate();
  CHECK(c.context_id == item_key);
  CHECK(c.path == "docs/release.md");
  CHECK(c.status == graph::candidate_status::pending);
  l.take(run(6, true, t0 + 6 * day));
  CHECK(lessons_of(l.lessons("c6", t0 + 6 * day)).empty());
}

TEST_CASE("lessons: a frozen item is left as it is", "[skills]") {
  learning l;
  for (int i = 1; i <= 6; ++i)
    l.take(run(i, true, t0, true));
  CHECK(stage_of(l.item().counts, t0).where == stage::skill_candidate);
  CHECK(lessons_of(l.lessons("c1", t0)).empty());
}

TEST_CASE("lessons: a skill degrades after failures, comes back after successes, and its source "
          "hears of both",
          "[skills]") {
  learning l;
  for (int i = 1; i <= 3; ++i)
    l.take(run(i, true, t0));
  l.take({approval(1, "aa", t0), {skill_key, item_key, "derived_from", t0, R"({"weight":1})"}});
  const auto confidence = l.item().counts.confidence;
  CHECK(state_of(l.skill(), t0) == skill_state::enabled);
  l.take({use(1, true, t0), use(2, false, t0), use(3, false, t0)});
  CHECK(state_of(l.skill(), t0) == skill_state::enabled);
  CHECK(actions_in(lessons_of(l.lessons("c0", t0))) == texts{"stage"});
  l.take(lessons_of(l.lessons("c0", t0)));
  l.take({use(4, false, t0)});
  CHECK(state_of(l.skill(), t0) == skill_state::degraded);
  const auto facts = lessons_of(l.lessons("c1", t0, 0, 3));
  REQUIRE(actions_in(facts) == texts{"supports", "degrade"});
  CHECK(facts[0].to == item_key);
  l.take(facts);
  CHECK(l.item().counts.confidence == Approx(confidence - 0.3));
  CHECK(l.item().counts.verified_not_useful == 3);
  l.take({use(5, true, t0)});
  CHECK(state_of(l.skill(), t0) == skill_state::degraded);
  l.take({use(6, true, t0)});
  CHECK(state_of(l.skill(), t0) == skill_state::enabled);
  CHECK(actions_in(lessons_of(l.lessons("c2", t0 + day, 2, 0))) ==
        texts{"stage", "supports", "recover"});
}

TEST_CASE("skills: what teaches nothing changes no state, and bytes that nobody approved have none",
          "[skills]") {
  learning l;
  l.take({use(1, false, t0)});
  CHECK(l.skill().versions.empty());
  CHECK(l.skill().counts.use_count == 0);
  // An older log's promotion without bytes approves nothing.
  l.take({{item_key, skill_key, "promoted_to", t0, R"({"confidence":0.9})"}});
  CHECK(l.skill().versions.empty());
  l.take({approval(1, "aa", t0)});
  for (int i = 0; i < 9; ++i)
    l.take({use(10 + i, std::nullopt, t0)});
  CHECK(l.skill().counts.use_count == 9);
  CHECK(l.skill().counts.confidence == Approx(0.8));
  CHECK(state_of(l.skill(), t0) == skill_state::enabled);
  CHECK(version_with(l.skill(), "aa") != nullptr);
  CHECK(version_with(l.skill(), "bb") == nullptr);
  CHECK(version_with(l.skill(), "") == nullptr);
}

TEST_CASE("skills: disabled and enabled by hand, a new version begins anew, idle ones are archived",
          "[skills]") {
  learning l;
  const auto decision = [](const char* action, int n) {
    return edge{skill_key, "decision_d" + std::to_string(n), "managed_by", t0,
                json{{"action", action}, {"by", "ann"}}.dump()};
  };
  l.take({approval(1, "aa", t0), decision("disable", 1)});
  CHECK(state_of(l.skill(), t0) == skill_state::disabled);
  l.take({decision("enable", 2)});
  CHECK(state_of(l.skill(), t0) == skill_state::enabled);
  for (int i = 0; i < 5; ++i)
    l.take({use(i, false, t0)});
  CHECK(l.skill().counts.confidence == Approx(0.3));
  CHECK(state_of(l.skill(), t0) == skill_state::degraded);
  CHECK(state_of(l.skill(), t0 + 60 * day) == skill_state::degraded);
  CHECK(state_of(l.skill(), t0 + 61 * day) == skill_state::archived);
  l.take({approval(2, "bb", t0 + 61 * day)});
  CHECK(state_of(l.skill(), t0 + 61 * day) == skill_state::enabled);
  CHECK(next_version(l.skill()) == 3);
  CHECK(l.skill().versions.size() == 2);
  // The same approval once more is no third one.
  l.take({approval(2, "bb", t0 + 61 * day)});
  CHECK(l.skill().versions.size() == 2);
}

TEST_CASE("candidates: rejected until the evidence has doubled, deferred until somebody decides",
          "[skills]") {
  learning l;
  for (int i = 1; i <= 5; ++i)
    l.take(run(i, true, t0));
  l.take(lessons_of(l.lessons("c", t0)));
  const auto decide = [&](const char* action, int n) {
    l.take({{candidate_id(item_key), "decision_" + std::to_string(n), "managed_by", t0,
             json{{"action", action}, {"by", "ann"}, {"evidence", 5}, {"reason", "no"}}.dump()}});
  };
  decide("defer", 1);
  CHECK(status_of(l.candidate(), l.item()) == graph::candidate_status::deferred);
  decide("reject", 2);
  for (int i = 6; i <= 9; ++i)
    l.take(run(i, true, t0));
  CHECK(status_of(l.candidate(), l.item()) == graph::candidate_status::rejected);
  l.take(run(10, true, t0));
  CHECK(status_of(l.candidate(), l.item()) == graph::candidate_status::pending);
  l.take({approval(1, "aa", t0)});
  CHECK(status_of(l.candidate(), l.item()) == graph::candidate_status::approved);
  CHECK(l.candidate().skill == skill_key);
}

TEST_CASE("skills: the fold is the same whatever the batches", "[skills]") {
  CHECK(rc::check([] {
    std::vector<edge> facts;
    for (int i = 1; i <= *rc::gen::inRange(1, 30); ++i) {
      const auto at = t0 + i * day;
      switch (*rc::gen::inRange(0, 6)) {
      case 0:
        facts.push_back(approval(*rc::gen::inRange(1, 4), "h", at));
        break;
      case 1:
        facts.push_back({skill_key, item_key, "supports", at,
                         json{{"successes", 1}, {"failures", 1}, {"fence", i}}.dump()});
        break;
      case 2:
        facts.push_back({item_key, candidate_id(item_key), "promoted_to", at, "{}"});
        break;
      case 3:
        facts.push_back({skill_key, "decision_" + std::to_string(i), "managed_by", at,
                         R"({"action":"enable"})"});
        break;
      default:
        facts.push_back(use(i, *rc::gen::arbitrary<bool>(), at));
      }
      for (auto& f : run(i, *rc::gen::arbitrary<bool>(), at))
        facts.push_back(f);
    }
    learning at_once;
    at_once.take(facts);
    learning apart;
    for (std::size_t from = 0; from < facts.size();) {
      const auto size = std::min(*rc::gen::inRange<std::size_t>(1, 9), facts.size() - from);
      const auto begin = facts.begin() + static_cast<std::ptrdiff_t>(from);
      apart.take({begin, begin + static_cast<std::ptrdiff_t>(size)});
      from += size;
    }
    RC_ASSERT(at_once.index == apart.index);
  }));
}

TEST_CASE("skills: the section shows names, texts in fences that nothing closes", "[skills]") {
  CHECK(skills_section({}).empty());
  const auto text = skills_section(
      {{"release", "How to release.", "# Release\n````\nx\n"}, {"mend", "How to mend.", {}}});
  CHECK(text.starts_with("# Skills\n"));
  CHECK(text.find("- release: How to release.\n- mend: How to mend.\n") != text.npos);
  CHECK(text.find("## release\n\n`````") != text.npos);
  CHECK(text.find("## mend") == text.npos);
}

TEST_CASE("skills: declared by lines and JSON, each once", "[skills]") {
  CHECK(declared_skills("I did it.\n[Skill] release\n- [Skill] `mend-it`.\n[Skill] release\n") ==
        texts{"release", "mend-it"});
  CHECK(declared_skills("{\"used_skills\": [\"a\", \"b\", 3, \"../x\"], \"x\": 1}") ==
        texts{"a", "b"});
  CHECK(declared_skills("{\"used_skills\":\n [\"a\"]}") == texts{"a"});
  CHECK(declared_skills("write [Skill] NAME in the text, and \"used_skills\" too").empty());
  CHECK(rc::check([](const std::string& bytes) {
    for (const auto& n : declared_skills("[Skill] " + bytes + "\"used_skills\":[" + bytes))
      RC_ASSERT(is_skill_name(n));
  }));
}

TEST_CASE("skills: a version in the metadata is set where there is one", "[skills]") {
  document d{"a", "b"};
  d.metadata = {{"created", "2026-02-13"}, {"version", "1"}};
  d.body = "\nversion: 7\n";
  const auto text = with_version(render_document(d), 4);
  CHECK(text.find("  \"version\": \"4\"\n") != text.npos);
  CHECK(text.find("version: 7") != text.npos);
  CHECK(with_version("---\nname: a\n---\nmetadata:\nversion: 1\n", 4) ==
        "---\nname: a\n---\nmetadata:\nversion: 1\n");
}

TEST_CASE("bank: an item is read again as it was named", "[skills]") {
  graph::learned_item item;
  const auto of = [&](const char* path) {
    item.path = path;
    return reference_of(item).value();
  };
  using context::reference;
  using context::reference_kind;
  CHECK(of("docs/a b.md") == reference{reference_kind::file, "docs/a b.md", 0, 0});
  CHECK(of("a.cpp:10-30") == reference{reference_kind::file, "a.cpp", 10, 30});
  CHECK(of("a.cpp:7") == reference{reference_kind::file, "a.cpp", 7, 7});
  CHECK(of("odd:name") == reference{reference_kind::file, "odd:name", 0, 0});
  CHECK(of("odd:1x") == reference{reference_kind::file, "odd:1x", 0, 0});
  item.type = context::item_type::directory;
  CHECK(of("docs") == reference{reference_kind::directory, "docs", 0, 0});
  item.type = context::item_type::runtime;
  CHECK_FALSE(reference_of(item));
}

TEST_CASE("bank: files read back, broken ones are told", "[skills]") {
  graph::learned_item item;
  item.path = "docs/Release Notes.md";
  item.scope = "repo:1";
  item.hash = "0a";
  item.counts.confidence = 0.85;
  item.counts.use_count = 4;
  item.counts.created = t0;
  item.counts.last_used = t0 + day;
  const auto i = bank_item_of(item_key, item, "# Release\n\nTag it.\n");
  CHECK(i.source == "project");
  CHECK(i.tags == texts{"doc", "docs", "release", "notes", "md"});
  CHECK(read_bank_item(to_json(i)).value() == i);
  const auto e = bank_entry_of(item_key, item);
  auto other = e;
  other.id = "ctx_0";
  other.last_used.reset();
  const auto text = to_json(std::vector{e, other});
  CHECK(read_bank_index(text).value() == std::vector{other, e});
  CHECK(json::parse(text)["version"] == 1);
  CHECK(read_bank_item("[]").error().code == errc::corrupt);
  CHECK(read_bank_index(R"({"items":[1]})").error().code == errc::corrupt);
}

} // namespace boyd::lessons_test
