#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <string_view>

/// Every fault point there is (SPEC §23), as data: its name, what stands there and what may go
/// wrong there. A name that is not here does not compile where the code passes a point.
namespace boyd::faults {

/// What goes wrong.
enum class action : std::uint8_t {
  crash,   ///< an exception leaves the part: its actor or worker dies and is restarted
  error,   ///< the operation fails
  delay,   ///< the operation, or the message, comes later
  drop,    ///< it is lost without a word: the request or its answer, the notice, the written bytes
  corrupt, ///< one bit of the bytes is another one
};

inline constexpr std::size_t action_count = 5;

/// Actions as a set of bits.
using action_set = std::uint8_t;

constexpr action_set operator|(action a, action b) {
  return static_cast<action_set>((1u << static_cast<unsigned>(a)) |
                                 (1u << static_cast<unsigned>(b)));
}
constexpr action_set operator|(action_set all, action a) {
  return static_cast<action_set>(all | (1u << static_cast<unsigned>(a)));
}
constexpr bool contains(action_set all, action a) {
  return (all & (1u << static_cast<unsigned>(a))) != 0;
}

/// One row of the catalogue.
struct point_info {
  std::string_view name;
  std::string_view group; ///< where it belongs, for `boyd chaos ls`
  std::string_view says;  ///< one line: what is about to happen there
  action_set can = 0;
};

namespace detail {

inline constexpr action_set ends = action::crash | action::error;
/// Also where somebody waits with patience: a worker's thread, or the sender of a message.
inline constexpr action_set waits = ends | action::delay;
/// A message that nobody would send again: it may come late, but never be lost.
inline constexpr action_set late = action::crash | action::delay;
/// The transaction, commit or message is made, or sent, and nobody hears of it.
inline constexpr action_set unheard = waits | action::drop;
/// Bytes that are checked before they count, or when they are read.
inline constexpr action_set checked = unheard | action::corrupt;
inline constexpr action_set only_crash = 1u << static_cast<unsigned>(action::crash);
inline constexpr action_set only_drop = 1u << static_cast<unsigned>(action::drop);
inline constexpr action_set only_error = 1u << static_cast<unsigned>(action::error);
/// News of something that took place: it comes later, or never.
inline constexpr action_set unreliable = action::delay | action::drop;

/// What cannot be lost or changed at a point without breaking a promise that nothing could keep
/// then is left out: a file that reads back wrong, for one.
inline constexpr std::array catalogue{
    point_info{"approvals.answer", "approvals", "a run hears what became of its request", late},
    point_info{"approvals.ask", "approvals", "a run wants a person's word", waits},
    point_info{"approvals.end", "approvals", "what a run has asked for is withdrawn", unheard},
    point_info{"approvals.notify", "approvals", "people are told of a new request", ends},
    point_info{"approvals.request", "requests", "somebody asks the inbox, or decides there",
               unheard},
    point_info{"approvals.use", "approvals", "a run uses what was approved", waits},
    point_info{"control.accept", "api", "a client of the control socket is taken", only_error},
    point_info{"control.reply", "api", "an answer goes back over the control socket", unreliable},
    point_info{"dispatcher.claim", "work", "a dispatcher is about to claim rows", ends},
    point_info{"dispatcher.drain", "orders", "a dispatcher is told to drain", only_crash},
    point_info{"dispatcher.due", "notices", "a dispatcher is told that its work is due", only_drop},
    point_info{"dispatcher.expired", "notices",
               "a dispatcher hears of rows of its own that ran out", only_drop},
    point_info{"dispatcher.finished", "notices", "an execution worker reports its end", only_drop},
    point_info{"dispatcher.hurry", "orders", "a dispatcher is told to end what runs", only_drop},
    point_info{"dispatcher.request", "requests", "the pool asks a dispatcher", unheard},
    point_info{"dispatcher.settle", "work", "a dispatcher has results for the store", ends},
    point_info{"dispatchers.cancel", "notices", "the pool is told to end a dispatch", only_drop},
    point_info{"dispatchers.drained", "orders", "the pool hears that a dispatcher has drained",
               only_crash},
    point_info{"dispatchers.recover", "work", "the pool takes this node's own rows back", ends},
    point_info{"dispatchers.request", "requests", "somebody asks the pool of dispatchers", unheard},
    point_info{"executor.cancel", "notices", "an execution worker is told to end its run",
               only_drop},
    point_info{"executor.run", "work", "an attempt begins", ends},
    point_info{"file_tools.read", "tools", "a file tool reads, lists or searches a workspace",
               waits},
    point_info{"file_tools.write", "tools", "a file tool replaces a file of a workspace", waits},
    point_info{"gateway.event", "notices", "a cycle's progress goes to the watchers", only_drop},
    point_info{"gateway.request", "api",
               "a request of the control API comes in; its body is checked",
               ends | action::corrupt},
    point_info{"git_committer.commit", "work", "a commit is asked for", waits},
    point_info{"git_committer.request", "requests", "somebody asks the committer", unheard},
    point_info{"governor.answer", "models", "a call of a model hears of its place", late},
    point_info{"governor.place", "models", "a call of a model wants a place at its provider",
               waits},
    point_info{"governor.release", "models", "a call of a model gives its place back", late},
    point_info{"governor.request", "requests", "somebody asks how the providers are", unheard},
    point_info{"graph_recorder.append", "work", "facts are about to be appended", waits},
    point_info{"graph_recorder.bytes", "files", "lines of graph.jsonl are written", checked},
    point_info{"graph_recorder.open", "files", "graph.jsonl is opened", waits},
    point_info{"graph_recorder.read", "files", "graph.jsonl is read", waits},
    point_info{"graph_recorder.repair", "files",
               "graph.jsonl is cut, or written over, after trouble", waits},
    point_info{"graph_recorder.request", "requests", "somebody asks the recorder", unheard},
    point_info{"graph_recorder.sync", "files", "graph.jsonl is synced", waits},
    point_info{"graph_recorder.sync_directory", "files", "the directory of graph.jsonl is synced",
               waits},
    point_info{"home.crash_note", "node", "the note of a crash is removed", only_error},
    point_info{"home.lock", "node", "a starting node takes its home", only_error},
    point_info{"keeper.batch", "workers", "a keeper hands its worker a batch", unreliable},
    point_info{"keeper.done", "workers", "a worker says that a batch is done", unreliable},
    point_info{"kernel.heartbeat", "processes", "a kernel's heartbeat address is called",
               action::error | action::drop},
    point_info{"kernel.load", "work", "a kernel reads where it was", ends},
    point_info{"kernel.request", "requests", "somebody asks a kernel", unheard},
    point_info{"kernel.step", "work", "the next step of a cycle begins", ends},
    point_info{"kernel.stop", "orders", "a kernel is told to begin nothing more", only_crash},
    point_info{"knowledge.read", "files", "memory or the log of facts is read for the index",
               waits},
    point_info{"knowledge.request", "requests", "somebody asks the index of knowledge", unheard},
    point_info{"librarian.gather", "work", "a cycle's context is gathered", ends},
    point_info{"librarian.request", "requests", "a kernel asks the librarian", unheard},
    point_info{"librarian.wake", "work", "wake checks begin", ends},
    point_info{"mcp.answer", "tools", "a server of tools says something over HTTP",
               action::error | action::delay | action::corrupt},
    point_info{"mcp.call", "tools", "a call goes to a server of tools", ends},
    point_info{"mcp.cancel", "tools", "nobody waits for a call of a tool any more", only_drop},
    point_info{"mcp.exit", "tools", "the end of a server's process is reported", unreliable},
    point_info{"mcp.output", "tools", "a server's process says something",
               unreliable | action::corrupt},
    point_info{"mcp.request", "requests", "a run, or a person, wants tools of servers", waits},
    point_info{"mcp.start", "tools", "a server of tools is started", ends},
    point_info{"models.answer", "models", "what a model answers comes in",
               action::error | action::delay | action::corrupt},
    point_info{"models.call", "models", "a request goes to a model", ends},
    point_info{"parts.reload", "orders", "a part takes over a new configuration", only_crash},
    point_info{"parts.subscribe", "orders", "a part is asked for news", only_crash},
    point_info{"permits.ask", "work", "somebody wants permits", only_crash},
    point_info{"permits.grant", "work", "permits are about to be handed out", only_crash},
    point_info{"permits.pace", "work", "the broker hears of runs that a crash has ended",
               only_crash},
    point_info{"permits.release", "work", "permits come back", only_crash},
    point_info{"permits.request", "requests", "somebody asks the broker who holds what", unheard},
    point_info{"planner.plan", "work", "a plan is made", ends},
    point_info{"planner.request", "requests", "a kernel asks the planner", unheard},
    point_info{"planner.stop", "notices", "the planner is told to ask no further", only_drop},
    point_info{"probe.exit", "processes", "the end of a sense or wake check is reported",
               unreliable},
    point_info{"probe.output", "processes", "output of a sense or wake check comes in",
               unreliable | action::corrupt},
    point_info{"probe.start", "processes", "a sense or wake check is started", ends},
    point_info{"processes.exit", "processes", "the end of a program is reported", unreliable},
    point_info{"processes.output", "processes", "output of a program comes in",
               unreliable | action::corrupt},
    point_info{"processes.signal", "processes", "a program is told to end", only_drop},
    point_info{"processes.start", "processes", "a program is started", ends},
    point_info{"queue.changed", "notices", "the store says that work may be due", only_drop},
    point_info{"queue.settled", "notices", "the store says which rows are final", only_drop},
    point_info{"repository.changes", "repository", "a work tree is compared with HEAD", waits},
    point_info{"repository.commit", "repository", "a commit is written", unheard},
    point_info{"repository.open", "repository", "a kernel's repository is opened", waits},
    point_info{"repository.pack", "repository", "loose objects are packed", waits},
    point_info{"repository.read", "repository", "history is read", waits},
    point_info{"repository.stage", "repository", "files are staged", waits},
    point_info{"retention.run", "work", "old finished rows are about to be removed", ends},
    point_info{"root.request", "requests", "the gateway asks for the supervision tree", unheard},
    point_info{"sandbox.remove", "files", "a run's temporary directory is removed", only_error},
    point_info{"spool.bytes", "files", "results are spooled while the store is away", checked},
    point_info{"spool.open", "files", "the spool is opened", waits},
    point_info{"spool.read", "files", "the spool is read when the store is back", waits},
    point_info{"spool.repair", "files", "the spool is cut, or written over, after trouble", waits},
    point_info{"spool.sync", "files", "the spool is synced", waits},
    point_info{"spool.sync_directory", "files", "the directory of the spool is synced", waits},
    point_info{"spool.unlink", "files", "a recorded spool is removed", waits},
    point_info{"state_writer.bytes", "files", "a kernel's file goes into its temporary file",
               checked},
    point_info{"state_writer.open", "files", "a temporary file is made", waits},
    point_info{"state_writer.read", "files", "a kernel's file is read", waits},
    point_info{"state_writer.rename", "files", "a temporary file takes its place", waits},
    point_info{"state_writer.request", "requests", "somebody asks the state writer", unheard},
    point_info{"state_writer.sync", "files", "a temporary file is synced", waits},
    point_info{"state_writer.sync_directory", "files", "a kernel's directory is synced", waits},
    point_info{"state_writer.unlink", "files", "a temporary file of a kernel is removed",
               action::error | action::delay},
    point_info{"state_writer.write", "work", "a kernel's file is about to be changed", waits},
    point_info{"store.admit", "store", "a transaction with a slot of the ledger", unheard},
    point_info{"store.apply", "store", "any transaction", unheard},
    point_info{"store.begin", "store", "a transaction that begins a cycle", unheard},
    point_info{"store.claim", "store", "a transaction that claims rows", unheard},
    point_info{"store.close", "store", "a transaction that ends a slot", unheard},
    point_info{"store.enqueue", "store", "a transaction that enqueues a cycle", unheard},
    point_info{"store.finish", "store", "a transaction that records a cycle", unheard},
    point_info{"store.migrate", "store", "a migration of the database begins", waits},
    point_info{"store.open", "store", "the store is opened", waits},
    point_info{"store.renew", "store", "a transaction that renews leases", unheard},
    point_info{"store.request", "requests", "somebody asks the store", unheard},
    point_info{"store.settle", "store", "a transaction that settles attempts", unheard},
    point_info{"store.tidy", "store",
               "what may wait, as other nodes' wake-up, is done after answers", ends},
    point_info{"store.wakeup", "notices", "another node's wake-up arrives", only_drop},
    point_info{"supervision.answer", "supervision", "a part answers its supervisor's ping",
               only_drop},
    point_info{"supervision.start", "supervision", "a part is started", ends},
    point_info{"supervision.stop", "supervision", "a part is told to end", only_drop},
    point_info{"workspace.bytes", "files", "a prompt or the record of a run is written", waits},
    point_info{"workspace.open", "files", "a prompt file or a record is opened", waits},
    point_info{"workspace.read", "files", "a file of a workspace is read", waits},
    point_info{"workspace.rename", "files", "a durable file takes its place", waits},
    point_info{"workspace.repair", "files", "the record of a run is cut after trouble", waits},
    point_info{"workspace.request", "requests", "somebody asks for files of a workspace", unheard},
    point_info{"workspace.sync", "files", "a durable file or a record is synced", waits},
    point_info{"workspace.sync_directory", "files", "the directory of a durable file is synced",
               waits},
    point_info{"workspace.unlink", "files", "a prompt file is removed", waits},
    point_info{"worktrees.close", "worktrees", "what a run changed is kept, its worktree removed",
               waits},
    point_info{"worktrees.make", "worktrees", "a run gets its git worktree", waits},
};

static_assert(std::ranges::is_sorted(catalogue, {}, &point_info::name));

/// Where `name` stands in the catalogue; its size when it does not.
constexpr std::size_t index_of(std::string_view name) {
  return static_cast<std::size_t>(std::ranges::find(catalogue, name, &point_info::name) -
                                  catalogue.begin());
}

/// Not defined: the compiler names it when a point is not in the catalogue.
void this_fault_point_is_not_in_the_catalogue();

} // namespace detail

/// The name of a fault point in code, checked by the compiler: `faults::point("store.apply")`.
class point {
 public:
  consteval point(const char* name) // NOLINT(google-explicit-constructor): a name is a point
      : index_(detail::index_of(name)) {
    if (index_ == detail::catalogue.size())
      detail::this_fault_point_is_not_in_the_catalogue();
  }

  constexpr std::size_t index() const { return index_; }
  constexpr const point_info& info() const { return detail::catalogue[index_]; }

 private:
  std::size_t index_;
};

} // namespace boyd::faults
