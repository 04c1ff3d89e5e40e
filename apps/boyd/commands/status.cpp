#include "../client.hpp"
#include "../exit_codes.hpp"
#include "../hints.hpp"
#include "../home.hpp"
#include "../json_view.hpp"
#include "../run_view.hpp"
#include "../screen.hpp"
#include "../terminal.hpp"
#include "../time_view.hpp"
#include "boyd/core/failure_words.hpp"
#include "boyd/ports/clock.hpp"
#include "commands.hpp"

#include <algorithm>
#include <condition_variable>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace boyd::app {

namespace {

/// --watch draws again after every event, and at least this often.
constexpr milliseconds redraw_interval = 2s;
/// Events in quick succession are drawn together.
constexpr milliseconds redraw_pause = 200ms;
/// A line ends with what to do, and is not cut short of that; this only bounds what agents say.
constexpr std::size_t problem_characters = 4000;
constexpr std::string_view bullet = "  ! ";
/// Percents of a budget that are coloured.
constexpr std::int64_t warning = 80;
constexpr std::int64_t whole = 100;
/// A node that was not seen for so long is not coming back soon.
constexpr milliseconds long_gone = std::chrono::hours{24};
constexpr const char* unknown = "unknown";

/// Behind an indent of two.
std::size_t room(const terminal& t) {
  return t.width > 2 ? t.width - 2 : 1;
}

std::string node_line(const json& body, const terminal& t) {
  const auto node = part_of(body, "node");
  const bool running = flag_in(node, "running");
  const bool draining = text_of(node, "state") == "draining";
  std::string line = t.paint(colour::bold, "node ") + text_of(node, "node_id");
  line += running ? "  " +
                        t.paint(draining ? colour::warn : colour::good,
                                draining ? "stopping" : "running") +
                        (t.has_width() ? "\n " : "") + " as process " + text_of(node, "pid") +
                        " since " + moment_of(node, "started_at")
                  : "  " + t.paint(colour::warn, "not running") + "\n" +
                        hint_lines(as_hint("start it with: boyd node"), 2, t);
  std::string about = "home " + text_of(node, "home") + "  store " + text_of(node, "store") +
                      "  version " + text_of(node, "version");
  line += "\n  " + wrapped(about, room(t), 2);
  if (const auto sandbox = text_of(node, "sandbox"); running && !sandbox.empty())
    line += "\n  " + wrapped("sandbox " + sandbox, room(t), 2);
  return line + "\n";
}

/// One of the lines gives this cause already.
bool is_told(const std::vector<std::string>& lines, const std::string& cause) {
  const auto text = one_line(cause, problem_characters);
  return std::ranges::any_of(
      lines, [&](const std::string& line) { return line.find(text) != std::string::npos; });
}

/// A part that is parked or silent has a line of its own, which says what to do.
bool is_absent(const json& body, const std::string& name) {
  const auto all = rows_of(body, "actors");
  return std::ranges::any_of(all, [&](const json& a) {
    const auto state = text_of(a, "state");
    return text_of(a, "name") == name && (state == "parked" || state == "silent");
  });
}

/// Parts that are not well, those with one cause in one line: a database that is away is felt by
/// many.
void add_health(const json& body, std::vector<std::string>& lines) {
  std::vector<std::pair<std::string, std::string>> causes; ///< cause, names
  for (const auto& h : rows_of(body, "health")) {
    const auto name = text_of(h, "name");
    const auto reason = text_of(h, "reason");
    if (auto notice = text_of(h, "notice"); !notice.empty())
      lines.push_back(one_line(name + ": " + notice, problem_characters));
    if (flag_in(h, "ok", true) || is_absent(body, name) ||
        (!reason.empty() && is_told(lines, reason)))
      continue;
    const auto known = std::ranges::find(causes, reason, [](const auto& c) { return c.first; });
    if (known == causes.end())
      causes.emplace_back(reason, name);
    else
      known->second += ", " + name;
  }
  for (const auto& [cause, names] : causes)
    lines.push_back(one_line(names + (names.find(", ") == std::string::npos ? " is" : " are") +
                                 " degraded: " + cause,
                             problem_characters));
}

/// What waits where nobody runs it; empty: nothing does.
std::string left_waiting(const json& body) {
  const auto waiting = number_of(part_of(body, "queue"), "pending");
  if (waiting == 0 || flag_in(part_of(body, "node"), "running"))
    return {};
  return std::to_string(waiting) + (waiting == 1 ? " run waits" : " runs wait") +
         ", and no node is running: boyd node";
}

/// What a person should look at, most important first.
std::vector<std::string> attention(const json& body) {
  std::vector<std::string> lines;
  const auto add = [&](std::string text) { lines.push_back(one_line(text, problem_characters)); };
  for (const auto& p : rows_of(body, "problems"))
    if (p.is_string())
      add(p.get<std::string>());
  for (const auto& key : rows_of(part_of(body, "node"), "restart_needed"))
    if (key.is_string())
      add(key.get<std::string>() + " has changed; restart the node to apply it");
  if (auto waiting = left_waiting(body); !waiting.empty())
    add(std::move(waiting));
  for (const auto& f : rows_of(body, "faults"))
    if (flag_in(f, "armed"))
      add("active fault at " + text_of(f, "point") + ": " + text_of(f, "action") + ", occurred " +
          text_of(f, "strikes") + " times, set by " + text_of(f, "by") +
          "; to remove it: boyd chaos clear");
  add_health(body, lines);
  for (const auto& a : rows_of(body, "actors"))
    if (text_of(a, "state") == "restarting")
      add(text_of(a, "name") + " is restarting: " + text_of(a, "last_error"));
    else if (text_of(a, "state") == "parked")
      add(text_of(a, "name") + " is parked: " + text_of(a, "reason") +
          "; restart it with: boyd actors unpark " + text_of(a, "name"));
    else if (text_of(a, "state") == "silent")
      add(text_of(a, "name") + " does not respond: " + text_of(a, "reason"));
  for (const auto& k : rows_of(body, "kernels")) {
    if (auto problem = text_of(k, "problem"); !problem.empty() && !is_told(lines, problem))
      add("kernel " + text_of(k, "kernel_id") + ": " + problem);
    if (auto why = text_of(k, "paused"); !why.empty())
      add("kernel " + text_of(k, "kernel_id") + " is paused: " + why);
  }
  for (const auto& a : rows_of(body, "agents")) {
    const auto name = text_of(a, "kernel_id") + "/" + text_of(a, "agent_id");
    if (auto why = text_of(a, "paused"); !why.empty())
      add("agent " + name + " is paused: " + why);
    if (text_of(a, "last_status") != "failed")
      continue;
    const auto said =
        text_of(a, "last_error").empty() ? text_of(a, "last_summary") : text_of(a, "last_error");
    const auto failure = failure_class_from(text_of(a, "last_failure_class"));
    add("agent " + name + " failed" + after_failed(said, failure ? *failure : failure_class::none));
  }
  return lines;
}

/// The node could not read its store: what is not there is not known.
bool store_is_silent(const json& body) {
  const auto queue = part_of(body, "queue");
  return queue.contains("pending") && queue["pending"].is_null();
}

std::string kernels_table(const json& body, const terminal& t) {
  const std::string none = store_is_silent(body) ? unknown : "-";
  table rows({"KERNEL", "PHASE", "LAST CYCLE", "STATUS", "DONE", "NEXT"});
  for (const auto& k : rows_of(body, "kernels")) {
    const auto latest = part_of(k, "latest");
    const auto status = status_of_cycle(latest);
    rows.add_cells(
        {text_of(k, "kernel_id"),
         text_of(k, "phase"),
         latest.empty() ? none : brief_moment_of(latest, "started_at", t),
         {status.empty() ? none : status, colour_of_status(status)},
         latest.empty() ? none
                        : text_of(latest, "succeeded") + " of " + text_of(latest, "dispatched"),
         flag_in(part_of(body, "node"), "running") ? brief_moment_of(k, "next_slot", t) : "-"});
  }
  return rows.render(t, "  ");
}

std::string agents_table(const json& body, const terminal& t) {
  const std::string none = store_is_silent(body) ? unknown : "-";
  table rows({"AGENT", "ACTIVE", "LAST", "FINISHED", "SUMMARY"});
  rows.drop_when_narrow({"ACTIVE"});
  for (const auto& a : rows_of(body, "agents")) {
    const auto last = text_of(a, "last_status");
    const bool failed = last == "failed" && !text_of(a, "last_error").empty();
    std::string said = failed ? text_of(a, "last_error") : text_of(a, "last_summary");
    if (last == "pending")
      said.clear(); // an earlier attempt's
    if (!flag_in(a, "enabled", true))
      said = "disabled";
    rows.add_cells({text_of(a, "kernel_id") + "/" + text_of(a, "agent_id"),
                    text_of(a, "running") + "/" + text_of(a, "limit"),
                    {last.empty() ? none : last, colour_of_status(last)},
                    last.empty() ? none : brief_moment_of(a, "last_finished_at", t),
                    said});
  }
  return rows.render(t, "  ");
}

/// Budgets of today of which something is used; the node's stands there always.
std::string budgets_table(const json& body, const terminal& t) {
  table rows({"BUDGET TODAY", "TOKENS", "OF", "DOLLARS", "OF", "USED"});
  const auto limit = [](const json& part) {
    const auto text = text_of(part, "limit");
    return text == "0" || text == "0.00" ? std::string("-") : text;
  };
  for (const auto& b : rows_of(body, "budgets")) {
    const bool node = text_of(b, "scope") == "node";
    const auto tokens = part_of(b, "tokens");
    const auto cost = part_of(b, "cost");
    if (!node && number_of(tokens, "used") == 0 && text_of(cost, "used") == "0.00")
      continue;
    const auto percent = number_of(b, "percent");
    rows.add_cells({node ? "this node" : text_of(b, "kernel_id") + "/" + text_of(b, "agent_id"),
                    text_of(tokens, "used"),
                    limit(tokens),
                    text_of(cost, "used"),
                    limit(cost),
                    {std::to_string(percent) + " %", percent >= whole     ? colour::bad
                                                     : percent >= warning ? colour::warn
                                                                          : colour::none}});
  }
  return rows.rows() == 0 ? std::string{} : rows.render(t, "  ");
}

/// What calls hold that have not reported how much they used; nothing when none does.
std::string reservations_line(const json& body) {
  const auto held = part_of(body, "reservations");
  const auto open = number_of(held, "open");
  if (open == 0)
    return {};
  return "  " + std::to_string(open) + (open == 1 ? " reservation holds " : " reservations hold ") +
         text_of(held, "tokens") + " tokens and " + text_of(held, "cost") +
         " dollars of today's budget, the oldest since " + moment_of(held, "since") +
         as_hint("; list them: boyd cost\n");
}

/// Who shares the database with this node; nothing when nobody does. The database forgets no node:
/// those that are long gone are only counted.
std::string nodes_table(const json& body, const terminal& t) {
  const auto own = text_of(part_of(body, "node"), "node_id");
  const auto now = local_ports().clock->now();
  std::size_t gone = 0;
  table rows({"NODE", "HOST", "PID", "LAST SEEN"});
  for (const auto& n : rows_of(body, "nodes")) {
    const auto id = text_of(n, "node_id");
    const auto seen = parse_rfc3339(text_of(n, "last_seen"));
    if (id != own && seen && now - *seen > long_gone)
      ++gone;
    else
      rows.add_cells({id == own ? id + " (this one)" : id, text_of(n, "host"), text_of(n, "pid"),
                      brief_moment_of(n, "last_seen", t)});
  }
  if (rows.rows() + gone < 2)
    return {};
  return rows.render(t, "  ") +
         (gone == 0 ? ""
                    : "  and " + std::to_string(gone) +
                          as_hint(" not seen for a day (listed by: boyd status --json)\n"));
}

/// A database that stands in the home has no other nodes but those that the home had before: it was
/// restored or copied, and has got an id of its own since.
bool is_alone(const json& body) {
  return text_of(part_of(body, "node"), "store") == "sqlite";
}

std::string earlier_nodes(const json& body, const terminal& t) {
  const auto own = text_of(part_of(body, "node"), "node_id");
  std::string out;
  for (const auto& n : rows_of(body, "nodes"))
    if (const auto id = text_of(n, "node_id"); id != own)
      out += wrapped("  an earlier node, last seen " + moment_of(n, "last_seen") + ": " + id,
                     t.width, 4) +
             "\n";
  return out;
}

std::string queue_line(const json& body, const terminal& t) {
  const auto queue = part_of(body, "queue");
  std::string line = "queue";
  for (const char* key : {"pending", "running", "done", "failed", "cancelled"})
    line += "  " + std::string(key) + " " +
            (store_is_silent(body) ? unknown : std::to_string(number_of(queue, key)));
  const auto permits = part_of(body, "permits");
  line += "  active " + text_of(permits, "in_use") + " of " + text_of(permits, "limit");
  return wrapped(line, t.width, 2) + "\n";
}

std::string actors_table(const json& body, const terminal& t) {
  table rows({"PART", "STATE", "RESTARTS", "LAST ERROR"});
  for (const auto& a : rows_of(body, "actors")) {
    const auto depth = static_cast<std::size_t>(std::max<std::int64_t>(number_of(a, "depth"), 0));
    const auto state = text_of(a, "state");
    rows.add_cells(
        {std::string(2 * depth, ' ') + text_of(a, "name"),
         {state, colour_of_status(state)},
         text_of(a, "restarts"),
         text_of(a, "reason").empty() ? text_of(a, "last_error") : text_of(a, "reason")});
  }
  return rows.render(t, "  ");
}

bool are_well(const json& body) {
  return std::ranges::all_of(rows_of(body, "actors"),
                             [](const json& a) {
                               const auto state = text_of(a, "state");
                               return state == "running" || state == "starting" ||
                                      state == "stopped";
                             }) &&
         std::ranges::all_of(rows_of(body, "health"),
                             [](const json& h) { return flag_in(h, "ok", true); });
}

/// `parts`: also when all of them are well. `copy`: as client::copy_problem.
std::string render(const json& body, const terminal& t, bool parts,
                   const std::optional<error>& copy = {}) {
  std::string out = node_line(body, t);
  const auto lines = attention(body);
  if (lines.empty() && !copy)
    out += t.paint(colour::good, "No problems.") + "\n";
  else
    out += t.paint(colour::warn, "needs attention") + "\n";
  if (copy)
    out += wrapped(std::string(bullet) + printable(copy->what), t.width, bullet.size()) + "\n" +
           hint_lines("next: " + as_hint(printable(copy->next)), bullet.size(), t) + "\n";
  for (const auto& line : lines) {
    // What an agent says stays as it is.
    const auto told = line.starts_with("agent ") ? line : as_hint(line);
    out += wrapped(std::string(bullet) + in_user_zone(told), t.width, bullet.size()) + "\n";
  }
  out += "\n" + t.paint(colour::bold, "kernels") + "\n" + kernels_table(body, t);
  out += "\n" + t.paint(colour::bold, "agents") + "\n" + agents_table(body, t);
  if (const auto budgets = budgets_table(body, t) + reservations_line(body); !budgets.empty())
    out += "\n" + t.paint(colour::bold, "budgets") + "\n" + budgets;
  const auto nodes = !is_alone(body) ? nodes_table(body, t)
                     : parts         ? earlier_nodes(body, t)
                                     : std::string();
  if (!nodes.empty())
    out += "\n" + t.paint(colour::bold, "nodes of this database") + "\n" + nodes;
  out += "\n" + queue_line(body, t);
  if (!parts && are_well(body))
    return out;
  return out + "\n" + t.paint(colour::bold, "parts") + "\n" + actors_table(body, t);
}

result<std::string> ask_status(client& c) {
  return c.ask(get("/api/v1/status"));
}

void show(const std::string& body, const arguments& args, const std::optional<error>& copy = {}) {
  if (!args.json)
    return print(render(object_of(body), terminal_of_stdout(args), args.parts, copy));
  if (!copy)
    return print(body + "\n");
  auto all = object_of(body);
  auto problems = rows_of(all, "problems");
  problems.insert(problems.begin(), copy->what);
  all["problems"] = std::move(problems);
  print(all.dump(-1, ' ', false, json::error_handler_t::replace) + "\n");
}

/// Whether an event came since the last look.
struct change_flag {
  std::mutex mutex;
  bool changed = false;

  void set() {
    const std::lock_guard lock(mutex);
    changed = true;
  }
  bool take() {
    const std::lock_guard lock(mutex);
    return std::exchange(changed, false);
  }
};

/// Where the status is shown again and again: a terminal's screen, or one after the other.
class watch_view {
 public:
  explicit watch_view(const arguments& args) : args_(args) {
    if (!args.json && terminal_of_stdout(args).is_tty)
      screen_.emplace();
  }

  bool is_quit() { return screen_ && screen_->wants_end(); }

  void show(const std::string& body) {
    if (!screen_)
      return app::show(body, args_);
    const auto t = terminal_of_stdout(args_);
    text_ = render(object_of(body), t, args_.parts);
    screen_->draw(text_, "q to quit", t);
  }

  /// The node does not answer; it is told once, or as long as the screen shows the last answer.
  void miss(error why) {
    if (screen_)
      return screen_->draw(text_, why.what + "; waiting for the node (q to quit)",
                           terminal_of_stdout(args_));
    why.next = "the display continues when the node answers; Ctrl-C to quit";
    report(std::move(why), args_.json);
  }

 private:
  const arguments& args_;
  std::optional<full_screen> screen_;
  std::string text_;
};

/// Until a signal or q, over restarts of the node, too.
int watch(client& c, const arguments& args) {
  if (!c.online())
    return report({errc::not_found,
                   "no node is running, so there is nothing to watch",
                   {},
                   "start the node: boyd node"},
                  args.json);
  const auto flag = std::make_shared<change_flag>();
  // Before the first question: what happens behind its answer is not missed.
  c.watch([flag](std::string_view) { flag->set(); }, [flag] { flag->set(); });
  auto first = ask_status(c);
  if (!first)
    return first.error().code == errc::cancelled ? exit_code::ok : report(first.error(), args.json);
  watch_view view(args);
  view.show(*first);
  bool heard = true; // the latest answer was one
  while (true) {
    for (milliseconds waited{0}; waited < redraw_interval; waited += redraw_pause) {
      if (!output_has_reader() || !c.pause(redraw_pause) || view.is_quit())
        return exit_code::ok;
      if (flag->take())
        break;
    }
    auto body = ask_status(c);
    if (!body && body.error().code == errc::cancelled)
      return exit_code::ok;
    if (body)
      view.show(*body);
    else if (heard)
      view.miss(std::move(body.error()));
    heard = body.has_value();
  }
}

} // namespace

int run_status(const arguments& args) {
  signal_watch signals;
  auto c = open_client(args, node_mode::answering, signals);
  if (!c)
    return report(c.error(), args.json);
  if (args.watch) {
    const int code = watch(**c, args);
    (*c)->close();
    return code;
  }
  const auto copy = (*c)->copy_problem();
  auto body = ask_status(**c);
  (*c)->close();
  if (!body)
    return report(body.error(), args.json);
  show(*body, args, copy);
  return exit_code::ok;
}

} // namespace boyd::app
