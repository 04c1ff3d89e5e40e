#include "../client.hpp"
#include "../exit_codes.hpp"
#include "../json_view.hpp"
#include "../live_line.hpp"
#include "../terminal.hpp"
#include "boyd/core/text.hpp"
#include "commands.hpp"

#include <string>
#include <utility>

namespace boyd::app {

namespace {

constexpr const char* base = "/api/v1/tools";
/// A server may have to be downloaded before it starts.
constexpr milliseconds longest_wait = 10min;
constexpr std::size_t described = 80;
/// Of a target or a problem in the list; `tools show` has all of it.
constexpr std::size_t column = 60;

colour colour_of(const std::string& state) {
  if (state == "ready")
    return colour::good;
  return state == "idle" || state == "starting" ? colour::none : colour::warn;
}

/// As much of it as a column holds.
std::string in_column(const std::string& text) {
  const auto cut = cut_characters(text, column);
  return cut.size() < text.size() ? std::string(cut) + "…" : text;
}

void render_servers(const json& body, const terminal& t, bool whole) {
  const auto items = rows_of(body, "items");
  if (items.empty())
    return print("No tool servers configured (mcpServers).\n");
  table rows({"SERVER", "STATE", "TRANSPORT", "PROTOCOL", "TOOLS", "TARGET", "PROBLEM"});
  for (const auto& s : items) {
    const auto state = text_of(s, "state");
    auto name = text_of(s, "name");
    if (const auto workspace = text_of(s, "workspace"); !workspace.empty())
      name += " @ " + workspace;
    auto protocol = text_of(s, "era");
    if (!protocol.empty())
      protocol += " " + text_of(s, "version");
    rows.add_cells({name,
                    {state, colour_of(state)},
                    text_of(s, "transport"),
                    protocol,
                    state == "ready" ? text_of(s, "tool_count") : std::string(),
                    whole ? text_of(s, "target") : in_column(text_of(s, "target")),
                    whole ? text_of(s, "problem") : in_column(text_of(s, "problem"))});
  }
  print(rows.render(t));
}

/// What a person trusts, or does not: all of it, and its hash. Empty for a server of the
/// configuration.
std::string definition_text(const json& s) {
  const auto hash = text_of(s, "hash");
  if (hash.empty())
    return {};
  return "--- what " + text_of(s, "from") + " says of " + text_of(s, "name") + " ---\n" +
         printable(text_of(s, "definition")) + "--- end ---\nhash: " + hash + "\n";
}

/// What may be copied into the configuration, so that no tool changes unseen; and those that did.
std::string pins_text(const json& s) {
  std::string out;
  std::string withheld;
  for (const auto& tool : rows_of(s, "tools")) {
    const auto pin = text_of(tool, "pin");
    if (pin.empty())
      continue;
    out += "      " +
           json(text_of(tool, "own_name")).dump(-1, ' ', false, json::error_handler_t::replace) +
           ": " + pin + "\n";
    if (const auto why = text_of(tool, "withheld"); !why.empty())
      withheld += "--- not used: " + text_of(tool, "name") + " (" + why + ") ---\n" +
                  text_of(tool, "description") + "\n" + part_in(tool, "parameters").dump() + "\n";
  }
  if (!withheld.empty())
    withheld = "\n" + printable(withheld) + "--- end ---\n";
  if (out.empty() || !text_of(s, "hash").empty())
    return withheld;
  return withheld + "\nTo allow only these tools in their current form, set:\nmcpServers:\n  " +
         text_of(s, "name") + ":\n    pins:\n" + printable(out);
}

void render_tools(const json& body, const terminal& t) {
  render_servers(body, t, true);
  const auto items = rows_of(body, "items");
  for (const auto& s : items) {
    if (const auto sandbox = text_of(s, "sandbox"); !sandbox.empty())
      print("\nsandbox: " + printable(sandbox) + "\n");
    if (const auto definition = definition_text(s); !definition.empty())
      print("\n" + definition);
    const auto tools = rows_of(s, "tools");
    if (tools.empty())
      continue;
    table rows({"TOOL", "DESCRIPTION"});
    for (const auto& tool : tools) {
      auto text = text_of(tool, "description");
      text = text.substr(0, text.find('\n'));
      rows.add({text_of(tool, "name"),
                text.size() > described ? text.substr(0, described) + "…" : text});
    }
    print("\n" + rows.render(t));
    print(pins_text(s));
  }
}

/// A node, or this process in its place: it may start servers, too.
class servers_client {
 public:
  explicit servers_client(const arguments& args)
      : args_(args), client_(open_client(args, node_mode::trying, signals_)) {}
  ~servers_client() {
    if (client_)
      (*client_)->close();
  }
  servers_client(const servers_client&) = delete;
  servers_client& operator=(const servers_client&) = delete;

  result<std::string> ask(api_request request) {
    if (!client_)
      return fail(client_.error());
    request.query.emplace("wait", "1");
    return with_live_line(args_, "waiting for tool servers",
                          [&] { return (*client_)->ask(request, longest_wait); });
  }

 private:
  const arguments& args_;
  signal_watch signals_;
  decltype(open_client(std::declval<const arguments&>(), node_mode::trying,
                       std::declval<signal_watch&>())) client_;
};

result<std::string> ask_servers(const arguments& args, api_request request) {
  return servers_client(args).ask(std::move(request));
}

int list(const arguments& args) {
  const bool connect = args.verb == "tools show" || args.connect;
  auto request =
      get(base, {{"server", args.id}, {"connect", connect ? std::string("true") : std::string()}});
  auto body = connect ? ask_servers(args, request) : ask_once(args, request);
  if (!body)
    return report(body.error(), args.json);
  bool well = true;
  const auto items = rows_of(object_of(*body), "items");
  for (const auto& s : items)
    well = well && (!connect || text_of(s, "state") == "ready");
  if (args.json)
    print(*body + "\n");
  else if (args.verb == "tools show")
    render_tools(object_of(*body), terminal_of_stdout(args));
  else
    render_servers(object_of(*body), terminal_of_stdout(args), false);
  return well ? exit_code::ok : exit_code::failure;
}

int call(const arguments& args) {
  const json body{{"tool", args.id}, {"arguments", args.tool_arguments}};
  auto done = ask_servers(args, post(std::string(base) + "/call",
                                     body.dump(-1, ' ', false, json::error_handler_t::replace)));
  if (!done)
    return report(done.error(), args.json);
  const auto answer = object_of(*done);
  if (args.json)
    print(*done + "\n");
  else
    print(printable(text_of(answer, "text")) + "\n");
  return flag_in(answer, "is_error") ? exit_code::failure : exit_code::ok;
}

/// The hash of the one server of a workspace that is meant, after it was printed; empty when there
/// is none, or more than one: then the node says so.
std::string hash_of_seen(servers_client& node, const arguments& args) {
  const auto listed = node.ask(get(base, {{"server", args.id}}));
  auto path = args.path;
  while (path.size() > 1 && path.ends_with('/'))
    path.pop_back();
  json seen;
  const auto items = listed ? rows_of(object_of(*listed), "items") : json::array();
  for (const auto& s : items) {
    if (text_of(s, "hash").empty() || (!path.empty() && text_of(s, "workspace") != path))
      continue;
    // Agents whose sandboxes differ have a process each, of one and the same server.
    if (!seen.is_null() && (text_of(s, "hash") != text_of(seen, "hash") ||
                            text_of(s, "workspace") != text_of(seen, "workspace")))
      return {};
    seen = s;
  }
  if (seen.is_null())
    return {};
  if (!args.json)
    print(definition_text(seen));
  return text_of(seen, "hash");
}

int decide(const arguments& args) {
  const bool forget = args.verb == "tools forget";
  servers_client node(args);
  json body{{"server", args.id}, {"workspace", args.path}};
  if (!forget) {
    // What was read a moment ago, or what the caller says it has read.
    const auto seen = hash_of_seen(node, args);
    body["hash"] = args.hash.empty() ? seen : args.hash;
  }
  auto done = node.ask(post(std::string(base) + (forget ? "/forget" : "/trust"),
                            body.dump(-1, ' ', false, json::error_handler_t::replace)));
  if (!done)
    return report(done.error(), args.json);
  const auto answer = object_of(*done);
  if (args.json) {
    print(*done + "\n");
    return exit_code::ok;
  }
  print(std::string(forget ? "forgotten: " : "trusted: ") + text_of(answer, "server") + " of " +
        text_of(answer, "file") + "\n");
  const auto changes = rows_of(answer, "changes");
  for (const auto& change : changes)
    if (change.is_string())
      print("  " + printable(change.get<std::string>()) + "\n");
  return exit_code::ok;
}

} // namespace

int run_tools(const arguments& args) {
  if (args.verb == "tools call")
    return call(args);
  if (args.verb == "tools trust" || args.verb == "tools forget")
    return decide(args);
  return list(args);
}

} // namespace boyd::app
