#include "../client.hpp"
#include "../exit_codes.hpp"
#include "../hints.hpp"
#include "../json_view.hpp"
#include "../run_view.hpp"
#include "../terminal.hpp"
#include "../time_view.hpp"
#include "../unread_of_run.hpp"
#include "asking.hpp"
#include "commands.hpp"
#include "turns.hpp"

#include <algorithm>
#include <cstdio>
#include <string>
#include <string_view>
#include <utility>

/// `boyd logs`: what a run has written and said.
namespace boyd::app {

namespace {

constexpr const char* no_output = "no output";
constexpr milliseconds log_look = 300ms;
/// Begins the standard error in the output of a run that is over.
constexpr std::string_view errors_title = "--- stderr ---\n";
/// So much of what was shown is compared with the whole output, to go on behind it.
constexpr std::size_t compared_bytes = 4096;

/// What was shown of one stream.
struct shown_stream {
  std::string place = "0"; ///< where to read on
  std::string newest;      ///< the last of what was shown
  bool any = false;

  void note(const std::string& text) {
    any = any || !text.empty();
    newest += text;
    if (newest.size() > compared_bytes)
      newest.erase(0, newest.size() - compared_bytes);
  }

  /// What `whole` has behind what was shown.
  std::string_view rest_of(std::string_view whole) const {
    if (!any)
      return whole;
    const auto at = whole.rfind(newest);
    return at == std::string_view::npos ? std::string_view{} : whole.substr(at + newest.size());
  }
};

/// Reads and shows one run, at once or until its end.
class log_reader {
 public:
  log_reader(client& c, const arguments& args)
      : client_(c), args_(args), out_(terminal_of_stdout(args)), err_(terminal_of_stderr(args)) {}

  int run() {
    id_ = args_.id.empty() ? "last" : args_.id;
    for (;;) {
      const auto body = client_.ask(get("/api/v1/dispatches/" + id_ + "/logs", query()));
      if (!body)
        return report(body.error(), args_.json);
      const auto object = object_of(*body);
      if (const auto known = choose_run(part_of(object, "dispatch")); !known)
        return report(known.error(), args_.json);
      if (!show(object, *body))
        return exit_code::ok;
      if (!has_more_ && !client_.pause(log_look))
        return exit_code::failure;
    }
  }

 private:
  /// Whether the run asked for is an earlier one, once. Error: the dispatch has no such run.
  result<void> choose_run(const json& d) {
    if (args_.run.empty() || !fence_.empty())
      return {};
    json found;
    auto known = find_run(d, args_.run, found);
    if (known && found.contains("to"))
      earlier_ = std::move(found);
    return known;
  }

  bool is_earlier() const { return !earlier_.is_null(); }

  std::map<std::string, std::string> query() const {
    std::map<std::string, std::string> q{
        {"kernel", args_.kernel}, {"out", shown_out_.place}, {"err", shown_err_.place}};
    if (args_.turns)
      q["turns"] = turns_place_;
    q["run"] = args_.run;
    return q;
  }

  /// False when all is shown.
  bool show(const json& body, const std::string& text) {
    const auto d = part_of(body, "dispatch");
    const auto turns = part_of(body, "turns");
    const auto live = part_of(body, "live");
    const auto status = text_of(d, "status");
    const bool is_over = status != "pending" && status != "running";
    begin(d);
    has_more_ = flag_in(turns, "more");
    if (args_.json) {
      print_json(body, text);
    } else {
      show_turns(turns);
      if (!is_earlier())
        show_live(live);
    }
    if (has_more_)
      return true;
    if (is_over || is_earlier())
      return end(d);
    if (!args_.follow)
      return leave(d, live);
    if (!client_.online())
      return no_node(d);
    return true;
  }

  void print_json(const json& body, const std::string& text) {
    const auto turns = part_of(body, "turns");
    const auto live = part_of(body, "live");
    const bool news = !was_printed_ || text_of(part_of(body, "dispatch"), "status") != status_ ||
                      !rows_of(turns, "items").empty() ||
                      !text_of(part_of(live, "output"), "text").empty() ||
                      !text_of(part_of(live, "errors"), "text").empty();
    status_ = text_of(part_of(body, "dispatch"), "status");
    was_printed_ = true;
    if (news)
      print(text + "\n");
    step_on(turns, live);
  }

  /// The first answer, or the first of another attempt.
  void begin(const json& d) {
    const auto fence = text_of(d, "fence");
    if (fence == fence_)
      return;
    id_ = text_of(d, "dispatch_id");
    if (!fence_.empty()) {
      shown_out_ = {};
      shown_err_ = {};
      turns_place_ = "0";
      say("attempt " + text_of(d, "attempt") + " of " + text_of(d, "max_attempts") + " begins");
    } else {
      say(is_earlier() ? headline_of_run(d, earlier_) : headline_of(d));
      if (!is_earlier() && !args_.json)
        for (const auto& each : unread_of_run(client_, d))
          say("! " + each);
    }
    fence_ = fence;
  }

  void show_turns(const json& turns) {
    for (const auto& item : rows_of(turns, "items"))
      print(turn_as_text(item, out_));
    has_turns_ = has_turns_ || !rows_of(turns, "items").empty();
    if (turns.contains("next"))
      turns_place_ = text_of(turns, "next");
  }

  void show_live(const json& live) {
    show_part(part_of(live, "output"), shown_out_, stdout);
    show_part(part_of(live, "errors"), shown_err_, stderr);
  }

  void show_part(const json& part, shown_stream& stream, std::FILE* to) {
    if (part.empty())
      return;
    stream.place = text_of(part, "next");
    if (const auto missing = number_of(part, "missing"); missing > 0)
      say(std::to_string(missing) + " earlier bytes were not stored");
    const auto text = text_of(part, "text");
    stream.note(text);
    has_more_ = has_more_ || !text.empty();
    write(text, to);
  }

  void write(std::string_view text, std::FILE* to) const {
    const auto safe = (to == stdout ? out_ : err_).is_tty ? printable(text) : std::string(text);
    if (to == stdout)
      return print(safe);
    std::fwrite(safe.data(), 1, safe.size(), to);
  }

  void step_on(const json& turns, const json& live) {
    if (turns.contains("next"))
      turns_place_ = text_of(turns, "next");
    for (const auto& [key, stream] : {std::pair("output", &shown_out_), {"errors", &shown_err_}})
      if (const auto part = part_of(live, key); !part.empty()) {
        stream->place = text_of(part, "next");
        has_more_ = has_more_ || !text_of(part, "text").empty();
      }
  }

  /// Of a run that is over: what was not shown yet.
  bool end(const json& d) {
    if (args_.json)
      return false;
    if (is_earlier())
      return end_of_earlier();
    const auto output = text_of(d, "output");
    const std::string_view whole = output;
    const auto title = whole.find(errors_title);
    const bool has_errors =
        title != std::string_view::npos && (title == 0 || whole[title - 1] == '\n');
    const auto written = whole.substr(0, has_errors ? title : whole.size());
    if (!has_turns_) {
      write(with_line_break(std::string(shown_out_.rest_of(written))), stdout);
      if (has_errors && shown_err_.any)
        write(with_line_break(
                  std::string(shown_err_.rest_of(whole.substr(title + errors_title.size())))),
              stderr);
      else if (has_errors)
        write(with_line_break(std::string(whole.substr(title))), stdout);
      if (const auto cut = number_of(d, "output_cut"); cut > 0)
        say(std::to_string(cut) + " bytes in the middle were not stored");
      if (output.empty() && !shown_out_.any && !shown_err_.any)
        say(no_output);
    }
    if (args_.turns && !has_turns_)
      say("no conversation recorded: Boyd called no model in this run");
    say(ending_of(d));
    return false;
  }

  bool end_of_earlier() const {
    const auto output = text_of(earlier_, "output");
    if (!has_turns_ && output.empty())
      say(no_output);
    else if (!has_turns_)
      write(with_line_break(output), stdout);
    say(ending_of_run(earlier_));
    return false;
  }

  /// Of a run under way that is not followed.
  bool leave(const json& d, const json& live) {
    if (has_more_ || args_.json)
      return has_more_;
    if (text_of(d, "status") == "pending")
      say("the run has not started yet");
    else if (live.empty() && !args_.turns)
      say(as_hint("no output yet: a chat or an agent CLI answers at the end; see: boyd logs ") +
          short_id_of(d) + " --turns");
    else
      say(as_hint("still running; to follow the output: boyd logs ") + short_id_of(d) + " -f");
    return false;
  }

  bool no_node(const json& d) {
    say("no node is running, so this run does not continue: " + text_of(d, "status") +
        as_hint("; start the node: boyd node"));
    return false;
  }

  void say(const std::string& text) const {
    std::fflush(stdout);
    if (!args_.json)
      print_note(text);
  }

  client& client_;
  const arguments& args_;
  terminal out_;
  terminal err_;
  std::string id_;
  std::string fence_;
  json earlier_; ///< the run to show, if it is not the newest
  std::string status_;
  std::string turns_place_ = "0";
  shown_stream shown_out_;
  shown_stream shown_err_;
  bool has_turns_ = false;
  bool has_more_ = false; ///< the next answer may have some at once
  bool was_printed_ = false;
};

} // namespace

int run_logs(const arguments& args) {
  signal_watch signals;
  auto c = open_client(args, node_mode::answering, signals);
  if (!c)
    return report(c.error(), args.json);
  const int code = log_reader(**c, args).run();
  (*c)->close();
  return code;
}

} // namespace boyd::app
