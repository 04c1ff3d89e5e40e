#pragma once

#include "boyd/core/result.hpp"
#include "messages/dispatching.hpp"

#include <caf/typed_response_promise.hpp>

#include <cstddef>
#include <utility>

namespace boyd {

/// Collects the answers of all dispatchers; a silent one is left out after the time limit.
struct status_collector {
  caf::typed_response_promise<result<dispatchers_reply>> promise;
  dispatchers_reply reply;
  std::size_t missing = 0;

  void one_less() {
    if (--missing == 0)
      promise.deliver(result<dispatchers_reply>(std::move(reply)));
  }
};

} // namespace boyd
