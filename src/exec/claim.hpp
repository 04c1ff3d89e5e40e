#pragma once

#include "boyd/core/verdict.hpp"

#include <optional>
#include <string>
#include <string_view>

namespace boyd::exec {

/// What a program claims of itself at the end of its output.
struct claim {
  claim_verdict verdict = claim_verdict::none;
  /// It is meant as a claim and cannot be read: the verdict is `failed`.
  bool is_unreadable = false;
  std::string summary;
  std::optional<failure_class> failure; ///< of a failed one, when it says so
};

/// The claim that ends `output`: a JSON object whose "status" is "done" or "failed", in letters of
/// any case, on one line or several, in a fence or not, with at most two lines of other words
/// behind it. Objects inside of others, and other values of "status", are no claims. Reads at most
/// the last mebibyte.
claim find_claim(std::string_view output);

} // namespace boyd::exec
