#include "bench/support/whole_node.hpp"

#include "actors/node/root.hpp"
#include "actors/support/handlers.hpp"
#include "bench/support/wiring.hpp"

#include <caf/actor_registry.hpp>
#include <caf/actor_system.hpp>
#include <caf/actor_system_config.hpp>
#include <caf/scoped_actor.hpp>
#include <caf/send.hpp>
#include <nlohmann/json.hpp>

#include <optional>
#include <string>
#include <utility>

namespace boyd::bench {

namespace {

using nlohmann::json;

constexpr auto longest_wait = std::chrono::minutes{2};
/// Equal outcomes within one second are one line of `## recent_actions`: then there is nothing for
/// the pre-cycle commit. A run's answer differs from those before it for as long as they are shown.
constexpr int different_answers = 64;

configuration_ptr make_configuration(std::size_t agents, milliseconds keep_rows) {
  auto c = std::make_shared<config::configuration>();
  if (keep_rows >= milliseconds{0})
    c->node_settings.retention = keep_rows;
  config::kernel k;
  k.kernel_id = bench_kernel;
  for (std::size_t n = 1; n <= agents; ++n) {
    config::agent a;
    a.agent_id = "no-op-" + std::to_string(n);
    a.prompt = "Do nothing. {STATE}";
    auto& script = a.run.emplace<config::script_executor>();
    for (int i = 1; i <= different_answers; ++i)
      script.answers.emplace_back().summary = "nothing to do, " + std::to_string(i);
    k.agents.push_back(std::move(a));
  }
  c->kernels.push_back(std::move(k));
  return c;
}

} // namespace

struct whole_node::parts {
  std::size_t agents = 0;
  caf::actor_system_config configuration;
  std::unique_ptr<caf::actor_system> system;
  root_actor root;

  result<json> ask(const char* method, const std::string& path, const std::string& body) {
    api_request request;
    request.method = method;
    request.path = path;
    if (request.method == "GET")
      request.query = {{"kernel", bench_kernel}, {"wait", "1"}};
    request.body = body;
    result<json> reply = fail(errc::bug, "no answer");
    // One for each request: the timer of an answered one comes all the same and stays in the
    // mailbox of a blocking actor, which reads it anew for every answer.
    caf::scoped_actor me(*system);
    me->request(root, longest_wait, std::move(request))
        .receive(
            [&](result<api_response>& r) {
              if (!r)
                reply = fail(r.error());
              else if (r->status >= 300)
                reply = fail(errc::refused, r->body, path);
              else
                reply = json::parse(r->body);
            },
            [&](caf::error& e) { reply = fail(errc::actor_down, text_of(e)); });
    return reply;
  }
};

whole_node::whole_node(node_context_ptr context, std::size_t agents, milliseconds keep_rows)
    : parts_(std::make_unique<parts>()) {
  auto& p = *parts_;
  p.agents = agents;
  configure_actors(p.configuration);
  p.system = std::make_unique<caf::actor_system>(p.configuration);
  p.root = spawn_root(*p.system, std::move(context), make_configuration(agents, keep_rows));
  caf::anon_send(p.root, start_claiming{});
}

whole_node::~whole_node() {
  auto& p = *parts_;
  caf::anon_send(p.root, shutdown_order{{}, milliseconds{0}});
  caf::scoped_actor me(*p.system);
  me->wait_for(p.root);
  p.root = nullptr;
}

result<void> whole_node::cycle() {
  auto& p = *parts_;
  auto triggered = p.ask("POST", "/api/v1/cycles", R"({"trigger":"manual"})");
  if (!triggered)
    return fail(std::move(triggered.error()));
  const auto id = triggered->value("cycle_id", std::string{});
  auto recorded = p.ask("GET", "/api/v1/cycles/" + id, {});
  if (!recorded)
    return fail(std::move(recorded.error()));
  if (recorded->value("succeeded", std::size_t{0}) != p.agents)
    return fail(errc::bug, "not every agent of the cycle succeeded", id);
  return {};
}

std::size_t whole_node::actors() const {
  return parts_->system->registry().running();
}

} // namespace boyd::bench
