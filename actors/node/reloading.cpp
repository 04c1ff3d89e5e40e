#include "actors/node/parts.hpp"
#include "actors/permits/actor.hpp"
#include "actors/support/ask.hpp"
#include "boyd/config/reload.hpp"
#include "boyd/faults/points.hpp"

#include <caf/actor_cast.hpp>
#include <spdlog/spdlog.h>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

namespace boyd::node_impl {

namespace {

std::set<std::string> kernel_ids(const config::configuration& c) {
  std::set<std::string> ids;
  for (const auto& k : c.kernels)
    ids.insert(k.kernel_id);
  return ids;
}

/// Kernels that are new get an actor, those that are gone lose it; true when there were any.
bool change_kernels(self_pointer self, const config::configuration& old) {
  auto& s = self->state;
  const auto before = kernel_ids(old);
  const auto after = kernel_ids(*s.configuration);
  for (const auto& id : after)
    if (before.count(id) == 0)
      add_kernel(self, id);
  for (const auto& id : before)
    if (after.count(id) == 0)
      s.shell->remove(kernel_child(id));
  return before != after;
}

/// What tells this actor, when its last copy is gone, that `part` has taken the order.
std::shared_ptr<const void> heard_of(self_pointer self, const std::string& part) {
  reload_taken told{{}, self->state.reloading.number, part};
  // As fast as the news of an end: a part that ended has nothing to take any more.
  const auto tell = [root = self->address(), told = std::move(told)](const void*) {
    if (auto strong = caf::actor_cast<caf::actor>(root))
      caf::anon_send<caf::message_priority::high>(strong, told);
  };
  return {nullptr, tell};
}

/// The order to one part. Who is not there starts with the new configuration.
template <class Handle>
void tell(self_pointer self, const std::string& part) {
  auto& s = self->state;
  const auto handle = child<Handle>(self, part);
  if (!handle)
    return;
  s.reloading.untaken.insert(part);
  if constexpr (std::is_same_v<Handle, permits_actor>) {
    auto limits = limits_of(*s.configuration);
    limits.heard = heard_of(self, part);
    self->send(handle, std::move(limits));
  } else {
    self->send(handle, reload_order{{}, s.configuration, heard_of(self, part)});
  }
}

void tell_parts(self_pointer self) {
  tell<permits_actor>(self, "permits");
  tell<governor_actor>(self, "governor");
  tell<mcp_actor>(self, "mcp");
  tell<approvals_actor>(self, "approvals");
  tell<dispatcher_pool_actor>(self, "dispatchers");
  tell<librarian_actor>(self, "librarian");
  tell<retention_actor>(self, "retention");
  for (const auto& k : self->state.configuration->kernels)
    tell<kernel_actor>(self, kernel_child(k.kernel_id));
  tell<gateway_actor>(self, "gateway");
}

/// Those that open or hold something once are started anew, with whoever holds their handles.
void renew_parts(self_pointer self, bool other_kernels) {
  auto& s = self->state;
  if (other_kernels) {
    // It holds the kernels' handles.
    add_gateway(self);
    s.shell->renew("gateway", "the list of kernels changed");
  }
  if (config::home_settings_differ(*s.homes_with, *s.configuration)) {
    // They open each home once. The kernels resume.
    s.homes_with = s.configuration;
    const auto why = "the settings of kernel homes changed";
    s.shell->renew("state_writer", why);
    s.shell->renew("git_committer", why);
  }
}

void take(self_pointer self, const configuration_ptr& configuration,
          std::function<void(result<reload_reply>)> done) {
  auto& s = self->state;
  if (s.stopping)
    return done(fail(errc::refused, "the node is stopping", {}, "start it again"));
  if (s.configuration->faults != configuration->faults) {
    faults::disarm(faults::origin::configuration);
    arm_faults(*s.context, *configuration);
  }
  const auto old = std::exchange(s.configuration, configuration);
  auto& r = s.reloading;
  ++r.number;
  r.over = false;
  r.untaken.clear();
  r.askers.push_back({r.number, std::move(done)});
  self->delayed_send(self, limits::request_timeout, reload_overdue{{}, r.number});
  const bool other_kernels = change_kernels(self, *old);
  tell_parts(self);
  renew_parts(self, other_kernels);
  reconcile(self);
  if (s.on_reload)
    s.on_reload(*configuration);
  end_reload(self);
}

/// Those who asked for the reload of that number or an earlier one.
void answer_askers(reload_progress& r, std::uint64_t number, const result<reload_reply>& answer) {
  std::vector<reload_progress::asker> due;
  std::erase_if(r.askers, [&](reload_progress::asker& a) {
    if (a.number > number)
      return false;
    due.push_back(std::move(a));
    return true;
  });
  for (const auto& a : due)
    a.done(answer);
}

} // namespace

void arm_faults(const node_context& context, const config::configuration& configuration) {
  if (context.passive || configuration.faults.empty())
    return;
  std::vector<faults::arming> all;
  for (const auto& f : configuration.faults) {
    const auto what = faults::action_of(f.action).value_or(faults::action::error);
    all.push_back({f.point, what, faults::count_of_strikes(f.count), f.probability, f.delay,
                   f.after, f.every, f.seed, faults::origin::configuration});
  }
  if (auto armed = faults::arm(all, context.ports.random->next()); !armed)
    spdlog::error("node: cannot activate the configured faults: {}", to_string(armed.error()));
}

caf::typed_response_promise<result<reload_reply>> reload(self_pointer self, reload_order& order) {
  auto promise = self->make_response_promise<result<reload_reply>>();
  take(self, order.configuration, [promise](result<reload_reply> r) { answer(promise, r); });
  return promise;
}

caf::typed_response_promise<result<api_response>> reload(self_pointer self, reload_request& order) {
  auto promise = self->make_response_promise<result<api_response>>();
  take(self, order.configuration,
       [promise, answered = std::move(order.answer)](const result<reload_reply>& r) {
         if (r)
           answer<api_response>(promise, answered);
         else
           answer<api_response>(promise, fail(r.error()));
       });
  return promise;
}

void on_taken(self_pointer self, const reload_taken& m) {
  auto& r = self->state.reloading;
  if (m.number != r.number)
    return;
  r.untaken.erase(m.part);
  end_reload(self);
}

void on_overdue(self_pointer self, const reload_overdue& m) {
  auto& s = self->state;
  auto& r = s.reloading;
  if (r.over)
    return;
  auto missing = s.shell->changing();
  missing.insert(r.untaken.begin(), r.untaken.end());
  const error why{
      errc::timed_out,
      fmt::format("the new configuration is active, but not yet in: {}", fmt::join(missing, ", ")),
      s.configuration->path, "check these parts with: boyd actors ls"};
  answer_askers(r, m.number, fail(why));
}

void give_up_reload(self_pointer self) {
  auto& r = self->state.reloading;
  r.over = true;
  answer_askers(r, r.number,
                fail(errc::refused,
                     "the node is stopping, so not every part has the new configuration",
                     self->state.configuration->path, "start it again"));
}

void end_reload(self_pointer self) {
  auto& s = self->state;
  auto& r = s.reloading;
  if (r.over || !r.untaken.empty() || !s.shell->changing().empty())
    return;
  r.over = true;
  spdlog::info("node: configuration reloaded from {}", s.configuration->path);
  for (const auto& key : config::waiting_for_restart(*s.started_with, *s.configuration))
    spdlog::warn("node: {} has changed; restart the node to apply it", key);
  answer_askers(r, r.number, reload_reply{});
}

} // namespace boyd::node_impl
