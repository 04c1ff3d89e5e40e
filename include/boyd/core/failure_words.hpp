#pragma once

#include "boyd/core/verdict.hpp"

#include <string_view>

namespace boyd {

/// What a person reads behind "failed; " about a run that is over: why it is not tried again.
/// Empty for `none`.
std::string_view why_no_retry(failure_class c) noexcept;

} // namespace boyd
