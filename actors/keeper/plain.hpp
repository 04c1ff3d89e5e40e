#pragma once

#include "actors/keeper/actor.hpp"

#include <memory>
#include <utility>
#include <vector>

namespace boyd {

/// Puts a class without actors behind a worker. `Session` has perform(batch), probe() and health().
template <class Session, class Request, class Reply>
class session_performer : public performer<Request, Reply> {
 public:
  template <class... Args>
  explicit session_performer(Args&&... args) : session_(std::forward<Args>(args)...) {}

  void perform(std::vector<job<Request, Reply>>& batch) override { session_.perform(batch); }
  void probe() override { session_.probe(); }
  part_health health() override { return session_.health(); }

 private:
  Session session_;
};

template <class Handle, class Request, class Reply>
struct plain_keeper_state {
  std::unique_ptr<keeper<typename with_keeper<Handle>::base, Request, Reply>> keep;
  const char* name = "keeper";
};

/// The whole behaviour of a keeper that answers requests and nothing else. The worker is told to
/// make its performer by `parts.make_performer`, in its own thread.
template <class Handle, class Request, class Reply>
typename with_keeper<Handle>::behavior_type
plain_keeper(typename with_keeper<Handle>::template stateful_pointer<
                 plain_keeper_state<Handle, Request, Reply>>
                 self,
             keeper_parts<Request, Reply> parts) {
  using keeper_type = keeper<typename with_keeper<Handle>::base, Request, Reply>;
  install_handlers(self, parts.name);
  self->state.name = parts.name;
  self->state.keep = std::make_unique<keeper_type>(self, std::move(parts));
  self->state.keep->start();
  return {
      [self](Request& r) { return self->state.keep->accept(std::move(r)); },
      [self](health_query&) { return self->state.keep->health(); },
      [self](batch_done& m) { self->state.keep->on_done(m, [](const auto&) {}); },
      [self](ping&) { return self->state.keep->pulse(); },
      [self](keeper_tick& m) { self->state.keep->on_tick(m); },
      [self](restart_worker& m) { self->state.keep->on_restart(m); },
  };
}

} // namespace boyd
