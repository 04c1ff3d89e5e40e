#pragma once

#include "actors/support/node_context.hpp"
#include "boyd/exec/chat_loop.hpp"
#include "messages/interfaces.hpp"

#include <caf/actor_addr.hpp>
#include <caf/fwd.hpp>

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace boyd {

/// Begin.
struct conversation_query : message {};

/// End now, whatever the state is.
struct stop_conversation : message {};

/// A conversation that is over. The asker alone has the dialogue.
struct conversation_reply : message {
  std::shared_ptr<exec::dialogue> dialogue; ///< null: it did not begin
  /// Why it was ended before its own end: `timed_out` after its limit, `cancelled` when it was
  /// stopped, else what kept it from its key or from the findings.
  std::optional<error> cut;
  std::vector<std::string> secrets; ///< the configuration's, and the keys
  milliseconds took{0};
};

/// Leads one conversation with a model that belongs to no attempt.
using conversation_actor = caf::typed_actor<
    // Once; the actor ends with its answer.
    caf::replies_to<conversation_query>::with<answers<conversation_reply>>,
    // Answer at once.
    caf::reacts_to<stop_conversation>>;

/// What to talk about, and with whom.
struct conversation_order {
  node_context_ptr context;
  configuration_ptr configuration;
  std::vector<exec::chat_target> targets; ///< exec::chat_targets
  /// Whether findings of `boyd doctor --provider` count.
  bool uses_findings = true;
  /// Makes the dialogue once the targets have their keys; called on the actor's thread.
  std::function<std::shared_ptr<exec::dialogue>(std::vector<exec::chat_target>)> make;
  /// Answers a call of a tool in the place of the tool, with whether that is an error; called on
  /// the actor's thread. Without it a dialogue must want none.
  std::function<std::pair<std::string, bool>(const model::tool_call&)> answer_tool{};
  std::string caller;    ///< KERNEL/AGENT: at the governor, and in the log
  std::string record;    ///< the file to which what was said is appended, at the end; empty: none
  milliseconds limit{0}; ///< for all of it, repetitions included
  store_actor store;
  governor_actor governor; ///< may be null where the dialogue asks for no place
  workspace_actor workspace;
  caf::actor_addr asker; ///< when it ends, so does the conversation, and the call with it
};

/// Starts a conversation: event-driven, no thread of its own. No tool is run in it.
conversation_actor spawn_conversation(caf::actor_system& system, conversation_order order);

} // namespace boyd
