#pragma once

#include "boyd/config/configuration.hpp"
#include "boyd/core/result.hpp"

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace boyd::exec {

/// Answers of a script file: a JSON array of objects, or one JSON object per line (blank lines and
/// lines that begin with '#' are passed over). Keys: output, summary, delay ("250ms" or a number of
/// milliseconds), fail (a failure class name); an unknown key is an error. At most
/// `max_script_bytes`, nested at most limits::json_depth deep. `where` names the file in errors,
/// which carry the line.
result<std::vector<config::script_executor::answer>> parse_script(std::string_view text,
                                                                  const std::string& where);

inline constexpr std::size_t max_script_bytes = 4u << 20;
/// A delay given as a number is at most one day.
inline constexpr std::uint64_t max_script_delay_ms = 86'400'000;

/// The answer of the agent's n-th run (from 0): answers in turn. Null when there are none.
const config::script_executor::answer*
pick_answer(const std::vector<config::script_executor::answer>& answers, std::uint64_t run_index);

} // namespace boyd::exec
