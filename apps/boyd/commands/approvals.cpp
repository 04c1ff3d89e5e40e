#include "../client.hpp"
#include "../exit_codes.hpp"
#include "../hints.hpp"
#include "../json_view.hpp"
#include "../terminal.hpp"
#include "../time_view.hpp"
#include "commands.hpp"

#include <string>
#include <utility>

namespace boyd::app {

namespace {

constexpr const char* base = "/api/v1/approvals";
/// Of an id in the table: two requests of one millisecond differ after it.
constexpr std::size_t shown_id = 18;
/// Of a request's reason on a screen: else what can be left out is.
constexpr std::size_t least_reason = 12;
/// Of one answer of the node.
constexpr std::size_t largest_page = 1000;

colour colour_of_state(const std::string& state) {
  if (state == "pending")
    return colour::warn;
  return state == "approved" || state == "used" ? colour::good : colour::none;
}

void render_list(const json& body, const terminal& t, bool all) {
  const auto items = rows_of(body, "items");
  if (items.empty())
    return print(all ? "No approvals yet.\n" : "No pending approvals.\n");
  table rows({"ID", "STATE", "AGENT", "TOOL", "ASKED", "EXPIRES", "WHY"});
  for (const auto& a : items) {
    const auto state = text_of(a, "state");
    rows.add_cells({text_of(a, "approval_id").substr(0, shown_id),
                    {state, colour_of_state(state)},
                    text_of(a, "kernel_id") + "/" + text_of(a, "agent_id"),
                    text_of(a, "tool"),
                    brief_moment_of(a, "created_at", t),
                    brief_moment_of(a, "expires_at", t),
                    text_of(a, "reason")});
  }
  rows.drop_when_narrow({"ASKED", "EXPIRES"}, least_reason);
  print(rows.render(t));
  if (flag_in(body, "more"))
    print("… more than these " + std::to_string(items.size()) +
          (items.size() < largest_page ? ", newest first: --limit " + std::to_string(largest_page)
                                       : ", newest first: decide some first, or use --kernel") +
          "\n");
}

std::string line_of(const char* name, const std::string& text) {
  constexpr std::size_t width = 11;
  std::string head(name);
  head.resize(width, ' ');
  return text.empty() ? std::string() : head + printable(text) + "\n";
}

/// What would be done, and who asks.
std::string request_text(const json& a) {
  std::string out = line_of("approval", text_of(a, "approval_id"));
  out += line_of("state", text_of(a, "state") +
                              (flag_in(a, "held") ? ", for the next attempt of the run" : ""));
  out += line_of("agent", text_of(a, "kernel_id") + "/" + text_of(a, "agent_id"));
  out += line_of("run", text_of(a, "dispatch_id"));
  out += line_of("why", text_of(a, "reason"));
  out += line_of("workspace", text_of(a, "workspace"));
  out += line_of("asked", moment_of(a, "created_at"));
  out += line_of("expires", moment_of(a, "expires_at"));
  out += line_of("hash", text_of(a, "hash"));
  auto shown = printable(text_of(a, "shown"));
  if (!shown.empty() && shown.back() != '\n')
    shown += '\n';
  return out + "--- requested action ---\n" + shown + "--- end ---\n";
}

std::string trail_text(const json& a, const terminal& t) {
  table rows({"WHEN", "WHAT", "OUTCOME", "BY", "DETAIL"});
  for (const auto& l : rows_of(a, "trail"))
    rows.add({moment_of(l, "at"), text_of(l, "what"), text_of(l, "outcome"), text_of(l, "by"),
              text_of(l, "detail")});
  return rows.render(t);
}

int decide(const arguments& args) {
  const auto shown = ask_once(args, get(std::string(base) + "/" + args.id));
  if (!shown)
    return report(shown.error(), args.json);
  const auto a = part_of(object_of(*shown), "approval");
  if (!args.json)
    print(request_text(a));
  // What was read a moment ago, or what the caller says it has read.
  const json body{{"hash", args.hash.empty() ? text_of(a, "hash") : args.hash},
                  {"note", args.reason}};
  const bool approve = args.verb == "approvals approve";
  const auto done = ask_once(args, post(std::string(base) + "/" + text_of(a, "approval_id") +
                                            (approve ? "/approve" : "/reject"),
                                        body.dump(-1, ' ', false, json::error_handler_t::replace)));
  if (!done)
    return report(done.error(), args.json);
  if (args.json)
    print(*done + "\n");
  else
    print(std::string(approve ? "approved" : "rejected") + ": " + text_of(a, "approval_id") + "\n");
  return exit_code::ok;
}

int show(const arguments& args) {
  const auto body = ask_once(args, get(std::string(base) + "/" + args.id));
  if (!body)
    return report(body.error(), args.json);
  if (args.json) {
    print(*body + "\n");
    return exit_code::ok;
  }
  const auto t = terminal_of_stdout(args);
  const auto a = part_of(object_of(*body), "approval");
  auto out = request_text(a);
  if (const auto by = text_of(a, "decided_by"); !by.empty())
    out += line_of("decided", moment_of(a, "decided_at") + " by " + by) +
           line_of("note", text_of(a, "note"));
  print(out + trail_text(a, t));
  if (text_of(a, "state") == "pending")
    print(as_hint("decide: boyd approvals approve ") + text_of(a, "approval_id") + " --hash " +
          text_of(a, "hash") + "\n");
  return exit_code::ok;
}

} // namespace

int run_approvals(const arguments& args) {
  if (args.verb == "approvals show")
    return show(args);
  if (args.verb == "approvals approve" || args.verb == "approvals reject")
    return decide(args);
  const auto body =
      ask_once(args, get(base, {{"kernel", args.kernel},
                                {"state", args.all ? "all" : ""},
                                {"limit", args.limit > 0 ? std::to_string(args.limit) : ""}}));
  if (!body)
    return report(body.error(), args.json);
  if (args.json)
    print(*body + "\n");
  else
    render_list(object_of(*body), terminal_of_stdout(args), args.all);
  return exit_code::ok;
}

} // namespace boyd::app
