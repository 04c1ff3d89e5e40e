#pragma once

#include "boyd/core/restart_log.hpp"

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace boyd::state {

/// Restarts of one node that the store keeps; older ones go.
inline constexpr std::size_t kept_restarts = restart_log::most;

/// The scope of the store's facts that keep a node's restarts: one fact for each, under a key that
/// sorts by time.
std::string restarts_scope(std::string_view node_id);

/// `number`: grows with every event of one life, so that two of one millisecond differ.
std::string restart_key(const restart_event& event, std::uint64_t number);

/// As the text of a fact. A cause need not be UTF-8, and its end is cut when it is very long.
std::string render_restart(const restart_event& event);

/// The facts of the scope, newest first; a text that is none is left out.
std::vector<restart_event> parse_restarts(const std::map<std::string, std::string>& facts);

} // namespace boyd::state
