#include "boyd/core/sha256.hpp"
#include "boyd/record/explain.hpp"
#include "boyd/record/replay.hpp"
#include "support/pch.hpp"

#include <rapidcheck.h>

#include <map>
#include <string>
#include <vector>

namespace boyd::replay_test {

using namespace boyd::record;

namespace {

const std::string this_version = "0.1.0";

/// What is kept, by its hash.
struct store {
  std::map<std::string, std::string> contents;

  void keep(const std::string& text) { contents[sha256_hex(text)] = text; }
  content_source source() const {
    return [this](const std::string& hash) -> result<std::string> {
      const auto it = contents.find(hash);
      if (it == contents.end())
        return fail(errc::not_found, "no such file", hash);
      return it->second;
    };
  }
};

std::string long_text(const std::string& word) {
  std::string text;
  while (text.size() < 9000)
    text += word + " ";
  return text;
}

/// A run that read one long file.
struct told {
  store kept;
  execution e;
  std::string file = long_text("lighthouse");
  std::string prompt = long_text("task") + "\n```\n" + file + "```\nAnswer.";

  told() {
    e.dispatch_id = "d1";
    e.agent_id = "keeper";
    attempt a;
    a.fence = 3;
    a.version = this_version;
    std::vector<std::string> contents{file};
    a.prompt = take_apart(prompt, {{sha256_hex(file), file}}, contents);
    turn t;
    context::snapshot_item i;
    i.key = "C1";
    i.id = "ctx_1";
    i.path = "light.md";
    i.hash = sha256_hex(file);
    t.snapshot.items.push_back(i);
    a.turns.push_back(t);
    for (const auto& text : contents)
      kept.keep(text);
    begin_attempt(e, std::move(a), {});
    REQUIRE(end_attempt(e, {3, from_unix_ms(1), R"({"execution":"succeeded"})", {}, {}, {}}));
    e.explanation = sha256_hex(explain(e));
  }
};

} // namespace

TEST_CASE("replay: what a run was told is put together again, byte for byte", "[replay]") {
  const told t;
  // The file stands once, and the long frame beside it.
  CHECK(t.kept.contents.size() == 2);
  const auto written = read_execution(to_json(t.e));
  REQUIRE(written);
  CHECK(*written == t.e);
  const auto r = replay(*written, t.kept.source(), explain(t.e), seal_state::whole, this_version);
  CHECK(r.holds());
  REQUIRE(r.texts.size() == 1);
  CHECK(r.texts[0].text == t.prompt);
  CHECK(r.explanation == explain(t.e));
  CHECK(r.contents == 2);
}

TEST_CASE("replay: missing and damaged contents are named", "[replay]") {
  told t;
  const auto hash = sha256_hex(t.file);
  t.kept.contents.erase(hash);
  auto r = replay(t.e, t.kept.source(), explain(t.e), seal_state::whole, this_version);
  CHECK_FALSE(r.holds());
  REQUIRE(r.problems.size() == 2);
  CHECK(r.problems[0].where == "light.md");
  CHECK(r.problems[0].what == "missing");
  CHECK(r.problems[0].hash == hash);
  CHECK(r.problems[1].where == "the prompt of attempt 1");
  CHECK(r.problems[1].what == "differs");

  t.kept.contents[hash] = t.file;
  t.kept.contents[hash][17] ^= 1;
  r = replay(t.e, t.kept.source(), explain(t.e), seal_state::whole, this_version);
  REQUIRE(r.problems.size() == 2);
  CHECK(r.problems[0].what == "damaged");
  CHECK_FALSE(r.texts[0].same);
}

TEST_CASE("replay: an explanation that was changed is found, with its place", "[replay]") {
  told t;
  auto stored = explain(t.e);
  const std::string words = "This page explains";
  stored.replace(stored.find(words), words.size(), "This page says nothing of");
  auto r = replay(t.e, t.kept.source(), stored, seal_state::whole, this_version);
  REQUIRE(r.problems.size() == 1);
  CHECK(r.problems[0].where == "explain.md");
  CHECK_THAT(r.problems[0].detail,
             Catch::Matchers::Contains("says nothing") && Catch::Matchers::Contains("now: "));
  // A page that is gone is one that was changed.
  r = replay(t.e, t.kept.source(), {}, seal_state::whole, this_version);
  REQUIRE(r.problems.size() == 1);
  CHECK(r.problems[0].where == "explain.md");
  CHECK(r.problems[0].what == "missing");
  // Runs that read nothing have none.
  t.e.attempts[0].turns.clear();
  t.e.explanation = sha256_hex(explain(t.e));
  CHECK(replay(t.e, t.kept.source(), {}, seal_state::whole, this_version).holds());
}

TEST_CASE("replay: words that the same version would not have found are a problem, whatever the "
          "seal says",
          "[replay]") {
  told t;
  const auto page = explain(t.e);
  t.e.agent_id = "somebody else";
  auto r = replay(t.e, t.kept.source(), page, seal_of(to_json(t.e)), this_version);
  REQUIRE(r.problems.size() == 1);
  CHECK(r.problems[0].where == "explanation");
  CHECK_FALSE(r.explanation_same);
  CHECK_FALSE(r.words_differ);
  // Of another version the seal is believed, else the page, else nothing.
  const std::string newer = "0.2.0";
  CHECK(replay(t.e, t.kept.source(), page, seal_state::whole, newer).holds());
  r = replay(t.e, t.kept.source(), page, seal_state::none, newer);
  CHECK(r.holds());
  CHECK(r.words_differ);
  r = replay(t.e, t.kept.source(), {}, seal_state::none, newer);
  REQUIRE(r.problems.size() == 2);
  CHECK(r.problems[0].where == "explanation");
  CHECK(r.problems[1].where == "explain.md");
}

TEST_CASE("replay: a record of this version without a seal is a problem", "[replay]") {
  const told t;
  const auto r = replay(t.e, t.kept.source(), explain(t.e), seal_state::none, this_version);
  REQUIRE(r.problems.size() == 1);
  CHECK(r.problems[0].where == "record.json");
  CHECK(replay(t.e, t.kept.source(), explain(t.e), seal_state::none, "0.2.0").holds());
}

TEST_CASE("replay: a record that another version wrote holds, whatever its words were",
          "[replay]") {
  told t;
  const std::string page = "# What an earlier version wrote\n";
  t.e.attempts[0].version = "0.0.9";
  t.e.explanation = sha256_hex(page);
  const auto text = to_json(t.e);
  CHECK(seal_of(text) == seal_state::whole);
  auto r = replay(t.e, t.kept.source(), page, seal_of(text), this_version);
  CHECK(r.holds());
  CHECK(r.words_differ);
  CHECK_FALSE(r.explanation_same);
  // The page is compared all the same.
  r = replay(t.e, t.kept.source(), page + "more\n", seal_of(text), this_version);
  REQUIRE(r.problems.size() == 1);
  CHECK(r.problems[0].where == "explain.md");
  CHECK_FALSE(r.holds());
}

TEST_CASE("replay: no byte of a record can change unseen", "[replay]") {
  const told t;
  const auto text = to_json(t.e);
  for (std::size_t at = 0; at < text.size(); ++at) {
    auto other = text;
    other[at] ^= 1;
    INFO(at);
    CHECK(seal_of(other) != seal_state::whole);
  }
  auto other = text;
  other.replace(other.find("keeper"), 6, "waiter");
  const auto read = read_execution(other);
  REQUIRE(read);
  const auto r = replay(*read, t.kept.source(), {}, seal_of(other), this_version);
  REQUIRE_FALSE(r.problems.empty());
  CHECK(r.problems[0].where == "record.json");
  CHECK_FALSE(r.words_differ);
  // Of before records were sealed.
  other.resize(other.rfind(",\n \"seal\""));
  CHECK(seal_of(other + "\n}\n") == seal_state::none);
}

TEST_CASE("replay: places that a damaged record names are no reason to read beyond the frame",
          "[replay]") {
  told t;
  t.e.attempts[0].prompt.places[0].at = 1'000'000;
  CHECK_FALSE(replay(t.e, t.kept.source(), explain(t.e), seal_state::whole, this_version).holds());
  t.e.attempts[0].version.clear(); // of an older record
  const auto r = replay(t.e, t.kept.source(), explain(t.e), seal_state::whole, this_version);
  CHECK(r.problems.front().what == "not recorded");
}

TEST_CASE("replay: any text comes back, whatever contents stand in it", "[replay]") {
  REQUIRE(rc::check([](const std::string& head, const std::string& tail) {
    const auto file = long_text("x") + head;
    const auto other = long_text("y");
    const auto text = head + file + tail + other + head;
    std::vector<std::string> contents{file, other};
    execution e;
    attempt a;
    a.version = "1";
    a.prompt = take_apart(text, {{sha256_hex(file), file}, {sha256_hex(other), other}}, contents);
    begin_attempt(e, std::move(a), {});
    store kept;
    for (const auto& c : contents)
      kept.keep(c);
    const auto back = read_execution(to_json(e));
    RC_ASSERT(back);
    const auto r = replay(*back, kept.source(), {}, seal_state::whole, this_version);
    RC_ASSERT(r.holds());
    RC_ASSERT(r.texts.at(0).text == text);
  }));
}

} // namespace boyd::replay_test
