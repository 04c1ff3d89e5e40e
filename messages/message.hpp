#pragma once

#include "boyd/core/result.hpp"

#include <caf/actor_clock.hpp>
#include <caf/allowed_unsafe_message_type.hpp>

#include <concepts>
#include <type_traits>

namespace boyd {

/// Base of every message between actors. Messages never leave the process (nodes share the
/// database, docs/adr/0004), so they are plain structs without a wire format: CAF calls such types
/// "unsafe" because it cannot serialise them.
struct message {};

/// When the asker of a request gives up; `ask` sets it. A keeper refuses what comes to it later,
/// but for results: it may have been asked for anew meanwhile, and done.
using request_end = caf::actor_clock::time_point;

} // namespace boyd

namespace caf {

template <class T>
requires std::derived_from<T, boyd::message>
struct allowed_unsafe_message_type<T> : std::true_type {
};

/// Replies are `boyd::result<T>`: errors of the domain travel as values, CAF's own errors only mean
/// "no answer" (time-out, actor gone) and are translated by `ask`.
template <class T>
struct allowed_unsafe_message_type<tl::expected<T, boyd::error>> : std::true_type {};

} // namespace caf
