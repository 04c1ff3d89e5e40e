#pragma once

#include "boyd/model/trouble.hpp"

#include <string>

namespace boyd::model {

/// What an error means. `status`: of HTTP, 0: none; `words`: all that the provider said, in lower
/// case (error_words::all).
trouble_kind kind_of(int status, const std::string& words);

} // namespace boyd::model
