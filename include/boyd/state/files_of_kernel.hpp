#pragma once

#include "boyd/core/time.hpp"

#include <string>

namespace boyd::state {

/// What INIT.md records at node start.
struct init_snapshot {
  std::string kernel_id;
  std::string node_id;
  std::string version; ///< of the program
  utc_time at{};
  std::string configuration_yaml; ///< effective; secrets are redacted by the caller
};

/// INIT.md: a header and the configuration in a fence that the text cannot close.
std::string render_init(const init_snapshot& snapshot);

/// What SYSTEM_PROMPT.md records.
struct system_prompt_snapshot {
  std::string kernel_id;
  std::string version;
  utc_time at{};
  std::string prompt; ///< secrets are redacted by the caller
};

/// SYSTEM_PROMPT.md: a header and the prompt in a fence that the text cannot close.
std::string render_system_prompt(const system_prompt_snapshot& snapshot);

/// True when two renderings differ in nothing but `written_at`: then writing the new one would only
/// make an empty commit.
bool same_snapshot(const std::string& a, const std::string& b);

} // namespace boyd::state
