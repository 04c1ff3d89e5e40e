#pragma once

#include <string>
#include <vector>

namespace boyd::config {

/// Where a text was cut off, so that half a secret may stand there.
enum class cut_at { nowhere, begin, end };

/// `text` with "[redacted]" in place of what has the shape of a secret, whoever wrote it: keys of
/// well-known services by their beginnings, private keys in PEM, web tokens (RFC 7515 §7.1), values
/// that are named a password or a key and look random. docs/security.md lists the forms. The text
/// stays valid JSON when it was: quotes and escapes are never taken. At a cut what only begins like
/// a secret is taken, too. Pure; time is linear in the text, and a text without a form is not
/// copied. What was taken is added to `taken`.
std::string redact_shapes(std::string text, cut_at cut = cut_at::nowhere,
                          std::vector<std::string>* taken = nullptr);

} // namespace boyd::config
