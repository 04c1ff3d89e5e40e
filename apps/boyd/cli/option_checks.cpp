#include "option_checks.hpp"

namespace boyd::app {

std::string not_empty(const std::string& value) {
  return value.empty() ? "the path is empty" : "";
}

std::string whole_number(const std::string& value) {
  const bool digits = !value.empty() && value.find_first_not_of("0123456789") == std::string::npos;
  return digits ? "" : "'" + value + "' is not a whole number (0 or more)";
}

std::string counting_number(const std::string& value) {
  const bool counts = whole_number(value).empty() && value.find_first_not_of('0') != value.npos;
  return counts ? "" : "'" + value + "' is not a whole number (1 or more)";
}

} // namespace boyd::app
