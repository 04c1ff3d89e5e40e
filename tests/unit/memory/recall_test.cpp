#include "bench/context/measure.hpp"
#include "boyd/memory/recall.hpp"
#include "boyd/memory/words.hpp"
#include "support/pch.hpp"

#include <nlohmann/json.hpp>

#include <cmath>
#include <cstdlib>
#include <fstream>
#include <limits>
#include <string>
#include <vector>

namespace boyd::recall_test {

using namespace boyd::memory;
using nlohmann::json;

namespace {

std::string fixture(const std::string& name) {
  const char* top = std::getenv("BOYD_SOURCE_DIR");
  return std::string(top != nullptr ? top : ".") + "/bench/context/" + name;
}

std::vector<json> lines_of(const std::string& name) {
  std::ifstream in(fixture(name));
  REQUIRE(in);
  std::vector<json> all;
  for (std::string line; std::getline(in, line);)
    all.push_back(json::parse(line));
  return all;
}

const json& expected() {
  static const auto read = [] {
    std::ifstream in(fixture("expected.json"));
    return json::parse(in);
  }();
  return read;
}

utc_time time_of(const json& at) {
  const auto t = parse_rfc3339(at.get<std::string>());
  REQUIRE(t);
  return *t;
}

recall_index corpus() {
  recall_index index;
  for (const auto& e : lines_of("corpus.jsonl"))
    index.add(recall_entry{e["id"], time_of(e["time"]), e["source"], e["author"], e["text"]});
  return index;
}

recall_question asked(const json& q, bool core_only) {
  recall_question r;
  r.text = q["q"];
  r.at = time_of(q["asked_at"]);
  r.budget_tokens = std::numeric_limits<std::int64_t>::max();
  r.core_only = core_only;
  return r;
}

std::vector<std::string> ids_of(const recall_index& index, const std::vector<recalled>& all) {
  std::vector<std::string> ids;
  for (const auto& r : all)
    ids.push_back(index.id(r.place));
  return ids;
}

} // namespace

TEST_CASE("recall: tokens, words and stems are those of the fixture", "[memory][recall]") {
  for (const auto& t : expected()["tokens"])
    CHECK(count_tokens(t["text"].get<std::string>()) == t["tokens"].get<std::int64_t>());
  for (const auto& w : expected()["words"])
    CHECK(words_in(w["text"].get<std::string>()) == w["words"].get<std::vector<std::string>>());
  for (const auto& [word, stem] : expected()["stems"].items())
    CHECK(stem_of(word) == stem.get<std::string>());
}

TEST_CASE("recall: core scores and their order are those of the fixture", "[memory][recall]") {
  auto index = corpus();
  for (const auto& q : expected()["core"]) {
    INFO(q["q"]);
    auto question = asked(q, true);
    const auto all = index.recall(question, {});
    REQUIRE(all.size() == q["entries"].get<std::size_t>());
    CHECK(dates_in(question.text).size() == q["dates"].size());
    const auto& top = q["top"];
    for (std::size_t i = 0; i < top.size(); ++i) {
      INFO(i);
      CHECK(index.id(all[i].place) == top[i][0]);
      CHECK(std::abs(all[i].score - top[i][1].get<double>()) < 1e-6);
      CHECK(std::abs(all[i].parts.text - top[i][2].get<double>()) < 1e-6);
      CHECK(std::abs(all[i].parts.window - top[i][3].get<double>()) < 1e-6);
      CHECK(std::abs(all[i].parts.author - top[i][4].get<double>()) < 1e-6);
      CHECK(std::abs(all[i].parts.date - top[i][5].get<double>()) < 1e-6);
    }
    question.budget_tokens = 500;
    CHECK(ids_of(index, index.recall(question, {})) ==
          q["taken_500"].get<std::vector<std::string>>());
  }
}

TEST_CASE("recall: what was learned ranks as in the fixture", "[memory][recall]") {
  auto index = corpus();
  recall_feedback feedback;
  std::size_t checked = 0;
  const auto questions = lines_of("questions.jsonl");
  for (std::size_t n = 0; n < questions.size(); ++n) {
    const auto& q = questions[n];
    auto question = asked(q, false);
    for (const auto& e : expected()["feedback"]) {
      if (e["n"].get<std::size_t>() != n)
        continue;
      ++checked;
      INFO(q["q"]);
      CHECK(feedback.questions() == e["questions_learned"].get<std::size_t>());
      const auto all = index.recall(question, feedback);
      for (std::size_t i = 0; i < e["top"].size(); ++i) {
        CHECK(index.id(all[i].place) == e["top"][i][0]);
        CHECK(std::abs(all[i].score - e["top"][i][1].get<double>()) < 1e-6);
        const auto use = feedback.uses().find(e["top"][i][0].get<std::string>());
        CHECK((use == feedback.uses().end() ? 0 : use->second) ==
              e["top"][i][2].get<std::int64_t>());
      }
    }
    question.budget_tokens = 4000;
    const auto taken = ids_of(index, index.recall(question, feedback));
    std::vector<std::string> cited;
    for (const auto& id : q["evidence"])
      if (std::ranges::find(taken, id.get<std::string>()) != taken.end())
        cited.push_back(id);
    feedback.learn(question.text, cited);
  }
  CHECK(checked == expected()["feedback"].size());
}

TEST_CASE("recall: the share of evidence found is that of the reference", "[memory][recall]") {
  const auto entries = bench::read_corpus(fixture("corpus.jsonl"));
  const auto cases = bench::read_cases(fixture("questions.jsonl"));
  REQUIRE(entries);
  REQUIRE(cases);
  const auto& wanted = expected()["bench"];
  for (const auto& row : bench::measure(*entries, *cases))
    for (const auto& [kind, measures] : row.means)
      for (const auto& [measure, value] : measures) {
        INFO(row.name << ", " << kind << ", " << measure);
        CHECK(std::abs(value - wanted.at(row.name).at(kind).at(measure).get<double>()) < 0.0005);
      }
}

TEST_CASE("recall: before the first entry there is nothing to recall", "[memory][recall]") {
  recall_index index;
  index.add(recall_entry{"1", *parse_rfc3339("2026-05-01T00:00:00Z"), "chat", "", "a lighthouse"});
  recall_question q;
  q.text = "lighthouse";
  q.budget_tokens = 100;
  // As the first question, between others, and of an index without entries.
  for (const auto* at : {"2020-01-01T00:00:00Z", "2026-06-01T00:00:00Z", "2020-01-01T00:00:00Z"}) {
    q.at = *parse_rfc3339(at);
    CHECK(index.recall(q, {}).size() == (std::string_view(at).starts_with("2026") ? 1U : 0U));
  }
  recall_index none;
  CHECK(none.recall(q, {}).empty());
}

TEST_CASE("recall: the order in which entries come does not matter", "[memory][recall]") {
  auto sorted = corpus();
  recall_index mixed;
  auto lines = lines_of("corpus.jsonl");
  std::ranges::reverse(lines);
  for (const auto& e : lines)
    mixed.add(recall_entry{e["id"], time_of(e["time"]), e["source"], e["author"], e["text"]});
  for (const auto& q : expected()["core"]) {
    auto question = asked(q, false);
    question.budget_tokens = 1000;
    CHECK(ids_of(sorted, sorted.recall(question, {})) == ids_of(mixed, mixed.recall(question, {})));
  }
}

} // namespace boyd::recall_test
