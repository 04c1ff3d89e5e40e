#pragma once

#include "boyd/core/verdict.hpp"

#include <string>
#include <string_view>

namespace boyd {

/// What a person reads behind "failed" about a run that is over: ": exit code 1 (no automatic
/// retry)". The agent runs again by its schedule all the same. Without `cause` the words in
/// brackets alone; nothing of them for `none`.
std::string after_failed(std::string_view cause, failure_class c);

} // namespace boyd
