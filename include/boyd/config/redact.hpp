#pragma once

#include <string>
#include <vector>

namespace boyd::config {

/// `text` with "[redacted]" in place of every one of `secrets` (as in configuration::secrets: the
/// longest first) and of passwords inside URIs (RFC 3986 §3.2.1). Pure.
std::string redact_text(std::string text, const std::vector<std::string>& secrets);

/// The same for a text whose end was cut off somewhere: the beginning of a secret that is left
/// there is replaced, too.
std::string redact_cut_end(std::string text, const std::vector<std::string>& secrets);

/// The same for a text whose beginning was cut off somewhere.
std::string redact_cut_begin(std::string text, const std::vector<std::string>& secrets);

} // namespace boyd::config
