#pragma once

#include "boyd/config/configuration.hpp"
#include "boyd/context/block.hpp"
#include "boyd/context/wanted.hpp"
#include "boyd/core/time.hpp"
#include "messages/knowledge.hpp"

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace boyd {

/// Commands of one run's context, its output each, and their time: one after the other.
inline constexpr std::size_t context_commands = 16;
inline constexpr std::size_t context_output_bytes = std::size_t{256} << 10;
inline constexpr milliseconds context_command_timeout = 30s;
/// After so long no further command is begun.
inline constexpr milliseconds context_patience = 3min;

/// Where an agent's references begin and end: its `context.workspace`, else what its executor works
/// in, else the kernel's home. Absolute.
std::string reading_root(const config::agent& agent, const std::string& kernel_home);

/// What the items of references below `root` are known under; empty: by the root's real path
/// (context::reading_order).
std::string reading_scope(const std::string& root, const std::string& kernel_home,
                          const std::string& kernel_id);

/// All references of a run, in the order of docs/context.md. `metadata_json`: of its dispatch.
std::vector<context::wanted> references_of_run(const config::context_settings& settings,
                                               std::string_view metadata_json);

/// By what entries of memory are found for a run: its message, else the words of the agent's
/// prompt. `metadata_json`: of its dispatch.
std::string question_of_run(const config::agent& agent, std::string_view metadata_json);

/// How many entries of memory a run of the agent gets at most; a script reads nothing.
std::size_t recalled_entries(const config::configuration& configuration,
                             const std::string& kernel_id, const config::agent& agent);

/// What a run of the agent is given of what its kernel has learned; nothing: none of it.
std::optional<config::learning_settings> learning_of(const config::configuration& configuration,
                                                     const std::string& kernel_id,
                                                     const config::agent& agent);

/// How the items of a run are ranked.
context::confidence_rule ranking_of(const config::configuration& configuration,
                                    const std::string& kernel_id, const std::string& dispatch_id);

/// Leaves of the items with the origin `bank` those that are the banked ones (the bank knows other
/// projects, too), that could be read, are not larger and not more than the settings say; they get
/// the scores with which they were found.
void keep_banked(std::vector<context::offered_item>& items, const std::vector<banked_item>& bank,
                 const std::optional<config::learning_settings>& settings);

/// A command whose output becomes an item.
struct context_command {
  std::size_t item = 0; ///< its index
  std::vector<std::string> argv;
};

/// The commands among the items that may run; of the others the failure says why not. One that the
/// configuration names runs unless a rule of the policy denies it or lets a person decide; any
/// other runs only when the policy allows the agent that command.
std::vector<context_command> commands_to_run(std::vector<context::offered_item>& items,
                                             const std::vector<context::wanted>& references,
                                             const config::agent& agent, const std::string& root);

/// Of a run's items: what is required and could not be read, in words; empty: nothing.
std::string missing_items(const std::vector<context::offered_item>& items);

} // namespace boyd
