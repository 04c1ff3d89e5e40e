#pragma once

#include "messages/health.hpp"

#include <caf/error.hpp>
#include <caf/exit_reason.hpp>
#include <caf/make_message.hpp>
#include <caf/message_view.hpp>
#include <caf/scheduled_actor.hpp>
#include <caf/sec.hpp>
#include <caf/system_messages.hpp>

#include <exception>
#include <string>

namespace boyd {

/// The text of an exception, whatever was thrown (FAULTS 1: also an int).
std::string text_of(const std::exception_ptr& e);

/// The text that `crash_error` kept in a DOWN message's reason, or the reason's own name.
std::string text_of(const caf::error& reason);

/// CAF drops an exception's text on the way to the supervisor; this keeps it in the exit reason.
caf::error crash_error(const std::string& text);

/// As crash_error, of a part that has spent the restarts which whatever it supervises may need: to
/// start it anew would not help.
caf::error exhausted_error(const std::string& text);
bool is_exhausted(const caf::error& reason);

/// Logs what would otherwise end the actor or vanish.
void log_dropped(const char* actor, const std::string& what);

/// Every actor installs these first (ARCHITECTURE, CAF fact 6): errors of plain sends and unknown
/// messages are logged, not deadly; an exit message ends the actor; a DOWN is ignored unless the
/// actor sets its own handler; an exception ends the actor and its text reaches the supervisor; a
/// ping is answered.
template <class Self>
void install_handlers(Self* self, const char* name) {
  self->set_exception_handler([](caf::scheduled_actor*, std::exception_ptr& e) -> caf::error {
    return crash_error(text_of(e));
  });
  self->set_error_handler(
      [name](caf::scheduled_actor*, caf::error& e) { log_dropped(name, text_of(e)); });
  self->set_down_handler([](caf::scheduled_actor*, caf::down_msg&) {
    // nop
  });
  self->set_exit_handler([](caf::scheduled_actor* a, caf::exit_msg& m) { a->quit(m.reason); });
  self->set_default_handler(
      [name](caf::scheduled_actor*, caf::message_view& m) -> caf::result<caf::message> {
        if (m.content().match_elements<ping>())
          return caf::make_message(pong{});
        log_dropped(name, "message of an unknown type");
        return caf::sec::unexpected_message;
      });
}

} // namespace boyd
