#include "../exit_codes.hpp"
#include "../home.hpp"
#include "../run_view.hpp"
#include "../terminal.hpp"
#include "asking.hpp"
#include "boyd/core/limits.hpp"
#include "boyd/ports/file_system.hpp"
#include "commands.hpp"

#include <set>

/// `boyd complete KIND`: what a person may mean, for the shell. Whatever is wrong, it offers less
/// and says nothing.
namespace boyd::app {

namespace {

constexpr const char* offered_runs = "20";

/// From the file: it needs no node, and no secrets.
std::set<std::string> configured(const arguments& args) {
  std::set<std::string> names;
  const auto where = place_of(args);
  const auto p = local_ports();
  const auto text = where ? p.files->read(where->config_path, limits::config_bytes)
                          : result<std::string>(fail(where.error()));
  if (!text)
    return names;
  const auto settings =
      parse_configuration_to_ask(where->config_path, *text, *p.files, *p.zones, false);
  if (!settings)
    return names;
  const auto& c = **settings;
  for (const auto& k : c.kernels) {
    if (args.shell == "kernels")
      names.insert(k.kernel_id);
    if (args.shell == "agents" || args.shell == "runs")
      for (const auto& a : k.agents)
        names.insert(a.agent_id);
  }
  if (args.shell == "providers")
    for (const auto& provider : c.providers)
      names.insert(provider.provider_id);
  if (args.shell == "servers")
    for (const auto& server : c.mcp_servers)
      names.insert(server.name);
  return names;
}

/// From the node, or the database where none runs.
void add_ids(const arguments& args, std::set<std::string>& names) {
  const bool approvals = args.shell == "approvals";
  const auto body =
      ask_once(args, approvals ? get("/api/v1/approvals", {})
                               : get("/api/v1/dispatches", {{"limit", offered_runs}}));
  if (!body)
    return;
  for (const auto& row : rows_of(object_of(*body), "items"))
    names.insert(approvals ? text_of(row, "approval_id") : short_id_of(row));
}

} // namespace

int run_complete(const arguments& args) {
  auto names = configured(args);
  if (args.shell == "runs")
    names.insert("last");
  if (args.shell == "runs" || args.shell == "approvals")
    add_ids(args, names);
  for (const auto& name : names)
    print(printable(name) + "\n");
  return exit_code::ok;
}

} // namespace boyd::app
