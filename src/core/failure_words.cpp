#include "boyd/core/failure_words.hpp"

namespace boyd {

std::string after_failed(std::string_view cause, failure_class c) {
  std::string words;
  if (!cause.empty())
    words = ": " + std::string(cause);
  if (is_retryable(c))
    words += " (no attempt is left)";
  else if (c != failure_class::none)
    words += " (no automatic retry)";
  return words;
}

} // namespace boyd
