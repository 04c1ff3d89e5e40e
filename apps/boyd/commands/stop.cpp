#include "../client.hpp"
#include "../counted.hpp"
#include "../exit_codes.hpp"
#include "../hints.hpp"
#include "../json_view.hpp"
#include "../live_line.hpp"
#include "../terminal.hpp"
#include "adapters/control/control_client.hpp"
#include "adapters/posix/home_lock.hpp"
#include "boyd/core/time.hpp"
#include "commands.hpp"

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

/// `boyd stop`: ends the running node of this home in order, and waits for its end.
namespace boyd::app {

namespace {

using steady = std::chrono::steady_clock;

constexpr milliseconds answer_limit = 10s;
/// A node that starts, or has almost ended, does not answer for so long.
constexpr milliseconds silent_patience = 5s;
constexpr milliseconds look_again = 100ms;
/// What is waited for is asked this often; the first time when it takes longer than that.
constexpr milliseconds question_interval = 1s;
constexpr std::string_view begin_of_drain = "Stopping: ";

/// The home is in use, but nobody answers.
error silent(const adapters::lock_owner& owner, const std::string& why) {
  const auto pid = std::to_string(owner.pid);
  return {errc::locked, "the home is in use, but nobody answers: " + why,
          owner.pid > 0 ? "process " + pid : "an unknown process",
          "wait until that process has ended" +
              (owner.pid > 0 ? ", or end it: kill " + pid : std::string())};
}

error interrupted(std::int64_t pid) {
  return {errc::cancelled, "interrupted; the node continues to stop",
          "process " + std::to_string(pid), "wait for it again: boyd stop"};
}

/// The wish is told; the node, as the home names it, or its process alone.
result<adapters::lock_owner> ask_to_stop(const place& where, bool now, signal_watch& signals) {
  const adapters::http_request request{
      "POST", "/api/v1/stop", {}, now ? R"({"now": "true"})" : "{}"};
  const auto until = steady::now() + silent_patience;
  while (true) {
    const auto owner = adapters::read_home_owner(where.home);
    if (!owner)
      return fail(owner.error());
    if (!*owner)
      return fail(errc::not_found, "no node is running for this home", where.home,
                  "start it with: boyd node");
    const auto answer =
        adapters::control_call(where.layout().control_socket(), request, answer_limit,
                               [&] { return !signals.interrupted(); });
    if (answer) {
      constexpr int first_error_status = 400;
      const auto refusal = answer->status >= first_error_status
                               ? std::optional(adapters::error_of(*answer))
                               : std::nullopt;
      // It ends so soon that its answer did not come through any more.
      if (refusal && refusal->code == errc::actor_down)
        return **owner;
      if (refusal)
        return fail(*refusal);
      const auto pid = number_of(object_of(answer->body), "pid");
      if ((*owner)->pid == pid)
        return **owner;
      adapters::lock_owner other;
      other.pid = pid;
      return other;
    }
    if (answer.error().code == errc::cancelled || !signals.pause(look_again))
      return fail(errc::cancelled, "interrupted before the node answered", {}, "see: boyd status");
    if (answer.error().code != errc::not_found || steady::now() >= until)
      return fail(silent(**owner, answer.error().what));
  }
}

/// Runs that will wait for the next node: what has not begun, and with `now` what is cancelled, for
/// it is given back. 0 when nobody answers.
std::int64_t runs_left(const place& where, bool now) {
  const auto answer = adapters::control_call(where.layout().control_socket(),
                                             {"GET", "/api/v1/status", {}, {}}, answer_limit);
  const auto queue = answer ? part_of(object_of(answer->body), "queue") : json::object();
  return number_of(queue, "pending") + (now ? number_of(queue, "running") : 0);
}

/// What a node that stops waits for, as its status says; empty: it does not say.
std::string reason_to_wait(const std::string& socket) {
  const auto answer =
      adapters::control_call(socket, {"GET", "/api/v1/status", {}, {}}, question_interval);
  if (!answer)
    return {};
  const auto body = object_of(answer->body);
  std::string names;
  for (const auto& a : rows_of(body, "agents"))
    if (number_of(a, "running") > 0)
      names += (names.empty() ? "" : ", ") + text_of(a, "kernel_id") + "/" + text_of(a, "agent_id");
  for (const auto& p : rows_of(body, "problems"))
    if (p.is_string())
      if (const auto text = p.get<std::string>(); text.starts_with(begin_of_drain))
        return text.substr(begin_of_drain.size()) + (names.empty() ? "" : " (" + names + ")");
  return {};
}

/// Shows what is waited for: on a terminal in one line, elsewhere in a line for each change.
class wait_view {
 public:
  explicit wait_view(const arguments& args)
      : is_quiet_(args.quiet || args.json), terminal_(terminal_of_stderr(args)),
        line_(terminal_, "stop: waiting for the end of the node") {}

  void tell(const std::string& reason) {
    if (reason.empty() || reason == last_)
      return;
    last_ = reason;
    line_.tell("stop: " + reason);
    if (!terminal_.rewrites && !is_quiet_)
      print_note("stop: " + reason);
  }

 private:
  bool is_quiet_;
  terminal terminal_;
  live_line line_;
  std::string last_;
};

/// The node, or what it started, still has the home, or it writes its last words.
result<bool> lives(const place& where, const adapters::lock_owner& node) {
  const auto owner = adapters::read_home_owner(where.home);
  if (!owner)
    return fail(owner.error());
  if (*owner && ((*owner)->pid == 0 || (*owner)->pid == node.pid))
    return true;
  // Without its start another process of that number could be meant.
  return node.start_ticks != 0 && adapters::is_alive(node);
}

/// Until the home is free: the process has ended, and so has what it started.
result<void> wait_for_end(const place& where, const adapters::lock_owner& node,
                          const arguments& args, signal_watch& signals,
                          std::optional<milliseconds> limit) {
  const auto begin = steady::now();
  auto next_question = begin + question_interval;
  wait_view view(args);
  while (true) {
    const auto alive = lives(where, node);
    if (!alive)
      return fail(alive.error());
    if (!*alive)
      return {};
    if (limit && steady::now() - begin >= *limit)
      return fail(errc::timed_out, "the node has not ended within " + format_duration(*limit),
                  "process " + std::to_string(node.pid),
                  "it continues to stop; to cancel its running attempts: boyd stop --now");
    if (steady::now() >= next_question) {
      view.tell(reason_to_wait(where.layout().control_socket()));
      next_question = steady::now() + question_interval;
    }
    if (!signals.pause(look_again))
      return fail(interrupted(node.pid));
  }
}

/// The last words of the command.
void tell_end(const adapters::lock_owner& node, std::int64_t left, const arguments& args) {
  std::string text = "The node has stopped (process " + std::to_string(node.pid) + ").";
  if (left > 0)
    text += " " + counted(left, "run") + (left == 1 ? " waits" : " wait") +
            " for the next node: boyd node";
  print(hint_lines(as_hint(text), 0, terminal_of_stdout(args)) + "\n");
}

/// Nothing: without a limit. Error: no duration.
result<std::optional<milliseconds>> limit_of(const arguments& args) {
  if (args.timeout.empty())
    return std::optional<milliseconds>{};
  const auto limit = parse_duration(args.timeout);
  if (!limit)
    return fail(errc::invalid_argument, limit.error().what, "--timeout", limit.error().next);
  return std::optional<milliseconds>(*limit);
}

} // namespace

int run_stop(const arguments& args) {
  signal_watch signals;
  const auto limit = limit_of(args);
  if (!limit)
    return report(limit.error(), args.json);
  const auto where = place_of(args);
  if (!where)
    return report(where.error(), args.json);
  if (auto there = require_home(*where); !there)
    return report(there.error(), args.json);
  const auto left = runs_left(*where, args.now);
  const auto node = ask_to_stop(*where, args.now, signals);
  if (!node)
    return report(node.error(), args.json);
  if (auto ended = wait_for_end(*where, *node, args, signals, *limit); !ended)
    return report(ended.error(), args.json);
  if (args.json)
    print(json{{"schema", "boyd.stop/1"}, {"stopped", true}, {"pid", node->pid}}.dump() + "\n");
  else if (!args.quiet)
    tell_end(*node, left, args);
  return exit_code::ok;
}

} // namespace boyd::app
