#include "../client.hpp"
#include "../exit_codes.hpp"
#include "../hints.hpp"
#include "../json_view.hpp"
#include "../run_view.hpp"
#include "../terminal.hpp"
#include "../time_view.hpp"
#include "adapters/posix/home_lock.hpp"
#include "asking.hpp"
#include "boyd/core/text.hpp"
#include "boyd/core/verdict.hpp"
#include "commands.hpp"

#include <algorithm>
#include <iostream>
#include <string>
#include <unistd.h>
#include <utility>
#include <vector>

/// Verbs that ask once and print: dispatches, state, why, pause, resume.
namespace boyd::app {

namespace {

constexpr std::size_t id_shown = 13;
/// Of one member of a dispatch.
constexpr std::size_t most_characters = 4000;

std::string limit_text(const arguments& args) {
  return args.limit == 0 ? std::string{} : std::to_string(args.limit);
}

/// The same question about the next page, to be typed as it is.
std::string next_page(const arguments& args, const std::string& before) {
  std::string line = "boyd";
  const auto add = [&](const char* option, const std::string& value) {
    if (!value.empty())
      line += std::string(" ") + option + " " + shell_word(value);
  };
  add("--home", args.home);
  add("--config", args.config);
  line += " dispatches ls";
  add("--kernel", args.kernel);
  add("--agent", args.agent);
  add("--cycle", args.cycle);
  add("--status", args.status);
  add("--since", args.since);
  add("--limit", limit_text(args));
  add("--before", before);
  return line;
}

/// Rows of other kernels than those of the configuration are there after one was taken out, or in a
/// database that nodes share.
bool has_several_kernels(const json& body) {
  if (rows_of(body, "kernels").size() > 1)
    return true;
  const auto items = rows_of(body, "items");
  return std::ranges::any_of(items, [&](const json& d) {
    return text_of(d, "kernel_id") != text_of(items.front(), "kernel_id");
  });
}

void render_dispatches(const json& body, const terminal& t, const arguments& args) {
  const bool filtered =
      !(args.kernel + args.agent + args.cycle + args.status + args.since + args.before).empty();
  const bool several = has_several_kernels(body);
  const auto items = rows_of(body, "items");
  const bool tries =
      std::ranges::any_of(items, [](const json& d) { return number_of(d, "attempt") > 1; });
  std::vector<std::string> heads{"RUN", "AGENT", "STATUS", "CREATED", "SUMMARY"};
  if (tries)
    heads.insert(heads.begin() + 3, "ATTEMPT");
  if (several)
    heads.insert(heads.begin() + 1, "KERNEL");
  table rows(std::move(heads));
  rows.drop_when_narrow({"ATTEMPT", "KERNEL"});
  for (const auto& d : items) {
    const auto status = text_of(d, "status");
    const auto failed = status == "failed" && !text_of(d, "error").empty();
    const auto id = text_of(d, "dispatch_id");
    std::vector<table::cell> cells{t.has_width() ? short_id(id) : id,
                                   text_of(d, "agent_id"),
                                   {status, colour_of_status(status)},
                                   brief_moment_of(d, "created_at", t),
                                   failed                ? text_of(d, "error")
                                   : status == "pending" ? std::string() // an earlier attempt's
                                                         : text_of(d, "summary")};
    if (tries)
      cells.insert(cells.begin() + 3, number_of(d, "attempt") < 2 ? std::string()
                                                                  : text_of(d, "attempt") + "/" +
                                                                        text_of(d, "max_attempts"));
    if (several)
      cells.insert(cells.begin() + 1, text_of(d, "kernel_id"));
    rows.add_cells(std::move(cells));
  }
  if (rows.rows() == 0)
    print(filtered ? "No matching runs.\n"
                   : hint_lines(as_hint("No runs yet; run a cycle: boyd cycle"), 0, t) + "\n");
  else
    print(rows.render(t));
  if (auto next = text_of(body, "next_before"); !next.empty())
    print(t.paint(colour::faint, hint_lines("more: " + next_page(args, next), 0, t)) + "\n");
}

/// Earlier runs of the dispatch, each by its fence: the other count begins anew after a retry.
void render_earlier(const json& d, const terminal& t) {
  table rows({"ATTEMPT", "STARTED", "TOOK", "NODE", "END", "SUMMARY"});
  rows.drop_when_narrow({"NODE"});
  for (const auto& e : rows_of(d, "attempts")) {
    const auto error = text_of(e, "error");
    rows.add({text_of(e, "fence"), brief_moment_of(e, "started_at", t),
              time_between(e, "started_at", "ended_at"), text_of(e, "node").substr(0, id_shown),
              end_of_run(e), error.empty() ? text_of(e, "summary") : error});
  }
  if (rows.rows() > 0)
    print("\n" + t.paint(colour::bold, "earlier attempts") + "\n" + rows.render(t) +
          t.paint(colour::faint, hint_lines(as_hint("output of an earlier attempt: boyd logs ") +
                                                short_id_of(d) + " --attempt N",
                                            0, t)) +
          "\n");
}

/// The output of one earlier run.
int print_run(const arguments& args, const json& d, const terminal& t) {
  json run;
  if (const auto found = find_run(d, args.run, run); !found)
    return report(found.error(), args.json);
  if (args.json) {
    run["schema"] = "boyd.dispatch_run/1";
    print(run.dump(-1, ' ', false, json::error_handler_t::replace) + "\n");
    return exit_code::ok;
  }
  const auto text = text_of(run, "output");
  print(with_line_break(t.is_tty ? printable(text) : text));
  if (const auto cut = number_of(run, "output_cut"); cut > 0)
    print("(" + std::to_string(cut) + " more bytes were not stored)\n");
  return exit_code::ok;
}

/// `boyd dispatches show ID --attempt N`.
int show_run(const arguments& args, const std::string& base) {
  auto body = ask_once(args, get(base + "/" + args.id, {{"kernel", args.kernel}}));
  if (!body)
    return report(body.error(), args.json);
  return print_run(args, part_of(object_of(*body), "dispatch"), terminal_of_stdout(args));
}

/// Why not all of the attempts were made that a failed run may have; empty: all were.
std::string attempts_of(const json& d) {
  const auto of = failure_class_from(text_of(d, "failure_class"));
  if (text_of(d, "status") != "failed" || !of || *of == failure_class::none || is_retryable(*of) ||
      number_of(d, "attempt") >= number_of(d, "max_attempts"))
    return {};
  return text_of(d, "attempt") + " of at most " + text_of(d, "max_attempts") +
         "; another would fail in the same way, so none is made by itself";
}

/// `details`: what matters to somebody who looks into the node as well.
void render_dispatch(const json& body, const terminal& t, bool details) {
  const auto d = part_of(body, "dispatch");
  const auto line = [&](const char* label, const std::string& value) {
    const std::string_view name(label);
    if (!value.empty() && value != "-")
      print(t.paint(colour::faint, name) +
            wrapped(one_line(value, most_characters), t.width - name.size(), name.size()) + "\n");
  };
  line("run       ", text_of(d, "dispatch_id"));
  line("agent     ", text_of(d, "kernel_id") + "/" + text_of(d, "agent_id"));
  line("cycle     ", text_of(d, "cycle_id"));
  line("status    ", text_of(d, "status") + attempt_of(d) + after_status_of(d, most_characters));
  line("attempts  ", attempts_of(d));
  line("result    ", result_of(d));
  line("created   ", moment_of(d, "created_at"));
  line("started   ", moment_of(d, "started_at"));
  line("finished  ", moment_of(d, "finished_at"));
  line("took      ", time_between(d, "started_at", "finished_at"));
  line("used      ", figures_of(d));
  if (text_of(d, "status") == "done")
    line("summary   ", text_of(d, "summary"));
  if (details) {
    line("verdicts  ", "execution " + text_of(d, "execution") + ", claim " + text_of(d, "claim") +
                           ", verification " + text_of(d, "verification") + ", failure class " +
                           text_of(d, "failure_class"));
    line("fence     ", text_of(d, "fence"));
    line("lease     ", text_of(d, "lease_owner"));
    line("exit code ", text_of(d, "exit_code"));
    line("metadata  ", text_of(d, "metadata"));
  }
  for (const char* part : {"prompt", "output"})
    if (const auto text = text_of(d, part); !text.empty())
      print("\n" + t.paint(colour::bold, part) + "\n" + with_line_break(printable(text)));
  if (const auto cut = number_of(d, "output_cut"); cut > 0)
    print("(" + std::to_string(cut) + " more bytes were not stored)\n");
  render_earlier(d, t);
}

void render_transition(const json& body, const terminal&) {
  const auto was = text_of(body, "was");
  const bool retry = text_of(body, "schema").starts_with("boyd.dispatch_retry/");
  std::string said = "nothing to do: already " + was;
  if (text_of(body, "result") == "accepted") {
    const auto done = retry ? "queued again" : was == "running" ? "stopping" : "cancelled";
    said = std::string(done) + " (was " + was + ")";
    if (retry && was == "done")
      said += "; what comes of it replaces the result";
  }
  print(short_id_of(body) + ": " + said + "\n");
}

void render_log(const json& body, const terminal& t) {
  table rows({"COMMIT", "TIME", "SUBJECT", "CYCLE"});
  rows.drop_when_narrow({"CYCLE"}); // the subject has it, too
  for (const auto& c : rows_of(body, "items"))
    rows.add({text_of(c, "hash").substr(0, id_shown), brief_moment_of(c, "time", t),
              text_of(c, "subject"), text_of(part_of(c, "trailers"), "Boyd-Cycle")});
  print(rows.rows() == 0 ? "No commits.\n" : rows.render(t));
}

void render_diff(const json& body, const terminal& t) {
  std::string out;
  const auto diff = text_of(body, "diff"); // split gives views into it
  for (const auto line : split(diff, '\n')) {
    const auto paint = line.rfind("+", 0) == 0   ? colour::good
                       : line.rfind("-", 0) == 0 ? colour::bad
                                                 : colour::none;
    out += t.paint(paint, printable(line)) + "\n";
  }
  while (out.ends_with("\n\n"))
    out.pop_back();
  print(out);
}

void render_why(const json& body, const terminal& t) {
  for (const auto& s : rows_of(body, "sentences"))
    if (s.is_string())
      print(folded(as_hint(printable(in_user_zone(s.get<std::string>()))), t) + "\n");
}

std::string target_of(const json& body) {
  const auto agent = text_of(body, "agent_id");
  const auto kernel = text_of(body, "kernel_id");
  return agent.empty() ? "kernel " + kernel : "agent " + kernel + "/" + agent;
}

} // namespace

result<void> agree(const arguments& args, const std::string& question, const std::string& command) {
  if (args.yes)
    return {};
  const bool can_answer = !args.json && ::isatty(STDIN_FILENO) == 1 && ::isatty(STDERR_FILENO) == 1;
  if (!can_answer && !command.empty())
    return fail(errc::invalid_argument,
                args.json ? "nothing was changed: with --json nobody is asked"
                          : "nothing was changed: there is no terminal to ask on",
                {}, "boyd " + command + " --yes");
  if (!can_answer)
    return fail(errc::invalid_argument, "confirmation required (--yes): " + question, {},
                "add --yes to confirm");
  std::cerr << question << " [y/N]: " << std::flush;
  std::string line;
  std::getline(std::cin, line);
  const auto answer = trim(line);
  if (answer == "y" || answer == "yes")
    return {};
  return fail(errc::cancelled, "nothing changed");
}

int ask_and_print(const arguments& args, const api_request& request, const renderer& render) {
  auto body = ask_once(args, request);
  if (!body)
    return report(body.error(), args.json);
  if (args.json)
    print(*body + "\n");
  else
    render(object_of(*body), terminal_of_stdout(args));
  return exit_code::ok;
}

namespace {

api_request on_dispatch(const arguments& args, const std::string& verb) {
  auto request = post("/api/v1/dispatches/" + args.id + "/" + verb);
  if (!args.kernel.empty())
    request.query["kernel"] = args.kernel;
  return request;
}

/// Where to see what was queued again; nobody may be there to run it.
int retry(const arguments& args) {
  return ask_and_print(args, on_dispatch(args, "retry"), [&](const json& body, const terminal& t) {
    render_transition(body, t);
    const auto where = place_of(args);
    if (!where || text_of(body, "result") != "accepted")
      return;
    const auto owner = adapters::read_home_owner(where->home);
    if (!owner)
      return;
    print_note(*owner ? as_hint("see it with: boyd logs ") + short_id_of(body) + " -f"
                      : as_hint("no node is running; it starts with the next boyd node, boyd cycle "
                                "or boyd run"));
  });
}

} // namespace

int run_dispatches(const arguments& args) {
  const std::string base = "/api/v1/dispatches";
  if (args.verb == "dispatches show" && !args.run.empty())
    return show_run(args, base);
  if (args.verb == "dispatches show")
    return ask_and_print(
        args, get(base + "/" + args.id, {{"kernel", args.kernel}}),
        [&](const json& body, const terminal& t) { render_dispatch(body, t, args.verbose); });
  if (args.verb == "dispatches retry")
    return retry(args);
  if (args.verb == "dispatches cancel")
    return ask_and_print(args, on_dispatch(args, "cancel"), render_transition);
  return ask_and_print(
      args,
      get(base, {{"kernel", args.kernel},
                 {"agent", args.agent},
                 {"cycle", args.cycle},
                 {"status", args.status},
                 {"since", args.since},
                 {"limit", limit_text(args)},
                 {"before", args.before}}),
      [&](const json& body, const terminal& t) { render_dispatches(body, t, args); });
}

int run_state(const arguments& args) {
  if (args.verb == "state log")
    return ask_and_print(
        args,
        get("/api/v1/state/log",
            {{"kernel", args.kernel}, {"limit", limit_text(args)}, {"path", args.path}}),
        render_log);
  if (args.verb == "state diff") {
    // Without points: what the newest commit changed.
    const auto from = args.from.empty() ? std::string("HEAD~1") : args.from;
    const auto to = args.from.empty() ? std::string("HEAD") : args.to;
    return ask_and_print(
        args, get("/api/v1/state/diff", {{"kernel", args.kernel}, {"from", from}, {"to", to}}),
        render_diff);
  }
  return ask_and_print(
      args, get("/api/v1/state", {{"kernel", args.kernel}, {"at", args.at}, {"path", args.path}}),
      [](const json& body, const terminal& t) {
        const auto text = text_of(body, "text");
        print(t.is_tty ? printable(text) : text);
      });
}

int run_why(const arguments& args) {
  const auto question = [&](const std::string& kernel) {
    return get("/api/v1/why", {{"kernel", kernel}, {"agent", args.agent}, {"at", args.at}});
  };
  int code = exit_code::ok;
  const auto asked =
      ask_and_print(args, question(args.kernel), [&](const json& body, const terminal& t) {
        render_why(body, t);
        // About no agent and no kernel: about all kernels.
        const bool about_all = args.kernel.empty() && args.agent.empty();
        for (const auto& k : about_all ? rows_of(body, "kernels") : json::array()) {
          if (!k.is_string() || k.get<std::string>() == text_of(body, "kernel_id"))
            continue;
          const auto other = ask_once(args, question(k.get<std::string>()));
          if (!other)
            code = report(other.error(), args.json);
          else
            render_why(object_of(*other), t);
        }
      });
  return asked == exit_code::ok ? code : asked;
}

int run_pause(const arguments& args) {
  const json body{{"kernel", args.kernel}, {"agent", args.agent}, {"reason", args.reason}};
  return ask_and_print(
      args, post("/api/v1/pause", body.dump(-1, ' ', false, json::error_handler_t::replace)),
      [](const json& answer, const terminal&) {
        const auto reason = text_of(answer, "reason");
        print("paused: " + target_of(answer) +
              (reason.empty() ? "" : " (" + one_line(reason, 200) + ")") + "\n");
      });
}

int run_resume(const arguments& args) {
  const json body{{"kernel", args.kernel}, {"agent", args.agent}};
  return ask_and_print(
      args, post("/api/v1/resume", body.dump(-1, ' ', false, json::error_handler_t::replace)),
      [](const json& answer, const terminal&) {
        const bool cleared = flag_in(answer, "cleared");
        print((cleared ? "resumed: " : "was not paused: ") + target_of(answer) + "\n");
      });
}

} // namespace boyd::app
