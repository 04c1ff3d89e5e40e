#include "../client.hpp"
#include "../counted.hpp"
#include "../exit_codes.hpp"
#include "../hints.hpp"
#include "../json_view.hpp"
#include "../run_view.hpp"
#include "../terminal.hpp"
#include "boyd/core/text.hpp"
#include "boyd/ports/clock.hpp"
#include "commands.hpp"
#include "cycle_watch.hpp"
#include "other_work.hpp"

#include <algorithm>
#include <chrono>
#include <optional>
#include <utility>

namespace boyd::app {

namespace {

/// A part that is just being started refuses, and an outage may be one of a moment; so long the
/// trigger is repeated.
constexpr milliseconds trigger_patience = 5s;
constexpr milliseconds trigger_pause = 250ms;
/// A killed node may leave a cycle in work and others that were admitted; without a node this
/// command is what finishes them. So many at most come before its own.
constexpr int most_left_over = 64;
/// Why the gate refuses while an admitted cycle has not begun yet (actors/kernel/admission.cpp).
constexpr const char* about_to_begin = "a cycle is about to begin";
/// How the kernel marks what it has to tell of earlier cycles (actors/kernel/cycle_core.cpp).
constexpr const char* told_late = "before this cycle: ";
/// An error ends with what to do: it is not cut short of that.
constexpr std::size_t error_characters = 2000;

/// What went wrong after the cycle was recorded (a refused commit, say): the work stands, but not
/// all of it is where it belongs.
bool has_problems(const json& cycle) {
  return !rows_of(cycle, "problems").empty();
}

/// What else this command ran did not all succeed (other_work).
bool has_failed_others(const json& cycle) {
  for (const auto& row : rows_of(cycle, "also_ran"))
    if (text_of(row, "status") != "done")
      return true;
  return false;
}

int exit_of(const json& cycle) {
  const auto status = text_of(cycle, "status");
  if (status == "success")
    return has_problems(cycle) || has_failed_others(cycle) ? exit_code::partial : exit_code::ok;
  return status == "partial_success" ? exit_code::partial : exit_code::failure;
}

void print_others(const json& cycle, const terminal& t) {
  table rows({"ALSO RAN", "RUN", "STATUS", "SUMMARY"});
  for (const auto& d : rows_of(cycle, "also_ran")) {
    const auto status = text_of(d, "status");
    const auto error = text_of(d, "error");
    rows.add_cells({agent_of(d),
                    t.has_width() ? short_id_of(d) : text_of(d, "dispatch_id"),
                    {status, colour_of_status(status)},
                    status == "done" || error.empty() ? text_of(d, "summary") : error});
  }
  if (rows.rows() > 0)
    print(rows.render(t, "  "));
}

void print_cycle(const json& cycle, const terminal& t) {
  const auto status = status_of_cycle(cycle);
  const auto also_ran = rows_of(cycle, "also_ran").size();
  print("cycle " + text_of(cycle, "cycle_id") + ": " + t.paint(colour_of_status(status), status) +
        (t.has_width() ? "\n  " : ", ") + text_of(cycle, "dispatched") + " dispatched, " +
        text_of(cycle, "succeeded") + " succeeded, " + text_of(cycle, "failed") + " failed, " +
        (also_ran == 0 ? "" : counted(also_ran, "other run") + ", ") +
        format_duration(milliseconds{number_of(cycle, "duration_ms")}) + "\n");
  // What an earlier cycle left to be told is none of this one's errors.
  if (auto e = text_of(cycle, "error"); e.starts_with(told_late))
    print(t.paint(colour::warn, one_line(e, error_characters)) + "\n");
  else if (!e.empty())
    print(t.paint(colour::bad, "error: " + one_line(e, error_characters)) + "\n");
  for (const auto& p : rows_of(cycle, "problems"))
    if (p.is_string())
      print(t.paint(colour::bad,
                    "recorded, but " + one_line(p.get<std::string>(), error_characters)) +
            "\n");
  table rows({"AGENT", "STATUS", "SUMMARY"});
  for (const auto& a : rows_of(cycle, "agents")) {
    const auto s = text_of(a, "status");
    rows.add_cells({text_of(a, "agent_id"), {s, colour_of_status(s)}, text_of(a, "summary")});
  }
  if (rows.rows() > 0)
    print(rows.render(t, "  "));
  for (const auto& a : rows_of(cycle, "agents"))
    if (text_of(a, "status") == "failed")
      print(folded("  " + text_of(a, "agent_id") + " failed" + after_status_of(a, error_characters),
                   t) +
            "\n");
  print_others(cycle, t);
}

/// The trigger's answer; a part that is being started is asked again.
result<json> trigger(client& c, const std::string& kernel) {
  const json body{{"kernel", kernel}, {"trigger", "manual"}};
  const auto until = std::chrono::steady_clock::now() + trigger_patience;
  for (int tries = 1;; ++tries) {
    auto answer = c.call(post("/api/v1/cycles", body.dump()), question_limit);
    if (!answer)
      return fail(std::move(answer.error()));
    auto object = json::parse(answer->body, nullptr, false);
    if (object.is_object() && object.contains("admitted")) {
      // A repeat that finds a cycle running follows it: it is most likely the one whose answer a
      // restarting part took with it.
      if (tries > 1 && !text_of(object, "cycle_id").empty())
        object["admitted"] = true;
      return object;
    }
    auto failed = body_of(*answer);
    if (failed)
      return fail(errc::parse_error, "unreadable answer from the node");
    const bool patient = std::chrono::steady_clock::now() < until;
    if (!is_passing(failed.error()) || !patient || !c.pause(trigger_pause))
      return fail(std::move(failed.error()));
  }
}

/// Waits for a cycle that an earlier process left, then at most `late` for its last event; what is
/// told of it: {cycle_id, status}.
result<json> finish_left_over(client& c, const std::string& id, const std::string& kernel,
                              progress& shown, milliseconds late = last_event_limit) {
  shown.say("finishing interrupted cycle " + id + " first");
  shown.follow(id);
  const auto body = shown.waits_for([&] { return await_record(c, id, kernel); });
  if (!body)
    return fail(body.error());
  shown.wait_for_end(late);
  const auto status = text_of(object_of(*body), "status");
  shown.say("interrupted cycle " + id + " ended: " + status);
  return json{{"cycle_id", id}, {"status", status}};
}

/// True: the cycle is still in work, or was when this command's node took the home at `since`. A
/// left one is resumed as soon as the node starts, and may have ended before anybody can ask for
/// it.
bool was_in_work(const json& cycle, utc_time since) {
  if (text_of(cycle, "status") == "running")
    return true;
  const auto begun = parse_rfc3339(text_of(cycle, "started_at"));
  const auto finished = parse_rfc3339(text_of(cycle, "finished_at"));
  return begun && finished && *begun < since && *finished >= since;
}

/// A cycle that an earlier process left.
struct left_cycle {
  std::string id;
  bool ended = false; ///< already; its events may have come before anybody watched
};

/// The cycles of this node other than `id` that the node in this process, which took the home at
/// `since`, found in work; in the order in which they began.
std::vector<left_cycle> left_over(client& c, const arguments& args, const std::string& id,
                                  utc_time since) {
  std::vector<left_cycle> cycles;
  const auto where = place_of(args);
  const auto p = local_ports();
  const auto node = where ? node_id_of(*where, *p.files, *p.clock, *p.random) : fail(where.error());
  const auto body = c.ask(
      get("/api/v1/cycles", {{"kernel", args.kernel}, {"limit", std::to_string(most_left_over)}}));
  if (!node || !body)
    return cycles;
  for (const auto& row : rows_of(object_of(*body), "items"))
    if (text_of(row, "node_id") == *node && text_of(row, "cycle_id") != id &&
        was_in_work(row, since))
      cycles.insert(cycles.begin(),
                    {text_of(row, "cycle_id"), text_of(row, "status") != "running"});
  return cycles;
}

/// The cycle that was asked for, and what came before it.
struct admission {
  json answer;                         ///< of the trigger
  json finished_first = json::array(); ///< {cycle_id, status}
};

/// The trigger's answer. Without a node nobody else finishes what a killed one left: that is waited
/// for where it stands in the way.
result<admission> trigger_behind_leftovers(client& c, const arguments& args, progress& shown) {
  admission out;
  for (int tries = 1;; ++tries) {
    auto answer = trigger(c, args.kernel);
    if (!answer)
      return fail(std::move(answer.error()));
    out.answer = std::move(*answer);
    if (flag_in(out.answer, "admitted") || c.online() || tries >= most_left_over)
      return out;
    const auto running = text_of(out.answer, "cycle_id");
    if (running.empty() && text_of(out.answer, "reason") != about_to_begin)
      return out;
    if (running.empty()) {
      if (!c.pause(trigger_pause))
        return out;
      continue;
    }
    auto ended = finish_left_over(c, running, args.kernel, shown);
    if (!ended)
      return fail(std::move(ended.error()));
    out.finished_first.push_back(std::move(*ended));
  }
}

/// True: the cycle is among those that were waited for already.
bool has_told(const admission& admitted, const std::string& id) {
  return std::any_of(admitted.finished_first.begin(), admitted.finished_first.end(),
                     [&](const json& told) { return text_of(told, "cycle_id") == id; });
}

/// The record of the cycle that was admitted; what an earlier process left ends before it.
result<std::string> await_in_turn(client& c, const arguments& args, progress& shown,
                                  admission& admitted) {
  const auto id = text_of(admitted.answer, "cycle_id");
  if (const auto since = c.home_since())
    for (const auto& first : left_over(c, args, id, *since)) {
      if (has_told(admitted, first.id))
        continue;
      auto ended =
          finish_left_over(c, first.id, args.kernel, shown, first.ended ? 0ms : last_event_limit);
      if (!ended)
        return fail(std::move(ended.error()));
      admitted.finished_first.push_back(std::move(*ended));
    }
  shown.follow(id);
  return shown.waits_for([&] { return await_record(c, id, args.kernel); });
}

/// Without a node (`others`): waits for what else this process runs, and puts it into `cycle`.
/// False: it may not have ended, which is told.
bool finish_others(progress& shown, std::optional<other_work>& others, json& cycle) {
  if (!others)
    return true;
  const auto finished = shown.waits_for(
      [&] { return others->finish([&shown](const std::string& text) { shown.say(text); }); });
  if (auto rows = others->rows(); !rows.empty())
    cycle["also_ran"] = std::move(rows);
  if (!finished)
    shown.say("other runs may still be unfinished: " + to_string(finished.error()) +
              as_hint(" (see: boyd dispatches ls)"));
  return finished.has_value();
}

int run_one(client& c, const arguments& args, progress& shown, std::optional<other_work>& others) {
  c.watch([&shown](std::string_view line) { shown.take(line); }, [] {});
  auto admitted = trigger_behind_leftovers(c, args, shown);
  if (!admitted)
    return report(admitted.error(), args.json);
  if (!flag_in(admitted->answer, "admitted")) {
    json begun;
    finish_others(shown, others, begun);
    return report_refusal(admitted->answer, args);
  }
  const auto id = text_of(admitted->answer, "cycle_id");
  auto body = await_in_turn(c, args, shown, *admitted);
  if (!body && body.error().code == errc::cancelled)
    return report_interruption(c, id);
  if (!body)
    return report(body.error(), args.json);
  auto cycle = json::parse(*body, nullptr, false);
  if (!cycle.is_object())
    return report({errc::parse_error, "the record of the cycle cannot be read", id, {}}, args.json);
  shown.wait_for_end(last_event_limit);
  const bool all_ended = finish_others(shown, others, cycle);
  c.close();
  if (!admitted->finished_first.empty())
    cycle["finished_first"] = std::move(admitted->finished_first);
  if (args.json)
    print(cycle.dump(-1, ' ', false, json::error_handler_t::replace) + "\n");
  else
    print_cycle(cycle, terminal_of_stdout(args));
  const int code = exit_of(cycle);
  return code == exit_code::ok && !all_ended ? exit_code::partial : code;
}

} // namespace

int run_cycle(const arguments& args) {
  signal_watch signals;
  progress shown(args);
  std::optional<other_work> others;
  auto c =
      open_client(args, node_mode::one_cycle, signals,
                  [&](client& own, const std::string& node_id) { others.emplace(own, node_id); });
  if (!c)
    return report(c.error(), args.json);
  const int code = run_one(**c, args, shown, others);
  (*c)->close();
  return code;
}

} // namespace boyd::app
