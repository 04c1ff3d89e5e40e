#pragma once

#include "actors/support/ask.hpp"
#include "messages/interfaces.hpp"

#include <cstdint>

namespace boyd {

/// Tells the store that nobody claims one agent's share of the coming work `number`: it need not
/// wait. Lost, it costs the work limits::claim_patience.
template <class Self>
void leave_to_queue(Self* self, const store_actor& store, std::uint64_t number) {
  store_request nothing;
  nothing.with = number;
  ask<store_reply>(self, store, std::move(nothing), [](const result<store_reply>&) {
    // There is nothing to do about it.
  });
}

} // namespace boyd
