#include "boyd/context/snapshot.hpp"
#include "support/pch.hpp"

#include <rapidcheck.h>

#include <string>
#include <vector>

namespace boyd::snapshot_test {

using namespace boyd::context;

namespace {

offered_item item(const std::string& path, const std::string& content) {
  offered_item i;
  i.id = item_id("dir:x", item_type::file, path);
  i.path = path;
  i.content = content;
  i.content_hash = "hash of " + content;
  i.importance = 0.7;
  i.score = 0.7;
  return i;
}

snapshot of(const std::vector<offered_item>& items) {
  return snapshot_of(items, make_block(items, {}));
}

using texts = std::vector<std::string>;

} // namespace

TEST_CASE("snapshot: it says what was shown, and is written and read again", "[context]") {
  auto gone = item("gone.md", "");
  gone.failure = "no such file";
  const auto s = of({item("a.md", "a"), gone});
  REQUIRE(s.items.size() == 2);
  CHECK(s.items[0].key == "C1");
  CHECK(s.items[0].hash == "hash of a");
  CHECK(s.items[0].tokens > 0);
  CHECK(s.items[1].as == shown_as::failed);
  CHECK(s.id.size() == 64);
  auto again = read_snapshot(to_json(s));
  CHECK(again.items[1].as == shown_as::left_out);
  again.items[1].as = shown_as::failed;
  CHECK(again == s);
  CHECK(read_snapshot("").items.empty());
  CHECK(read_snapshot(R"({"items":[1,{}]})").items.size() == 1);
  REQUIRE(rc::check([](const std::string& text) { read_snapshot(text); }));
}

TEST_CASE("snapshot: of a summary it knows the size of the whole, and who shortened it",
          "[context]") {
  std::string text;
  for (int n = 0; n < 400; ++n)
    text += "line " + std::to_string(n) + "\n";
  auto worded = item("worded.md", text + "the end");
  worded.summary = "400 lines.";
  const std::vector<offered_item> items{item("long.md", text), worded, item("short.md", "s")};
  block_options o;
  o.budget_tokens = 700;
  const auto block = make_block(items, o);
  const auto s = snapshot_of(items, block);
  REQUIRE(s.items.size() == 3);
  for (std::size_t n = 0; n < s.items.size(); ++n) {
    const auto& i = s.items[n];
    INFO(i.path);
    const bool is_whole = i.path == "short.md";
    CHECK(i.whole == (is_whole ? 0 : block.placed[n].whole));
    CHECK(i.shortened_by == (is_whole ? "" : i.path == "long.md" ? "rules" : "model"));
  }
  CHECK(read_snapshot(to_json(s)) == s);
}

TEST_CASE("snapshot: its id is that of its content", "[context]") {
  CHECK(of({item("a.md", "a")}).id == of({item("a.md", "a")}).id);
  CHECK(of({item("a.md", "a")}).id != of({item("a.md", "b")}).id);
  CHECK(of({item("a.md", "a")}).id != of({item("b.md", "a")}).id);
}

TEST_CASE("snapshot: what came, went and changed, by path", "[context]") {
  const auto before = of({item("a.md", "a"), item("b.md", "b"), item("c.md", "c")});
  const auto after = of({item("d.md", "d"), item("b.md", "B"), item("c.md", "c")});
  const auto d = diff_of(before, after);
  CHECK(d.added == texts{"d.md"});
  CHECK(d.removed == texts{"a.md"});
  CHECK(d.changed == texts{"b.md"});
  CHECK(diff_of(before, before) == snapshot_diff{});
  CHECK(diff_of({}, before).added.size() == 3);
}

TEST_CASE("snapshot: the result of a tool is an item of the next turn", "[context]") {
  const auto before = of({item("a.md", "a")});
  const auto after = with_result(before, "kernel:default", "read_file {\"path\":\"x\"}", "h1", 7);
  REQUIRE(after.items.size() == 2);
  CHECK(after.items[1].from == origin::tool);
  CHECK(after.items[1].type == item_type::runtime);
  CHECK(after.id != before.id);
  CHECK(diff_of(before, after).added == texts{"read_file {\"path\":\"x\"}"});
  const auto changed = with_result(after, "kernel:default", "read_file {\"path\":\"x\"}", "h2", 8);
  CHECK(changed.items.size() == 2);
  CHECK(diff_of(after, changed).changed.size() == 1);
}

} // namespace boyd::snapshot_test
