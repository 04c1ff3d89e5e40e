#pragma once

#include "boyd/exec/chat_loop.hpp"
#include "boyd/model/probe.hpp"

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

namespace boyd::exec {

/// What a probe of a provider works with.
struct probe_order {
  chat_target target;
  std::vector<store::reserve_spend::limit> scopes; ///< the budgets that each call is taken from
  std::string run_id;                              ///< of this probe, in the spending
  std::string kernel_id;
  std::string agent_id;
  std::function<steady_time()> now;
};

/// Leads the calls of model::provider_probe. Each call of a model is reserved and settled; none
/// takes a place at the governor, since the endpoint is to be seen as it is now.
class probe_dialogue final : public dialogue {
 public:
  explicit probe_dialogue(probe_order order);

  chat_effects begin() override;
  chat_effects on_reserved(std::uint64_t call,
                           const result<store::reserve_spend::reply>& r) override;
  void on_head(std::uint64_t call, const http_head& head) override;
  void on_body(std::uint64_t call, std::string_view bytes) override;
  chat_effects on_call_end(std::uint64_t call, const result<void>& transport) override;

  const model::provider_probe& probe() const { return probe_; }
  const model::usage& used() const { return used_; }
  std::int64_t cost() const { return cost_; } ///< millionths of a US dollar

 private:
  chat_effects start_call();
  std::string call_id() const { return order_.run_id + "/1/" + std::to_string(call_); }
  /// A call of no model, the list of models, costs nothing.
  bool reserved() const { return next_.most != model::usage{}; }
  std::int64_t cost_of(const model::usage& u) const {
    return model::cost_of(order_.target.provider, order_.target.model, u);
  }

  probe_order order_;
  model::provider_probe probe_;
  std::uint64_t call_ = 0;
  model::provider_probe::call next_; ///< the call under way
  std::size_t request_bytes_ = 0;
  steady_time called_at_{};
  http_head head_;
  std::string body_;
  model::usage used_;
  std::int64_t cost_ = 0;
};

} // namespace boyd::exec
