#include "../client.hpp"
#include "../exit_codes.hpp"
#include "../hints.hpp"
#include "../json_view.hpp"
#include "../run_view.hpp"
#include "../terminal.hpp"
#include "../time_view.hpp"
#include "asking.hpp"
#include "commands.hpp"

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

/// `boyd agents ls` and `boyd agents show AGENT`.
namespace boyd::app {

namespace {

constexpr const char* newest_runs = "5";

/// Why it does not run, else what it said last.
std::string note_of(const json& a) {
  if (!flag_in(a, "enabled", true))
    return "disabled";
  if (const auto paused = text_of(a, "paused"); !paused.empty())
    return "paused: " + paused;
  const auto last = text_of(a, "last_status");
  if (last == "pending")
    return {}; // an earlier attempt said it
  return text_of(a, last == "failed" ? "last_error" : "last_summary");
}

/// Without a node nothing follows a schedule.
constexpr const char* no_node =
    "no node is running, so nothing runs by schedule; start it with: boyd node";

void render_agents(const json& body, const terminal& t, bool has_node) {
  table rows({"AGENT", "EXECUTOR", "PRIO", "ACTIVE", "LAST", "FINISHED", "NEXT", "NOTE"});
  rows.drop_when_narrow({"PRIO", "EXECUTOR", "ACTIVE"});
  for (const auto& a : rows_of(body, "items")) {
    const auto last = text_of(a, "last_status");
    rows.add_cells({text_of(a, "agent_id"),
                    text_of(a, "executor"),
                    text_of(a, "priority"),
                    text_of(a, "running") + "/" + text_of(a, "limit"),
                    {last.empty() ? "-" : last, colour_of_status(last)},
                    brief_moment_of(a, "last_finished_at", t),
                    has_node ? brief_moment_of(a, "next_run", t) : "-",
                    note_of(a)});
  }
  print(rows.render(t));
  if (!has_node)
    print(t.paint(colour::warn, hint_lines(as_hint(no_node), 0, t)) + "\n");
}

std::string length_of(const json& object, const char* key) {
  return plan::show_length(milliseconds{number_of(object, key)});
}

std::string listed(const json& names) {
  std::string text;
  for (const auto& n : names)
    if (n.is_string())
      text += (text.empty() ? "" : ", ") + n.get<std::string>();
  return text;
}

/// Labels and values, those without a value left out.
class sheet {
 public:
  explicit sheet(const terminal& t) : terminal_(t) {}

  void line(const std::string& label, const std::string& value) const {
    constexpr std::size_t label_characters = 14;
    if (value.empty() || value == "-")
      return;
    const auto indent = std::string(label_characters - label.size(), ' ');
    print(terminal_.paint(colour::faint, label + indent) +
          wrapped(one_line(value, most_characters),
                  terminal_.width > label_characters ? terminal_.width - label_characters : 1,
                  label_characters) +
          "\n");
  }

 private:
  static constexpr std::size_t most_characters = 2000;
  const terminal& terminal_;
};

/// How often a run of the agent is tried.
std::string attempts_of_run(const json& agent) {
  const auto most = number_of(agent, "max_attempts");
  return most == 1 ? "1 attempt"
                   : "at most " + std::to_string(most) +
                         " attempts (only a failure that may pass by itself is tried again)";
}

void render_agent(const json& kernel, const json& a, const json& runs, const terminal& t,
                  bool has_node) {
  const sheet s(t);
  const auto own = part_of(a, "schedule");
  const auto schedule = own.empty() ? part_of(kernel, "schedule") : own;
  s.line("agent", text_of(kernel, "kernel_id") + "/" + text_of(a, "agent_id"));
  if (!flag_in(a, "enabled", true))
    s.line("state", "disabled");
  if (const auto paused = text_of(a, "paused"); !paused.empty())
    s.line("state", "paused: " + paused + as_hint("; to end the pause: boyd resume ") +
                        text_of(a, "agent_id"));
  s.line("executor", text_of(a, "executor"));
  s.line("schedule", text_of(schedule, "expression") + " (" + text_of(schedule, "tz") + ")" +
                         (own.empty() ? " (schedule of the kernel)" : ""));
  if (const auto next = moment_of(a, "next_run"); next != "-")
    s.line("next run",
           next + (has_node ? std::string() : as_hint("; no node is running: boyd node")));
  s.line("running", text_of(a, "running") + " of max. " + text_of(a, "limit"));
  s.line("limits",
         "timeout " + length_of(a, "timeout_ms") +
             (number_of(a, "cooldown_ms") > 0 ? ", cooldown " + length_of(a, "cooldown_ms")
                                              : std::string{}) +
             ", " + attempts_of_run(a) + ", priority " + text_of(a, "priority"));
  s.line("tools", listed(rows_of(a, "tools")));
  if (const auto d = part_of(a, "last_decision"); !d.empty())
    s.line(
        "last decision",
        moment_of(d, "at") + ": " + (flag_in(d, "dispatched") ? "dispatched" : "not dispatched") +
            (text_of(d, "reason").empty() ? "" : ", " + text_of(d, "reason")) +
            (text_of(d, "detail").empty() ? "" : " (" + in_user_zone(text_of(d, "detail")) + ")"));
  table rows({"RUN", "STATUS", "STARTED", "TOOK", "SUMMARY"});
  for (const auto& d : rows_of(runs, "items")) {
    const auto status = text_of(d, "status");
    const auto error = text_of(d, "error");
    rows.add_cells({short_id_of(d),
                    {status, colour_of_status(status)},
                    brief_moment_of(d, "started_at", t),
                    time_between(d, "started_at", "finished_at"),
                    status == "pending"                    ? std::string()
                    : status == "failed" && !error.empty() ? error
                                                           : text_of(d, "summary")});
  }
  if (rows.rows() == 0)
    return print("\n" +
                 hint_lines(as_hint("No runs yet; run it now: boyd run ") +
                                shell_word(text_of(a, "agent_id")),
                            0, t) +
                 "\n");
  print("\n" + t.paint(colour::bold, "latest runs") + "\n" + rows.render(t) +
        t.paint(colour::faint, hint_lines(as_hint("show output of a run: boyd logs RUN"), 0, t)) +
        "\n");
}

/// One question of several.
result<json> asked(client& c, const api_request& request) {
  const auto body = c.ask(request);
  return body ? result<json>(object_of(*body)) : fail(body.error());
}

/// Why the kernel's listing has no agent of this name: the node says whether boyd.yaml has one.
error why_not_listed(client& c, const std::string& kernel_id, const std::string& name) {
  const auto asked_for = asked(c, get("/api/v1/next", {{"kernel", kernel_id}, {"agent", name}}));
  if (!asked_for)
    return asked_for.error();
  return {errc::conflict, "the agents have just changed", name, "try again"};
}

int show_agent(client& c, const arguments& args) {
  auto kernel = args.kernel;
  auto name = args.agent;
  if (const auto slash = name.find('/'); slash != std::string::npos) {
    kernel = name.substr(0, slash);
    name.erase(0, slash + 1);
  }
  auto listing = asked(c, get("/api/v1/agents", {{"kernel", kernel}}));
  if (!listing)
    return report(listing.error(), args.json);
  const auto items = rows_of(*listing, "items");
  const auto found =
      std::ranges::find_if(items, [&](const json& a) { return text_of(a, "agent_id") == name; });
  if (found == items.end())
    return report(why_not_listed(c, text_of(*listing, "kernel_id"), name), args.json);
  const auto runs = asked(c, get("/api/v1/dispatches", {{"kernel", text_of(*listing, "kernel_id")},
                                                        {"agent", name},
                                                        {"limit", newest_runs}}));
  if (!runs)
    return report(runs.error(), args.json);
  if (!args.json) {
    render_agent(*listing, *found, *runs, terminal_of_stdout(args), c.online());
    return exit_code::ok;
  }
  json body = *found;
  body["schema"] = "boyd.agent/1";
  body["kernel_id"] = text_of(*listing, "kernel_id");
  body["kernel_schedule"] = part_of(*listing, "schedule");
  body["runs"] = rows_of(*runs, "items");
  print(body.dump(-1, ' ', false, json::error_handler_t::replace) + "\n");
  return exit_code::ok;
}

} // namespace

int run_agents(const arguments& args) {
  if (args.verb == "agents add" || args.verb == "agents rm")
    return run_agents_edit(args);
  if (args.verb != "agents show")
    return ask_and_print(
        args, get("/api/v1/agents", {{"kernel", args.kernel}}),
        [&](const json& body, const terminal& t) { render_agents(body, t, home_is_in_use(args)); });
  signal_watch signals;
  auto c = open_client(args, node_mode::answering, signals);
  if (!c)
    return report(c.error(), args.json);
  const int code = show_agent(**c, args);
  (*c)->close();
  return code;
}

} // namespace boyd::app
