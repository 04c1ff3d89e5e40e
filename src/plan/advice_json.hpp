#pragma once

#include "../core/json_values.hpp"
#include "boyd/plan/advice.hpp"

#include <nlohmann/json.hpp>

#include <cstddef>
#include <string>
#include <string_view>

namespace boyd::plan {

/// Nobody's answer is looked at beyond this.
inline constexpr std::size_t answer_bytes = 256u << 10;

/// The members of a record; `from_json` reads what is there and leaves the rest.
nlohmann::json advice_json(const advice& a);
advice advice_from(const nlohmann::json& j);

/// JSON of something that is no deeper than core's limit, or a discarded value.
nlohmann::json parse_bounded(std::string_view text);

/// The one JSON value of a model's answer (boyd/core/outside_json.hpp), or a discarded one.
nlohmann::json parse_answer(std::string_view text);

/// A member that is a text, or "".

/// One line of at most so many characters, without control characters and without what separates
/// lines in Unicode.
std::string one_line(std::string_view text, std::size_t characters);

} // namespace boyd::plan
