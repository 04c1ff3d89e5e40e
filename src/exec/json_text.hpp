#pragma once

#include "boyd/core/result.hpp"

#include <nlohmann/json.hpp>

#include <string_view>

namespace boyd::exec {

/// Parses JSON from outside. Its depth is measured before it is parsed: a deep value overflows the
/// stack when it is copied, dumped or destroyed (FAULTS.md, fact 10).
result<nlohmann::json> parse_json(std::string_view text);

/// Behind the object that opens at `begin`, strings respected; npos: it is not whole.
std::size_t end_of_object(std::string_view text, std::size_t begin) noexcept;

/// The first JSON object in a text of a program, read as mend_json does, and where it ends. Words
/// around it are passed over. `parse_error` when there is no whole object.
struct found_object {
  nlohmann::json value;
  std::size_t end = 0;
};
result<found_object> find_object(std::string_view text);

} // namespace boyd::exec
