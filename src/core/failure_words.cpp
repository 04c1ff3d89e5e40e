#include "boyd/core/failure_words.hpp"

namespace boyd {

std::string_view why_no_retry(failure_class c) noexcept {
  switch (c) {
  case failure_class::deterministic:
    return "not tried again, because the same input would fail again";
  case failure_class::environment:
    return "not tried again, because something that it needs is missing";
  case failure_class::policy:
    return "not tried again, because a rule or a budget forbids it";
  case failure_class::transient:
  case failure_class::flaky:
    return "no attempt is left";
  case failure_class::none:
    break;
  }
  return {};
}

} // namespace boyd
