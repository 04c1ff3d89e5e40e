#include "actors/sweeper/actor.hpp"

#include "actors/support/ask.hpp"
#include "actors/support/handlers.hpp"
#include "boyd/ports/clock.hpp"

#include <caf/actor_system.hpp>
#include <caf/stateful_actor.hpp>
#include <caf/typed_event_based_actor.hpp>
#include <caf/typed_response_promise.hpp>
#include <spdlog/spdlog.h>

#include <memory>
#include <optional>
#include <string>
#include <unordered_set>
#include <utility>
#include <vector>

namespace boyd {

namespace {

/// Executions of one step.
constexpr std::size_t step_size = 100;
constexpr unsigned folders = 256;
/// Contents stand on the disk before the record that names them.
constexpr milliseconds content_grace = std::chrono::hours{1};

struct sweeper_state {
  sweep_order order;
  caf::typed_response_promise<result<sweep_report>> promise;
  sweep_report report;
  utc_time began{};
  std::string last; ///< execution of the step before
  std::shared_ptr<std::unordered_set<std::string>> kept =
      std::make_shared<std::unordered_set<std::string>>();
  std::unordered_set<std::string> gone; ///< executions that go, or would
  unsigned folder = 0;
  static inline const char* name = "sweeper";
};

using self_pointer = sweeper_actor::stateful_pointer<sweeper_state>;

void finish(self_pointer self, const std::optional<error>& why) {
  auto& s = self->state;
  answer<sweep_report>(s.promise, why ? result<sweep_report>(fail(*why)) : s.report);
  self->quit();
}

/// Asks the workspace, and goes on with its answer.
template <class What, class Then>
void step(self_pointer self, What what, Then then) {
  ask<workspace_reply>(self, self->state.order.workspace, workspace_request{{}, std::move(what)},
                       [self, then](result<workspace_reply> r) {
                         if (!r)
                           return finish(self, r.error());
                         then(std::move(*r));
                       });
}

void sweep_folder(self_pointer self) {
  auto& s = self->state;
  if (s.folder == folders)
    return finish(self, std::nullopt);
  sweep_contents what{s.folder++, s.kept, s.began - content_grace, s.order.dry_run};
  step(self, std::move(what), [self](const workspace_reply& r) {
    self->state.report.contents += r.removed;
    self->state.report.content_bytes += r.bytes;
    sweep_folder(self);
  });
}

/// What the records that stay name.
void look_at_records(self_pointer self) {
  auto& s = self->state;
  list_executions what{s.last, step_size, utc_time::max()};
  step(self, std::move(what), [self](workspace_reply r) {
    if (r.names.empty())
      return sweep_folder(self);
    self->state.last = r.names.back();
    std::erase_if(r.names, [&](const std::string& id) { return self->state.gone.contains(id); });
    step(self, named_contents{std::move(r.names)}, [self](workspace_reply named) {
      for (auto& hash : named.names)
        self->state.kept->insert(std::move(hash));
      // Its contents are not known, and all must stay.
      if (!named.text.empty()) {
        spdlog::warn("cannot remove contents of records: {}", named.text);
        return finish(self, std::nullopt);
      }
      look_at_records(self);
    });
  });
}

void next_executions(self_pointer self);

/// Those whose dispatches are not in the store.
void remove(self_pointer self, std::vector<std::string> gone) {
  auto& s = self->state;
  s.report.executions += gone.size();
  s.gone.insert(gone.begin(), gone.end());
  if (s.order.dry_run || gone.empty())
    return next_executions(self);
  step(self, remove_executions{std::move(gone)},
       [self](const workspace_reply&) { next_executions(self); });
}

void look_up(self_pointer self, const std::vector<std::string>& ids) {
  store_request request;
  std::map<std::string, store_ticket<store::find_dispatch>> asked;
  for (const auto& id : ids)
    asked.emplace(id, request.add(store::find_dispatch{id}));
  ask<store_reply>(self, self->state.order.store, std::move(request),
                   [self, asked = std::move(asked)](result<store_reply> r) {
                     if (!r)
                       return finish(self, r.error());
                     std::vector<std::string> gone;
                     for (const auto& [id, ticket] : asked)
                       // A question that the store refuses tells nothing: it stays.
                       if (const auto found = ticket.of(*r); found && !*found)
                         gone.push_back(id);
                     remove(self, std::move(gone));
                   });
}

void next_executions(self_pointer self) {
  auto& s = self->state;
  list_executions what{s.last, step_size, s.began - s.order.retention};
  step(self, std::move(what), [self](workspace_reply r) {
    auto& state = self->state;
    if (r.names.empty()) {
      state.last.clear();
      return look_at_records(self);
    }
    state.last = r.names.back();
    look_up(self, r.names);
  });
}

sweeper_actor::behavior_type sweeper_behavior(self_pointer self, sweep_order order) {
  install_handlers(self, "sweeper");
  self->set_down_handler([self](caf::down_msg&) { self->quit(); });
  self->monitor(order.asker);
  self->state.order = std::move(order);
  return {[self](begin_sweep&) {
    auto& s = self->state;
    s.promise = self->make_response_promise<result<sweep_report>>();
    auto promise = s.promise;
    s.began = s.order.context->ports.clock->now();
    next_executions(self);
    return promise;
  }};
}

} // namespace

sweeper_actor spawn_sweeper(caf::actor_system& system, sweep_order order) {
  return system.spawn(sweeper_behavior, std::move(order));
}

} // namespace boyd
