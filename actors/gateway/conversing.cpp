#include "actors/gateway/conversing.hpp"

#include "actors/support/ask.hpp"

#include <utility>

namespace boyd::gateway_impl {

namespace {

/// For the answer of a conversation that has come to its limit.
constexpr milliseconds answer_margin = 10s;

} // namespace

void converse(const exchange_ptr& x, conversation_order order,
              std::function<void(const conversation_reply&)> then) {
  const auto& parts = x->self->state.parts;
  order.context = parts.context;
  order.configuration = x->configuration;
  order.store = parts.store;
  order.workspace = parts.workspace;
  order.asker = x->self->address();
  const auto limit = order.limit;
  const auto conversation = spawn_conversation(x->self->system(), std::move(order));
  x->self->monitor(conversation);
  x->self->state.conversations.add(conversation);
  ask<conversation_reply>(
      x->self, conversation, conversation_query{},
      [x, then = std::move(then), conversation](const result<conversation_reply>& r) {
        if (!r)
          return x->fail_with(r.error());
        then(*r);
      },
      limit + answer_margin);
}

} // namespace boyd::gateway_impl
