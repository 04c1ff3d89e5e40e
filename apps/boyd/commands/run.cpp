#include "../client.hpp"
#include "../exit_codes.hpp"
#include "../json_view.hpp"
#include "../run_view.hpp"
#include "../terminal.hpp"
#include "boyd/core/text.hpp"
#include "commands.hpp"
#include "cycle_watch.hpp"

#include <atomic>
#include <cstdio>
#include <string>
#include <utility>

namespace boyd::app {

namespace {

/// An error ends with what to do: it is not cut short of that.
constexpr std::size_t error_characters = 2000;

/// One run of one agent, from the request to its end.
class one_run {
 public:
  one_run(client& c, const arguments& args)
      : client_(c), args_(args), shown_(args, [this](const progress::output& o) { show(o); }) {}

  int run() {
    client_.watch([this](std::string_view line) { shown_.take(line); }, [] {});
    const json body{{"kernel", args_.kernel}, {"message", message()}};
    const auto asked = answer_of(
        client_.call(post("/api/v1/agents/" + args_.agent + "/run", body.dump()), question_limit));
    if (!asked)
      return report(asked.error(), args_.json);
    if (!asked->value("admitted", false))
      return report_refusal(*asked, args_);
    cycle_id_ = text_of(*asked, "cycle_id");
    if (const auto why = text_of(*asked, "reason"); !why.empty())
      shown_.say(why + "; this run starts afterwards");
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
      return report(body.error(), args_.json);
    const auto cycle = object_of(*body);
    for (const auto& a : rows_of(cycle, "agents"))
      if (text_of(a, "agent_id") == args_.agent)
        return await_dispatch(text_of(a, "dispatch_id"));
    auto why = why_not_run(client_, cycle, args_.agent, args_.kernel, cycle_id_);
    shown_.wait_for_end(last_event_limit);
    client_.close();
    return report(std::move(why), args_.json);
  }

  int await_dispatch(const std::string& id) {
    // The cycle may be recorded before its run has ended.
    const auto row = shown_.waits_for([&] { return await_row(client_, id); });
    if (!row && row.error().code == errc::cancelled)
      return report_interruption(client_, cycle_id_);
    return row ? tell_end(*row) : report(row.error(), args_.json);
  }

  int tell_end(const json& row) {
    shown_.wait_for_end(last_event_limit);
    client_.close();
    if (args_.json) {
      print(json{{"schema", "boyd.run/1"}, {"dispatch", row}}.dump(-1, ' ', false,
                                                                   json::error_handler_t::replace) +
            "\n");
      return exit_of(row);
    }
    if (auto output = text_of(row, "output"); !has_output_ && !output.empty())
      print(output + (output.ends_with('\n') ? "" : "\n"));
    const auto status = text_of(row, "status");
    const auto e = text_of(row, "error");
    if (status == "done" && args_.quiet)
      return exit_of(row);
    shown_.say("run " + short_id_of(row) + " of " + agent_of(row) + ": " + status +
               no_retry_of(row) +
               (status == "done" || e.empty() ? "" : ": " + one_line(e, error_characters)));
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
  std::string cycle_id_;
  std::atomic<bool> has_output_ = false;
  progress shown_; ///< last: it calls the others
};

} // namespace

int run_agent(const arguments& args) {
  signal_watch signals;
  auto c = open_client(args, node_mode::one_cycle, signals);
  if (!c)
    return report(c.error(), args.json);
  const int code = one_run(**c, args).run();
  (*c)->close();
  return code;
}

} // namespace boyd::app
