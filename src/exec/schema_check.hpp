#pragma once

#include <nlohmann/json_fwd.hpp>

#include <string>

namespace boyd::exec {

/// Empty when `value` validates against the JSON Schema `schema` (draft 7); else the first finding.
/// References to other documents are not followed: they are a finding.
std::string schema_finding(const nlohmann::json& schema, const nlohmann::json& value);

} // namespace boyd::exec
