#pragma once

#include "boyd/core/time.hpp"

#include <optional>
#include <string>
#include <string_view>

namespace boyd::model {

/// What a provider said about an error, whatever the form (see error_body.cpp).
struct error_words {
  std::string message;
  std::string code; ///< the most telling one of code, type and status
  std::string all;  ///< all words in lower case, for the search of what it means
  int status = 0;   ///< a code of HTTP inside the body; 0: none
  std::optional<milliseconds> retry_after;
};

error_words read_error(std::string_view body);

/// One line without control characters and without what looks like a key, at most 500 characters.
std::string clean_line(std::string_view text);

} // namespace boyd::model
