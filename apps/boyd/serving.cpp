#include "serving.hpp"

#include "adapters/posix/run_ancestry.hpp"
#include "json_view.hpp"

#include <spdlog/spdlog.h>

#include <optional>
#include <string>
#include <unistd.h>
#include <utility>

namespace boyd::app {

namespace {

adapters::http_response to_http(result<api_response> r) {
  if (!r)
    return adapters::error_response(r.error());
  return {r->status, std::move(r->content_type), std::move(r->body), std::move(r->allow)};
}

adapters::http_peer peer_of(std::int64_t pid, std::int64_t user) {
  const auto process = static_cast<pid_t>(pid);
  const bool hidden = user == 0 && ::geteuid() != 0;
  return {adapters::describe_caller(process, user),
          adapters::why_not_a_person(process, ::getpid(), hidden)};
}

constexpr const char* stop_path = "/api/v1/stop";
constexpr const char* run_it_yourself =
    "run the command in your own shell, not in a program started by Boyd";

/// Why the node does not stop for this request; nothing: it may.
std::optional<error> bar_stop(const adapters::http_request& r, const stop_function& on_stop) {
  const auto why = r.peer ? r.peer->barred : std::string("the caller is unknown");
  if (!why.empty()) {
    spdlog::warn("node: a stop was refused for {}: {}",
                 r.peer ? r.peer->name : std::string("an unknown user"), why);
    return error{errc::refused, "only a person can stop the node: " + why, {}, run_it_yourself};
  }
  if (!on_stop)
    return error{errc::conflict,
                 "no node is running for this home, only a command that works on it",
                 "process " + std::to_string(::getpid()),
                 "wait for its end, or press Ctrl-C where it was started"};
  return std::nullopt;
}

adapters::http_response answer_stop(const adapters::http_request& r, const stop_function& on_stop) {
  if (r.method != "POST") {
    auto refused = adapters::error_response(
        {errc::invalid_argument, "this path does not take " + r.method, r.path, "use POST"});
    refused.status = 405;
    refused.allow = "POST";
    return refused;
  }
  const auto body = json::parse(r.body.empty() ? "{}" : r.body, nullptr, false);
  const auto now = text_of(body, "now");
  if (!r.query.empty() || !body.is_object() || body.size() != body.count("now") ||
      (body.contains("now") && now != "true" && now != "false"))
    return adapters::error_response({errc::invalid_argument, "not a request to stop", r.path,
                                     R"(the body is {} or {"now": "true"})"});
  if (const auto barred = bar_stop(r, on_stop))
    return adapters::error_response(*barred);
  spdlog::info("node: {} asks it to stop", r.peer->name);
  on_stop(now == "true");
  adapters::http_response answer;
  answer.body = json{{"schema", "boyd.stop/1"}, {"stopping", true}, {"pid", ::getpid()}}.dump();
  return answer;
}

} // namespace

api_caller this_process() {
  return {adapters::describe_caller(::getpid(), ::geteuid()),
          adapters::why_not_a_person(::getpid(), 0)};
}

result<void> only_a_person(const std::string& what) {
  if (const auto barred = this_process().barred; !barred.empty())
    return fail(errc::refused, "only a person can " + what + ": " + barred, {}, run_it_yourself);
  return {};
}

result<std::unique_ptr<adapters::control_server>> serve(live_node& node, const place& where,
                                                        stop_function on_stop) {
  adapters::control_server_options options;
  options.socket_path = where.layout().control_socket();
  options.on_request =
      [&node, on_stop = std::move(on_stop)](adapters::http_request r,
                                            std::function<void(adapters::http_response)> respond) {
        if (r.path == stop_path)
          return respond(answer_stop(r, on_stop));
        api_request request;
        request.method = std::move(r.method);
        request.path = std::move(r.path);
        request.query = std::move(r.query);
        request.body = std::move(r.body);
        request.gone = std::move(r.gone);
        if (r.peer)
          request.caller = api_caller{r.peer->name, r.peer->barred};
        node.ask(std::move(request), [respond = std::move(respond)](result<api_response> a) {
          respond(to_http(std::move(a)));
        });
      };
  options.look_at_peer = peer_of;
  options.on_stream = [&node](const adapters::http_request&,
                              std::shared_ptr<adapters::event_stream> stream) {
    node.watch(
        [stream = std::move(stream)](const std::string& line) { return stream->send(line); });
  };
  return adapters::start_control_server(std::move(options));
}

} // namespace boyd::app
