#pragma once

#include "boyd/config/sandbox.hpp"
#include "passes.hpp"

namespace boyd::config {

/// `t` over `outer`: what is not given there stays; lists are added.
sandbox_settings sandbox_of(const pass& p, const tree& t, sandbox_settings outer);

} // namespace boyd::config
