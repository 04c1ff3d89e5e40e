#pragma once

#include "boyd/core/home_layout.hpp"
#include "boyd/core/result.hpp"
#include "boyd/ports/clock.hpp"
#include "boyd/ports/dispatch_store.hpp"
#include "boyd/ports/entropy.hpp"
#include "boyd/ports/file_system.hpp"

#include <memory>
#include <string>

namespace boyd::app {

/// Facts of homes in a shared store: which home a node_id belongs to, by node_id.
inline constexpr const char* home_scope = "home";

/// `invalid_configuration` when `home` has its node_id from `original`, another home that still
/// stands on this machine with it; what to do next has a line for each command. Reads one file.
result<void> check_no_copy(file_system& files, const std::string& home, const std::string& original,
                           const std::string& node_id);

/// Keeps two homes with one node_id, as after a copy, from working side by side. With one shared
/// store each would take the other's rows for its own: the home and the store share a token, which
/// is a new one after each start, and a copy has an old one. An embedded store is copied with its
/// home: it knows where that stood, and whether the original still stands there is looked up.
/// Threads: as the store's.
class home_claim {
 public:
  struct options {
    std::shared_ptr<file_system> files;
    std::shared_ptr<clock_port> clock;
    std::shared_ptr<entropy> random;
    std::string home;
    std::string node_id;
    std::string host;
    bool shared_store = true;
  };

  explicit home_claim(options o) : o_(std::move(o)) {}

  /// To be called with a store that has just been opened. `invalid_configuration` when the node_id
  /// belongs to another home: the token is another one, or a node of that id was seen elsewhere a
  /// moment ago. The place itself (machine and path) is as good as the token: a backup that was put
  /// back there is the same home.
  result<void> hold(dispatch_store& opened);

  /// Whether this home is a copy whose original still stands on this machine, for a look only:
  /// `invalid_configuration` then.
  result<void> check_original(dispatch_store& opened) const;

 private:
  struct tokens {
    std::string now;
    std::string next; ///< of a start that may not have been finished
  };

  std::string path() const { return home_layout(o_.home).claim(); }
  tokens own() const;
  result<void> keep(const tokens& t) const;
  result<void> take(dispatch_store& opened, const tokens& before);
  /// Refused when the home where the node lived is another one on this machine, and is there still
  /// with the same node_id.
  result<void> check_other(const std::string& home, const std::string& machine_id) const;
  std::string fact_of_place(const std::string& token) const;
  std::string machine() const;
  error refusal(const std::string& owner, const std::string& why) const;

  options o_;
  std::string held_; ///< the token that this process has put into the store
};

} // namespace boyd::app
