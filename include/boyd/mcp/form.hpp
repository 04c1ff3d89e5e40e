#pragma once

#include "boyd/core/result.hpp"
#include "boyd/mcp/session.hpp"

#include <string>
#include <string_view>

/// Questions of servers as people read and answer them.
namespace boyd::mcp {

/// What a person reads: who asks, what, which fields there are, and how to answer.
std::string question_text(const std::string& server, const question& q);

/// The content of an accepted form: the fields that `note` (a JSON object, or any text) names, and
/// the defaults of the others. Error `invalid_argument` when a field that is required is missing or
/// one is of another kind than the form wants.
result<std::string> form_content(std::string_view schema_json, std::string_view note);

} // namespace boyd::mcp
