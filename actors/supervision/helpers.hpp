#pragma once

#include "actors/supervision/shell.hpp"
#include "boyd/core/time.hpp"
#include "messages/health.hpp"

#include <caf/actor.hpp>
#include <caf/actor_addr.hpp>
#include <caf/actor_cast.hpp>

#include <algorithm>
#include <map>
#include <optional>
#include <utility>

namespace boyd {

/// The disposable actors that work for one part. No supervisor has them, so the part passes its own
/// pings on: one that spins ends its work by no time limit, which is a message to itself. It counts
/// as a keeper's worker that does not come back, so that the watchdog ends the process. One thread:
/// the part's.
class helper_pings {
 public:
  /// Whoever adds a helper monitors it, and says when it is gone; one that is there stays as it is.
  template <class Handle>
  void add(const Handle& one) {
    helpers_.try_emplace(one.address(), caf::actor_cast<caf::actor>(one), std::nullopt);
  }

  void forget(const caf::actor_addr& gone) { helpers_.erase(gone); }

  /// The part's answer to a ping: for how long the slowest helper has left one unanswered.
  template <class Self>
  pong answer(Self* self, steady_time now) {
    pong word;
    for (auto& [address, h] : helpers_) {
      if (!h.pinged_at)
        self->template send<caf::message_priority::high>(caf::actor_cast<pinged_actor>(h.handle),
                                                         ping{});
      h.pinged_at = h.pinged_at.value_or(now);
      word.worker_busy = std::max<milliseconds>(word.worker_busy, now - *h.pinged_at);
    }
    return word;
  }

  /// A helper's answer; of anybody else's nothing comes.
  void heard(const caf::strong_actor_ptr& sender) {
    if (!sender)
      return;
    const auto it = helpers_.find(caf::actor_cast<caf::actor_addr>(sender));
    if (it != helpers_.end())
      it->second.pinged_at.reset();
  }

 private:
  struct helper {
    caf::actor handle;
    std::optional<steady_time> pinged_at; ///< the first ping that it has not answered

    helper(caf::actor h, std::optional<steady_time> at) : handle(std::move(h)), pinged_at(at) {}
  };

  std::map<caf::actor_addr, helper> helpers_;
};

} // namespace boyd
