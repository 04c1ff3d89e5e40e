#include "boyd/queue/approvals.hpp"
#include "support/knob.hpp"
#include "support/pch.hpp"
#include "tests/sim/fixture.hpp"
#include "tests/sim/lab/machine.hpp"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <map>
#include <memory>
#include <set>
#include <utility>

namespace boyd::approvals_test {

using namespace boyd;
using namespace boyd::sim;
using store::approval_outcome;
using store::approval_state;

namespace {

constexpr int all_seeds = 30;
/// What is rare in a world is looked for in so many.
constexpr int most_seeds = 300;
constexpr int moments = 120;

/// A model that wants one command, then is content.
sim_http_answer think(const http_request& request) {
  const auto asked = nlohmann::json::parse(request.body);
  nlohmann::json message{{"role", "assistant"}};
  const bool last = asked["messages"].back()["role"] == "tool";
  if (last)
    message["content"] = "done";
  else
    message["tool_calls"] = {
        {{"id", "c1"},
         {"type", "function"},
         {"function", {{"name", "run_command"}, {"arguments", R"({"argv":["agent","effect"]})"}}}}};
  const nlohmann::json body{
      {"id", "1"},
      {"object", "chat.completion"},
      {"choices",
       {{{"index", 0}, {"message", message}, {"finish_reason", last ? "stop" : "tool_calls"}}}},
      {"usage", {{"prompt_tokens", 10}, {"completion_tokens", 5}}}};
  return {.headers = {{"content-type", "application/json"}}, .body = body.dump(), .delay = 200ms};
}

std::shared_ptr<config::configuration> asking(bool ends_run) {
  auto c = std::make_shared<config::configuration>(half_hourly({"writer"}, "work"));
  auto& p = c->providers.emplace_back();
  p.provider_id = "model";
  p.base_url = "http://127.0.0.1:1/v1";
  p.model = "m";
  p.capabilities.stream = p.capabilities.stream_usage = false;
  p.said = {true, true, true, true};
  c->kernels.front().when.expression = "@every 5m";
  auto& a = c->kernels.front().agents.front();
  a.run.emplace<config::chat_executor>().provider_id = "model";
  a.timeout = 15min;
  a.tools = {"run_command"};
  auto& rule = a.policy.rules.emplace_back();
  rule.tool = "run_command";
  rule.decision = config::policy_decision::ask;
  a.policy.approval = {.expires = 20min, .wait = 3min, .ends_run = ends_run};
  return c;
}

/// One machine, one person, and what goes wrong between them, from a seed.
class office {
 public:
  explicit office(std::uint64_t seed) : choices_(seed), configuration_(asking(seed % 3 == 0)) {
    machine_parts parts;
    parts.name = "node-a";
    parts.clock = clock_;
    parts.database = database_;
    parts.choices = &choices_;
    parts.note = [](std::uint64_t) {};
    parts.behave = [this](const process_spec&) { return act(); };
    parts.answer = think;
    parts.committed = parts.changed = [] {};
    parts.tell_others = [](const auto&) {};
    parts.shared_store = false;
    machine_ = std::make_unique<machine>(std::move(parts));
    machine_->boot(configuration_);
  }

  void live() {
    for (int i = 0; i < moments; ++i) {
      something_goes_wrong();
      somebody_decides();
      machine_->system().advance(milliseconds(1 + choices_.next() % 90'000));
      if (machine_->gone() || machine_->ended())
        again();
    }
    // Long enough for everything to expire and be swept.
    database_->faults.end();
    machine_->mend();
    machine_->system().advance(1h);
    if (machine_->gone() || machine_->ended())
      again();
    machine_->system().advance(5min);
  }

  /// What is wrong, in words.
  std::vector<std::string> complaints;
  int effects = 0;
  int crashes = 0;
  int decided = 0;

  std::vector<store::find_approval::story> stories() const { return database_->approvals(); }

  std::ptrdiff_t uses() const {
    std::ptrdiff_t n = 0;
    for (const auto& s : stories())
      n += accepted(s, "use");
    return n;
  }

  static std::ptrdiff_t accepted(const store::find_approval::story& s, const std::string& what) {
    return std::ranges::count_if(s.trail, [&](const auto& l) {
      return l.what == what && l.outcome == approval_outcome::accepted;
    });
  }

 private:
  /// The agent's command: the effect that a person is asked about.
  sim_program act() {
    if (++effects > uses())
      complaints.push_back("an action was done that nobody had let through");
    sim_program p;
    p.output = "ok\n";
    p.duration = milliseconds(choices_.next() % 5000);
    return p;
  }

  void something_goes_wrong() {
    switch (choices_.next() % 12) {
    case 0:
      machine_->end_at(cut_unit::messages, choices_.next() % 60, choices_.next() % 2 == 0);
      break;
    case 1:
      machine_->end_at(cut_unit::changes, choices_.next() % 10, false);
      break;
    case 2:
      machine_->kill_actor_after(choices_.next() % 60);
      break;
    case 3:
      database_->faults.disconnect_before = 0.3;
      database_->faults.disconnect_in_commit = 0.3;
      break;
    case 4:
      database_->faults.unavailable = true;
      break;
    default:
      database_->faults.end();
    }
  }

  /// As through another node: right, twice, late, or about something else.
  void somebody_decides() {
    for (const auto& s : stories()) {
      const auto dice = choices_.next() % 8;
      if (dice > 3)
        continue;
      store::decide_approval op{s.row.approval_id,
                                s.row.hash,
                                dice != 0,
                                "anna",
                                {},
                                "decision-" + std::to_string(++decided)};
      if (dice == 3)
        op.hash += "0";
      database_->run({store::operation{op}});
      // And somebody who has kept it tries to use it by himself.
      if (choices_.next() % 4 == 0)
        database_->run({store::operation{store::use_approval{
            s.row.approval_id, s.row.hash, s.row.fence + 1, "stolen-" + std::to_string(decided)}}});
    }
  }

  void again() {
    ++crashes;
    if (machine_->gone_by_power())
      machine_->power_cut();
    else
      machine_->kill_node();
    machine_->boot(configuration_);
  }

  seeded_entropy choices_;
  std::shared_ptr<test::virtual_clock> clock_ = std::make_shared<test::virtual_clock>();
  std::shared_ptr<sim_database> database_ =
      std::make_shared<sim_database>(clock_, std::make_shared<seeded_entropy>(7));
  std::shared_ptr<config::configuration> configuration_;
  std::unique_ptr<machine> machine_;
};

} // namespace

TEST_CASE("case 57 approval-double: one effect at most, whatever crashes between the question and "
          "the action") {
  const quiet log;
  // Not every N-th seed, but the first of them: each third is another kind of world.
  const int seeds = std::max(1, all_seeds / static_cast<int>(test::sweep_stride()));
  int effects = 0;
  int crashes = 0;
  std::ptrdiff_t uses = 0;
  std::map<approval_state, int> ends;
  // Such worlds have all of it, also actions that a crash took after they were let through.
  for (int seed = 1; seed <= seeds || (uses == effects && seed <= most_seeds); ++seed) {
    INFO("seed " << seed);
    office o(static_cast<std::uint64_t>(seed));
    o.live();
    INFO(joined(o.complaints));
    CHECK(o.complaints.empty());
    CHECK(o.effects <= o.uses());
    for (const auto& s : o.stories()) {
      INFO(s.row.approval_id);
      CHECK(office::accepted(s, "use") <= 1);
      CHECK(office::accepted(s, "approve") + office::accepted(s, "reject") <= 1);
      CHECK(office::accepted(s, "use") <= office::accepted(s, "approve"));
      CHECK((s.row.state == approval_state::used) == (office::accepted(s, "use") == 1));
      // Nothing of a run that is long over waits for anybody.
      CHECK((!queue::is_open(s.row.state) || s.row.created_at > s.row.expires_at - 1h));
      ++ends[s.row.state];
    }
    effects += o.effects;
    uses += o.uses();
    crashes += o.crashes;
  }
  CHECK(uses > effects);
  CHECK(effects > seeds);
  CHECK(crashes > seeds);
  for (const auto state : {approval_state::used, approval_state::rejected,
                           approval_state::withdrawn, approval_state::expired})
    CHECK(ends[state] > 0);
  CHECK(ends[approval_state::voided] == 0);
}

} // namespace boyd::approvals_test
