#include "actors/approvals/core.hpp"
#include "boyd/queue/approvals.hpp"
#include "support/pch.hpp"

namespace boyd::approvals_core_test {

using namespace boyd;
using namespace boyd::approving;
using store::approval_outcome;
using store::approval_state;

namespace {

constexpr steady_time t0{milliseconds{1'000'000}};

approval_wish wish(const std::string& id = "w1", milliseconds wait = 5min, bool hold = false) {
  approval_wish w;
  w.ask.approval_id = id;
  w.ask.matter.kernel_id = "k";
  w.ask.matter.agent_id = "a";
  w.ask.matter.dispatch_id = "d";
  w.ask.matter.tool = "run_command";
  w.ask.fence = 3;
  w.ask.lives = 24h;
  w.wait = wait;
  w.hold = hold;
  return w;
}

store::approval row_of(const approval_wish& w, approval_state state = approval_state::pending) {
  store::approval row;
  row.approval_id = w.ask.approval_id;
  row.matter = w.ask.matter;
  row.fence = w.ask.fence;
  row.expires_at = row.created_at + w.ask.lives;
  row.state = state;
  row.decided_by = "anna";
  return row;
}

store::ask_approval::reply
asked(const approval_wish& w, approval_state state = approval_state::pending, bool fresh = true) {
  return {row_of(w, state), fresh};
}

struct room_of_one {
  waiting_room room{[n = 0]() mutable { return "use-" + std::to_string(++n); }, 30s};
  approval_wish w;

  explicit room_of_one(approval_wish first = wish()) : w(std::move(first)) {
    const auto all = room.on_wish(w, t0);
    REQUIRE(all.size() == 1);
    REQUIRE(std::holds_alternative<effect::ask>(all.front()));
  }
  void into_the_inbox() {
    const auto all = room.on_asked("w1", asked(w), t0);
    REQUIRE(all.size() == 2);
    CHECK(std::get<effect::tell>(all[0]).answer.word == approval_word::asked);
    CHECK(std::get<effect::notify>(all[1]).row.approval_id == "w1");
  }
  void approve() {
    const auto all = room.on_decided(row_of(w, approval_state::approved));
    REQUIRE(all.size() == 1);
    CHECK(std::get<effect::tell>(all[0]).answer.word == approval_word::approved);
  }
  effect::use use() {
    auto all = room.on_use({"w1", "hash"});
    REQUIRE(all.size() == 1);
    return std::get<effect::use>(all.front());
  }
};

approval_answer told(const approving::effects& all) {
  REQUIRE(all.size() == 1);
  return std::get<effect::tell>(all.front()).answer;
}

error away() {
  return {errc::store_unavailable, "away", {}, {}};
}

} // namespace

TEST_CASE("approvals: asked, approved, used", "[approvals]") {
  room_of_one r;
  r.into_the_inbox();
  CHECK(r.room.waiting() == 1);
  r.approve();
  // Said again by a look: it is known.
  CHECK(r.room.on_rows({row_of(r.w, approval_state::approved)}).empty());
  const auto use = r.use();
  CHECK(use.what.hash == "hash");
  CHECK(use.what.fence == 3);
  CHECK(use.what.use_id == "use-1");
  CHECK(r.room.on_use({"w1", "hash"}).empty());
  const auto answer = told(r.room.on_used(
      "w1", store::approval_change{approval_outcome::accepted, row_of(r.w, approval_state::used)},
      t0));
  CHECK(answer.word == approval_word::granted);
  CHECK(answer.why == "approved by anna");
  CHECK(r.room.waiting() == 0);
  CHECK_FALSE(r.room.next(t0));
}

TEST_CASE("approvals: what the store does not let through is denied with its reason",
          "[approvals]") {
  room_of_one r;
  r.into_the_inbox();
  r.approve();
  r.use();
  const auto answer = told(r.room.on_used(
      "w1", store::approval_change{approval_outcome::mutated, row_of(r.w, approval_state::voided)},
      t0));
  CHECK(answer.word == approval_word::denied);
  CHECK_THAT(answer.why, Catch::Matchers::Contains("differs from the approved one"));
}

TEST_CASE("approvals: a no, an expiry and a withdrawal end the wait", "[approvals]") {
  const auto state =
      GENERATE(approval_state::rejected, approval_state::expired, approval_state::withdrawn);
  room_of_one r;
  r.into_the_inbox();
  const auto answer = told(r.room.on_rows({row_of(r.w, state)}));
  CHECK(answer.word == approval_word::denied);
  CHECK_FALSE(answer.why.empty());
  CHECK(r.room.waiting() == 0);
}

TEST_CASE("approvals: the end of the wait withdraws or holds", "[approvals]") {
  const bool hold = GENERATE(false, true);
  room_of_one r(wish("w1", 10s, hold));
  r.into_the_inbox();
  CHECK(r.room.next(t0) == t0 + 10s);
  auto all = r.room.on_time(t0 + 10s);
  REQUIRE(!all.empty());
  const auto withdraw = std::get<effect::withdraw>(all.front());
  CHECK(withdraw.what.hold == hold);
  CHECK(withdraw.what.approval_id == "w1");
  // A word that comes now is too late: the store decides which was first.
  CHECK(r.room.on_decided(row_of(r.w, approval_state::approved)).empty());
  SECTION("done") {
    const auto answer = told(r.room.on_withdrawn("w1", store::withdraw_approvals::reply{{"w1"}}));
    CHECK(answer.word == (hold ? approval_word::held : approval_word::unanswered));
  }
  SECTION("the store is away") {
    const auto answer = told(r.room.on_withdrawn("w1", fail(away())));
    CHECK(answer.word == approval_word::unanswered);
  }
  CHECK(r.room.waiting() == 0);
}

TEST_CASE("approvals: a store that is away is asked again, as long as the run waits",
          "[approvals]") {
  room_of_one r(wish("w1", 3s));
  CHECK(r.room.on_asked("w1", fail(away()), t0).empty());
  CHECK(r.room.next(t0) == t0 + ask_again);
  CHECK(r.room.on_time(t0).empty());
  CHECK(std::holds_alternative<effect::ask>(r.room.on_time(t0 + ask_again).front()));
  const auto answer = told(r.room.on_asked("w1", fail(away()), t0 + 3s));
  CHECK(answer.word == approval_word::denied);
  CHECK_THAT(answer.why, Catch::Matchers::Contains("cannot ask for approval"));
}

TEST_CASE("approvals: what the store refuses is not asked again", "[approvals]") {
  room_of_one r;
  const auto answer =
      told(r.room.on_asked("w1", fail(errc::limit_exceeded, "too long to be read"), t0));
  CHECK(answer.word == approval_word::denied);
}

TEST_CASE("approvals: the same use is tried again, by the same name", "[approvals]") {
  room_of_one r;
  r.into_the_inbox();
  r.approve();
  const auto first = r.use();
  auto now = t0;
  for (int i = 1; i < use_tries; ++i) {
    CHECK(r.room.on_used("w1", fail(away()), now).empty());
    now += ask_again;
    const auto all = r.room.on_time(now);
    REQUIRE(all.size() == 1);
    CHECK(std::get<effect::use>(all.front()).what.use_id == first.what.use_id);
  }
  CHECK(told(r.room.on_used("w1", fail(away()), now)).word == approval_word::denied);
}

TEST_CASE("approvals: a request of an earlier run is taken over under its own id", "[approvals]") {
  room_of_one r;
  auto earlier = asked(r.w, approval_state::pending, false);
  earlier.row.approval_id = "older";
  const auto all = r.room.on_asked("w1", earlier, t0);
  REQUIRE(all.size() == 1); // nobody is told again
  auto row = earlier.row;
  row.state = approval_state::approved;
  CHECK(told(r.room.on_decided(row)).word == approval_word::approved);
  CHECK(r.use().what.approval_id == "older");
}

TEST_CASE("approvals: decisions of other nodes are looked for", "[approvals]") {
  room_of_one r;
  r.into_the_inbox();
  r.room.on_time(t0);
  CHECK(r.room.next(t0) == t0 + 30s);
  CHECK(r.room.on_time(t0 + 1s).empty());
  r.room.look_soon();
  CHECK(r.room.next(t0 + 1s) == t0 + 1s);
  const auto all = r.room.on_time(t0 + 1s);
  REQUIRE(all.size() == 1);
  CHECK(std::get<effect::look>(all.front()).ids == std::vector<std::string>{"w1"});
}

TEST_CASE("approvals: late events change nothing", "[approvals]") {
  room_of_one r;
  r.room.forget("w1");
  CHECK(r.room.on_asked("w1", asked(r.w), t0).empty());
  CHECK(r.room.on_decided(row_of(r.w, approval_state::approved)).empty());
  CHECK(r.room.on_use({"w1", "hash"}).empty());
  CHECK(r.room.on_used("w1", store::approval_change{}, t0).empty());
  CHECK(r.room.on_withdrawn("w1", store::withdraw_approvals::reply{}).empty());
  CHECK(r.room.on_time(t0 + 1h).empty());
  CHECK_FALSE(r.room.next(t0));
}

TEST_CASE("approvals: a wish that is not wanted any more leaves the inbox", "[approvals]") {
  SECTION("when it is there") {
    room_of_one r;
    r.into_the_inbox();
    const auto all = r.room.on_withdrawal("w1", "taken back");
    REQUIRE(all.size() == 1);
    const auto& w = std::get<effect::withdraw>(all.front());
    CHECK(w.what.approval_id == "w1");
    CHECK(w.what.why == "taken back");
    CHECK_FALSE(w.what.hold);
    CHECK(told(r.room.on_withdrawn("w1", store::withdraw_approvals::reply{{"w1"}})).word ==
          approval_word::unanswered);
  }
  SECTION("as soon as it is there, and nobody is told of it") {
    room_of_one r;
    CHECK(r.room.on_withdrawal("w1", "taken back").empty());
    const auto all = r.room.on_asked("w1", asked(r.w), t0);
    REQUIRE(all.size() == 1);
    CHECK(std::get<effect::withdraw>(all.front()).what.approval_id == "w1");
  }
  SECTION("though nobody asked for it") {
    room_of_one r;
    CHECK(r.room.on_withdrawal("w2", "taken back").empty());
  }
}

TEST_CASE("approvals: the form of a question is known while it waits", "[approvals]") {
  auto w = wish();
  w.form_json = "{}";
  room_of_one r(std::move(w));
  CHECK(r.room.form_of("w1").empty());
  r.into_the_inbox();
  CHECK(r.room.form_of("w1") == "{}");
  CHECK(r.room.form_of("w2").empty());
}

} // namespace boyd::approvals_core_test
