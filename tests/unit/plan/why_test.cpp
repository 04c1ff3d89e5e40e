#include "boyd/plan/slots.hpp"
#include "boyd/plan/why.hpp"
#include "support/pch.hpp"
#include "unit/plan/fake_zones.hpp"

#include <nlohmann/json.hpp>

#include <algorithm>

namespace boyd::why_test {

using namespace boyd;
using namespace boyd::test;

namespace {

occurrence slot(const char* when, occurrence_state state, const char* cycle = "",
                const char* reason = "") {
  occurrence o;
  o.kernel_id = "default";
  o.scheduled_at = at(when);
  o.trigger = "schedule";
  o.state = state;
  o.cycle_id = cycle;
  o.reason = reason;
  return o;
}

store::list_decisions::row decided(const char* cycle, const char* agent, const char* reason,
                                   const char* detail, const char* when) {
  return {cycle, at(when), {agent, std::string_view{reason}.empty(), reason, detail}};
}

plan::why_input history() {
  plan::why_input in;
  in.kernel_id = "default";
  in.now = at("2026-02-13T10:35:00Z");
  in.occurrences = {
      slot("2026-02-13T10:30:00Z", occurrence_state::skipped, "", "running: cycle c2 still runs"),
      slot("2026-02-13T10:20:00Z", occurrence_state::open, "c2"),
      slot("2026-02-13T10:10:00Z", occurrence_state::ran, "c1")};
  in.occurrences[2].late = true;
  in.decisions = {decided("c2", "a", "running", "run d1 is running", "2026-02-13T10:20:01Z"),
                  decided("c1", "a", "", "", "2026-02-13T10:10:01Z"),
                  decided("c1", "b", "cooldown", "over at X", "2026-02-13T10:10:01Z")};
  in.next_slot = at("2026-02-13T10:40:00Z");
  return in;
}

bool says(const plan::why_answer& a, const std::string& sentence) {
  return std::ranges::find(a.sentences, sentence) != a.sentences.end();
}

} // namespace

TEST_CASE("why: the kernel's latest slot and the next") {
  const auto answer = explain_why(history());
  CHECK(answer.sentences ==
        std::vector<std::string>{"Kernel default: the cycle of 2026-02-13T10:30:00Z was "
                                 "skipped: running: cycle c2 still runs.",
                                 "Kernel default runs next at 2026-02-13T10:40:00Z."});
}

TEST_CASE("why: the kernel at a time, with every agent's decision") {
  auto in = history();
  in.at = at("2026-02-13T10:15:00Z");
  const auto answer = explain_why(in);
  CHECK(says(answer, "Kernel default: the cycle of 2026-02-13T10:10:00Z ran late as c1."));
  CHECK(says(answer, "Agent a was dispatched in cycle c1 at 2026-02-13T10:10:01Z."));
  CHECK(says(answer, "Agent b was not dispatched in cycle c1 at 2026-02-13T10:10:01Z because its "
                     "cooldown was not over (over at X)."));
}

TEST_CASE("why: a cycle that was asked for by hand is not taken for one of the schedule") {
  auto in = history();
  in.agent_id = "a";
  in.at = at("2026-02-13T10:10:00Z");
  const std::string by_hand = "That cycle was asked for by hand, not by the schedule.";
  CHECK_FALSE(says(explain_why(in), by_hand));
  in.occurrences[2].trigger = "manual";
  CHECK(says(explain_why(in), by_hand));
}

namespace {

/// A cycle of the schedule, and in its minute a refused request and a run of each agent by hand.
plan::why_input busy_minute() {
  auto in = history();
  in.occurrences = {
      slot("2026-02-13T10:30:30Z", occurrence_state::ran, "c3"),
      slot("2026-02-13T10:30:20Z", occurrence_state::ran, "c2"),
      slot("2026-02-13T10:30:10Z", occurrence_state::skipped, "", "the kernel is paused"),
      slot("2026-02-13T10:30:00Z", occurrence_state::ran, "c1")};
  for (std::size_t i = 0; i < 3; ++i)
    in.occurrences[i].trigger = "manual";
  in.decisions = {decided("c3", "b", "", "", "2026-02-13T10:30:30Z"),
                  decided("c2", "a", "", "", "2026-02-13T10:30:20Z"),
                  decided("c1", "a", "paused", "holiday", "2026-02-13T10:30:00Z"),
                  decided("c1", "b", "", "", "2026-02-13T10:30:00Z")};
  dispatch run;
  run.dispatch_id = "01a22e21-74bc-7568-8c86-64a26dd9cf5a";
  run.cycle_id = "c2";
  run.agent_id = "a";
  run.status = dispatch_status::done;
  in.runs = {run};
  in.at = at("2026-02-13T10:30:59.999Z");
  return in;
}

} // namespace

TEST_CASE("why: the schedule's cycle answers for its minute, and runs by hand stand behind it") {
  auto in = busy_minute();
  in.agent_id = "a";
  const auto of_a = explain_why(in);
  CHECK(of_a.sentences.at(0) == "Agent a was not dispatched in cycle c1 at 2026-02-13T10:30:00Z "
                                "because it was paused (holiday).");
  CHECK(of_a.sentences.at(1) ==
        "Run by hand in the same minute: 2026-02-13T10:30:20Z, done (run 64a26dd9).");
  CHECK_FALSE(says(of_a, "That cycle was asked for by hand, not by the schedule."));
  const auto json = nlohmann::json::parse(of_a.json);
  CHECK(json["slot"]["cycle_id"] == "c1");
  REQUIRE(json["same_minute"].size() == 1);
  CHECK(json["same_minute"][0]["cycle_id"] == "c2");
  in.agent_id = "b";
  CHECK(says(explain_why(in), "Run by hand in the same minute: 2026-02-13T10:30:30Z, dispatched."));
  in.agent_id.clear();
  const auto of_all = explain_why(in);
  CHECK(of_all.sentences.at(0) == "Kernel default: the cycle of 2026-02-13T10:30:00Z ran as c1.");
  CHECK(says(of_all, "Run by hand in the same minute: a at 2026-02-13T10:30:20Z, done "
                     "(run 64a26dd9)."));
  CHECK(says(of_all, "Run by hand in the same minute: b at 2026-02-13T10:30:30Z, dispatched."));
}

TEST_CASE("why: which of the cycles answers") {
  auto in = busy_minute();
  const auto answers = [&] {
    const auto* found = plan::cycles_asked_about(in).slot;
    return found == nullptr ? "none" : found->cycle_id;
  };
  CHECK(answers() == "c1");
  in.agent_id = "a";
  CHECK(answers() == "c1");
  // A second that an answer has printed finds the cycle it was printed of.
  in.at = at("2026-02-13T10:30:20.999Z");
  CHECK(answers() == "c2");
  in.at = at("2026-02-13T10:30:30.999Z");
  CHECK(answers() == "c1"); // that was a run of b
  // Without a cycle of the schedule it is the newest that the agent was in.
  in.at = at("2026-02-13T10:30:59.999Z");
  in.occurrences.pop_back();
  CHECK(answers() == "c2");
  CHECK(says(explain_why(in), "That cycle was asked for by hand, not by the schedule."));
  in.agent_id = "b";
  CHECK(answers() == "c3");
  in.agent_id = "c";
  CHECK(answers() == "none");
  CHECK(explain_why(in).sentences.front() ==
        "Agent c did not run at 2026-02-13T10:30:00Z: no cycle was about it until then.");
  // By hand, but a cycle of all agents: it says that c was not there.
  in.decisions.push_back(decided("c3", "a", "", "", "2026-02-13T10:30:30Z"));
  CHECK(answers() == "c3");
  CHECK(explain_why(in).sentences.front() ==
        "Agent c was not in boyd.yaml at 2026-02-13T10:30:00Z.");
}

TEST_CASE("why: of the kernel, a run of one agent answers for no later minute") {
  auto in = busy_minute();
  in.at = at("2026-02-13T10:33:59.999Z");
  CHECK(plan::cycles_asked_about(in).slot->cycle_id == "c1");
  CHECK(plan::cycles_asked_about(in).by_hand.empty());
  in.occurrences.pop_back();
  CHECK(plan::cycles_asked_about(in).slot->cycle_id == "c3");
  // A minute that has begun is no time to come.
  in.at = at("2026-02-13T10:35:59.999Z");
  in.now = at("2026-02-13T10:35:20Z");
  CHECK_THAT(explain_why(in).sentences.front(), !Catch::Matchers::Contains("still to come"));
}

TEST_CASE("why: an agent's latest decision, or the one at a time") {
  auto in = history();
  in.agent_id = "a";
  CHECK(says(explain_why(in), "Agent a was not dispatched in cycle c2 at 2026-02-13T10:20:01Z "
                              "because its previous run was still active (run d1 was running)."));
  in.at = at("2026-02-13T10:10:00Z");
  CHECK(says(explain_why(in), "Agent a was dispatched in cycle c1 at 2026-02-13T10:10:01Z."));
  in.at = at("2026-02-13T10:31:00Z");
  CHECK(explain_why(in).sentences.front() ==
        "Agent a did not run at 2026-02-13T10:31:00Z: the cycle of 2026-02-13T10:30:00Z was "
        "skipped: running: cycle c2 still runs.");
}

TEST_CASE("why: an agent that no cycle has decided about has one reason for it") {
  auto in = history();
  in.agent_id = "new";
  in.at = at("2026-02-13T10:10:00Z");
  CHECK(explain_why(in).sentences.front() ==
        "Agent new was not in boyd.yaml at 2026-02-13T10:10:00Z.");
  in.agent_schedule = "0 10 * * *";
  in.agent_due = at("2026-02-13T10:00:00Z");
  const std::string not_due = "Its schedule (0 10 * * *) has no run at 2026-02-13T10:10:00Z.";
  CHECK(explain_why(in).sentences.at(1) == not_due);
  in.agent_due = in.at;
  CHECK_FALSE(says(explain_why(in), not_due));
  in.at.reset();
  in.occurrences.erase(in.occurrences.begin());
  CHECK(explain_why(in).sentences ==
        std::vector<std::string>{
            "Agent new has not run yet: it was added after the cycle of 2026-02-13T10:20:00Z.",
            "Agent new runs next at 2026-02-13T10:40:00Z."});
  in.occurrences.front().trigger = "manual";
  CHECK(says(explain_why(in), "Agent new has not run yet: the cycle asked for at "
                              "2026-02-13T10:20:00Z was about another agent."));
  in.decisions.clear();
  CHECK(says(explain_why(in),
             "Agent new has not run yet: the cycle of 2026-02-13T10:20:00Z has just begun."));
  in.occurrences.clear();
  CHECK(says(explain_why(in), "Agent new has not run yet: kernel default has had no cycle."));
}

TEST_CASE("why: an agent before its home was made, and without a node") {
  auto in = history();
  in.agent_id = "a";
  in.occurrences.clear();
  in.decisions.clear();
  in.at = at("2026-02-13T10:00:59.999Z");
  in.expected_slot = at("2026-02-13T10:00:00Z");
  in.node_since = at("2026-02-13T10:05:00Z");
  in.node_runs = false;
  CHECK(explain_why(in).sentences ==
        std::vector<std::string>{"Agent a did not run at 2026-02-13T10:00:00Z: this home did not "
                                 "exist yet; it was made at 2026-02-13T10:05:00Z.",
                                 "Agent a runs next at 2026-02-13T10:40:00Z, but no node is "
                                 "running; start one with: boyd node"});
  in.node_since = at("2026-02-13T09:00:00Z");
  CHECK(says(explain_why(in),
             "Agent a did not run at 2026-02-13T10:00:00Z: no node was running then."));
  in.schedule = "0 10 * * *";
  in.at = at("2026-02-13T10:07:59.999Z");
  CHECK(says(explain_why(in), "Agent a did not run at 2026-02-13T10:07:00Z: kernel default had no "
                              "cycle then; its schedule is \"0 10 * * *\"."));
  in.at.reset();
  CHECK(says(explain_why(in),
             "Agent a has not run yet: no node was running at 2026-02-13T10:00:00Z."));
  in.enabled = false;
  CHECK(explain_why(in).sentences.back() == "Agent a does not run: it is disabled in boyd.yaml.");
}

TEST_CASE("why: a time that is still to come") {
  auto in = history();
  in.agent_id = "a";
  in.at = at("2027-01-01T00:00:00Z");
  CHECK(explain_why(in).sentences ==
        std::vector<std::string>{"2027-01-01T00:00:00Z is still to come; see: boyd next a",
                                 "Agent a runs next at 2026-02-13T10:40:00Z."});
}

TEST_CASE("why: a run by hand stands behind the latest cycle of all agents") {
  auto in = history();
  in.by_hand = decided("c9", "b", "", "", "2026-02-13T10:34:00Z");
  const auto answer = explain_why(in);
  CHECK_THAT(answer.sentences.front(), Catch::Matchers::Contains("the cycle of 2026-02-13T10:30"));
  CHECK(says(answer, "Run by hand since then: Agent b was dispatched in cycle c9 at "
                     "2026-02-13T10:34:00Z."));
  CHECK(nlohmann::json::parse(answer.json)["by_hand"]["agent_id"] == "b");
}

TEST_CASE("why: an agent that is no longer configured") {
  auto in = history();
  in.agent_id = "a";
  CHECK_THAT(explain_why(in).json, Catch::Matchers::Contains(R"("last_decided":null)"));
  in.last_decided = at("2026-02-13T10:20:01Z");
  const auto answer = explain_why(in);
  CHECK(says(answer, "Agent a is no longer configured in boyd.yaml, so it does not run any more; "
                     "the last decision about it was made at 2026-02-13T10:20:01Z."));
  CHECK_THAT(answer.json, Catch::Matchers::Contains(R"("last_decided":"2026-02-13T10:20:01Z")"));
}

TEST_CASE("why: how the run of a decision ended") {
  auto in = history();
  in.agent_id = "a";
  in.at = at("2026-02-13T10:10:00Z");
  dispatch d;
  d.dispatch_id = "d7";
  d.cycle_id = "another";
  d.agent_id = "a";
  in.runs = {d};
  const std::string decided = "Agent a was dispatched in cycle c1 at 2026-02-13T10:10:01Z.";
  CHECK(says(explain_why(in), decided));
  in.runs[0].cycle_id = "c1";
  CHECK(says(explain_why(in), decided + " It is waiting to run."));
  in.runs[0].status = dispatch_status::done;
  CHECK(says(explain_why(in), decided + " It is done."));
  in.runs[0].status = dispatch_status::failed;
  in.runs[0].outcome.failure = failure_class::deterministic;
  in.runs[0].outcome.error = "exit code 3";
  in.runs[0].attempt = 2;
  CHECK(says(explain_why(in), decided + " It failed (attempt 2 of 3): exit code 3 "
                                        "(no automatic retry)."));
  in.runs[0].status = dispatch_status::pending;
  in.runs[0].not_before = at("2026-02-13T10:11:00Z");
  CHECK(says(explain_why(in), decided + " Attempt 2 of 3 failed: exit code 3. The next one starts "
                                        "at 2026-02-13T10:11:00Z."));
  in.runs[0].status = dispatch_status::failed;
  in.runs[0].attempt = 1;
  const auto answer = explain_why(in);
  CHECK(says(answer, decided + " It failed: exit code 3 (no automatic retry)."));
  CHECK_THAT(answer.json, Catch::Matchers::Contains(R"("dispatch_id":"d7")") &&
                              Catch::Matchers::Contains(R"("status":"failed")"));
}

TEST_CASE("why: a time without a fraction covers its whole second") {
  auto in = history();
  in.occurrences.front().scheduled_at = at("2026-02-13T10:30:00Z") + 417ms;
  const auto answer_at = [&](const char* when) {
    in.at = plan::end_of_moment(when).value();
    return explain_why(in).sentences.front();
  };
  // What an answer prints finds what it printed.
  const std::string printed = "Kernel default: the cycle of 2026-02-13T10:30:00Z was skipped: "
                              "running: cycle c2 still runs.";
  CHECK(answer_at("2026-02-13T10:30:00Z") == printed);
  CHECK(answer_at("2026-02-13T11:30:00+01:00") == printed);
  CHECK(answer_at("2026-02-13T10:30:00.417Z") == printed);
  CHECK(answer_at("2026-02-13T10:30:00.416Z") != printed);
  CHECK(answer_at("2026-02-13T10:29:59Z") != printed);
  CHECK(plan::end_of_moment("10:30").error().code == errc::parse_error);
}

TEST_CASE("why: nothing recorded, slots without a row, and summary rows") {
  auto in = history();
  in.at = at("2026-02-12T00:00:00Z");
  CHECK(says(explain_why(in), "Kernel default has had no cycle until 2026-02-12T00:00:00Z."));
  in.occurrences = {slot("2026-02-11T00:00:00Z", occurrence_state::missed, "",
                         "no node was running then; stands for every slot from "
                         "2026-02-11T00:00:00Z to 2026-02-12T00:00:00Z")};
  in.expected_slot = at("2026-02-12T00:00:00Z");
  auto json = nlohmann::json::parse(explain_why(in).json);
  CHECK(json["unrecorded_slot"].is_null());
  CHECK(json["slot"]["stands_until"] == "2026-02-12T00:00:00Z");
  in.expected_slot = at("2026-02-12T00:10:00Z");
  in.at = at("2026-02-12T00:10:30Z");
  const auto answer = explain_why(in);
  CHECK(says(answer, "Kernel default had no cycle at 2026-02-12T00:10:30Z: no node was running "
                     "then."));
  json = nlohmann::json::parse(answer.json);
  CHECK(json["unrecorded_slot"] == "2026-02-12T00:10:00Z");
  in.occurrences.clear();
  in.node_since = at("2026-02-13T09:00:00Z");
  CHECK(explain_why(in).sentences.front() ==
        "Kernel default had no cycle at 2026-02-12T00:10:30Z: this home did not exist yet; it was "
        "made at 2026-02-13T09:00:00Z.");
  in.at.reset();
  CHECK(says(explain_why(in), "Kernel default has had no cycle: no cycle was due since this home "
                              "was made at 2026-02-13T09:00:00Z."));
  in.expected_slot = in.now;
  CHECK(says(explain_why(in), "Kernel default has had no cycle: the cycle of 2026-02-13T10:35:00Z "
                              "has not started yet."));
  in.node_runs = false;
  CHECK(says(explain_why(in), "Kernel default has had no cycle: no node is running."));
}

TEST_CASE("why: a minute in which the kernel has no cycle") {
  auto in = history();
  in.schedule = "*/10 * * * *";
  in.at = at("2026-02-13T10:15:59Z");
  in.expected_slot = at("2026-02-13T10:10:00Z");
  CHECK(explain_why(in).sentences.front() ==
        "Kernel default had no cycle at 2026-02-13T10:15:00Z: its schedule is \"*/10 * * * *\".");
  in.at = at("2026-02-13T10:10:59Z");
  CHECK(explain_why(in).sentences.front() ==
        "Kernel default: the cycle of 2026-02-13T10:10:00Z ran late as c1.");
  // A run by hand in that minute is a cycle, too.
  in.at = at("2026-02-13T10:15:59Z");
  in.occurrences.push_back(slot("2026-02-13T10:15:20Z", occurrence_state::ran, "c3"));
  in.occurrences.back().trigger = "manual";
  CHECK(explain_why(in).sentences.front() ==
        "Kernel default: the cycle asked for at 2026-02-13T10:15:20Z ran as c3.");
}

TEST_CASE("why: pauses, quiet hours and the agent's own schedule") {
  auto in = history();
  in.agent_id = "a";
  in.pauses = {{"default", "", "holiday", at("2026-02-13T09:00:00Z")},
               {"default", "a", "broken", at("2026-02-13T09:30:00Z")},
               {"default", "b", "not asked", at("2026-02-13T09:30:00Z")},
               {"other", "", "not asked", at("2026-02-13T09:30:00Z")}};
  in.quiet = plan::quiet_now{"night", at("2026-02-14T05:00:00Z")};
  in.own_schedule = true;
  in.next_agent_slot = at("2026-02-14T08:00:00Z");
  const auto answer = explain_why(in);
  CHECK(says(answer, "Kernel default has been paused since 2026-02-13T09:00:00Z: holiday."));
  CHECK(says(answer, "Agent a has been paused since 2026-02-13T09:30:00Z: broken."));
  CHECK(says(answer, "Quiet hours until 2026-02-14T05:00:00Z: night."));
  CHECK(says(answer, "It runs again after: boyd resume"));
  CHECK(answer.sentences.back() == "It runs again after: boyd resume a");
  in.several_kernels = true;
  CHECK(explain_why(in).sentences.back() == "It runs again after: boyd resume a --kernel default");
  in.pauses = {{"default", "a", "", at("2026-02-13T09:30:00Z")}};
  CHECK(says(explain_why(in),
             "Agent a has been paused since 2026-02-13T09:30:00Z: no reason given."));
  in.pauses.clear();
  CHECK(says(explain_why(in), "Agent a is due at 2026-02-14T08:00:00Z, but its kernel has no cycle "
                              "after that."));
  in.next_agent_cycle = at("2026-02-14T08:10:00Z");
  CHECK(says(explain_why(in), "Agent a runs next at 2026-02-14T08:10:00Z (it is due at "
                              "2026-02-14T08:00:00Z)."));
  const auto json = nlohmann::json::parse(answer.json);
  CHECK(json["pauses"].size() == 2);
  CHECK(json["agent_id"] == "a");
  CHECK(json["decisions"][0]["reason"] == "running");
  CHECK(json["sentences"].size() == answer.sentences.size());
}

TEST_CASE("why: since when an agent was paused, and why") {
  auto in = history();
  in.agent_id = "a";
  const auto because = [&](const char* detail) {
    in.decisions = {decided("c2", "a", "paused", detail, "2026-02-13T10:20:01Z")};
    const auto sentence = explain_why(in).sentences.front();
    return sentence.substr(sentence.find(" because "));
  };
  CHECK(because("since 2026-02-13T09:30:00Z: weekend: all of it") ==
        " because it had been paused since 2026-02-13T09:30:00Z (weekend: all of it).");
  CHECK(because("since 2026-02-13T09:30:00Z") ==
        " because it had been paused since 2026-02-13T09:30:00Z.");
  CHECK(because("the kernel, since 2026-02-13T09:30:00Z: holiday") ==
        " because its kernel had been paused since 2026-02-13T09:30:00Z (holiday).");
  CHECK(because("night until 2026-02-13T11:00:00Z") ==
        " because it was paused (night until 2026-02-13T11:00:00Z).");
}

TEST_CASE("why: bad bytes in a reason do not break the answer") {
  auto in = history();
  in.occurrences = {slot("2026-02-13T10:30:00Z", occurrence_state::skipped, "", "bad \xFF")};
  CHECK(nlohmann::json::accept(explain_why(in).json));
}

TEST_CASE("why: a sentence is one line, whatever people wrote") {
  auto in = history();
  in.agent_id = "a";
  in.occurrences[0].reason = "first\nsecond\r\n\x1b[31mthird";
  in.decisions[0].decision.detail = "one\ttwo\nthree";
  in.pauses = {{"default", "a", "back on\nMonday", at("2026-02-13T09:30:00Z")}};
  in.quiet = plan::quiet_now{"night\nrest", at("2026-02-14T05:00:00Z")};
  const auto answer = explain_why(in);
  CHECK(says(answer, "Agent a has been paused since 2026-02-13T09:30:00Z: back on Monday."));
  for (const auto& sentence : answer.sentences) {
    INFO(sentence);
    CHECK(std::ranges::none_of(sentence, [](char c) { return c >= 0 && c < ' '; }));
  }
  // The rows' own words are not touched.
  CHECK(nlohmann::json::parse(answer.json)["pauses"][0]["reason"] == "back on\nMonday");
}

} // namespace boyd::why_test
