#include "../hints.hpp"
#include "../json_view.hpp"
#include "../run_view.hpp"
#include "../terminal.hpp"
#include "../time_view.hpp"
#include "asking.hpp"
#include "boyd/core/text.hpp"
#include "commands.hpp"

#include <algorithm>
#include <set>
#include <string>
#include <vector>

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

/// The last column's text in lines that fit beside the other columns: no agent is cut off.
std::vector<std::string> in_lines(const std::string& text, std::size_t others, const terminal& t) {
  if (!t.has_width())
    return {text};
  constexpr std::size_t least = 24;
  const auto room = t.width > others + least ? t.width - others : least;
  const auto broken = wrapped(text, room, 0);
  std::vector<std::string> lines;
  for (const auto line : split(broken, '\n'))
    lines.emplace_back(line);
  return lines;
}

/// Characters that a column takes, with the blanks behind it.
std::size_t width_of(const std::vector<std::string>& cells) {
  constexpr std::size_t blanks = 2;
  std::size_t most = 0;
  for (const auto& c : cells)
    most = std::max(most, count_characters(c));
  return most + blanks;
}

/// The times with their agents, as a table.
std::string table_of_times(const json& body, const terminal& t, bool several) {
  std::vector<std::string> heads{"TIME", "WHEN"};
  if (several)
    heads.emplace_back("KERNEL");
  std::vector<std::vector<std::string>> columns;
  for (const auto& head : heads)
    columns.push_back({head});
  const auto items = rows_of(body, "items");
  for (const auto& f : items) {
    columns[0].push_back(moment_of(f, "at"));
    columns[1].push_back(distance_of(f, "at"));
    if (several)
      columns[2].push_back(text_of(f, "kernel_id"));
  }
  std::size_t others = 0;
  for (const auto& column : columns)
    others += width_of(column);
  heads.emplace_back("AGENTS");
  table rows(heads);
  std::size_t row = 0;
  for (const auto& f : items) {
    ++row; // behind the head
    const auto quiet = text_of(f, "quiet");
    auto agents = names_in(rows_of(f, "agents"));
    if (agents.empty())
      agents = "(no agent is due)";
    if (!quiet.empty())
      agents = "no agent will run: " + quiet + " (" + agents + ")";
    bool is_first = true;
    for (const auto& line : in_lines(agents, others, t)) {
      std::vector<table::cell> cells;
      for (const auto& column : columns)
        cells.emplace_back(is_first ? column[row] : std::string());
      cells.emplace_back(line, quiet.empty() ? colour::none : colour::warn);
      rows.add_cells(std::move(cells));
      is_first = false;
    }
  }
  return rows.rows() == 0 ? "Nothing is scheduled.\n" : rows.render(t);
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
    line += agent.empty() ? "" : " " + agent;
    line += several_kernels ? " --kernel " + text_of(p, "kernel_id") : "";
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
  print(table_of_times(body, t, several));
  render_due_between(body, t);
  for (const auto& a : rows_of(body, "others")) {
    const auto when = moment_of(a, "at");
    const auto why = !flag_in(a, "enabled", true) ? agent_of(a) + ": disabled"
                     : when == "-"                ? agent_of(a) + ": no further scheduled runs"
                                   : "not among these times: " + agent_of(a) + ", next " + when;
    print(t.paint(colour::faint, folded(why, t)) + "\n");
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
