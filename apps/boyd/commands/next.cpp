#include "../hints.hpp"
#include "../json_view.hpp"
#include "../run_view.hpp"
#include "../terminal.hpp"
#include "../time_view.hpp"
#include "asking.hpp"
#include "commands.hpp"

#include <set>
#include <string>

/// `boyd next`: when agents are due, by their schedules and pauses alone.
namespace boyd::app {

namespace {

constexpr std::size_t pause_characters = 200;

std::string names_in(const json& names) {
  std::string text;
  for (const auto& n : names)
    if (n.is_string())
      text += (text.empty() ? "" : ", ") + n.get<std::string>();
  return text;
}

/// Agents whose own schedule is due between two cycles, each with the first one that runs it.
void render_due_between(const json& body, const terminal& t) {
  std::set<std::string> told;
  for (const auto& f : rows_of(body, "items")) {
    const auto due = part_of(f, "due");
    for (const auto& [agent, at] : due.items()) {
      const auto name = text_of(f, "kernel_id") + "/" + agent;
      if (told.insert(name).second)
        print(t.paint(colour::faint, folded(name + ": due " + moment_of(due, agent.c_str()) +
                                                ", runs in the cycle of " + moment_of(f, "at"),
                                            t)) +
              "\n");
    }
  }
}

/// What does not run until somebody resumes it, and how.
void render_pauses(const json& body, const terminal& t, bool several_kernels) {
  for (const auto& p : rows_of(body, "pauses")) {
    const auto agent = text_of(p, "agent_id");
    const auto reason = text_of(p, "reason");
    auto line = (agent.empty() ? "kernel " + text_of(p, "kernel_id") : agent_of(p)) +
                " is paused since " + moment_of(p, "since");
    line += reason.empty() ? "" : " (" + one_line(reason, pause_characters) + ")";
    line += ": boyd resume";
    line += several_kernels ? " --kernel " + text_of(p, "kernel_id") : "";
    line += agent.empty() ? "" : " --agent " + agent;
    print(t.paint(colour::warn, hint_lines(as_hint(line), 0, t)) + "\n");
  }
}

void render_next(const json& body, const terminal& t, bool has_node) {
  if (!has_node)
    print(
        t.paint(colour::warn,
                hint_lines(as_hint("no node is running, so none of these runs will start; start it "
                                   "with: boyd node"),
                           0, t)) +
        "\n");
  const bool several = number_of(body, "kernels") > 1;
  table rows(several ? std::vector<std::string>{"TIME", "WHEN", "KERNEL", "AGENTS"}
                     : std::vector<std::string>{"TIME", "WHEN", "AGENTS"});
  for (const auto& f : rows_of(body, "items")) {
    const auto quiet = text_of(f, "quiet");
    auto agents = names_in(rows_of(f, "agents"));
    if (agents.empty())
      agents = "(no agent is due)";
    if (!quiet.empty())
      agents = "no agent will run: " + quiet + " (" + agents + ")";
    std::vector<table::cell> cells{moment_of(f, "at"),
                                   distance_of(f, "at"),
                                   {agents, quiet.empty() ? colour::none : colour::warn}};
    if (several)
      cells.insert(cells.begin() + 2, text_of(f, "kernel_id"));
    rows.add_cells(std::move(cells));
  }
  print(rows.rows() == 0 ? "Nothing is scheduled.\n" : rows.render(t));
  render_due_between(body, t);
  for (const auto& a : rows_of(body, "others")) {
    const auto when = moment_of(a, "at");
    const auto why = !flag_in(a, "enabled", true) ? "disabled"
                     : when == "-"                ? "no further scheduled runs"
                                                  : "later: " + when;
    print(t.paint(colour::faint, agent_of(a) + ": " + why) + "\n");
  }
  render_pauses(body, t, several);
}

} // namespace

int run_next(const arguments& args) {
  return ask_and_print(
      args,
      get("/api/v1/next", {{"kernel", args.kernel},
                           {"agent", args.agent},
                           {"limit", args.limit == 0 ? "" : std::to_string(args.limit)}}),
      [&](const json& body, const terminal& t) { render_next(body, t, home_is_in_use(args)); });
}

} // namespace boyd::app
