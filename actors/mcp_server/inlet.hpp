#pragma once

#include "boyd/core/result.hpp"
#include "boyd/ports/http_client.hpp"
#include "boyd/ports/process_runner.hpp"

#include <cstddef>
#include <cstdint>
#include <functional>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

namespace boyd {

/// What comes from a server, from the threads of ports to the actor, in its order and bounded: a
/// server that writes faster than it is read is given up. Threads: any.
class inlet {
 public:
  struct out_bytes {
    std::string bytes;
  };
  struct err_bytes {
    std::string bytes;
  };
  struct head_of {
    std::uint64_t exchange = 0;
    http_head head;
  };
  struct body_of {
    std::uint64_t exchange = 0;
    std::string bytes;
  };
  struct end_of {
    std::uint64_t exchange = 0;
    result<void> transport;
  };
  using piece = std::variant<out_bytes, err_bytes, process_exit, head_of, body_of, end_of>;

  /// `wake`: pieces are there; called again only after they were taken.
  explicit inlet(std::function<void()> wake) : wake_(std::move(wake)) {}

  /// `bytes`: what counts of it. What a server writes to stderr beyond a bound is dropped.
  void put(piece p, std::size_t bytes) {
    {
      const std::lock_guard lock(mutex_);
      const bool is_err = std::holds_alternative<err_bytes>(p);
      auto& held = is_err ? err_held_ : held_;
      if (held + bytes > (is_err ? most_err : most)) {
        if (is_err)
          return;
        overflow_ = true;
        // An end must be heard.
        if (bytes > 0)
          p = out_bytes{};
        bytes = 0;
      }
      held += bytes;
      pieces_.push_back(std::move(p));
      if (std::exchange(woken_, true))
        return;
    }
    wake_();
  }

  struct taken {
    std::vector<piece> pieces;
    bool overflow = false; ///< something is missing
  };
  taken take() {
    const std::lock_guard lock(mutex_);
    held_ = err_held_ = 0;
    woken_ = false;
    return {std::exchange(pieces_, {}), std::exchange(overflow_, false)};
  }

 private:
  static constexpr std::size_t most = 32u << 20;
  static constexpr std::size_t most_err = 64u << 10;

  std::mutex mutex_;
  std::function<void()> wake_;
  std::vector<piece> pieces_;
  std::size_t held_ = 0;
  std::size_t err_held_ = 0;
  bool overflow_ = false;
  bool woken_ = false;
};

} // namespace boyd
