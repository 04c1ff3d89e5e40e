#pragma once

#include "actors/conversation/actor.hpp"
#include "actors/gateway/state.hpp"

#include <functional>

/// Private to actors/gateway: conversations that a request is about.
namespace boyd::gateway_impl {

/// Starts a conversation for `x`, whose parts and configuration it gets, and which ends with the
/// gateway; `order` has the rest: what is said, to whom, for how long. `then` gets its end, within
/// the order's limit or soon behind it; an error is answered.
void converse(const exchange_ptr& x, conversation_order order,
              std::function<void(const conversation_reply&)> then);

} // namespace boyd::gateway_impl
