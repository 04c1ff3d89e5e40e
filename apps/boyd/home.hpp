#pragma once

#include "arguments.hpp"
#include "boyd/config/configuration.hpp"
#include "boyd/config/load.hpp"
#include "boyd/core/home_layout.hpp"
#include "boyd/core/result.hpp"
#include "boyd/ports/ports.hpp"
#include "boyd/ports/store_archive.hpp"
#include "store_identity.hpp"

#include <functional>
#include <memory>
#include <optional>
#include <string>

namespace boyd::app {

/// Where a command works.
struct place {
  std::string home;        ///< absolute, no trailing '/'
  std::string config_path; ///< absolute

  /// --config names another file than the home's.
  bool has_own_config() const { return config_path != layout().configuration(); }
  home_layout layout() const { return home_layout(home); }
};

/// --home, $BOYD_HOME, $XDG_STATE_HOME/boyd, ~/.local/state/boyd; --config or HOME/boyd.yaml.
result<place> place_of(const arguments& args);

/// `not_found` with "boyd init" when there is no home, or no configuration in it.
result<void> require_home(const place& where);

/// The process's environment.
config::environment_lookup environment();

/// Reads and checks the file. Errors only when it cannot be read; findings are in the value.
result<config::load_result> read_configuration(const std::string& path, file_system& files,
                                               const time_zones& zones);

/// The same for a text that was read already.
result<std::shared_ptr<const config::configuration>> parse_configuration(const std::string& path,
                                                                         const std::string& text,
                                                                         file_system& files,
                                                                         const time_zones& zones);

/// As load_configuration_to_ask, of a text that was read already. `tell`: the word on standard
/// error.
result<std::shared_ptr<const config::configuration>>
parse_configuration_to_ask(const std::string& path, const std::string& text, file_system& files,
                           const time_zones& zones, bool tell = true);

/// As above; all findings become one `invalid_configuration`, one line each.
result<std::shared_ptr<const config::configuration>>
load_configuration(const std::string& path, file_system& files, const time_zones& zones);

/// The same for a command that runs nothing: the node's secrets need not be in its environment.
/// What a variable that is not set stands in stays as it is written, with a word on standard error.
result<std::shared_ptr<const config::configuration>>
load_configuration_to_ask(const std::string& path, file_system& files, const time_zones& zones);

/// As parse_configuration_to_ask, with every finding and warning, and without a word.
config::load_result judge_configuration_to_ask(const std::string& path, const std::string& text,
                                               file_system& files, const time_zones& zones);

/// The findings as one error.
error error_of(const config::load_result& loaded, const std::string& path);

/// The id of this home's node, kept in HOME/run/node_id; made when it is missing or damaged.
result<std::string> node_id_of(const place& where, file_system& files, clock_port& clock,
                               entropy& random);

/// Environment: so many days are added to the time of day, for a trial (`boyd selftest --learn`).
/// What is no number up to most_days_ahead has no effect.
inline constexpr const char* days_ahead_variable = "BOYD_DAYS_AHEAD";
inline constexpr int most_days_ahead = 3650;

/// Clock, entropy, files, git, time zones: all ports but the store and the processes.
ports local_ports();

/// node.store of the file in the home.
inline constexpr const char* embedded_store = "sqlite";

using make_store_function = std::function<std::unique_ptr<dispatch_store>()>;

/// A factory for the store of this name (a value of node.store), whosesoever it is.
result<make_store_function> plain_store(const ports& with, const place& where,
                                        const config::configuration& configuration,
                                        const std::string& name);

/// The content of the same store, to be read and written as a whole; not opened. No store of it may
/// be open meanwhile.
result<std::unique_ptr<store_archive>> archive_of(const ports& with, const place& where,
                                                  const config::configuration& configuration,
                                                  const std::string& name);

/// A factory for the store that the configuration names, and its wake-ups when `listening`. The
/// SQLite file is made when it is missing. It opens only when it is the home's
/// (store_identity.hpp).
/// `check`: of each opened store, see identified_store.
result<void> add_store(ports& to, const place& where, const config::configuration& configuration,
                       bool listening, const store_check& check = {});

} // namespace boyd::app
