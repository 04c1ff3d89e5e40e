#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <string_view>

/// Every fault point there is (docs/reliability.md), as data: its name, what stands there and what
/// may go wrong there. A name that is not here does not compile where the code passes a point.
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
    point_info{"approvals.answer", "approvals", "a run receives the decision about its request",
               late},
    point_info{"approvals.ask", "approvals", "a run requests approval", waits},
    point_info{"approvals.end", "approvals", "the requests of a run are withdrawn", unheard},
    point_info{"approvals.notify", "approvals", "the notice of a new request is sent", ends},
    point_info{"approvals.request", "requests", "a client reads the approvals, or decides one",
               unheard},
    point_info{"approvals.use", "approvals", "a run uses an approval", waits},
    point_info{"control.accept", "api", "the control socket accepts a client", only_error},
    point_info{"control.reply", "api", "an answer goes back over the control socket", unreliable},
    point_info{"dispatcher.claim", "work", "a dispatcher is about to claim rows", ends},
    point_info{"dispatcher.drain", "orders", "a dispatcher receives the order to drain",
               only_crash},
    point_info{"dispatcher.due", "notices", "a dispatcher is notified of due work", only_drop},
    point_info{"dispatcher.expired", "notices", "a dispatcher is notified of its expired leases",
               only_drop},
    point_info{"dispatcher.finished", "notices", "an execution worker reports its end", only_drop},
    point_info{"dispatcher.hurry", "orders", "a dispatcher receives the order to end its runs",
               only_drop},
    point_info{"dispatcher.request", "requests", "the pool asks a dispatcher", unheard},
    point_info{"dispatcher.settle", "work", "a dispatcher has results for the store", ends},
    point_info{"dispatchers.cancel", "notices", "the dispatcher pool receives a cancellation",
               only_drop},
    point_info{"dispatchers.drained", "orders", "a dispatcher reports that it has drained",
               only_crash},
    point_info{"dispatchers.recover", "work", "the pool takes back the rows of this node", ends},
    point_info{"dispatchers.request", "requests", "the dispatcher pool receives a request",
               unheard},
    point_info{"executor.cancel", "notices", "an execution worker receives the order to end",
               only_drop},
    point_info{"executor.run", "work", "an attempt begins", ends},
    point_info{"file_tools.read", "tools", "a file tool reads, lists or searches a workspace",
               waits},
    point_info{"file_tools.write", "tools", "a file tool replaces a file of a workspace", waits},
    point_info{"gateway.event", "notices", "the progress of a cycle is sent to watchers",
               only_drop},
    point_info{"gateway.request", "api", "the control API receives a request and checks its body",
               ends | action::corrupt},
    point_info{"git_committer.commit", "work", "a commit is requested", waits},
    point_info{"git_committer.request", "requests", "the committer receives a request", unheard},
    point_info{"governor.answer", "models", "a model call is admitted", late},
    point_info{"governor.place", "models", "a model call asks for admission", waits},
    point_info{"governor.release", "models", "a model call ends and frees its place", late},
    point_info{"governor.request", "requests", "the governor receives a request", unheard},
    point_info{"graph_recorder.append", "work", "facts are about to be appended", waits},
    point_info{"graph_recorder.bytes", "files", "lines of graph.jsonl are written", checked},
    point_info{"graph_recorder.open", "files", "graph.jsonl is opened", waits},
    point_info{"graph_recorder.read", "files", "graph.jsonl is read", waits},
    point_info{"graph_recorder.repair", "files", "graph.jsonl is repaired after an error", waits},
    point_info{"graph_recorder.request", "requests", "the graph recorder receives a request",
               unheard},
    point_info{"graph_recorder.sync", "files", "graph.jsonl is synced", waits},
    point_info{"graph_recorder.sync_directory", "files", "the directory of graph.jsonl is synced",
               waits},
    point_info{"home.crash_note", "node", "the crash note is removed", only_error},
    point_info{"home.lock", "node", "a starting node locks its home", only_error},
    point_info{"keeper.batch", "workers", "a keeper gives its worker a batch", unreliable},
    point_info{"keeper.done", "workers", "a worker reports a finished batch", unreliable},
    point_info{"kernel.heartbeat", "processes", "a kernel's heartbeat address is called",
               action::error | action::drop},
    point_info{"kernel.load", "work", "a kernel loads its state", ends},
    point_info{"kernel.request", "requests", "a kernel receives a request", unheard},
    point_info{"kernel.step", "work", "the next step of a cycle begins", ends},
    point_info{"kernel.stop", "orders", "a kernel receives the order to stop", only_crash},
    point_info{"knowledge.read", "files", "memory or the log of facts is read for the index",
               waits},
    point_info{"knowledge.request", "requests", "the knowledge index receives a request", unheard},
    point_info{"librarian.gather", "work", "a cycle's context is gathered", ends},
    point_info{"librarian.request", "requests", "a kernel asks the librarian", unheard},
    point_info{"librarian.wake", "work", "wake checks start", ends},
    point_info{"mcp.answer", "tools", "a tool server sends output over HTTP",
               action::error | action::delay | action::corrupt},
    point_info{"mcp.call", "tools", "a tool server is called", ends},
    point_info{"mcp.cancel", "tools", "a tool call is cancelled", only_drop},
    point_info{"mcp.exit", "tools", "the exit of a tool server is reported", unreliable},
    point_info{"mcp.output", "tools", "a tool server writes output", unreliable | action::corrupt},
    point_info{"mcp.request", "requests", "a run or a person asks for tools of tool servers",
               waits},
    point_info{"mcp.start", "tools", "a tool server is started", ends},
    point_info{"models.answer", "models", "the answer of a model arrives",
               action::error | action::delay | action::corrupt},
    point_info{"models.call", "models", "a request is sent to a model", ends},
    point_info{"parts.reload", "orders", "a part loads a new configuration", only_crash},
    point_info{"parts.subscribe", "orders", "a part receives a subscription", only_crash},
    point_info{"permits.ask", "work", "permits are requested", only_crash},
    point_info{"permits.grant", "work", "permits are granted", only_crash},
    point_info{"permits.pace", "work", "the permit broker learns of runs ended by a crash",
               only_crash},
    point_info{"permits.release", "work", "permits are returned", only_crash},
    point_info{"permits.request", "requests", "the permit broker receives a request", unheard},
    point_info{"planner.plan", "work", "a plan is made", ends},
    point_info{"planner.request", "requests", "a kernel asks the planner", unheard},
    point_info{"planner.stop", "notices", "the planner receives the order to stop asking",
               only_drop},
    point_info{"probe.exit", "processes", "the exit of a sense or wake check is reported",
               unreliable},
    point_info{"probe.output", "processes", "a sense or wake check writes output",
               unreliable | action::corrupt},
    point_info{"probe.start", "processes", "a sense or wake check is started", ends},
    point_info{"processes.exit", "processes", "the exit of a program is reported", unreliable},
    point_info{"processes.output", "processes", "a program writes output",
               unreliable | action::corrupt},
    point_info{"processes.signal", "processes", "a program receives a signal", only_drop},
    point_info{"processes.start", "processes", "a program is started", ends},
    point_info{"queue.changed", "notices", "the store reports that work may be due", only_drop},
    point_info{"queue.settled", "notices", "the store reports final rows", only_drop},
    point_info{"repository.changes", "repository", "a work tree is compared with HEAD", waits},
    point_info{"repository.commit", "repository", "a commit is written", unheard},
    point_info{"repository.open", "repository", "a kernel's repository is opened", waits},
    point_info{"repository.pack", "repository", "loose objects are packed", waits},
    point_info{"repository.read", "repository", "history is read", waits},
    point_info{"repository.stage", "repository", "files are staged", waits},
    point_info{"retention.run", "work", "old finished rows are about to be removed", ends},
    point_info{"root.request", "requests", "the gateway asks for the supervision tree", unheard},
    point_info{"sandbox.remove", "files", "a run's temporary directory is removed", only_error},
    point_info{"spool.bytes", "files", "results are spooled while the database is unavailable",
               checked},
    point_info{"spool.open", "files", "the spool is opened", waits},
    point_info{"spool.read", "files", "the spool is read when the database is back", waits},
    point_info{"spool.repair", "files", "the spool is repaired after an error", waits},
    point_info{"spool.sync", "files", "the spool is synced", waits},
    point_info{"spool.sync_directory", "files", "the directory of the spool is synced", waits},
    point_info{"spool.unlink", "files", "a recorded spool is removed", waits},
    point_info{"state_writer.bytes", "files", "a kernel's file is written to its temporary file",
               checked},
    point_info{"state_writer.open", "files", "a temporary file is created", waits},
    point_info{"state_writer.read", "files", "a kernel's file is read", waits},
    point_info{"state_writer.rename", "files", "a temporary file is renamed", waits},
    point_info{"state_writer.request", "requests", "the state writer receives a request", unheard},
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
    point_info{"store.request", "requests", "the store receives a request", unheard},
    point_info{"store.settle", "store", "a transaction that settles attempts", unheard},
    point_info{"store.tidy", "store", "deferred work, such as waking other nodes, is done", ends},
    point_info{"store.wakeup", "notices", "another node's wake-up arrives", only_drop},
    point_info{"supervision.answer", "supervision", "a part answers its supervisor's ping",
               only_drop},
    point_info{"supervision.start", "supervision", "a part is started", ends},
    point_info{"supervision.stop", "supervision", "a part receives the order to end", only_drop},
    point_info{"workspace.bytes", "files", "a prompt or the record of a run is written", waits},
    point_info{"workspace.open", "files", "a prompt file or a record is opened", waits},
    point_info{"workspace.read", "files", "a file of a workspace is read", waits},
    point_info{"workspace.rename", "files", "a durable file is renamed", waits},
    point_info{"workspace.repair", "files", "the record of a run is repaired after an error",
               waits},
    point_info{"workspace.request", "requests", "files of a workspace are requested", unheard},
    point_info{"workspace.sync", "files", "a durable file or a record is synced", waits},
    point_info{"workspace.sync_directory", "files", "the directory of a durable file is synced",
               waits},
    point_info{"workspace.unlink", "files", "a prompt file is removed", waits},
    point_info{"worktrees.close", "worktrees",
               "the changes of a run are stored and its worktree removed", waits},
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
