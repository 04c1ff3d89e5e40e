#pragma once

#include "actors/support/node_context.hpp"
#include "boyd/context/block.hpp"
#include "boyd/context/wanted.hpp"
#include "boyd/exec/command_line.hpp"
#include "messages/interfaces.hpp"

#include <caf/actor_addr.hpp>
#include <caf/fwd.hpp>

#include <cstddef>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace boyd {

/// Go on and read.
struct read_context : message {};

/// Nobody waits for the items any more: the answer comes now.
struct stop_reading : message {};

/// What the references are, in their order, then what was found in the bank and in memory, all
/// rated (context::rate); what could not be read says so.
struct context_items : message {
  std::vector<context::offered_item> items;
  /// What the log of facts says of them, by their ids; nothing of those that it does not name.
  std::map<std::string, context::item_statistics> known{};
  std::string skills{};                   ///< the section `# Skills`; empty: there are none
  std::vector<std::string> skill_names{}; ///< that the run may declare
};

/// Reads what one run refers to.
using context_reader_actor = caf::typed_actor<
    // Once; the reader ends with its answer. `cancelled` after stop_reading.
    caf::replies_to<read_context>::with<answers<context_items>>,
    // Answer at once; a command that runs is ended.
    caf::reacts_to<stop_reading>>;

/// What is to be read, and for whom.
struct reading_task {
  node_context_ptr context;
  configuration_ptr configuration;
  std::shared_ptr<const config::agent> agent; ///< whose policy and sandbox hold
  exec::run_identity who;                     ///< for whom commands run
  std::string root;                           ///< core.hpp: reading_root
  std::vector<context::wanted> references;
  std::vector<std::string> secrets; ///< are taken out of every item
  /// By which entries of memory are found, at most `recall`; empty, or 0: none are.
  std::string question;
  std::size_t recall = 0;
  /// By the question, too: what the kernel has learned (offer_learned). Nothing: none of it.
  std::optional<config::learning_settings> learning{};
  context::confidence_rule ranking{}; ///< of what is found
  workspace_actor workspace;
  knowledge_actor knowledge; ///< null: nothing is found, and every item counts as new
  caf::actor_addr asker;     ///< when it ends, so does the reader
};

/// The longest time that a reader takes to answer.
milliseconds reading_limit();

/// Starts a reader: event-driven, no thread of its own. Files are read by the workers of the file
/// tools, commands run one after the other, in the agent's sandbox where the agent is one that a
/// model drives, else where `sandbox.commands` says so.
context_reader_actor spawn_context_reader(caf::actor_system& system, reading_task task);

} // namespace boyd
