#include "boyd/core/dispatch.hpp"

#include "enum_names.hpp"

namespace boyd {
namespace {

constexpr std::array<std::string_view, 5> status_names{"pending", "running", "done", "failed",
                                                       "cancelled"};
constexpr std::array<std::string_view, 4> settle_names{"accepted", "already_settled", "stale",
                                                       "not_found"};

} // namespace

std::string_view name_of(dispatch_status s) noexcept {
  return detail::name_in(status_names, s);
}

std::optional<dispatch_status> dispatch_status_from(std::string_view name) noexcept {
  return detail::value_in<dispatch_status>(status_names, name);
}

bool is_final(dispatch_status s) noexcept {
  return s == dispatch_status::done || s == dispatch_status::failed ||
         s == dispatch_status::cancelled;
}

std::string_view name_of(settle_result r) noexcept {
  return detail::name_in(settle_names, r);
}

} // namespace boyd
