#pragma once

#include "messages/api.hpp"
#include "messages/approvals.hpp"
#include "messages/dispatching.hpp"
#include "messages/governor.hpp"
#include "messages/graph.hpp"
#include "messages/health.hpp"
#include "messages/kernel.hpp"
#include "messages/knowledge.hpp"
#include "messages/librarian.hpp"
#include "messages/mcp.hpp"
#include "messages/node.hpp"
#include "messages/permits.hpp"
#include "messages/planning.hpp"
#include "messages/repository.hpp"
#include "messages/state.hpp"
#include "messages/store.hpp"
#include "messages/workspace.hpp"

#include <caf/replies_to.hpp>
#include <caf/typed_actor.hpp>

/// Every typed actor of the node, each message with one line of meaning. Requests answer with
/// `result<T>`; notifications (`reacts_to`) answer nothing. Sibling order and dependencies are data
/// in actors/node/root.cpp.
namespace boyd {

template <class T>
using answers = result<T>;

// -- keepers: stable handles before disposable workers that may block ----------------------------

/// Hears what happens to the queue.
using queue_listener_actor = caf::typed_actor<
    // Work may be due.
    caf::reacts_to<queue_changed>,
    // These dispatches were settled here.
    caf::reacts_to<dispatches_settled>>;

/// Adds a listener at the store; it is dropped when it goes down.
struct subscribe_queue : message {
  queue_listener_actor listener;
};

/// The durable store's keeper (actors/store).
using store_actor = caf::typed_actor<
    // One transaction; the answer comes when it is durable.
    caf::replies_to<store_request>::with<answers<store_reply>>,
    // From now on this listener hears queue_changed and dispatches_settled.
    caf::reacts_to<subscribe_queue>,
    // Another node has changed the queue.
    caf::reacts_to<external_wakeup>,
    // How are you?
    caf::replies_to<health_query>::with<answers<part_health>>>;

/// STATE.md and the other files of kernel homes (actors/state_writer).
using state_writer_actor = caf::typed_actor<
    // One file operation; writes are durable and staged when it answers.
    caf::replies_to<state_request>::with<answers<state_reply>>,
    // How are you?
    caf::replies_to<health_query>::with<answers<part_health>>>;

/// Cycle boundaries and questions about the past (actors/git_committer).
using git_committer_actor = caf::typed_actor<
    // One commit or query.
    caf::replies_to<repository_request>::with<answers<repository_reply>>,
    // How are you?
    caf::replies_to<health_query>::with<answers<part_health>>>;

/// The append-only knowledge graph (actors/graph_recorder).
using graph_recorder_actor = caf::typed_actor<
    // Facts, durable when it answers, with the new head of the chain.
    caf::replies_to<graph_request>::with<answers<graph_reply>>,
    // How are you?
    caf::replies_to<health_query>::with<answers<part_health>>>;

/// The node's index of what its kernels remember (actors/knowledge).
using knowledge_actor = caf::typed_actor<
    // Recall, or a description; the index has taken over what changed in the files.
    caf::replies_to<knowledge_request>::with<answers<knowledge_reply>>,
    // How are you?
    caf::replies_to<health_query>::with<answers<part_health>>>;

/// Files in agents' workspaces (actors/workspace).
using workspace_actor = caf::typed_actor<
    // One file operation.
    caf::replies_to<workspace_request>::with<answers<workspace_reply>>,
    // How are you?
    caf::replies_to<health_query>::with<answers<part_health>>>;

// -- the loop
// ----------------------------------------------------------------------------------------

/// Context for a cycle: goal, memory, senses, wake checks (actors/librarian).
using librarian_actor = caf::typed_actor<
    // Reads and senses.
    caf::replies_to<gather_context>::with<answers<gathered_context>>,
    // Have these agents' inputs changed?
    caf::replies_to<check_wake>::with<answers<wake_results>>,
    // How are you?
    caf::replies_to<health_query>::with<answers<part_health>>,
    // New configuration.
    caf::reacts_to<reload_order>>;

/// Turns state and agents into dispatch specs, and asks models on the kernel's own behalf
/// (actors/planner).
using planner_actor = caf::typed_actor<
    // Every agent gets a decision with a reason.
    caf::replies_to<plan_request>::with<answers<plan::plan_output>>,
    // A model's words for a cycle's outcomes.
    caf::replies_to<reduce_request>::with<answers<reduction>>,
    // This kernel waits for no model any more.
    caf::reacts_to<stop_questions>,
    // How are you?
    caf::replies_to<health_query>::with<answers<part_health>>>;

/// Removes finished rows that are older than `node.retention` (actors/retention).
using retention_actor = caf::typed_actor<
    // New configuration.
    caf::reacts_to<reload_order>>;

/// Hears the progress of cycles.
using event_listener_actor = caf::typed_actor<
    // Something happened in a cycle.
    caf::reacts_to<cycle_event>>;

/// Adds a listener at a kernel; it is dropped when it goes down.
struct subscribe_events : message {
  event_listener_actor listener;
};

/// Drives the cycles of one kernel (actors/kernel). Also a queue listener.
using kernel_actor = caf::typed_actor<
    // One cycle now, through the admission gate.
    caf::replies_to<trigger_cycle>::with<answers<trigger_reply>>,
    // Answers when that cycle is recorded.
    caf::replies_to<await_cycle>::with<answers<awaited_cycle>>,
    // Where are you?
    caf::replies_to<kernel_query>::with<answers<kernel_status>>,
    // How are you?
    caf::replies_to<health_query>::with<answers<part_health>>,
    // New configuration.
    caf::reacts_to<reload_order>,
    // Shutdown begins: no new cycle.
    caf::reacts_to<stop_order>,
    // The dispatchers are drained: final runtime block, then the answer.
    caf::replies_to<finish_order>::with<answers<finish_reply>>,
    // From now on this listener hears cycle_event.
    caf::reacts_to<subscribe_events>,
    // Work may be due (ignored here).
    caf::reacts_to<queue_changed>,
    // Perhaps one of this cycle's dispatches is final.
    caf::reacts_to<dispatches_settled>>;

// -- dispatching
// ---------------------------------------------------------------------------------------

/// Receives permits.
using permit_holder_actor = caf::typed_actor<
    // Permits to run that many attempts.
    caf::reacts_to<permit_grant>>;

/// A wish with the one who wishes.
struct permit_request : message {
  permit_wish wish;
  permit_holder_actor holder;
};

/// Gives permits back.
struct permit_release : message {
  int count = 0;
  permit_holder_actor holder;
};

/// Node-wide and per-kernel concurrency (actors/permits).
using permits_actor = caf::typed_actor<
    // Wants permits; replaces the earlier wish.
    caf::reacts_to<permit_request>,
    // Gives permits back.
    caf::reacts_to<permit_release>,
    // New limits.
    caf::reacts_to<permit_limits>,
    // The next runs one by one.
    caf::reacts_to<permit_pacing>,
    // Who holds what?
    caf::replies_to<permits_query>::with<answers<permits_status>>,
    // How are you?
    caf::replies_to<health_query>::with<answers<part_health>>>;

/// Hears about its places at providers.
using place_holder_actor = caf::typed_actor<
    // A place, or why there is none.
    caf::reacts_to<place_answer>>;

/// A wish with the one who wishes; answered by one place_answer.
struct place_request : message {
  place_wish wish;
  place_holder_actor holder;
};

/// Gives a place back, or withdraws the wish. Without a word (`ended` empty) nothing is learnt
/// about the provider.
struct place_release : message {
  std::string provider_id;
  std::uint64_t call = 0;
  std::optional<call_ended> ended;
  place_holder_actor holder;
};

/// One governor per provider: how many calls at once, how many in a minute, and the circuit breaker
/// (actors/governor). A place ends with its holder.
using governor_actor = caf::typed_actor<
    // Wants a place.
    caf::reacts_to<place_request>,
    // Gives it back.
    caf::reacts_to<place_release>,
    // How are the providers?
    caf::replies_to<governors_query>::with<answers<governors_reply>>,
    // New limits.
    caf::reacts_to<reload_order>,
    // How are you?
    caf::replies_to<health_query>::with<answers<part_health>>>;

/// Servers of tools: started when they are wanted, shared, ended when idle (actors/mcp).
using mcp_actor = caf::typed_actor<
    // Which tools are there for this agent?
    caf::replies_to<mcp_tools_query>::with<answers<mcp_tools_reply>>,
    // One call of a tool.
    caf::replies_to<mcp_call>::with<answers<mcp_call_reply>>,
    // Nobody waits for this call any more.
    caf::reacts_to<mcp_cancel>,
    // How are the servers?
    caf::replies_to<mcp_servers_query>::with<answers<mcp_servers_reply>>,
    // A person's word about a server of a workspace.
    caf::replies_to<mcp_trust_order>::with<answers<mcp_trust_reply>>,
    // New configuration.
    caf::reacts_to<reload_order>,
    // The subtree.
    caf::replies_to<tree_query>::with<answers<tree_reply>>,
    // Restart or unpark one of the servers.
    caf::replies_to<actor_order>::with<answers<actor_order_reply>>,
    // How are you?
    caf::replies_to<health_query>::with<answers<part_health>>>;

/// Hears what becomes of its wishes for a person's word.
using approval_waiter_actor = caf::typed_actor<
    // A word about one of them.
    caf::reacts_to<approval_answer>>;

/// A wish with the run that waits for it.
struct approval_request : message {
  approval_wish wish;
  approval_waiter_actor waiter;
};

/// The use of an approval that the run was told of.
struct approval_use_request : message {
  approval_use use;
  approval_waiter_actor waiter;
};

/// A run that waits no longer.
struct approval_end : message {
  approval_over over;
  approval_waiter_actor waiter;
};

/// The inbox of what people are to decide: who waits in this node, and who is told
/// (actors/approvals). A wish ends with its waiter.
using approvals_actor = caf::typed_actor<
    // Ask a person; answered by one or more approval_answer.
    caf::reacts_to<approval_request>,
    // Use what was approved.
    caf::reacts_to<approval_use_request>,
    // The run is over, or waits no longer.
    caf::reacts_to<approval_end>,
    // This wish is not wanted any more.
    caf::reacts_to<approval_withdrawal>,
    // A person has decided.
    caf::replies_to<approval_decision>::with<answers<store::approval_change>>,
    // How is the inbox?
    caf::replies_to<approvals_query>::with<answers<approvals_status>>,
    // Work may be due (another node may have decided).
    caf::reacts_to<queue_changed>,
    // Perhaps a run is over.
    caf::reacts_to<dispatches_settled>,
    // New configuration.
    caf::reacts_to<reload_order>,
    // How are you?
    caf::replies_to<health_query>::with<answers<part_health>>>;

/// Runs one agent's dispatches (actors/dispatcher).
using dispatcher_actor = caf::typed_actor<
    // So much of your work is due.
    caf::reacts_to<work_due>,
    // Permits.
    caf::reacts_to<permit_grant>,
    // An attempt is over.
    caf::reacts_to<run_finished>,
    // End this attempt, if you have it.
    caf::reacts_to<cancel_run>,
    // Give back those that you do not run.
    caf::reacts_to<expired_rows>,
    // Stop claiming; then cancel what runs after the grace.
    caf::reacts_to<drain_order>,
    // Cancel what runs, now.
    caf::reacts_to<hurry_order>,
    // New settings for the next attempts.
    caf::reacts_to<reload_order>,
    // What are you doing?
    caf::replies_to<dispatchers_query>::with<answers<dispatcher_status>>>;

/// One attempt at one dispatch (actors/executor).
using executor_actor = caf::typed_actor<
    // End it for this cause; run_finished follows.
    caf::reacts_to<cancel_run>>;

/// All dispatchers, one per agent (actors/dispatcher/pool). Also a queue listener.
using dispatcher_pool_actor = caf::typed_actor<
    // Recover this node's rows, then let the dispatchers claim.
    caf::reacts_to<start_claiming>,
    // Work may be due: ask the store whose.
    caf::reacts_to<queue_changed>,
    // Rows moved (ignored here).
    caf::reacts_to<dispatches_settled>,
    // End this attempt, whoever has it.
    caf::reacts_to<cancel_run>,
    // Agents added, removed, changed.
    caf::reacts_to<reload_order>,
    // Drain; answers when nothing runs any more.
    caf::replies_to<drain_order>::with<answers<drained>>,
    // A dispatcher is empty.
    caf::reacts_to<drained>,
    // Cancel what runs, now.
    caf::reacts_to<hurry_order>,
    // What is everybody doing?
    caf::replies_to<dispatchers_query>::with<answers<dispatchers_reply>>,
    // The subtree.
    caf::replies_to<tree_query>::with<answers<tree_reply>>,
    // Restart or unpark one of the dispatchers.
    caf::replies_to<actor_order>::with<answers<actor_order_reply>>,
    // How are you?
    caf::replies_to<health_query>::with<answers<part_health>>>;

// -- outside
// -------------------------------------------------------------------------------------------

/// Knows the whole supervision tree, takes orders about it and a configuration: the root, as the
/// gateway sees it.
using tree_source_actor = caf::typed_actor<
    // The whole tree.
    caf::replies_to<tree_query>::with<answers<tree_reply>>,
    // Restart or unpark one part.
    caf::replies_to<actor_order>::with<answers<actor_order_reply>>,
    // A new, valid configuration, and what is answered when every part works by it.
    caf::replies_to<reload_request>::with<answers<api_response>>>;

/// The control API (actors/gateway).
using gateway_actor = caf::typed_actor<
    // One request.
    caf::replies_to<api_request>::with<answers<api_response>>,
    // Send me the events.
    caf::reacts_to<watch_events>,
    // Something happened in a cycle.
    caf::reacts_to<cycle_event>,
    // New configuration, with the same kernels.
    caf::reacts_to<reload_order>>;

} // namespace boyd
