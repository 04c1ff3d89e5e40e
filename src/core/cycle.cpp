#include "boyd/core/cycle.hpp"

#include "enum_names.hpp"

namespace boyd {
namespace {

constexpr std::array<std::string_view, 5> cycle_names{"running", "success", "partial_success",
                                                      "failed", "error"};
constexpr std::array<std::string_view, 5> occurrence_names{"open", "ran", "coalesced", "skipped",
                                                           "missed"};

} // namespace

std::string_view name_of(cycle_status s) noexcept {
  return detail::name_in(cycle_names, s);
}

std::optional<cycle_status> cycle_status_from(std::string_view name) noexcept {
  return detail::value_in<cycle_status>(cycle_names, name);
}

std::string_view name_of(occurrence_state s) noexcept {
  return detail::name_in(occurrence_names, s);
}

std::optional<occurrence_state> occurrence_state_from(std::string_view name) noexcept {
  return detail::value_in<occurrence_state>(occurrence_names, name);
}

} // namespace boyd
