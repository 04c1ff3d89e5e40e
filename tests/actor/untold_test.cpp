#include "actors/node/root.hpp"
#include "node_fixture.hpp"
#include "src/adapters/tz/zones.hpp"
#include "support/pch.hpp"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <memory>
#include <utility>
#include <vector>

namespace boyd::untold_test {

using namespace boyd;
using boyd::test::simulated_node;
using nlohmann::json;

namespace {

/// A store that does not take the end of a slot as often as it is told.
class forgetful_store final : public dispatch_store {
 public:
  forgetful_store(std::unique_ptr<dispatch_store> inner, std::shared_ptr<int> refusals)
      : inner_(std::move(inner)), refusals_(std::move(refusals)) {}

  void tell_migrations(migration_step before) override {
    inner_->tell_migrations(std::move(before));
  }
  result<void> open() override { return inner_->open(); }
  void tidy() override { inner_->tidy(); }
  result<std::vector<std::string>> concerns() override { return inner_->concerns(); }
  std::string describe() const override { return inner_->describe(); }

  result<std::vector<store::any_reply>> apply(const std::vector<store::operation>& batch) override {
    const bool ends = std::ranges::any_of(
        batch, [](const auto& op) { return std::holds_alternative<store::close_occurrence>(op); });
    if (ends && *refusals_ > 0) {
      --*refusals_;
      return fail(errc::no_space, "no room", "sim");
    }
    return inner_->apply(batch);
  }

 private:
  std::unique_ptr<dispatch_store> inner_;
  std::shared_ptr<int> refusals_;
};

} // namespace

TEST_CASE("who waits for a cycle hears of its refused commit, also when the store takes it late",
          "[progress]") {
  simulated_node n;
  const auto refusals = std::make_shared<int>(3);
  n.context->ports.zones = adapters::make_time_zones();
  n.context->ports.listen = [](const wake_function&) { return std::unique_ptr<wakeup_source>(); };
  n.context->ports.make_store = [&n, refusals] {
    return std::make_unique<forgetful_store>(sim::make_sim_store(n.database), refusals);
  };
  n.context->scheduled = false;
  const auto root = n.actors.own(spawn_root(n.actors.system(), n.context, n.configuration));
  caf::anon_send(root, start_claiming{});
  n.actors.advance(1s);
  n.repositories->set_available(simulated_node::kernel_home, false);

  api_request begin;
  begin.method = "POST";
  begin.path = "/api/v1/cycles";
  auto begun = n.actors.ask<api_response>(root, begin);
  n.actors.advance(100ms);
  REQUIRE(begun.ok());
  api_request wait;
  wait.method = "GET";
  wait.path = "/api/v1/cycles/" + json::parse(begun.value().body).at("cycle_id").get<std::string>();
  wait.query["wait"] = "1";
  auto waited = n.actors.ask<api_response>(root, wait);
  n.actors.advance(1min);
  REQUIRE(waited.ok());
  INFO(waited.value().body);
  CHECK(*refusals == 0);
  CHECK_FALSE(json::parse(waited.value().body).at("problems").empty());
}

} // namespace boyd::untold_test
