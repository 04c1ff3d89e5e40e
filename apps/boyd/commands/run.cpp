#include "../client.hpp"
#include "../counted.hpp"
#include "../exit_codes.hpp"
#include "../json_view.hpp"
#include "../run_view.hpp"
#include "../terminal.hpp"
#include "../unread_of_run.hpp"
#include "boyd/core/text.hpp"
#include "commands.hpp"
#include "cycle_watch.hpp"
#include "other_work.hpp"

#include <atomic>
#include <cstdio>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace boyd::app {

namespace {

/// An error ends with what to do: it is not cut short of that.
constexpr std::size_t error_characters = 2000;

/// A node that stops lets its runs end first, and holds its home until then: so many times that is
/// waited for (client.hpp: a few seconds each).
constexpr int home_tries = 20;

/// One run of one agent, from the request to its end.
class one_run {
 public:
  /// `others`: what a node in this process runs besides.
  one_run(client& c, const arguments& args, signal_watch& signals,
          std::optional<other_work>& others)
      : client_(c), args_(args), signals_(signals), others_(others),
        shown_(args, [this](const progress::output& o) { show(o); }) {}

  int run() {
    client_.watch([this](std::string_view line) { shown_.take(line); }, [] {});
    auto held = what_holds(client_, args_.agent, args_.kernel);
    if (held && others_) {
      // It may be a waiting run of this agent that begins here.
      finish_others();
      held = what_holds(client_, args_.agent, args_.kernel);
    }
    if (held) {
      tell_others();
      return report(std::move(*held), args_.json);
    }
    const json body{{"kernel", args_.kernel}, {"message", message()}};
    const auto asked = answer_of(
        client_.call(post("/api/v1/agents/" + args_.agent + "/run", body.dump()), question_limit));
    if (!asked)
      return report(asked.error(), args_.json);
    if (!asked->value("admitted", false))
      return report_refusal(*asked, args_);
    cycle_id_ = text_of(*asked, "cycle_id");
    if (const auto why = text_of(*asked, "reason"); !why.empty())
      shown_.say(why + "; this run begins when that cycle makes way for it");
    shown_.follow(cycle_id_);
    return await_end();
  }

 private:
  std::string message() const {
    std::string all;
    for (const auto& word : args_.message)
      all += (all.empty() ? "" : " ") + word;
    return sanitize_utf8(all);
  }

  /// The trigger's answer, also where it is a refusal (status 409).
  static result<json> answer_of(result<api_response> answer) {
    if (!answer)
      return fail(std::move(answer.error()));
    auto object = json::parse(answer->body, nullptr, false);
    if (object.is_object() && object.contains("admitted"))
      return object;
    auto failed = body_of(*answer);
    return failed ? fail(errc::parse_error, "unreadable answer from the node")
                  : fail(std::move(failed.error()));
  }

  void show(const progress::output& o) {
    has_output_ = true;
    if (!args_.json || o.is_error)
      std::fwrite(o.text.data(), 1, o.text.size(), o.is_error ? stderr : stdout);
    if (!args_.json && !o.is_error)
      std::fflush(stdout);
  }

  int await_end() {
    const auto body =
        shown_.waits_for([&] { return await_record(client_, cycle_id_, args_.kernel); });
    if (!body && body.error().code == errc::cancelled)
      return report_interruption(client_, cycle_id_);
    if (!body)
      return client_.online() ? await_home({}, body.error()) : report(body.error(), args_.json);
    const auto cycle = object_of(*body);
    for (const auto& a : rows_of(cycle, "agents"))
      if (text_of(a, "agent_id") == args_.agent)
        return await_dispatch(text_of(a, "dispatch_id"));
    auto why = why_not_run(client_, cycle, args_.agent, args_.kernel, cycle_id_);
    shown_.wait_for_end(last_event_limit);
    finish_others();
    client_.close();
    tell_others();
    return report(std::move(why), args_.json);
  }

  int await_dispatch(const std::string& id) {
    // The cycle may be recorded before its run has ended.
    const auto row = shown_.waits_for([&] { return await_row(client_, id); });
    if (!row && row.error().code == errc::cancelled)
      return report_interruption(client_, cycle_id_);
    if (!row && client_.online())
      return await_home(id, row.error());
    return row ? tell_end(*row) : report(row.error(), args_.json);
  }

  /// The node has gone, or does not answer: what its home says of the run, or of that of the cycle.
  int await_home(const std::string& id, const error& why) {
    client_.close();
    const auto row = shown_.waits_for([&] { return read_home(id); });
    if (!row && row.error().code == errc::cancelled)
      return report_interruption(client_, cycle_id_);
    if (!row)
      return report(row.error().code == errc::not_found ? why : row.error(), args_.json);
    const auto status = text_of(*row, "status");
    if (status == "pending" || status == "running")
      return report({errc::actor_down,
                     "the node has stopped before run " + short_id_of(*row) + " of " +
                         agent_of(*row) + " has ended",
                     {},
                     "the next node goes on with it: boyd node"},
                    args_.json);
    node_has_stopped_ = true;
    return tell_end(*row);
  }

  /// From whoever answers for the home now. Errors: `not_found`: no such run; `cancelled`: this
  /// command was interrupted.
  result<json> read_home(const std::string& id) {
    for (int tries = 1;; ++tries) {
      const auto next = open_client(args_, node_mode::answering, signals_);
      if (!next && next.error().code == errc::locked && tries < home_tries)
        continue;
      if (!next)
        return fail(next.error());
      return row_in(**next, id);
    }
  }

  result<json> row_in(client& c, std::string id) const {
    if (id.empty()) {
      const auto body = c.ask(get("/api/v1/dispatches", {{"cycle", cycle_id_}}));
      if (!body)
        return fail(body.error());
      for (const auto& d : rows_of(object_of(*body), "items"))
        if (text_of(d, "agent_id") == args_.agent)
          id = text_of(d, "dispatch_id");
      if (id.empty())
        return fail(errc::not_found, "no run of this cycle", cycle_id_);
    }
    if (c.online())
      return await_row(c, id);
    const auto body = c.ask(get("/api/v1/dispatches/" + id));
    if (!body)
      return fail(body.error());
    return part_of(object_of(*body), "dispatch");
  }

  /// What this process runs besides ends, and is told; nobody else would run it.
  void finish_others() {
    if (!others_)
      return;
    const auto ended = shown_.waits_for(
        [&] { return others_->finish([this](const std::string& text) { shown_.say(text); }); });
    if (!ended)
      shown_.say("other runs may still be unfinished: " + to_string(ended.error()));
  }

  /// "also ran 1 waiting run: 1f6209a0 of default/disk: done".
  void tell_others() {
    const auto rows = others_ ? others_->rows() : json::array();
    std::string all;
    for (const auto& d : rows)
      all += (all.empty() ? "" : ", ") + short_id_of(d) + " of " + agent_of(d) + ": " +
             text_of(d, "status");
    if (!all.empty())
      shown_.say("also ran " + counted(rows.size(), "waiting run") + ": " + all);
  }

  int tell_end(const json& row) {
    if (!node_has_stopped_)
      shown_.wait_for_end(last_event_limit);
    finish_others();
    const bool is_told = !args_.json && !node_has_stopped_;
    const auto unread = is_told ? unread_of_run(client_, row) : std::vector<std::string>{};
    client_.close();
    if (args_.json) {
      json body{{"schema", "boyd.run/1"}, {"dispatch", row}};
      if (auto also = others_ ? others_->rows() : json::array(); !also.empty())
        body["also_ran"] = std::move(also);
      print(body.dump(-1, ' ', false, json::error_handler_t::replace) + "\n");
      return exit_of(row);
    }
    tell_others();
    if (auto output = text_of(row, "output"); !has_output_ && !output.empty())
      print(output + (output.ends_with('\n') ? "" : "\n"));
    for (const auto& each : unread)
      shown_.say("! " + each);
    const auto status = text_of(row, "status");
    if (status == "done" && args_.quiet)
      return exit_of(row);
    shown_.say("run " + short_id_of(row) + " of " + agent_of(row) + ": " + status +
               after_status_of(row, error_characters) +
               (node_has_stopped_ ? " (the node has stopped)" : ""));
    return exit_of(row);
  }

  /// The program's own, where it has one and failed.
  static int exit_of(const json& row) {
    if (text_of(row, "status") == "done")
      return exit_code::ok;
    const auto code = number_of(row, "exit_code");
    constexpr std::int64_t last = 255;
    return code > 0 && code <= last ? static_cast<int>(code) : exit_code::failure;
  }

  client& client_;
  const arguments& args_;
  signal_watch& signals_;
  std::optional<other_work>& others_;
  std::string cycle_id_;
  bool node_has_stopped_ = false;
  std::atomic<bool> has_output_ = false;
  progress shown_; ///< last: it calls the others
};

} // namespace

int run_agent(const arguments& args) {
  signal_watch signals;
  std::optional<other_work> others;
  auto c =
      open_client(args, node_mode::one_cycle, signals,
                  [&](client& own, const std::string& node_id) { others.emplace(own, node_id); });
  if (!c)
    return report(c.error(), args.json);
  const int code = one_run(**c, args, signals, others).run();
  (*c)->close();
  return code;
}

} // namespace boyd::app
