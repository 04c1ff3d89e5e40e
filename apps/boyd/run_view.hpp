#pragma once

#include "boyd/core/result.hpp"
#include "json_view.hpp"

#include <cstddef>
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

/// ", attempt 2 of 3"; empty for the first one.
std::string attempt_of(const json& dispatch);

/// What follows its status: ": exit code 1 (no automatic retry)"; empty unless it has failed or was
/// cancelled. The error has at most so many `characters`.
std::string after_status_of(const json& dispatch, std::size_t characters);

/// "run 6a2f9d41 of default/clock: running for 12.0 s, attempt 2 of 3".
std::string headline_of(const json& dispatch);

/// "failed after 2.4 s: exit code 1: no answer (no attempt is left)".
std::string ending_of(const json& dispatch);

/// The three verdicts on it: "ended with exit code 0; its check passed; it made no statement of its
/// own". Empty before it has ended.
std::string result_of(const json& dispatch);

/// "failed", or what became of it where all its runs were cancelled.
std::string status_of_cycle(const json& cycle);

/// The run of that number, into `found`: one of the earlier ones (that have a `to`), or the
/// dispatch itself, for its newest. Error `not_found` with the numbers there are.
result<void> find_run(const json& dispatch, const std::string& run, json& found);

/// Where an earlier run led: "failed, tried again".
std::string end_of_run(const json& earlier);

/// "attempt 1 of run 6a2f9d41 of default/clock: done, started 2026-02-13 11:00:00 CET".
std::string headline_of_run(const json& dispatch, const json& earlier);

/// As ending_of, of an earlier run.
std::string ending_of_run(const json& earlier);

/// "3 turns, 5 tool calls, 1 denied (run_command), 1200+80 tokens, $0.0123"; empty where the run
/// told of none.
std::string figures_of(const json& dispatch);

} // namespace boyd::app
