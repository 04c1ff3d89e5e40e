#pragma once

#include <string>

namespace boyd::app {

// Checks of options' values for the command line's parser: empty, or what is wrong with the value.

/// For --home "$VARIABLE": an empty path must not mean the standard one.
std::string not_empty(const std::string& value);

/// From 0 on; the parser's own check tells of a range that ends with the largest number of all.
std::string whole_number(const std::string& value);

/// From 1 on.
std::string counting_number(const std::string& value);

} // namespace boyd::app
