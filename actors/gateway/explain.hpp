#pragma once

#include "actors/gateway/state.hpp"

#include <functional>
#include <string>

/// Private to actors/gateway: executions by what people call them.
namespace boyd::gateway_impl {

using execution_reader = std::function<void(const std::string& dispatch_id)>;

/// `id`: of a dispatch, its beginning, an agent's (its newest run) or "last" (find_last_begun). An
/// error is answered.
void find_execution(const exchange_ptr& x, const std::string& id, execution_reader then);

} // namespace boyd::gateway_impl
