#pragma once

#include "boyd/core/time.hpp"

#include <cstdint>
#include <string>
#include <vector>

namespace boyd::config {

/// `sandbox:` of the node and of an agent: what a program that is started for an agent may reach.
struct sandbox_settings {
  enum class mode_t : std::uint8_t {
    automatic, ///< bubblewrap, else Landlock, else limits alone
    landlock,
    bubblewrap,
    off,
    required, ///< as `automatic`, and no run where something that was asked for is not enforced
  };
  enum class network_t : std::uint8_t { allow, none, hosts };

  mode_t mode = mode_t::automatic;
  /// Also for what the configuration itself names (command executors, checks); else for what models
  /// drive (run_command, agent CLIs).
  bool commands = false;
  std::vector<std::string> writable; ///< absolute after loading
  std::vector<std::string> readable;
  network_t network = network_t::allow;
  std::vector<std::string> hosts; ///< NAME:PORT
  bool unix_sockets = false;
  std::uint64_t memory = 0;    ///< bytes; 0: no limit
  std::uint64_t file_size = 0; ///< bytes; 0: Boyd's own limit, as for the two below
  std::uint64_t processes = 0;
  std::uint64_t open_files = 0;
  milliseconds cpu{0}; ///< 0: no limit

  bool operator==(const sandbox_settings&) const = default;
};

} // namespace boyd::config
