#pragma once

#include "actors/context/actor.hpp"
#include "actors/gateway/state.hpp"
#include "boyd/context/block.hpp"
#include "boyd/context/wanted.hpp"

#include <cstddef>
#include <functional>
#include <memory>
#include <string>
#include <vector>

/// What an agent is given to read, for requests that show it.
namespace boyd::gateway_impl {

/// For whom something is read.
struct reader_identity {
  const config::kernel* kernel = nullptr;
  std::shared_ptr<const config::agent> agent; ///< never null
  std::string root;
};

/// Of the agent with that name; without a name nobody's in particular, below the directory that all
/// agents of the kernel work in, else the kernel's home. An error is answered, and nothing
/// returned.
std::optional<reader_identity> reader_of(const exchange_ptr& x, const config::kernel& kernel,
                                         const std::string& agent_id);

/// Entries of memory that are looked for.
struct memory_wish {
  std::string question;
  std::size_t most = 0; ///< 0: none
  /// What the kernel has learned besides; nothing: none of it.
  std::optional<config::learning_settings> learning{};
};

/// Reads items, commands included, and finds entries of memory; `done` is called once.
void read_items_for(const exchange_ptr& x, const reader_identity& who,
                    std::vector<context::wanted> references, memory_wish wish,
                    std::function<void(result<context_items>)> done);

/// What becomes of items in a prompt: {budget_tokens, tokens, items[], report}.
json context_json(const std::vector<context::offered_item>& items,
                  const context::context_block& block);

} // namespace boyd::gateway_impl
