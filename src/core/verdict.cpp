#include "boyd/core/verdict.hpp"

#include "enum_names.hpp"

namespace boyd {
namespace {

using names = std::string_view;
constexpr std::array<names, 7> execution_names{"none",    "succeeded", "failed",       "timed_out",
                                               "stalled", "cancelled", "indeterminate"};
constexpr std::array<names, 3> claim_names{"none", "done", "failed"};
constexpr std::array<names, 3> verification_names{"none", "passed", "failed"};
constexpr std::array<names, 6> failure_names{"none",        "transient", "deterministic",
                                             "environment", "flaky",     "policy"};

} // namespace

bool is_retryable(failure_class c) noexcept {
  return c == failure_class::transient || c == failure_class::flaky;
}

std::string_view name_of(execution_verdict v) noexcept {
  return detail::name_in(execution_names, v);
}

std::string_view name_of(claim_verdict v) noexcept {
  return detail::name_in(claim_names, v);
}

std::string_view name_of(verification_verdict v) noexcept {
  return detail::name_in(verification_names, v);
}

std::string_view name_of(failure_class c) noexcept {
  return detail::name_in(failure_names, c);
}

std::optional<execution_verdict> execution_verdict_from(std::string_view name) noexcept {
  return detail::value_in<execution_verdict>(execution_names, name);
}

std::optional<claim_verdict> claim_verdict_from(std::string_view name) noexcept {
  return detail::value_in<claim_verdict>(claim_names, name);
}

std::optional<verification_verdict> verification_verdict_from(std::string_view name) noexcept {
  return detail::value_in<verification_verdict>(verification_names, name);
}

std::optional<failure_class> failure_class_from(std::string_view name) noexcept {
  return detail::value_in<failure_class>(failure_names, name);
}

bool is_success(const run_outcome& o) noexcept {
  return o.execution == execution_verdict::succeeded && o.claim != claim_verdict::failed &&
         o.verification != verification_verdict::failed;
}

} // namespace boyd
