#include "../counted.hpp"
#include "../exit_codes.hpp"
#include "../hints.hpp"
#include "../home.hpp"
#include "../lost_facts.hpp"
#include "../run_view.hpp"
#include "../time_view.hpp"
#include "../unread_items.hpp"
#include "asking.hpp"
#include "boyd/core/text.hpp"
#include "commands.hpp"

#include <algorithm>
#include <cstddef>
#include <string>
#include <utility>

/// What agents are given to read and told: plan, context.
namespace boyd::app {

namespace {

constexpr std::size_t line_characters = 300;

/// A path in a table that has to fit: paths differ at their ends.
std::string shown_path(const std::string& path, const terminal& t) {
  constexpr std::size_t least = 32;
  constexpr std::size_t others = 48; // characters of the other columns
  return t.has_width() ? cut_in_middle(path, t.width > least + others ? t.width - others : least)
                       : path;
}

/// Agents that are due between two cycles.
void render_waiting(const json& body, const terminal& t) {
  for (const auto& d : rows_of(body, "decisions")) {
    const auto due = moment_of(d, "due_at");
    const auto cycle = moment_of(d, "runs_at");
    if (due == "-" || due == cycle)
      continue;
    const auto line = text_of(d, "agent_id") + ": due at " + due +
                      (cycle == "-" ? ", but its kernel has no cycle after that"
                                    : ", runs in the cycle of " + cycle);
    print(t.paint(colour::faint, folded(line, t)) + "\n");
  }
}

/// A plan is made of what the node has read.
void render_file(const json& file, const terminal& t) {
  const auto path = text_of(file, "path");
  const auto warn = [&](const std::string& line) {
    print(t.paint(colour::warn, folded(line, t)) + "\n");
  };
  if (flag_in(file, "has_errors"))
    return warn(path + " has changed, and has errors: this plan is of the configuration that the "
                       "node read before. Show the errors: boyd config validate");
  const auto changes = rows_of(file, "changes");
  if (changes.empty())
    return;
  warn(path + " has changed since the node read it. This plan does not have these changes:");
  for (const auto& c : changes)
    if (c.is_string())
      print(folded("  " + one_line(c.get<std::string>(), line_characters), t) + "\n");
  warn(as_hint("next: boyd reload (applies them)"));
}

/// Why an agent does not run, in a column: what tells most stands first.
std::string reason_of(const json& decision, const terminal& t) {
  auto reason = text_of(decision, "reason");
  auto detail = with_brief_times(text_of(decision, "detail"), t);
  if (reason == "running") {
    if (detail.ends_with(" has not started"))
      reason = "queued";
    // "run ID of cycle ID is running"
    const auto words = split(detail, ' ');
    if (t.has_width() && words.size() > 2)
      detail = "run " + short_id(words[1]) + (reason == "queued" ? " has not started" : "");
  }
  if (detail.empty())
    return reason.empty() ? "-" : reason;
  return reason.empty() ? detail : reason + ": " + detail;
}

void render_decisions(const json& body, const terminal& t) {
  table rows({"AGENT", "DECISION", "PRIORITY", "PROMPT", "REASON"});
  for (const auto& d : rows_of(body, "decisions")) {
    const auto agent = text_of(d, "agent_id");
    const bool runs = flag_in(d, "dispatched");
    std::string priority;
    std::string size;
    for (const auto& s : rows_of(body, "specs"))
      if (text_of(s, "agent_id") == agent) {
        priority = text_of(s, "priority");
        size = text_of(s, "prompt_bytes") + " bytes";
      }
    rows.add_cells({agent,
                    {runs ? "run" : "skip", runs ? colour::good : colour::warn},
                    priority,
                    size,
                    reason_of(d, t)});
  }
  print(rows.render(t));
  render_waiting(body, t);
  if (const auto planner = part_of(body, "planner"); text_of(planner, "type") == "llm") {
    const auto model = text_of(planner, "model");
    print("A cycle asks " + text_of(planner, "provider") + (model.empty() ? "" : "/" + model) +
          " which of these to run, at most " + text_of(planner, "max_dispatches") +
          "; without a usable answer, all of them run.\n");
  }
}

/// What became of an item, in words.
std::string fate_of(const json& item) {
  const auto as = text_of(item, "as");
  return as == "full"              ? "complete"
         : as == "summary"         ? "shortened"
         : flag_in(item, "failed") ? "not read"
                                   : "left out";
}

/// Who names an item.
std::string origin_of(const json& item) {
  const auto from = text_of(item, "origin");
  return from == "declared"    ? "boyd.yaml"
         : from == "reference" ? "prompt"
         : from == "buffer"    ? "all agents"
                               : from;
}

/// Why items are not shown as they are: a column would cut it.
void render_reasons(const json& items, const terminal& t) {
  for (const auto& i : items)
    if (const auto why = text_of(i, "reason"); !why.empty()) {
      const auto line = text_of(i, "path") + ", " + fate_of(i) + ": " + why;
      print(t.paint(colour::warn, folded(printable(line), t)) + "\n");
    }
}

void render_agent_context(const json& agent, const std::string& file, const terminal& t) {
  const auto context = part_of(agent, "context");
  const auto items = rows_of(context, "items");
  if (items.empty()) {
    if (!flag_in(agent, "takes_prompt", true))
      return;
    const auto id = text_of(agent, "agent_id");
    const auto line = id +
                      " reads only its prompt. To give it files, add this below \"agent_id: " + id +
                      "\" in " + file + ":";
    print("\n" + folded(line, t) + "\n  context: [\"@README.md\"]\n" +
          folded("or give them to all agents of the kernel: boyd context add @README.md", t) +
          "\n");
    return;
  }
  print("\n" + t.paint(colour::bold, "what " + text_of(agent, "agent_id") + " reads") + " below " +
        one_line(text_of(agent, "workspace"), t.width) + "\n");
  table rows({"KEY", "ITEM", "SECTION", "AS", "TOKENS", "ORIGIN"});
  for (const auto& i : items) {
    const auto fate = fate_of(i);
    rows.add_cells({text_of(i, "key"),
                    shown_path(text_of(i, "path"), t),
                    text_of(i, "section"),
                    {fate, fate == "complete" ? colour::none : colour::warn},
                    text_of(i, "tokens"),
                    origin_of(i)});
  }
  print(rows.render(t));
  render_reasons(items, t);
  print(text_of(context, "tokens") + " of " + text_of(context, "budget_tokens") +
        " tokens; tokens of the whole prompt: " + text_of(agent, "prompt_tokens") + "\n");
  if (const auto problem = text_of(agent, "problem"); !problem.empty())
    print(t.paint(colour::bad, "a run would fail at the start: ") + printable(problem) + "\n");
}

void render_prompts(const json& list, const terminal& t) {
  for (const auto& one : list)
    print("\n" + t.paint(colour::bold, "== " + text_of(one, "agent_id")) + "\n" +
          with_line_break(printable(text_of(one, "prompt"))));
}

void render_plan(const json& body, const terminal& t, bool prompts) {
  const auto file = part_of(body, "configuration");
  render_file(file, t);
  render_decisions(body, t);
  for (const auto& a : rows_of(body, "agents"))
    render_agent_context(a, text_of(file, "path"), t);
  if (prompts)
    render_prompts(rows_of(body, body.contains("agents") ? "agents" : "specs"), t);
}

/// What agents of the kernel could not read, as the file is now; its errors are told elsewhere.
void warn_of_items(const arguments& args, const std::string& kernel_id) {
  const auto where = place_of(args);
  if (!where)
    return;
  const auto p = local_ports();
  const auto loaded = read_configuration(where->config_path, *p.files, *p.zones);
  if (!loaded || !loaded->value)
    return;
  const auto& kernels = loaded->value->kernels;
  const auto at = std::ranges::find(kernels, kernel_id, &config::kernel::kernel_id);
  const auto prefix = "kernels[" + std::to_string(at - kernels.begin()) + "].";
  for (const auto& w : unread_items(*loaded->value, *where))
    if (w.key.starts_with(prefix))
      print_note("warning: " + w.problem);
}

void render_buffer(const json& body, const terminal& t) {
  table rows({"REFERENCE", "KIND", "ADDED"});
  for (const auto& i : rows_of(body, "items"))
    rows.add({text_of(i, "reference"), text_of(i, "kind"), moment_of(i, "added_at")});
  print(
      rows.rows() == 0
          ? hint_lines(as_hint("No references; add one with: boyd context add @README.md"), 0, t) +
                "\n"
          : rows.render(t));
}

void render_change(const json& body, const terminal& t) {
  const auto tell = [&](const char* key, const std::string& what) {
    for (const auto& one : rows_of(body, key))
      if (one.is_string())
        print(what + printable(one.get<std::string>()) + "\n");
  };
  tell("removed", "removed: ");
  tell("added", "added: ");
  tell("known", "already present: ");
  print(counted(rows_of(body, "items").size(), "reference") + " in total\n");
  for (const auto& p : rows_of(body, "problems")) {
    std::string agents;
    for (const auto& a : rows_of(p, "agents"))
      if (a.is_string())
        agents += (agents.empty() ? "" : ", ") + a.get<std::string>();
    const auto line = text_of(p, "path") + " would be left out of runs of " + agents + ": " +
                      text_of(p, "reason") + " (below " + text_of(p, "workspace") + ")";
    print(t.paint(colour::warn, folded(printable(line), t)) + "\n");
  }
}

void render_content(const json& body, const terminal& t) {
  const auto items = rows_of(body, "items");
  if (items.empty())
    print("No references.\n");
  for (const auto& i : items)
    if (text_of(i, "reason").empty())
      print(t.paint(colour::bold, "== " + printable(text_of(i, "path"))) + " (" +
            text_of(i, "type") + ")\n" + with_line_break(printable(text_of(i, "content"))));
}

/// What could not be read is an error; the rest is shown.
int show_content(const arguments& args, const api_request& request) {
  const auto body = ask_once(args, request);
  if (!body)
    return report(body.error(), args.json);
  const auto content = object_of(*body);
  if (args.json)
    print(*body + "\n");
  else
    render_content(content, terminal_of_stdout(args));
  const auto items = rows_of(content, "items");
  std::size_t unread = 0;
  for (const auto& i : items) {
    const auto why = text_of(i, "reason");
    if (why.empty())
      continue;
    ++unread;
    if (!args.json)
      print_error({errc::not_found, "not read: " + why, text_of(i, "path"),
                   "check the path; it begins at " + text_of(content, "workspace")});
  }
  return unread == 0              ? exit_code::ok
         : unread == items.size() ? exit_code::failure
                                  : exit_code::partial;
}

void render_references(const json& body, const terminal& t) {
  table rows({"TEXT", "REFERENCE", "KIND", "WHY"});
  for (const auto& r : rows_of(body, "references")) {
    const bool counts = flag_in(r, "counts");
    rows.add_cells(
        {text_of(r, "text"),
         {counts ? text_of(r, "reference") : "no", counts ? colour::good : colour::faint},
         counts ? text_of(r, "kind") : "-",
         text_of(r, "reason")});
  }
  print(rows.rows() == 0 ? "No references found in the text.\n" : rows.render(t));
  if (flag_in(body, "has_code"))
    print(t.paint(colour::faint, "Code between backticks is not searched.") + "\n");
}

std::string body_text(const json& body) {
  return body.dump(-1, ' ', false, json::error_handler_t::replace);
}

void render_bank(const json& body, const terminal& t) {
  table rows({"ID", "STAGE", "USES", "CONFIDENCE", "LAST USED", "PATH"});
  for (const auto& i : rows_of(body, "items"))
    rows.add({text_of(i, "id"), text_of(i, "stage"), text_of(i, "use_count"),
              text_of(i, "confidence"), moment_of(i, "last_used"), text_of(i, "path")});
  const bool lacks = !damage_of(body).empty() || !left_out_of(body).empty();
  print(rows.rows() > 0 ? rows.render(t)
        : lacks         ? "The bank is empty, as far as the log of facts can be read.\n"
                : "The bank is empty: no context item has proved useful often enough yet.\n");
  print_lost_facts(body, t);
}

int change_buffer(const arguments& args, json change) {
  change["kernel"] = args.kernel;
  return ask_and_print(args, post("/api/v1/context", body_text(change)), render_change);
}

std::string joined(const std::vector<std::string>& words) {
  std::string all;
  for (const auto& w : words)
    all += (all.empty() ? "" : " ") + w;
  return all;
}

} // namespace

int run_plan(const arguments& args) {
  return ask_and_print(args, get("/api/v1/plan", {{"kernel", args.kernel}, {"agent", args.agent}}),
                       [&](const json& body, const terminal& t) {
                         render_plan(body, t, args.prompts);
                         // About one agent, each item has its reason.
                         if (args.agent.empty())
                           warn_of_items(args, text_of(body, "kernel_id"));
                       });
}

int run_context(const arguments& args) {
  if (args.verb == "context add")
    return change_buffer(args, {{"add", args.references}});
  if (args.verb == "context rm")
    return change_buffer(args, {{"remove", args.references}});
  if (args.verb == "context clear")
    return change_buffer(args, {{"clear", true}});
  if (args.verb == "context bank")
    return ask_and_print(args, get("/api/v1/context/bank", {{"kernel", args.kernel}}), render_bank);
  json body{{"kernel", args.kernel}, {"agent", args.agent}};
  if (args.verb == "context cat") {
    body["references"] = args.references;
    return show_content(args, post("/api/v1/context/read", body_text(body)));
  }
  if (args.verb == "context resolve") {
    body["text"] = joined(args.references);
    return ask_and_print(args, post("/api/v1/context/resolve", body_text(body)), render_references);
  }
  return ask_and_print(args, get("/api/v1/context", {{"kernel", args.kernel}}), render_buffer);
}

} // namespace boyd::app
