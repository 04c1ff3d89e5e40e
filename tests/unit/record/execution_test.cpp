#include "boyd/record/execution.hpp"
#include "boyd/record/explain.hpp"
#include "support/pch.hpp"

#include <rapidcheck.h>

#include <cmath>
#include <string>
#include <vector>

namespace boyd::execution_test {

using namespace boyd::record;
using Catch::Matchers::Contains;
using context::offered_item;

namespace {

offered_item item(const std::string& path, const std::string& content) {
  offered_item i;
  i.id = context::item_id("dir:x", context::item_type::file, path);
  i.path = path;
  i.content = content;
  i.content_hash = "hash of " + content;
  i.importance = 0.7;
  return i;
}

context::snapshot snapshot_with(const std::string& path) {
  const std::vector<offered_item> items{item(path, path)};
  return context::snapshot_of(items, context::make_block(items, {}));
}

attempt begun(std::int64_t fence, const std::string& path) {
  attempt a;
  a.fence = fence;
  a.level = "full";
  a.started_at = from_unix_ms(1'800'000'000'000 + fence);
  turn first;
  first.snapshot = snapshot_with(path);
  a.turns.push_back(first);
  return a;
}

using texts = std::vector<std::string>;

} // namespace

TEST_CASE("record: an attempt begins and ends, and is read as it was written", "[record]") {
  execution e;
  e.dispatch_id = "d1";
  e.agent_id = "a";
  begin_attempt(e, begun(1, "a.md"), snapshot_with("old.md"));
  CHECK(e.attempts[0].turns[0].diff.added == texts{"a.md"});
  CHECK(e.attempts[0].turns[0].diff.removed == texts{"old.md"});
  CHECK_FALSE(e.attempts[0].ended_at);
  CHECK_FALSE(e.cited);
  CHECK(read_execution(to_json(e)).value() == e);

  turn one;
  one.action = R"({"kind":"model_call"})";
  one.result = R"({"stop":"tool_calls"})";
  turn two;
  two.number = 2;
  two.snapshot =
      context::with_result(snapshot_with("a.md"), "kernel:default", "read_file {}", "h", 3);
  attempt_end end{1,
                  from_unix_ms(1'800'000'001'000),
                  R"({"execution":"succeeded"})",
                  {},
                  {one, two},
                  citations{"observe",
                            {{"C1", "ctx_1", "a.md"}},
                            {"[C9]"},
                            {},
                            {{"C1", "ctx_1", "a.md"}},
                            0.5,
                            false}};
  REQUIRE(end_attempt(e, end));
  CHECK(e.attempts[0].turns[0].snapshot == snapshot_with("a.md"));
  CHECK(e.attempts[0].turns[1].diff.added == texts{"read_file {}"});
  CHECK(e.attempts[0].ended_at);
  CHECK(read_execution(to_json(e)).value() == e);
  CHECK(latest_snapshot(e) == e.attempts[0].turns[1].snapshot);
  end.fence = 7;
  CHECK_FALSE(end_attempt(e, end));
}

TEST_CASE("record: a further attempt is compared with the one before", "[record]") {
  execution e;
  begin_attempt(e, begun(1, "a.md"), {});
  begin_attempt(e, begun(2, "b.md"), snapshot_with("of another execution"));
  REQUIRE(e.attempts.size() == 2);
  CHECK(e.attempts[1].turns[0].diff.removed == texts{"a.md"});
  begin_attempt(e, begun(2, "c.md"), {}); // begun anew
  REQUIRE(e.attempts.size() == 2);
  CHECK(e.attempts[1].turns[0].diff.added == texts{"c.md"});
}

TEST_CASE("record: what the log of facts has of a run joins its record, each fact once",
          "[record]") {
  execution e;
  e.dispatch_id = "d1";
  e.agent_id = "a";
  begin_attempt(e, begun(1, "a.md"), {});
  const auto id = e.attempts[0].turns[0].snapshot.items[0].id;
  e.skills = {{"release", "declared"}, {"other", "declared"}};
  execution_facts told;
  told.dispatch_id = "d1";
  told.stage_changes = {{id, "a.md", "context", "bank", "stable repeated usage"}};
  told.evidence = {{id, "exec_d1", "used_in", "graph.jsonl:3"},
                   {id, "decision_c", "managed_by", "graph.jsonl:9"},
                   {id, "candidate_1", "promoted_to", "graph.jsonl:10"}};
  told.validated = {"release"};
  add_facts(e, told);
  const auto once = e;
  add_facts(e, told);
  CHECK(e == once);
  CHECK(read_execution(to_json(e)).value() == e);
  CHECK(e.skills[0].state == "validated");
  CHECK(e.skills[1].state == "declared");
  const auto text = explain(e);
  CHECK_THAT(text, Contains("- context → bank: `a.md` (stable repeated usage) (`graph.jsonl:9`)"));
  CHECK_THAT(text, Contains(": `" + id + "` (`graph.jsonl:3`)"));
  CHECK_THAT(text, Contains("- `a.md`: made a candidate (`graph.jsonl:10`)"));
}

TEST_CASE("record: what is none is refused", "[record]") {
  for (const auto* text : {"", "x", "[]", "{}", R"({"schema":"boyd.execution/2"})"}) {
    INFO(text);
    const auto r = read_execution(text);
    REQUIRE_FALSE(r);
    CHECK(r.error().code == errc::corrupt);
  }
  CHECK(read_execution(R"({"schema":"boyd.execution/1","attempts":[1,{"turns":[2,{}]}]})"));
  REQUIRE(rc::check([](const std::string& text) { (void)read_execution(text); }));
}

TEST_CASE("record: the contract is judged by what the prompt showed", "[record]") {
  const std::string secret_words =
      "the lease of a row ends after thirty seconds unless its owner renews it in time";
  const std::vector<offered_item> items{item("leases.md", secret_words), item("b.md", "b")};
  const auto all = citables_of(items, context::make_block(items, {}));
  REQUIRE(all.size() == 2);
  const auto good = judge({"It ends [C2].", {}, "prompt", {}}, all, true);
  CHECK(good.valid.size() == 1);
  CHECK_FALSE(good.weak);
  CHECK(good.contract == "enforce");
  const auto silent = judge({"I know that " + secret_words + ".", {}, "prompt", {}}, all, true);
  CHECK(silent.uncited.size() == 1);
  CHECK(silent.weak);
  CHECK(std::abs(silent.accuracy.value()) < 1e-9);
  const auto watched = judge({"see [C9]", {}, "prompt", {}}, all, false);
  CHECK(watched.invented == texts{"[C9]"});
  CHECK_FALSE(watched.weak);
  CHECK(watched.contract == "observe");
  CHECK(judge({"done", {}, "prompt", {"b.md"}}, all, true).uncited.at(0).path == "b.md");
  CHECK_FALSE(judge({"nothing", {}, "prompt", {}}, all, true).accuracy);
  // What it wrote shows what it used; a key there is none.
  const auto wrote = judge({"done", secret_words + " [C9]", "prompt", {}}, all, true);
  CHECK(wrote.uncited.size() == 1);
  CHECK(wrote.invented.empty());
}

} // namespace boyd::execution_test
