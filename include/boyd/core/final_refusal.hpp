#pragma once

#include "boyd/core/result.hpp"

namespace boyd {

/// Whether the request was refused for its content, and would be again. Damage, which may be
/// repaired, is not such a refusal.
inline bool is_final_refusal(const error& e) noexcept {
  return e.code != errc::corrupt && category_of(e) == error_category::permanent;
}

} // namespace boyd
