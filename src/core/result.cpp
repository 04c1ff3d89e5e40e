#include "boyd/core/result.hpp"

namespace boyd {

std::string to_string(const error& e) {
  std::string text = e.where;
  const std::string what = e.what.empty() ? std::string{name_of(e.code)} : e.what;
  text += text.empty() ? what : ": " + what;
  if (!e.next.empty())
    text += "; " + e.next;
  return text;
}

} // namespace boyd
