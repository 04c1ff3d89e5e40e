#include "actors/gateway/state.hpp"
#include "actors/support/ask.hpp"
#include "actors/sweeper/actor.hpp"

namespace boyd::gateway_impl {

/// Removes what ended executions have left, or says what would go.
void clean_up(exchange_ptr x) {
  const auto body = x->body();
  if (!body)
    return;
  const auto it = body->find("apply");
  const bool applies = it != body->end() && *it == "yes";
  if (applies && x->request.caller && !may_decide(*x))
    return x->fail_with(not_a_person(*x, x->request.path));
  auto& parts = x->self->state.parts;
  const auto sweeper = spawn_sweeper(x->self->system(),
                                     {parts.context, x->configuration->node_settings.retention,
                                      !applies, parts.store, parts.workspace, x->self->address()});
  ask<sweep_report>(
      x->self, sweeper, begin_sweep{},
      [x, sweeper, applies](const result<sweep_report>& r) {
        if (!r)
          return x->fail_with(r.error());
        x->reply("cleanup", {{"applied", applies},
                             {"executions", r->executions},
                             {"contents", r->contents},
                             {"content_bytes", r->content_bytes}});
      },
      sweep_limit);
}

} // namespace boyd::gateway_impl
