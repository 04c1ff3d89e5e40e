#include "harness.hpp"

#include "src/adapters/postgres/store.hpp"
#include "src/adapters/sqlite/store.hpp"
#include "support/postgres/server.hpp"
#include "support/sim/seeded_entropy.hpp"
#include "support/sim/store.hpp"
#include "support/temp_dir.hpp"

#include <cstdio>

namespace boyd::test {

namespace {

class sim_world final : public store_world {
 public:
  std::unique_ptr<dispatch_store> connect() override { return sim::make_sim_store(database_); }
  bool after_span(const std::function<bool()>& condition) override {
    clock_->advance(span());
    return condition();
  }

 private:
  std::shared_ptr<still_clock> clock_ = std::make_shared<still_clock>();
  std::shared_ptr<sim::sim_database> database_ =
      std::make_shared<sim::sim_database>(clock_, std::make_shared<sim::seeded_entropy>(1));
};

class sqlite_world final : public store_world {
 public:
  std::unique_ptr<dispatch_store> connect() override {
    adapters::sqlite_options options;
    options.path = directory_.file("boyd.db");
    options.clock = clock_;
    return adapters::make_sqlite_store(options);
  }
  bool shared() const override { return false; }
  bool after_span(const std::function<bool()>& condition) override {
    clock_->advance(span());
    return condition();
  }

 private:
  temp_dir directory_;
  std::shared_ptr<still_clock> clock_ = std::make_shared<still_clock>();
};

class postgres_world final : public store_world {
 public:
  std::unique_ptr<dispatch_store> connect() override {
    adapters::postgres_options options;
    options.uri = uri_;
    return adapters::make_postgres_store(options);
  }
  milliseconds span() const override { return 250ms; }
  bool after_span(const std::function<bool()>& condition) override { return wait_until(condition); }

 private:
  std::string uri_ = shared_postgres()->make_database();
};

} // namespace

dispatch_store& store_world::store() {
  if (!first_) {
    first_ = connect();
    const auto opened = first_->open();
    if (!opened)
      throw std::runtime_error(to_string(opened.error()));
  }
  return *first_;
}

std::vector<std::string> store_kinds() {
  std::vector<std::string> kinds{"sim", "sqlite"};
  if (shared_postgres() != nullptr)
    kinds.emplace_back("postgres");
  return kinds;
}

std::unique_ptr<store_world> make_world(const std::string& kind) {
  if (kind == "sim")
    return std::make_unique<sim_world>();
  if (kind == "sqlite")
    return std::make_unique<sqlite_world>();
  return std::make_unique<postgres_world>();
}

std::string id_of(int number) {
  char text[40];
  std::snprintf(text, sizeof text, "%08d-0000-7000-8000-000000000000", number);
  return text;
}

dispatch_spec spec(int number, const std::string& agent, int priority, const std::string& cycle) {
  dispatch_spec s;
  s.dispatch_id = id_of(number);
  s.kernel_id = "k";
  s.cycle_id = cycle;
  s.agent_id = agent;
  s.prompt = "prompt of " + agent;
  s.priority = priority;
  return s;
}

store::enqueue_cycle::reply enqueue(dispatch_store& s, std::vector<dispatch_spec> specs) {
  store::enqueue_cycle op;
  op.kernel_id = specs.at(0).kernel_id;
  op.cycle_id = specs.at(0).cycle_id;
  op.specs = std::move(specs);
  return ask(s, op);
}

std::vector<claimed_dispatch> claim(dispatch_store& s, const std::string& node, std::size_t limit,
                                    const std::string& agent, milliseconds lease) {
  return ask(s, store::claim{node, "k", agent, limit, lease});
}

settle_result settle(dispatch_store& s, const claimed_dispatch& c, settle_to to, milliseconds delay,
                     run_outcome outcome) {
  settlement item{c.row.dispatch_id, c.row.fence, to, delay, std::move(outcome)};
  return ask(s, store::settle{c.row.lease_owner, {item}}).at(0);
}

dispatch row(dispatch_store& s, const std::string& id) {
  auto found = ask(s, store::find_dispatch{id});
  if (!found)
    throw std::runtime_error("no dispatch " + id);
  return *found;
}

} // namespace boyd::test
