#include "harness.hpp"

#include <nlohmann/json.hpp>
#include <rapidcheck.h>

#include <algorithm>

namespace boyd::model_test {

// Random operations on the simulated store and on a real one must be answered alike. Times differ
// (PostgreSQL has its own clock), so the comparison leaves them out, and leases and delays are
// chosen far beyond the length of the test.

using namespace boyd;
using namespace boyd::test;

namespace {

std::string attempts_of(const dispatch& d) {
  auto all = nlohmann::json::parse(d.attempts_json);
  for (auto& a : all) {
    a.erase("started_at");
    a.erase("ended_at");
  }
  return all.dump();
}

std::string show(const dispatch& d) {
  std::string out = d.dispatch_id + " " + d.agent_id + " " + d.cycle_id + " p" +
                    std::to_string(d.priority) + " " + std::string{name_of(d.status)} + " a" +
                    std::to_string(d.attempt) + " r" + std::to_string(d.rescues) + " f" +
                    std::to_string(d.fence) + " " + d.lease_owner + " " + d.outcome.summary + "|" +
                    d.outcome.error + "|" + d.outcome.output + "|" + d.prompt + "|" +
                    nlohmann::json::parse(d.metadata_json).dump() + attempts_of(d);
  out += d.started_at ? "s" : "-";
  out += d.finished_at ? "f" : "-";
  out += d.lease_expires_at ? "l" : "-";
  return out;
}

struct shower {
  std::string operator()(const error& e) const { return "error " + std::string{name_of(e.code)}; }
  std::string operator()(const store::ok&) const { return "ok"; }
  std::string operator()(const store::enqueue_cycle::reply& r) const {
    std::string out = std::to_string(r.inserted);
    for (const auto& id : r.dispatch_ids)
      out += " " + id;
    return out;
  }
  std::string operator()(const std::vector<claimed_dispatch>& r) const {
    std::string out = "claimed";
    for (const auto& c : r)
      out += "\n" + show(c.row);
    return out;
  }
  std::string operator()(const std::vector<settle_result>& r) const {
    std::string out = "settled";
    for (const auto s : r)
      out += " " + std::string{name_of(s)};
    return out;
  }
  std::string operator()(const store::renew_leases::reply& r) const {
    std::string out = "lost";
    for (const auto& id : r.lost)
      out += " " + id;
    return out;
  }
  std::string operator()(const store::take_back::reply& r) const {
    std::string out = "returned";
    for (const auto& id : r.returned)
      out += " " + id;
    for (const auto& id : r.poisoned)
      out += " !" + id;
    return out;
  }
  std::string operator()(const store::retry_dispatch::reply& r) const {
    return std::string{name_of(r.result)} + std::string{name_of(r.was)};
  }
  std::string operator()(const store::cancel_dispatch::reply& r) const {
    return std::string{name_of(r.result)} + std::string{name_of(r.was)} + std::to_string(r.fence) +
           r.lease_owner;
  }
  std::string operator()(const std::vector<dispatch>& r) const {
    std::string out = "rows";
    for (const auto& d : r)
      out += "\n" + show(d);
    return out;
  }
  std::string operator()(const store::count_by_status::reply& r) const {
    std::string out = "counts";
    for (const auto& [status, n] : r)
      out += " " + std::string{name_of(status)} + std::to_string(n);
    return out;
  }
  std::string operator()(const store::due_agents::reply& r) const {
    std::string out = r.next_in ? "next" : "none";
    for (const auto& a : r.due)
      out += " " + a.agent_id + std::to_string(a.priority) + "x" + std::to_string(a.count);
    return out;
  }
  template <class T>
  std::string operator()(const T&) const {
    return "other";
  }
};

class script {
 public:
  std::vector<store::operation> batch() {
    std::vector<store::operation> out;
    const auto n = *rc::gen::inRange(1, 8);
    for (int i = 0; i < n; ++i)
      out.push_back(operation());
    return out;
  }

 private:
  static constexpr milliseconds far{3'600'000};

  std::string node() { return "n" + std::to_string(*rc::gen::inRange(1, 3)); }
  std::string agent() {
    return std::string(1, static_cast<char>(*rc::gen::inRange<int>('a', 'e')));
  }
  std::string some_id() { return id_of(*rc::gen::inRange(1, next_ + 2)); }
  std::int64_t fence() { return *rc::gen::inRange<std::int64_t>(1, 5); }

  store::operation enqueue_some() {
    const auto cycle = "c" + std::to_string(*rc::gen::inRange(1, 12));
    store::enqueue_cycle op{"k", cycle, {}, {}};
    const auto n = *rc::gen::inRange(0, 5);
    for (int i = 0; i < n; ++i) {
      auto s = spec(next_++, agent(), *rc::gen::inRange(1, 4), cycle);
      s.metadata_json = R"({"b":1,"a":["\"",null]})";
      s.delay = *rc::gen::inRange(0, 5) == 0 ? far : 0ms;
      op.specs.push_back(s);
    }
    return op;
  }

  store::operation settle_some() {
    auto who = node();
    std::vector<settlement> items;
    const auto n = *rc::gen::inRange(0, 6);
    for (int i = 0; i < n; ++i) {
      settlement item{some_id(), fence(), static_cast<settle_to>(*rc::gen::inRange(0, 5)), 0ms, {}};
      item.outcome.summary = "s" + std::to_string(i);
      item.outcome.output = i % 2 == 0 ? "" : "out\\\"put";
      item.delay = i == 3 ? far : 0ms;
      items.push_back(item);
    }
    return store::settle{std::move(who), std::move(items)};
  }

  /// Any filters together; each is set about every third time.
  store::operation list_some() {
    const auto set = [] { return *rc::gen::inRange(0, 3) == 0; };
    const auto cycle = [] { return "c" + std::to_string(*rc::gen::inRange(1, 12)); };
    store::list_dispatches op;
    op.kernel_id = set() ? "" : set() ? "other" : "k";
    op.cycle_id = set() ? cycle() : "";
    op.agent_id = set() ? agent() : "";
    if (set())
      op.status = static_cast<dispatch_status>(*rc::gen::inRange(0, 5));
    op.before = set() ? some_id() : "";
    if (set())
      op.finished_since = from_unix_ms(1);
    op.ended_only = set();
    op.with_bodies = set();
    op.limit = *rc::gen::inRange<std::size_t>(1, 8);
    op.not_cycle_id = set() ? cycle() : "";
    if (set())
      op.not_agent_ids = {agent(), agent()};
    return op;
  }

  store::operation operation() {
    switch (*rc::gen::inRange(0, 15)) {
    case 0:
    case 1:
    case 2:
      return enqueue_some();
    case 3:
    case 4:
      return store::claim{node(), "k", *rc::gen::inRange(0, 2) == 0 ? "" : agent(),
                          *rc::gen::inRange<std::size_t>(1, 5), far};
    case 5:
    case 6:
      return settle_some();
    case 7:
      return store::renew_leases{node(), {{some_id(), fence()}, {some_id(), fence()}}, far};
    case 8:
      return store::take_back{node(), 1, 3};
    case 9:
      return store::retry_dispatch{some_id()};
    case 10:
      return store::cancel_dispatch{some_id()};
    case 11:
      return store::latest_per_agent{"k"};
    case 12:
    case 13:
      return list_some();
    default:
      return store::due_agents{};
    }
  }

  int next_ = 1;
};

std::vector<std::string> answers(dispatch_store& s, const std::vector<store::operation>& batch) {
  auto replies = s.apply(batch);
  std::vector<std::string> out;
  if (!replies)
    return {to_string(replies.error())};
  for (const auto& r : *replies)
    out.push_back(std::visit(shower{}, r));
  return out;
}

store::list_dispatches everything() {
  store::list_dispatches all;
  all.with_bodies = true;
  all.limit = 10'000;
  return all;
}

/// One run: the same batches on a fresh store of each kind.
void run_alike(const std::string& kind) {
  auto model = make_world("sim");
  auto real = make_world(kind);
  script random;
  const auto batches = *rc::gen::inRange(1, 40);
  for (int i = 0; i < batches; ++i) {
    const auto batch = random.batch();
    RC_ASSERT(answers(model->store(), batch) == answers(real->store(), batch));
  }
  const std::vector<store::operation> last{everything(), store::count_by_status{"k"}};
  RC_ASSERT(answers(model->store(), last) == answers(real->store(), last));
}

} // namespace

TEST_CASE("random operations are answered alike by every store") {
  for (const auto& kind : store_kinds())
    if (kind != "sim")
      REQUIRE(rc::check(kind + " answers as the model", [&] { run_alike(kind); }));
}

} // namespace boyd::model_test
