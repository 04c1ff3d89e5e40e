#pragma once

#include "adapters/posix/home_lock.hpp"
#include "arguments.hpp"
#include "boyd/core/result.hpp"
#include "boyd/core/time.hpp"
#include "home.hpp"
#include "live_node.hpp"
#include "messages/api.hpp"
#include "signals.hpp"

#include <functional>
#include <memory>
#include <string>
#include <string_view>

namespace boyd::app {

/// How long an ordinary question may take.
inline constexpr milliseconds question_limit = 60s;

/// Answers the control API: the running node through its socket, or the same actors in this
/// process. Either way the same JSON (docs/adr/0006).
class client {
 public:
  virtual ~client() = default;

  /// The answer, whatever its status; blocks. Errors: nobody answers, `cancelled` after a signal.
  virtual result<api_response> call(api_request request, milliseconds limit) = 0;
  /// The body of the answer. Errors besides: the one that a status of 400 or more carries.
  result<std::string> ask(api_request request, milliseconds limit = question_limit);

  /// Calls `on_line` with every event, on some other thread: with all of them from its return on,
  /// until `close` or another call takes its place, and again those of a node that is started in
  /// this one's place; then `on_gap` comes first, for what happened between is not told. Events are
  /// a courtesy: when they cannot be had, nothing is called.
  virtual void watch(std::function<void(std::string_view line)> on_line,
                     std::function<void()> on_gap) = 0;

  /// Waits a moment, less when a signal comes; false then.
  virtual bool pause(milliseconds moment) = 0;

  /// True: a node answers; false: this process does.
  virtual bool online() const = 0;
  /// When the node in this process took the home; null with a node of its own.
  virtual std::optional<utc_time> home_since() const = 0;
  /// Of a node in this process that only answers: live_node::copy_problem.
  virtual std::optional<error> copy_problem() const { return std::nullopt; }

  /// Ends in order. A node in this process that runs work claims no more, and its attempts run to
  /// their ends; after a signal they are cancelled and given back. True: all is released.
  virtual bool close() = 0;
};

/// What is asked of a node in this process before it claims any work.
using own_node_asker = std::function<void(client&, const std::string& node_id)>;

/// Finds who can answer. Offline the home's lock is taken: another command that holds it is waited
/// for, for a few seconds; `before_work` is called in the mode `one_cycle`. Errors: no home;
/// `invalid_configuration`; `locked` when the holder does not answer.
result<std::unique_ptr<client>> open_client(const arguments& args, node_mode offline_mode,
                                            signal_watch& signals,
                                            const own_node_asker& before_work = {});

/// A node in this process on a home that belongs to this command alone, as `one_cycle`; the home is
/// made when it is missing. `before_work` is called before anything is claimed. Error: `locked`.
result<std::unique_ptr<client>>
open_own_node(const place& where, std::shared_ptr<const config::configuration> configuration,
              signal_watch& signals, const std::function<void(client&)>& before_work);

/// The home's lock for a node: refused at once (`locked`) when a node answers on its socket;
/// another command that holds it for a moment is waited for.
result<adapters::home_lock> lock_home(const place& where, const std::string& node_id,
                                      signal_watch& signals);

/// Opens, asks, closes. A status of 400 or more becomes its error. Most verbs are this.
result<std::string> ask_once(const arguments& args, const api_request& request);
/// The same for somebody who watches signals already.
result<std::string> ask_once(const arguments& args, const api_request& request,
                             signal_watch& signals);

/// A node, or a command, works on the home at this moment: what is scheduled will run.
bool home_is_in_use(const arguments& args);

/// The body of an answer, or the error that it carries.
result<std::string> body_of(const api_response& response);

/// A GET with those query parameters that are not empty.
api_request get(std::string path, std::map<std::string, std::string> query = {});

/// A POST with a JSON body.
api_request post(std::string path, std::string body = {});

} // namespace boyd::app
