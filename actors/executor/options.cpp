#include "actors/executor/options.hpp"

#include "boyd/exec/command_line.hpp"
#include "boyd/ports/clock.hpp"

namespace boyd {

std::string session_of(const dispatch& row) {
  return exec::make_session_id(row.agent_id, row.dispatch_id + "-" + std::to_string(row.attempt));
}

exec::attempt_options options_for(const node_context& context, const config::agent& agent,
                                  const dispatch& row) {
  exec::attempt_options o;
  o.timeout = agent.timeout;
  o.no_output_timeout = agent.no_output_timeout;
  o.require = agent.require;
  o.base_directory = context.kernel_home(row.kernel_id);
  o.session_id = session_of(row);
  o.started_at = context.ports.clock->now();
  o.time_of_day = [clock = context.ports.clock] { return clock->now(); };
  o.zones = context.ports.zones;
  return o;
}

} // namespace boyd
