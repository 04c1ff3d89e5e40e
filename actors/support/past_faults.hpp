#pragma once

#include "boyd/core/time.hpp"
#include "boyd/faults/points.hpp"
#include "messages/message.hpp"

#include <functional>
#include <utility>

namespace boyd {

/// What a fault has held back, to the part itself: its time has come.
struct late_order : message {
  std::function<void()> carry_out;
};

/// Sends what the point may delay or lose; a crash ends the sender.
template <class Self, class Handle, class Message>
void send_past_faults(Self* self, const Handle& to, faults::point at, Message what) {
  const auto met = faults::meet(at);
  if (met && met->drops())
    return;
  if (met && met->delay > milliseconds{0})
    self->delayed_send(to, met->delay, std::move(what));
  else
    self->send(to, std::move(what));
}

/// Carries out what has come in, past the point: `go_on(why)` is called now, later or, when the
/// point loses it, not at all; `why` is the point's error, or null. A part that calls it carries
/// out what its `late_order`s hold; nothing in `go_on` may refer to the message itself.
template <class Self, class Do>
void past_faults(Self* self, faults::point at, Do go_on) {
  const auto met = faults::meet(at);
  if (!met)
    return go_on(&met.error());
  if (met->drops())
    return;
  if (met->delay > milliseconds{0})
    self->delayed_send(self, met->delay, late_order{{}, [go_on]() mutable { go_on(nullptr); }});
  else
    go_on(nullptr);
}

} // namespace boyd
