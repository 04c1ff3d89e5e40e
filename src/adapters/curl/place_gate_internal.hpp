#pragma once

#include "boyd/ports/http_client.hpp"

#include <chrono>
#include <cstddef>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

namespace boyd::adapters::curl_detail {

/// Lets one request to a place go first and the others follow when it is connected: else a thousand
/// requests that begin together would look up the same name in a thousand threads, and make a
/// thousand TLS connections where one HTTP/2 connection does. Pure; one thread.
class place_gate {
 public:
  using time = std::chrono::steady_clock::time_point;
  /// A place whose name was looked up less than this ago; shorter than libcurl remembers names.
  static constexpr std::chrono::seconds good_for{45};

  /// True: it may go on. Else it waits, and its handle is named by a later call.
  bool enter(const std::string& place, http_handle handle, time connect_by, time now);
  /// A request to this place is connected. Returns those that may go on now.
  std::vector<http_handle> connected(const std::string& place, time now);

  /// Those for whom something follows from the end of a request.
  struct after_end {
    std::vector<http_handle> failed; ///< they would fail alike
    std::optional<http_handle> next; ///< goes first now
  };
  /// A request has ended, or will not wait any longer. `place_fails`: no connection can be made.
  after_end ended(const std::string& place, http_handle handle, bool place_fails);

  /// Those that have waited beyond their time to connect; ended() is still to be called for each.
  std::vector<http_handle> overdue(time now) const;
  /// When the next one will be overdue.
  std::optional<time> next_due() const;
  std::size_t waiting() const { return due_.size(); }

 private:
  struct site {
    std::optional<http_handle> first;
    time good_until{};
    std::map<http_handle, time> waiting; ///< in the order of their handles, that is of their starts
  };

  void forget_old(time now);

  std::map<std::string, site> sites_;
  std::set<std::pair<time, http_handle>> due_;
};

} // namespace boyd::adapters::curl_detail
