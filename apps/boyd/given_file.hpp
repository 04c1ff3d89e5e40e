#pragma once

#include "boyd/core/result.hpp"

#include <cstddef>
#include <string>

namespace boyd::app {

/// The file that a person names, "-" for standard input. Errors: `not_found`, `io_error`,
/// `limit_exceeded` beyond `most` bytes, with `advice`. Blocking.
result<std::string> read_given_file(const std::string& path, std::size_t most,
                                    const std::string& advice);

} // namespace boyd::app
