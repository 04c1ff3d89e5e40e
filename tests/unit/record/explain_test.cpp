#include "boyd/record/explain.hpp"
#include "support/mermaid.hpp"
#include "support/pch.hpp"

#include <rapidcheck.h>

#include <cstdlib>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

namespace boyd::explain_test {

using namespace boyd::record;
using Catch::Matchers::Contains;

namespace {

std::string data_file(const std::string& name) {
  const char* top = std::getenv("BOYD_SOURCE_DIR");
  REQUIRE(top != nullptr);
  std::ifstream in(std::string(top) + "/tests/data/explain/" + name, std::ios::binary);
  INFO(name);
  REQUIRE(in);
  return {std::istreambuf_iterator<char>(in), {}};
}

execution record_of(const std::string& name) {
  auto e = read_execution(data_file(name));
  REQUIRE(e);
  return std::move(*e);
}

/// Of the section with this heading; empty: there is none.
std::string section(const std::string& text, const std::string& heading) {
  const auto at = text.find("## " + heading + "\n");
  if (at == text.npos)
    return {};
  return text.substr(at, text.find("\n## ", at + 1) - at);
}

const std::vector<std::string> headings{
    "Summary",           "Skill Suggestions",      "Context Bank Usage",
    "Context Evolution", "Citation Retrospective", "Lifecycle Recommendations",
    "Turn by Turn",      "Evidence & Provenance"};

} // namespace

TEST_CASE("explain: golden files", "[explain]") {
  for (const std::string name : {"chat", "command", "digest", "failed", "old", "unfinished"}) {
    INFO(name);
    const auto e = record_of(name + ".json");
    CHECK(explain(e, {false, false, true, name == "chat"}) == data_file(name + ".md"));
    // What is read is what was written.
    CHECK(explain(read_execution(to_json(e)).value()) == explain(e));
  }
}

TEST_CASE("explain: every section stands there once, in order; options choose", "[explain]") {
  const auto e = record_of("chat.json");
  const auto all = explain(e);
  std::size_t at = 0;
  for (const auto& h : headings) {
    INFO(h);
    const auto found = all.find("\n## " + h + "\n", at);
    REQUIRE(found != all.npos);
    at = found + 1;
    CHECK(all.find("\n## " + h + "\n", at) == all.npos);
  }
  const auto facts = section(all, "Evidence & Provenance");
  for (const auto* list :
       {"**Contexts Used:**", "**Skills Validated:**", "**Context → Skill Promotions:**"})
    CHECK_THAT(facts, Contains(list));
  const auto context = explain(e, {true, false, true, false});
  CHECK_THAT(context, Contains("## Summary") && Contains("## Citation Retrospective") &&
                          !Contains("## Turn by Turn") && !Contains("## Lifecycle"));
  CHECK_THAT(explain(e, {false, true, true, false}),
             Contains("## Lifecycle Recommendations") && !Contains("## Context Bank Usage"));
  CHECK_THAT(explain(e, {false, false, false, false}), !Contains("Evidence & Provenance"));
  CHECK_THAT(explain(e, {false, false, true, true}), Contains("```mermaid\ngraph TD\n"));
}

TEST_CASE("explain: no text from outside becomes a section, a table's cell or a node",
          "[explain]") {
  const std::string hostile = "a`b|c\n## Summary\n\"]; click x \"javascript:1\" %% <b>``` é";
  execution e;
  e.agent_id = hostile;
  e.dispatch_id = "d";
  attempt a;
  a.fence = 1;
  turn t;
  context::snapshot_item i;
  i.key = "C1";
  i.id = "ctx_1";
  i.path = hostile;
  i.hash = "h";
  i.reason = hostile;
  t.snapshot.items.push_back(i);
  a.turns.push_back(t);
  begin_attempt(e, std::move(a), {});
  e.stage_changes.push_back({"ctx_1", hostile, "bank", "skill_candidate", "used often"});
  e.skills.push_back({hostile, "validated"});
  const auto text = explain(e, {false, false, true, true});
  for (const auto& h : headings) {
    INFO(h << "\n" << text);
    const auto first = text.find("\n## " + h + "\n");
    REQUIRE(first != text.npos);
    CHECK(text.find("\n## " + h + "\n", first + 1) == text.npos);
  }
  // A row of the table has as many cells as its head.
  const auto bank = section(text, "Context Bank Usage");
  const auto row = bank.substr(bank.rfind("\n| ") + 1);
  std::size_t cells = 0;
  for (std::size_t k = 0; k < row.size() && row[k] != '\n'; ++k)
    cells += row[k] == '|' && (k == 0 || row[k - 1] != '\\') ? 1 : 0;
  CHECK(cells == 8);
  const auto picture = text.substr(text.find("```mermaid"));
  CHECK_THAT(picture, !Contains("javascript:") && !Contains("<b>") && !Contains("%%") &&
                          Contains("#34;#93;#59;") && Contains("#233;"));
  CHECK(picture.find("```", 3) == picture.rfind("```"));
}

namespace {

/// The picture in the explanation of a run whose agent, item, skill and promotion have this name.
std::string picture_with(const std::string& name) {
  execution e;
  e.agent_id = name;
  e.dispatch_id = "d";
  attempt a;
  a.fence = 1;
  turn t;
  context::snapshot_item i;
  i.key = "C1";
  i.id = "ctx_1";
  i.path = name;
  i.hash = "h";
  t.snapshot.items.push_back(i);
  a.turns.push_back(t);
  begin_attempt(e, std::move(a), {});
  e.stage_changes.push_back({"ctx_1", name, "bank", "skill_candidate", "used often"});
  e.skills.push_back({name, "validated"});
  e.skills.push_back({name, "declared"});
  const auto text = explain(e, {false, false, true, true});
  const std::string fence = "```mermaid\n";
  const auto begin = text.find(fence);
  REQUIRE(begin != text.npos);
  return text.substr(begin + fence.size(), text.find("```", begin + 3) - begin - fence.size());
}

} // namespace

TEST_CASE("explain: Mermaid's own parser takes the picture whatever the names are", "[explain]") {
  std::vector<std::string> pictures;
  for (const std::string name : {"guide.md",
                                 "",
                                 "a\"] --> b[\"",
                                 "end",
                                 "subgraph x",
                                 "a\nb",
                                 "%%{init: {}}%%",
                                 "<script>1</script>",
                                 "#quot;#35;",
                                 "a|b|c",
                                 "click run \"http\"",
                                 "`rm`",
                                 "}\n}}",
                                 "数据库 ✓ 😀",
                                 "\xff\xfe",
                                 "1. one",
                                 "- one",
                                 "@{shape: x}",
                                 "(y)",
                                 "[[z]]",
                                 ";",
                                 "\\"})
    pictures.push_back(picture_with(name));
  CHECK(test::not_mermaid(pictures).empty());
}

TEST_CASE("explain: advice about items by what runs came of them", "[explain]") {
  execution e;
  attempt a;
  a.fence = 1;
  turn t;
  const auto add = [&](const std::string& id, context::shown_as as, std::int64_t injected,
                       std::int64_t used, std::int64_t useful, std::int64_t not_useful) {
    context::snapshot_item i;
    i.key = as == context::shown_as::left_out ? "" : "C" + id;
    i.id = id;
    i.path = id;
    i.hash = id == "gone" ? "" : "h";
    i.as = as;
    t.snapshot.items.push_back(i);
    known_item k{id, {}, false};
    k.counts.injected = injected;
    k.counts.use_count = used;
    k.counts.verified_useful = useful;
    k.counts.verified_not_useful = not_useful;
    if (injected > 0)
      a.known.push_back(k);
  };
  using context::shown_as;
  add("good", shown_as::full, 10, 8, 7, 1);
  add("new", shown_as::full, 0, 0, 0, 0);
  add("noise", shown_as::full, 20, 1, 1, 0);
  add("bad", shown_as::full, 9, 6, 1, 5);
  add("long", shown_as::summary, 3, 1, 1, 0);
  add("silent", shown_as::full, 4, 1, 1, 0);
  add("gone", shown_as::left_out, 0, 0, 0, 0);
  a.turns.push_back(t);
  begin_attempt(e, std::move(a), {});
  citations c;
  c.valid.push_back({"Cgood", "good", "good"});
  c.used.push_back({"Csilent", "silent", "silent"});
  REQUIRE(end_attempt(e, {1, from_unix_ms(1), R"({"execution":"succeeded"})", {}, {}, c}));
  const auto all = advise(e);
  REQUIRE(all.size() == 7);
  const auto is = [&](std::size_t n, const char* action, const char* relevance, const char* quality,
                      const char* trend) {
    INFO(all[n].path << ": " << all[n].reason);
    CHECK(all[n].action == action);
    CHECK(all[n].relevance == relevance);
    CHECK(all[n].quality == quality);
    CHECK(all[n].trend == trend);
  };
  is(0, "keep", "high", "good", "steady");
  is(1, "keep", "unknown", "unknown", "unknown");
  is(2, "archive", "low", "unknown", "falling");
  is(3, "remove", "low", "poor", "falling");
  is(4, "keep", "low", "unknown", "falling");
  is(5, "enhance", "high", "unknown", "rising");
  is(6, "remove", "unknown", "unknown", "unknown");
  CHECK(all[1].reason == "too few runs to judge");
  CHECK(all[0].key == "Cgood");
}

namespace {

/// The page of a run that ended well, whose outcome has these members, too.
std::string page_of_outcome(const std::string& members, const std::string& result = "{}") {
  execution e;
  e.agent_id = "a";
  e.dispatch_id = "d";
  attempt a;
  a.executor = R"({"kind":"command"})";
  turn t;
  t.action = R"({"kind":"command"})";
  t.result = result;
  a.turns.push_back(t);
  auto turns = a.turns;
  begin_attempt(e, std::move(a), {});
  (void)end_attempt(e, {0,
                        from_unix_ms(1),
                        R"({"execution":"succeeded","exit_code":0,)" + members + "}",
                        {},
                        std::move(turns),
                        {}});
  return explain(e);
}

} // namespace

TEST_CASE("explain: work is said to be done only where a check looked at it", "[explain]") {
  const std::string exit_zero = R"({"requirement":"exit_zero","looked_at":true,"passed":true})";
  const std::string file = R"({"requirement":"artifact out.md","looked_at":true,"passed":true})";
  const auto with = [&](const std::string& checks) {
    return page_of_outcome(R"("verification":"passed","requirements":[)" + checks + "]");
  };
  CHECK_THAT(with(exit_zero), Contains("**ended without an error**. That was its only check") &&
                                  !Contains("did its work"));
  CHECK_THAT(with(exit_zero + "," + file),
             Contains("**did its work**, according to its checks") &&
                 Contains("Exit code 0. Checks passed: 2 of 2 (it must end without an error; it "
                          "must write the file `out.md`).") &&
                 Contains("**Files that it wrote, as its checks found:** `out.md`.") &&
                 !Contains("nobody checked"));
  CHECK_THAT(with(""), Contains("**passed its checks**") && !Contains("did its work"));
}

TEST_CASE("explain: the words of a run are its own, and say where the rest is", "[explain]") {
  const auto page = [](const std::string& summary, const std::string& result) {
    return page_of_outcome(R"("summary":")" + summary + "\"", result);
  };
  CHECK_THAT(page("it is done", R"({"output_bytes":11})"),
             Contains("**In its own words:** `it is done`\n"));
  CHECK_THAT(page("it is done", R"({"output_bytes":80})"),
             Contains("`it is done`; `boyd logs d` shows all 80 bytes\n"));
  CHECK_THAT(page("it is done", R"({"output_bytes":80,"output_cut":9})"),
             Contains("shows all 80 bytes that were stored\n"));
  CHECK_THAT(page("completed", R"({"output_bytes":0})"), !Contains("In its own words"));
  CHECK_THAT(page("exit code 0", "{}"), !Contains("In its own words"));
}

TEST_CASE("explain: what was in force for a program stands where rules decide nothing",
          "[explain]") {
  const auto page = [](const std::string& sandbox) {
    return page_of_outcome(R"("usage":{"sandbox":)" + sandbox + "}");
  };
  CHECK_THAT(page(R"({"mode":"landlock","not_enforced":["x"]})"),
             Contains("not decided by rules one by one. Its sandbox limited what it could reach "
                      "(`landlock`); not enforced: `x`\n"));
  CHECK_THAT(page(R"({"mode":"off"})"), Contains("one by one. It had no sandbox\n"));
  CHECK_THAT(page("null"), Contains("one by one\n"));
}

TEST_CASE("explain: any record can be told", "[explain]") {
  CHECK_THAT(explain({}), Contains("No record of this run exists"));
  REQUIRE(rc::check(
      [](const std::string& agent, const std::string& outcome, const std::string& action) {
        execution e;
        e.agent_id = agent;
        attempt a;
        a.executor = action;
        turn t;
        t.action = action;
        t.governance = outcome;
        t.result = action;
        a.turns.push_back(t);
        begin_attempt(e, std::move(a), {});
        (void)end_attempt(e, {0, from_unix_ms(5), outcome, {}, {}, {}});
        RC_ASSERT(!explain(e, {false, false, true, true}).empty());
      }));
}

} // namespace boyd::explain_test
