#pragma once

#include <string>
#include <vector>

namespace boyd::config {

/// `text` with "[redacted]" in place of every one of `secrets` (as in configuration::secrets: the
/// longest first), of passwords inside URIs (RFC 3986 §3.2.1), and of what has the shape of a
/// secret (redact_shapes). Pure.
std::string redact_text(std::string text, const std::vector<std::string>& secrets);

/// Something that redact_text does not show.
struct hidden_part {
  std::string text;
  bool known = false; ///< one of the configuration's secrets; otherwise it only looks like one
};

/// The same, adding to `hidden` what it took: whoever is shown the rest can be told how much is
/// missing. In no particular order.
std::string redact_text(std::string text, const std::vector<std::string>& secrets,
                        std::vector<hidden_part>& hidden);

/// The same for a text whose end was cut off somewhere: the beginning of a secret that is left
/// there is replaced, too.
std::string redact_cut_end(std::string text, const std::vector<std::string>& secrets);

/// The same for a text whose beginning was cut off somewhere.
std::string redact_cut_begin(std::string text, const std::vector<std::string>& secrets);

/// `known` with `more`, in the order and with the single lines that redact_text wants: for what is
/// a secret and came after the configuration was loaded, such as the key in a file. Pure.
std::vector<std::string> with_secrets(std::vector<std::string> known,
                                      const std::vector<std::string>& more);

} // namespace boyd::config
