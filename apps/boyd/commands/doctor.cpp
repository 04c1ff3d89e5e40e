#include "../exit_codes.hpp"
#include "../hints.hpp"
#include "../home.hpp"
#include "../home_claim.hpp"
#include "../json_view.hpp"
#include "../lost_database.hpp"
#include "../serving.hpp"
#include "../terminal.hpp"
#include "adapters/control/control_client.hpp"
#include "adapters/posix/home_lock.hpp"
#include "adapters/posix/process_runner.hpp"
#include "adapters/posix/sandbox_child.hpp"
#include "boyd/effects/effect.hpp"
#include "boyd/exec/sandbox.hpp"
#include "boyd/files/journal.hpp"
#include "boyd/graph/edge_log.hpp"
#include "boyd/graph/lost_end.hpp"
#include "boyd/graph/segments.hpp"
#include "boyd/ports/clock.hpp"
#include "boyd/ports/dispatch_store.hpp"
#include "boyd/ports/file_system.hpp"
#include "boyd/ports/process_runner.hpp"
#include "boyd/ports/repository.hpp"
#include "boyd/ports/time_zones.hpp"
#include "boyd/queue/spool.hpp"
#include "boyd/state/versioned_store.hpp"
#include "boyd/tools/definitions.hpp"
#include "boyd/tools/policy.hpp"
#include "commands.hpp"

#include <algorithm>
#include <condition_variable>
#include <filesystem>
#include <map>
#include <mutex>
#include <set>
#include <sys/stat.h>
#include <system_error>
#include <unistd.h>
#include <variant>

namespace boyd::app {

namespace {

constexpr milliseconds socket_limit = 5s;
constexpr milliseconds spawn_limit = 10s;
/// Another command holds the home for a moment only.
constexpr milliseconds lock_patience = 1s;
constexpr std::uintmax_t low_disk_bytes = std::uintmax_t{1} << 30;
constexpr std::uintmax_t no_disk_bytes = std::uintmax_t{32} << 20;
constexpr std::uintmax_t mebibyte = std::uintmax_t{1} << 20;
constexpr mode_t others = 077;
constexpr mode_t permission_bits = 0777;
/// Some commits have no trailer with the graph's head; one of so many has.
constexpr std::size_t commits_looked_at = 100;
/// More damage than this is counted, not named.
constexpr std::size_t named_problems = 5;

constexpr const char* configuration_check = "configuration";
constexpr const char* graph_check = "knowledge graph";
constexpr const char* after_cut = "find the cause; then stop the node and restore the file from a "
                                  "backup, or accept the loss: boyd doctor --accept-graph";
constexpr const char* no_root = "to have all limits, run the node as a user other than root";
constexpr const char* mend_first = "fix the configuration, then run: boyd doctor";

/// One thing that was looked at.
struct finding {
  std::string name;
  std::string state; ///< ok | note | warn | fail
  std::string what;
  std::string next;
};

/// The damaged lines, in words.
std::string told(const std::vector<graph::log_problem>& problems) {
  std::string text;
  for (std::size_t i = 0; i < std::min(problems.size(), named_problems); ++i) {
    const auto& p = problems[i];
    text += i == 0 ? "" : "; ";
    // What a commit names is no line of the log any more.
    if (p.kind != graph::chain_problem_kind::head_missing)
      text += p.place + " ";
    text += std::string(name_of(p.kind)) + ": " + p.detail;
  }
  if (problems.size() > named_problems)
    text += "; and " + std::to_string(problems.size() - named_problems) + " more";
  return text;
}

class doctor {
 public:
  explicit doctor(place where) : where_(std::move(where)), ports_(local_ports()) {}

  std::vector<finding> examine() {
    home();
    configuration();
    time_zones_database();
    disk();
    node();
    repositories();
    knowledge_graph();
    store();
    refused_results();
    processes();
    sandbox();
    workspaces();
    return std::move(findings_);
  }

 private:
  void add(std::string name, std::string state, std::string what, std::string next = {}) {
    findings_.push_back({std::move(name), std::move(state), std::move(what), std::move(next)});
  }
  void add(const std::string& name, const error& e) {
    add(name, "fail", e.where.empty() ? e.what : e.what + " (" + e.where + ")", e.next);
  }

  void home() {
    struct ::stat info {};
    if (::lstat(where_.home.c_str(), &info) != 0)
      return add("home", "fail", "no Boyd home at " + where_.home,
                 "boyd --home " + where_.home + " init");
    if (S_ISLNK(info.st_mode))
      return add("home", "fail", where_.home + " is a symbolic link",
                 "use the path of the directory itself");
    if (!S_ISDIR(info.st_mode))
      return add("home", "fail", where_.home + " is not a directory", "choose another home");
    there_ = true;
    if (info.st_uid != ::geteuid())
      return add("home", "fail", where_.home + " belongs to another user",
                 "run as its owner: user " + std::to_string(info.st_uid));
    if ((info.st_mode & others) != 0)
      return add("home", "warn", where_.home + " is accessible to other users",
                 "chmod 0700 " + where_.home);
    add("home", "ok", where_.home + ", only its owner can read it");
  }

  void configuration() {
    auto loaded = load_configuration(where_.config_path, *ports_.files, *ports_.zones);
    if (!loaded)
      return add(configuration_check, loaded.error());
    settings_ = std::move(*loaded);
    struct ::stat info {};
    if (::stat(where_.config_path.c_str(), &info) == 0 && (info.st_mode & permission_bits & 022))
      return add(configuration_check, "warn", where_.config_path + " is writable for other users",
                 "chmod 0600 " + where_.config_path);
    add(configuration_check, "ok", where_.config_path + " has no errors");
  }

  void time_zones_database() {
    if (auto zone = ports_.zones->find("Europe/Berlin"); !zone)
      return add("time zones", "warn", zone.error().what,
                 "only UTC works; install the package tzdata");
    add("time zones", "ok", "the time zone database is installed");
  }

  void disk() {
    std::error_code failed;
    const auto space = std::filesystem::space(there_ ? where_.home : "/", failed);
    if (failed)
      return add("disk", "warn", "free space is unknown: " + failed.message());
    const auto text = std::to_string(space.available / mebibyte) + " MiB free for the home";
    if (space.available < no_disk_bytes)
      return add("disk", "fail", text, "free some space");
    add("disk", space.available < low_disk_bytes ? "warn" : "ok", text,
        space.available < low_disk_bytes ? "free some space soon" : "");
  }

  void node() {
    auto owner = adapters::read_home_owner(where_.home);
    if (!there_ || !owner)
      return;
    auto answer = adapters::control_call(where_.layout().control_socket(),
                                         {"GET", "/readyz", {}, {}}, socket_limit);
    if (!*owner && !answer)
      return add("node", "note", "not running, so nothing runs by schedule",
                 "start it with: boyd node");
    const auto who = *owner ? "process " + std::to_string((*owner)->pid) : std::string("a node");
    if (!answer && answer.error().code == errc::not_found)
      return add("node", "warn",
                 who + " uses the home, but does not answer: it is another command, or a node that "
                       "is starting or stopping",
                 "try again in a moment");
    running_ = true;
    if (!answer)
      return add("node", "fail",
                 who + " uses the home, but does not answer: " + answer.error().what,
                 "check its log, or restart it");
    std::string problems;
    for (const auto& p : rows_of(object_of(answer->body), "problems"))
      if (p.is_string())
        problems += (problems.empty() ? "" : "; ") + p.get<std::string>();
    constexpr int success = 200;
    if (answer->status != success)
      return add("node", "warn", who + " is running, but: " + problems, "see: boyd status");
    add("node", "ok", who + " is running; socket " + where_.layout().control_socket());
  }

  void repositories() {
    if (!settings_)
      return add("kernels", "warn", "not checked: the configuration has errors", mend_first);
    for (const auto& k : settings_->kernels) {
      const auto path = where_.layout().kernel(k.kernel_id);
      instructions(k);
      auto repository = ports_.repositories->open(path, {k.author_name, k.author_email});
      if (!repository) {
        add("kernel " + k.kernel_id, "fail", repository.error().what + " (" + path + ")",
            repository.error().next.empty() ? "boyd --home " + where_.home + " init"
                                            : repository.error().next);
        continue;
      }
      auto head = (*repository)->head();
      if (!head)
        add("kernel " + k.kernel_id, head.error());
      else
        add("kernel " + k.kernel_id, "ok",
            "git repository " + path + (*head ? " is usable" : " is usable; no commit yet"));
      if (head && *head)
        take_anchor(**repository, k.kernel_id);
      if (head)
        work_tree(**repository, k.kernel_id, path);
    }
  }

  /// Whether a program of the agent runs without a sandbox.
  static bool runs_unconfined(const config::agent& a) {
    const bool off = a.sandbox.mode == config::sandbox_settings::mode_t::off;
    if (std::holds_alternative<config::command_executor>(a.run))
      return off || !a.sandbox.commands;
    return off && has_programs(a);
  }

  /// Whether programs run for the agent that may get a sandbox.
  static bool has_programs(const config::agent& a) {
    if (std::holds_alternative<config::command_executor>(a.run))
      return a.sandbox.commands;
    return std::holds_alternative<config::agent_cli_executor>(a.run) ||
           (std::holds_alternative<config::chat_executor>(a.run) && !a.tools.empty());
  }

  /// Files that agents may write and that become the instructions of all.
  void instructions(const config::kernel& k) {
    std::string open;
    for (const std::string file : {"SOUL.md", "GOAL.md"})
      if (std::ranges::find(k.protected_files, file) == k.protected_files.end())
        open += (open.empty() ? "" : " and ") + file;
    std::string writers;
    bool talks = false;
    for (const auto& a : k.agents) {
      const auto* chat = std::get_if<config::chat_executor>(&a.run);
      talks = talks || (a.enabled && chat != nullptr);
      const bool writes =
          chat == nullptr || (chat->workspace.empty() &&
                              (tools::is_listed(std::string(tools::write_file_name), a.tools) ||
                               tools::is_listed(std::string(tools::run_command_name), a.tools)));
      if (a.enabled && writes)
        writers += (writers.empty() ? "" : ", ") + a.agent_id;
    }
    std::string unkept;
    for (const auto& a : k.agents)
      if (a.enabled && runs_unconfined(a))
        unkept += (unkept.empty() ? "" : ", ") + a.agent_id;
    if (!k.protected_files.empty() && !unkept.empty())
      add("kernel " + k.kernel_id, "warn",
          "protected_files can be changed by programs without a sandbox; agents: " + unkept,
          "set sandbox: {commands: true} for these agents, and a mode other than off");
    if (talks && !open.empty() && !writers.empty())
      add("kernel " + k.kernel_id, "warn",
          "the system message of all chat agents contains " + open +
              ", which these agents can change: " + writers,
          "if this is not intended, set protected_files: [SOUL.md, GOAL.md] for the kernel in " +
              where_.config_path);
  }

  /// What the next commit would meet.
  void work_tree(repository& of, const std::string& kernel_id, const std::string& path) {
    const auto changes = of.changes();
    if (!changes)
      return add("kernel " + kernel_id, changes.error());
    if (auto allowed = state::check_deletions(of, *changes, path); !allowed) {
      add("kernel " + kernel_id, allowed.error());
      refused_.insert(kernel_id);
    }
    for (const auto& nested : of.left_out())
      add("kernel " + kernel_id, "warn",
          path + "/" + nested + " is a separate git repository and is not versioned",
          "remove its .git, or add it to " + path + "/.gitignore");
    for (const auto& remark : of.remarks())
      add("kernel " + kernel_id, "warn", path + ": " + remark);
  }

  /// What the last cycle could not bring to its place, and what the kernel waits for.
  void unfinished(const std::string& kernel_id, const std::string& problem) {
    if (!problem.empty() && !refused_.contains(kernel_id))
      add("kernel " + kernel_id, "warn", problem, "see: boyd status");
  }

  void unfinished_of_node(const json& status) {
    for (const auto& k : rows_of(status, "kernels"))
      unfinished(text_of(k, "kernel_id"), text_of(k, "problem"));
  }

  void unfinished_in(dispatch_store& open) {
    const auto id = node_id_of(where_, *ports_.files, *ports_.clock, *ports_.random);
    for (const auto& k : settings_->kernels) {
      if (!id)
        continue;
      auto replies = open.apply({store::get_facts{effects::scope_of(k.kernel_id, *id)}});
      const auto* facts =
          replies ? std::get_if<store::get_facts::reply>(&replies->front()) : nullptr;
      if (facts == nullptr)
        continue;
      for (const auto& problem : effects::behind_of(effects::read_effects(*facts)))
        unfinished(k.kernel_id, "the latest cycle is recorded, but " + problem);
    }
  }

  /// The newest anchor of each kernel: the graph only grows, so those lines must be in it. Read
  /// before the graph is: a running node writes the line first.
  void take_anchor(repository& history_of, const std::string& kernel_id) {
    const auto found = graph::anchor_of(history_of, kernel_id, commits_looked_at);
    if (!found)
      return add("kernel " + kernel_id, found.error());
    if (*found)
      anchors_.push_back(**found);
  }

  /// What the recorder has found missing is told until a person accepts it; what a person has
  /// accepted is expected no more.
  void lost_ends() {
    const auto lost = graph::read_lost_ends(*ports_.files, where_.home);
    if (!lost)
      return add(graph_check, lost.error());
    for (const auto& l : *lost)
      if (l.accepted)
        std::erase_if(anchors_, [&](const graph::anchor& a) { return a.head == l.named.head; });
    if (const auto text = graph::told(*lost); !text.empty()) {
      add(graph_check, "fail", text, after_cut);
      has_lost_end_ = true;
    }
  }

  /// Every line's hash stands in the next one, and a commit has the last one's: what was changed or
  /// cut out since shows.
  void knowledge_graph() {
    if (!there_)
      return;
    lost_ends();
    const std::string check = graph_check;
    const auto log = where_.layout().graph_log();
    auto heads = graph::heads_of(anchors_);
    heads.erase(std::string(graph::genesis));
    const bool expected = !heads.empty();
    graph::segment_files files(*ports_.files, where_.home, ports_.unpack);
    const auto report = graph::verify_log(files, heads);
    if (!report)
      return add(check, report.error());
    if (report->segments == 0)
      return expected
                 ? add(check, "fail", log + " is missing, although commits refer to it", after_cut)
                 : add(check, "ok", "no facts yet");
    const bool cut = std::ranges::all_of(report->problems, [](const graph::log_problem& each) {
      return each.kind == graph::chain_problem_kind::head_missing;
    });
    if (!report->intact() && cut)
      return add(check, "fail", log + ": " + told(report->problems), after_cut);
    const bool foreign = std::ranges::all_of(report->problems, [](const graph::log_problem& each) {
      return each.kind == graph::chain_problem_kind::foreign;
    });
    if (!report->intact() && foreign)
      return add(check, "fail", log + ": " + told(report->problems),
                 "the log itself is whole; delete the file once you know who wrote it");
    if (!report->intact())
      return add(check, "fail", log + ": " + told(report->problems),
                 "do not trust these lines; stop the node, then restore a good copy from a backup, "
                 "or move the files away to begin a new log");
    const auto sound = (has_lost_end_ ? "apart from what is missing: " : "") +
                       std::to_string(report->facts) + " facts, hash chain whole";
    if (report->ends_within_line && !running_)
      return add(check, "warn", sound + "; the last line is incomplete",
                 "no action needed: the next start moves it to a .torn file");
    add(check, "ok", sound);
  }

  /// The right to open the embedded database: whoever holds the home may have it open, and two
  /// connections in two processes are one too many (FAULTS.md, fact 1). Nothing: said why.
  std::optional<adapters::home_lock> hold_home() {
    auto id = node_id_of(where_, *ports_.files, *ports_.clock, *ports_.random);
    if (!id) {
      add("store", id.error());
      return std::nullopt;
    }
    auto lock = adapters::home_lock::acquire(where_.home, ports_.clock->now(), *id, lock_patience);
    if (lock)
      return std::move(*lock);
    if (lock.error().code == errc::locked)
      add("store", "warn", "not checked: another command is using the home", "try again");
    else
      add("store", lock.error());
    return std::nullopt;
  }

  /// A running node has the embedded database open, and one connection per file is all there may
  /// be (FAULTS.md, fact 1): the node is asked.
  void store_of_node(const json& status) {
    const auto path = where_.layout().database();
    if (!std::filesystem::exists(path))
      return add("store", "fail", path + " is missing, although the running node uses it",
                 "restore the file; the node then continues by itself");
    std::string reason;
    for (const auto& h : rows_of(status, "health"))
      if (text_of(h, "name") == "store" && !flag_in(h, "ok", true))
        reason = text_of(h, "reason");
    const auto queue = part_of(status, "queue");
    if (!queue.contains("pending"))
      return add("store", "warn",
                 "not checked: the running node does not report the state of its database",
                 "see: boyd status");
    if (queue["pending"].is_null())
      return add("store", "fail", "the running node cannot use the database: " + reason,
                 "see: boyd status");
    if (!reason.empty())
      return add("store", "warn", "in use by the running node, but: " + reason, "see: boyd status");
    add("store", "ok", "in use by the running node");
    if (settings_ && settings_->node_settings.store == embedded_store)
      schema();
  }

  /// What the running node's servers of tools have changed.
  void tools_of_node(const json& status) {
    for (const auto& h : rows_of(status, "health"))
      if (const auto notice = text_of(h, "notice"); text_of(h, "name") == "mcp" && !notice.empty())
        add("tools", "warn", notice, "see: boyd tools ls");
  }

  /// What the running node works with, whatever the configuration says by now; empty: nothing runs,
  /// or it does not answer.
  json status_of_node() const {
    if (!running_)
      return json::object();
    const auto answer = adapters::control_call(where_.layout().control_socket(),
                                               {"GET", "/api/v1/status", {}, {}}, socket_limit);
    return answer ? object_of(answer->body) : json::object();
  }

  void store() {
    const auto status = status_of_node();
    unfinished_of_node(status);
    tools_of_node(status);
    const auto of_node = text_of(part_of(status, "node"), "store");
    if (of_node == "sqlite")
      return store_of_node(status);
    if (!settings_)
      return add("store", "warn", "not checked: the configuration has errors", mend_first);
    const bool embedded = settings_->node_settings.store == "sqlite";
    if (embedded && running_ && of_node.empty())
      return store_of_node(status);
    if (auto there = check_database_is_there(where_, *settings_, *ports_.files); !there)
      return add("store", there.error());
    if (embedded && !std::filesystem::exists(where_.layout().database()))
      return add("store", "warn", where_.layout().database() + " does not exist yet",
                 "boyd --home " + where_.home + " init");
    std::optional<adapters::home_lock> lock;
    if (embedded && !(lock = hold_home()))
      return;
    if (auto added = add_store(ports_, where_, *settings_, false); !added)
      return add("store", added.error());
    auto opened = ports_.make_store();
    if (auto result = opened->open(); !result)
      return add("store", "fail", result.error().what,
                 result.error().next.empty() ? "check node.store in " + where_.config_path
                                             : result.error().next);
    const auto concerns = opened->concerns();
    for (const auto& each : concerns ? *concerns : std::vector<std::string>{})
      add("store", "warn", each, "see docs/queue.md");
    if (!concerns || concerns->empty())
      add("store", "ok", opened->describe());
    if (!running_)
      copied_home(*opened);
    if (!running_)
      unfinished_in(*opened);
    opened.reset();
    schema();
  }

  /// A copy has the node id of its original, and no node starts from it while that exists.
  void copied_home(dispatch_store& open) {
    const auto id = node_id_of(where_, *ports_.files, *ports_.clock, *ports_.random);
    if (!id)
      return;
    const home_claim claim(home_claim::options{
        ports_.files, ports_.clock, ports_.random, where_.home, *id, {}, false});
    if (auto original = claim.check_original(open);
        !original && original.error().code == errc::invalid_configuration)
      // Beside the home, which is the first thing that was looked at.
      findings_.insert(findings_.begin() + 1,
                       {"identity", "fail", original.error().what, original.error().next});
  }

  /// What somebody has removed from the database's schema, or added to it.
  void schema() {
    constexpr const char* next = "restore the schema, or a backup (docs/operations.md)";
    auto archive = archive_of(ports_, where_, *settings_, settings_->node_settings.store);
    if (!archive)
      return add("store schema", archive.error());
    auto found = (*archive)->open() ? (*archive)->schema_differences()
                                    : result<std::vector<std::string>>(
                                          fail(errc::store_unavailable, "it cannot be opened"));
    if (!found)
      return add("store schema", "warn", "not checked: " + found.error().what,
                 "use a database role that may create a schema");
    for (const auto& line : *found)
      add("store schema", line.starts_with("trigger ") ? "warn" : "fail", line, next);
    if (found->empty())
      add("store schema", "ok", "the database matches this version");
  }

  /// Finished work of which the database has only the end.
  void refused_results() {
    if (!there_)
      return;
    const auto path = where_.layout().spool();
    const auto found = queue::settlement_spool(ports_.files, path).load_refused(0);
    if (!found)
      return add("refused results", found.error());
    if (found->count > 0)
      add("refused results", "warn",
          std::to_string(found->count) + " results refused by the database: " + path +
              ".refused has each result, and the reason under \"refused\"",
          "fix the cause (see: boyd dispatches show ID), then move that file away");
  }

  /// Starts /bin/true the way agents are started.
  void processes() {
    auto runner = adapters::make_process_runner({});
    if (!runner)
      return add("processes", runner.error());
    struct shared {
      std::mutex mutex;
      std::condition_variable changed;
      std::optional<process_exit> ended;
    };
    auto s = std::make_shared<shared>();
    process_spec spec;
    spec.argv = {"true"};
    spec.cwd = "/";
    spec.environment = {{"PATH", "/usr/bin:/bin"}};
    process_events events;
    events.on_output = [](output_stream, std::string_view) {};
    events.on_exit = [s](const process_exit& e) {
      const std::lock_guard lock(s->mutex);
      s->ended = e;
      s->changed.notify_all();
    };
    auto started = (*runner)->start(std::move(spec), std::move(events));
    if (!started)
      return add("processes", started.error());
    std::unique_lock lock(s->mutex);
    s->changed.wait_for(lock, spawn_limit, [&] { return s->ended.has_value(); });
    if (!s->ended)
      return add("processes", "fail", "a test program did not end", "is the machine overloaded?");
    if (s->ended->exit_code != 0)
      return add("processes", "fail", "cannot run a test program: " + s->ended->start_error,
                 "check the limits on processes and open files (ulimit -a)");
    add("processes", "ok", "agents can start programs");
  }

  /// What keeps agents' programs in on this machine, and whether it is enough for those that
  /// insist.
  void sandbox() {
    const auto can = adapters::probe_sandbox();
    const bool confines = can.landlock_abi > 0 || !can.bubblewrap.empty();
    add("sandbox", confines ? "ok" : "warn",
        (confines ? "agents can be sandboxed: " : "files are not protected: ") +
            exec::describe(can),
        !confines  ? "install bubblewrap, or use a kernel with Landlock"
        : can.root ? no_root
                   : "");
    std::map<std::string, std::string> lacking; // by what is not enforced: for whom
    each_agent([&](const config::kernel& k, const config::agent& a) {
      if (!has_programs(a))
        return;
      process_spec any;
      exec::sandbox_places places;
      places.writable = {where_.layout().kernel(k.kernel_id)};
      places.read_only = exec::read_only_for_agents(*settings_, where_.home);
      const auto who = k.kernel_id + "/" + a.agent_id;
      const auto made = exec::confine(any, a.sandbox, can, places, {});
      if (!made)
        return add("sandbox", "fail", who + ": " + made.error().what, made.error().next);
      for (const auto& lack : made->lacking)
        lacking[lack] += (lacking[lack].empty() ? "" : ", ") + who;
    });
    for (const auto& [lack, agents] : lacking)
      add("sandbox", "warn", "not enforced for " + agents + ": " + lack,
          lack.starts_with("running as root") ? no_root
          : can.bubblewrap.empty()            ? "install bubblewrap, or run them as a separate user"
                                              : "");
  }

  /// Where agents work: a run in a directory that is not there fails.
  void workspaces() {
    each_agent([&](const config::kernel& k, const config::agent& a) {
      std::string where;
      if (const auto* chat = std::get_if<config::chat_executor>(&a.run))
        where = chat->workspace;
      else if (const auto* command = std::get_if<config::command_executor>(&a.run))
        where = command->cwd;
      else if (const auto* cli = std::get_if<config::agent_cli_executor>(&a.run))
        where = cli->worktree ? cli->worktree->repo : cli->cwd;
      std::error_code ignored;
      if (!where.empty() && !std::filesystem::is_directory(where, ignored))
        add("workspaces", "fail",
            k.kernel_id + "/" + a.agent_id + ": " + where + " is not a directory",
            "create it, or change the executor of the agent in " + where_.config_path);
    });
  }

  template <class Visit>
  void each_agent(Visit visit) const {
    if (!settings_)
      return;
    for (const auto& kernel : settings_->kernels)
      for (const auto& agent : kernel.agents)
        if (agent.enabled)
          visit(kernel, agent);
  }

  place where_;
  ports ports_;
  std::shared_ptr<const config::configuration> settings_;
  std::vector<finding> findings_;
  std::vector<graph::anchor> anchors_;
  std::set<std::string> refused_; ///< kernels whose next commit would be refused
  bool has_lost_end_ = false;     ///< the recorder has noted one, and nobody has accepted it
  bool there_ = false;
  bool running_ = false;
};

json to_json(const std::vector<finding>& findings, const std::string& home, bool ok) {
  json rows = json::array();
  for (const auto& f : findings)
    rows.push_back(
        {{"name", f.name}, {"state", f.state}, {"what", f.what}, {"next", as_hint(f.next)}});
  return {{"schema", "boyd.doctor/1"}, {"home", home}, {"ok", ok}, {"checks", std::move(rows)}};
}

/// A person knows why the end of the graph is missing: from now on it is not told any more.
result<void> accept_graph(const place& where) {
  const auto p = local_ports();
  const auto known = graph::read_lost_ends(*p.files, where.home);
  if (!known && known.error().code != errc::corrupt)
    return fail(known.error());
  auto lost = known ? *known : std::vector<graph::lost_end>{};
  graph::segment_files files(*p.files, where.home, p.unpack);
  result<void> read;
  const auto has = [&](const std::string& head) {
    const auto found = graph::log_has_line(files, head);
    if (!found)
      read = fail(found.error());
    return found && *found;
  };
  graph::compare_with_log(lost, graph::newest_anchors(where.home, *p.files, *p.repositories), has,
                          p.clock->now());
  if (!read)
    return read;
  for (auto& l : lost)
    l.accepted = true;
  return graph::write_lost_ends(*p.files, where.home, std::move(lost));
}

} // namespace

int run_doctor(const arguments& args) {
  if (args.providers || !args.provider.empty() || !args.model.empty())
    return run_doctor_providers(args);
  auto where = place_of(args);
  if (!where)
    return report(where.error(), args.json);
  if (args.accept)
    if (auto person = only_a_person("accept a truncated log of facts"); !person)
      return report(person.error(), args.json);
  if (args.accept)
    if (auto accepted = accept_graph(*where); !accepted)
      return report(accepted.error(), args.json);
  const auto findings = doctor(*where).examine();
  const bool ok = std::none_of(findings.begin(), findings.end(),
                               [](const finding& f) { return f.state == "fail"; });
  if (args.json) {
    print(to_json(findings, where->home, ok).dump(-1, ' ', false, json::error_handler_t::replace) +
          "\n");
  } else {
    const auto t = terminal_of_stdout(args);
    for (const auto& f : findings) {
      constexpr std::size_t indent = 6;
      const auto all = wrapped(f.state + std::string(indent - f.state.size(), ' ') + f.name + ": " +
                                   printable(f.what),
                               t.width, indent);
      print(t.paint(colour_of_status(f.state), f.state) + all.substr(f.state.size()) + "\n");
      if (!f.next.empty())
        print(hint_lines("next: " + as_hint(printable(f.next)), indent, t) + "\n");
    }
  }
  const auto failed = std::find_if(findings.begin(), findings.end(),
                                   [](const finding& f) { return f.state == "fail"; });
  // The first failure is the cause: a home that is missing has no configuration either.
  const bool misconfigured = !ok && failed->name == configuration_check;
  return ok ? exit_code::ok : misconfigured ? exit_code::configuration : exit_code::failure;
}

} // namespace boyd::app
