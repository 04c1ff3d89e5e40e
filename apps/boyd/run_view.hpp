#pragma once

#include "json_view.hpp"

#include <string>
#include <string_view>

/// A dispatch in the words of the command line.
namespace boyd::app {

/// The part of an id that listings show and every command takes.
std::string short_id(std::string_view id);
/// Of a dispatch.
std::string short_id_of(const json& dispatch);

/// "default/clock".
std::string agent_of(const json& dispatch);

/// "dispatch 6a2f9d41 of default/clock: running for 12.0 s, attempt 1 of 3".
std::string headline_of(const json& dispatch);

/// "failed after 2.4 s: exit code 1: no answer".
std::string ending_of(const json& dispatch);

/// "3 turns, 5 tool calls, 1 denied (run_command), 1200+80 tokens, $0.0123"; empty where the run
/// told of none.
std::string figures_of(const json& dispatch);

} // namespace boyd::app
