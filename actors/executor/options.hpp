#pragma once

#include "actors/support/node_context.hpp"
#include "boyd/exec/attempt.hpp"

#include <string>

namespace boyd {

/// The session of one attempt: stable, so that a person finds it again.
std::string session_of(const dispatch& row);

/// What every kind of attempt at `row` has in common; the caller adds the work itself.
exec::attempt_options options_for(const node_context& context, const config::agent& agent,
                                  const dispatch& row);

} // namespace boyd
