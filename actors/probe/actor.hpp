#pragma once

#include "actors/probe/core.hpp"
#include "boyd/core/limits.hpp"
#include "messages/message.hpp"

#include <caf/fwd.hpp>
#include <caf/replies_to.hpp>
#include <caf/typed_actor.hpp>

#include <cstddef>
#include <memory>

namespace boyd {

/// Runs one helper program (a sense, a wake check).
struct run_probe : message {
  process_spec spec;
  milliseconds timeout{0};
  std::size_t output_bytes = 0;
};

/// One helper program; ends itself afterwards, and its process with itself.
using probe_actor = caf::typed_actor<
    // Runs it; answers when its whole process group is gone, at the latest after `probe_limit`.
    caf::replies_to<run_probe>::with<result<probe_outcome>>>;

/// The longest time a probe takes to answer: time-out, TERM, KILL and a last grace.
constexpr milliseconds probe_limit(milliseconds timeout) {
  return timeout + 3 * limits::term_grace;
}

/// Starts the actor for one program. The caller keeps the handle until it has the answer.
probe_actor spawn_probe(caf::actor_system& system, std::shared_ptr<process_runner> processes);

} // namespace boyd
