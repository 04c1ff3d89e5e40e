#include "../client.hpp"
#include "../exit_codes.hpp"
#include "../json_view.hpp"
#include "../terminal.hpp"
#include "../time_view.hpp"
#include "commands.hpp"

#include <algorithm>
#include <cstddef>

namespace boyd::app {

namespace {

constexpr std::size_t shown_restarts = 10;
constexpr std::size_t cause_characters = 160;

/// The last restarts, of earlier lives of the node, too.
std::string restarts_text(const json& body, const terminal& t) {
  const auto all = rows_of(body, "restarts");
  if (all.empty())
    return {};
  table rows({"WHEN", "PART", "CAUSE"});
  for (std::size_t i = 0; i < std::min(all.size(), shown_restarts); ++i)
    rows.add_cells({moment_of(all[i], "at"), text_of(all[i], "name"),
                    one_line(text_of(all[i], "cause"), cause_characters)});
  return "\n" + t.paint(colour::bold, "restarts, newest first") + "\n" + rows.render(t, "  ");
}

void render_actors(const json& body, const terminal& t) {
  table rows({"PART", "STATE", "RESTARTS", "RENEWALS", "WHY"});
  for (const auto& a : rows_of(body, "items")) {
    const auto depth = static_cast<std::size_t>(std::max<std::int64_t>(number_of(a, "depth"), 0));
    const auto state = text_of(a, "state");
    const auto reason = text_of(a, "reason");
    rows.add_cells({std::string(2 * depth, ' ') + text_of(a, "name"),
                    {state, colour_of_status(state)},
                    text_of(a, "restarts"),
                    text_of(a, "renewals"),
                    reason.empty() ? text_of(a, "last_error") : reason});
  }
  print(rows.render(t) + restarts_text(body, t));
}

void render_order(const json& body, const char* done) {
  print(std::string(done) + ": " + text_of(body, "name") + " (was " + text_of(body, "was") + ")\n");
}

} // namespace

int run_actors(const arguments& args) {
  const std::string base = "/api/v1/actors";
  const bool restart = args.verb == "actors restart";
  const bool unpark = args.verb == "actors unpark";
  const auto body = ask_once(args, restart  ? post(base + "/" + args.id + "/restart")
                                   : unpark ? post(base + "/" + args.id + "/unpark")
                                            : get(base));
  if (!body)
    return report(body.error(), args.json);
  const auto answer = object_of(*body);
  if (args.json)
    print(*body + "\n");
  else if (restart)
    render_order(answer, "restarted");
  else if (unpark)
    render_order(answer, text_of(answer, "was") == "parked" ? "started again" : "was not parked");
  else
    render_actors(answer, terminal_of_stdout(args));
  return exit_code::ok;
}

} // namespace boyd::app
