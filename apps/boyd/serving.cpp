#include "serving.hpp"

#include "adapters/posix/run_ancestry.hpp"

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
  return {adapters::describe_process(process) + " of user " + std::to_string(user),
          adapters::why_not_a_person(process, ::getpid(), hidden)};
}

} // namespace

api_caller this_process() {
  return {adapters::describe_process(::getpid()) + " of user " + std::to_string(::geteuid()),
          adapters::why_not_a_person(::getpid(), 0)};
}

result<void> only_a_person(const std::string& what) {
  if (const auto barred = this_process().barred; !barred.empty())
    return fail(errc::refused, "only a person can " + what + ": " + barred, {},
                "run the command in your own shell, not in a program started by Boyd");
  return {};
}

result<std::unique_ptr<adapters::control_server>> serve(live_node& node, const place& where) {
  adapters::control_server_options options;
  options.socket_path = where.layout().control_socket();
  options.on_request = [&node](adapters::http_request r,
                               std::function<void(adapters::http_response)> respond) {
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
