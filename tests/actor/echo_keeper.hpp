#pragma once

#include "actors/keeper/plain.hpp"
#include "messages/interfaces.hpp"

#include <caf/typed_actor.hpp>

#include <string>

namespace boyd::test {

/// What a keeper of the tests is asked; its worker says the text again.
struct echo_request : message {
  std::string text;
  request_end until = request_end::max();
};

struct echo_reply {
  std::string text;
};

using echo_actor = caf::typed_actor<caf::replies_to<echo_request>::with<answers<echo_reply>>,
                                    caf::replies_to<health_query>::with<answers<part_health>>>;

using echo_job = job<echo_request, echo_reply>;

} // namespace boyd::test
