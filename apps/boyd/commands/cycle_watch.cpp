#include "cycle_watch.hpp"

#include "../exit_codes.hpp"
#include "../hints.hpp"
#include "../run_view.hpp"
#include "../time_view.hpp"
#include "boyd/core/text.hpp"

#include <chrono>
#include <cstdio>
#include <utility>

namespace boyd::app {

namespace {

/// A cycle has its own deadline; this only bounds the wait for it.
constexpr milliseconds cycle_limit = std::chrono::hours{25};
/// A kernel that is restarted in mid-cycle resumes the cycle; so often the question is repeated.
constexpr int repeated_questions = 20;
constexpr milliseconds question_pause = 500ms;
/// Between two looks at a run whose cycle is recorded already.
constexpr milliseconds look_interval = 200ms;
/// What is over within this time needs no lines on a terminal.
constexpr milliseconds brief_cycle = 1s;
/// Events held back until their cycle is the one that is shown.
constexpr std::size_t early_events = 1000;

void write(const std::string& text) {
  std::fwrite(text.data(), 1, text.size(), stderr);
}

/// Nobody listens on the control socket any more, or the connection broke.
bool is_gone(const error& e) {
  return e.code == errc::not_found || e.code == errc::io_error;
}

error stopped_error(const std::string& id) {
  return {errc::actor_down, "the node stopped; the cycle will be resumed at the next start",
          "cycle " + id, "see: boyd status"};
}

} // namespace

void progress::take(std::string_view line) {
  auto event = json::parse(line, nullptr, false);
  if (!event.is_object())
    return;
  const std::lock_guard lock(mutex_);
  if (!cycle_id_.empty() && text_of(event, "cycle_id") == cycle_id_)
    return show(event);
  early_.push_back(std::move(event));
  if (early_.size() > early_events)
    early_.pop_front();
}

void progress::follow(const std::string& cycle_id) {
  const std::lock_guard lock(mutex_);
  cycle_id_ = cycle_id;
  ended_ = false;
  for (auto& event : std::exchange(early_, {}))
    if (text_of(event, "cycle_id") == cycle_id_)
      show(event);
    else
      early_.push_back(std::move(event));
}

void progress::say(const std::string& text) {
  const std::lock_guard lock(mutex_);
  print_line(folded("boyd: " + text, terminal_));
}

void progress::wait_for_end(milliseconds limit) {
  std::unique_lock lock(mutex_);
  changed_.wait_for(lock, limit, [&] { return ended_; });
}

void progress::show(const json& event) {
  const auto phase = text_of(event, "phase");
  if (phase == "output") {
    const auto tell = [&] {
      on_output_({text_of(event, "dispatch_id"), text_of(event, "stream") == "stderr",
                  text_of(event, "text")});
    };
    if (on_output_ && line_)
      line_->beside(tell);
    else if (on_output_)
      tell();
    return;
  }
  const auto agent = text_of(event, "agent_id");
  constexpr std::size_t said_characters = 200;
  auto said = one_line(in_user_zone(text_of(event, "text")), said_characters);
  if (phase == "wait")
    said = as_hint(std::move(said)); // the command that decides an approval
  note(phase, agent, said);
  // Steps of a run come and go on the live line, where there is one.
  if (!is_quiet_ && (phase != "run" || !terminal_.rewrites)) {
    const auto clock = clock_of(event, "at");
    const auto head = clock + " " + phase;
    const auto all = wrapped(head + (agent.empty() ? "" : " " + one_line(agent, 64)) +
                                 (said.empty() ? "" : " " + said),
                             terminal_.width, clock.size() + 1);
    show_line(phase, terminal_.paint(colour::faint, clock) + " " +
                         terminal_.paint(colour::bold, phase) + all.substr(head.size()));
  }
  if (phase == "done") {
    ended_ = true;
    changed_.notify_all();
  }
}

void progress::show_line(const std::string& phase, const std::string& text) {
  const bool is_brief =
      terminal_.rewrites && std::chrono::steady_clock::now() - begun_ < brief_cycle;
  held_.push_back(text);
  // Who waits for a person is told at once.
  if (is_brief && phase != "wait")
    return;
  for (const auto& line : std::exchange(held_, {}))
    print_line(line);
}

void progress::begin_waiting() {
  const std::lock_guard lock(mutex_);
  line_.emplace(terminal_, what_is_waited_for(), begun_);
}

void progress::end_waiting() {
  const std::lock_guard lock(mutex_);
  line_.reset();
}

void progress::print_line(const std::string& text) {
  if (line_)
    line_->beside([&] { write(text + "\n"); });
  else
    write(text + "\n");
}

void progress::note(const std::string& phase, const std::string& agent, const std::string& said) {
  if (phase == "done") {
    phase_.clear();
  } else if (agent.empty()) {
    phase_ = phase + (said.empty() ? "" : ": " + said);
  } else if (phase == "run" || phase == "wait" || said == "dispatched") {
    running_[agent] = said == "dispatched" ? "waits for its turn" : said;
    newest_ = agent;
  } else {
    running_.erase(agent); // skipped, or ended
    phase_ = "recording the results";
  }
  if (line_)
    line_->tell(what_is_waited_for());
}

std::string progress::what_is_waited_for() const {
  if (running_.empty())
    return phase_;
  auto it = running_.find(newest_);
  if (it == running_.end())
    it = running_.begin();
  const auto others = running_.size() - 1;
  return it->first + (others == 0 ? "" : " (and " + std::to_string(others) + " more)") + ": " +
         it->second;
}

bool is_passing(const error& e) {
  return e.code == errc::actor_down || e.code == errc::overloaded ||
         e.code == errc::store_unavailable;
}

result<std::string> await_record(client& c, const std::string& id, const std::string& kernel) {
  for (int tries = 1;; ++tries) {
    auto answer =
        c.call(get("/api/v1/cycles/" + id, {{"kernel", kernel}, {"wait", "1"}}), cycle_limit);
    if (!answer && c.online() && is_gone(answer.error()))
      return fail(stopped_error(id));
    auto body = answer ? body_of(*answer) : result<std::string>(fail(std::move(answer.error())));
    // The node says so while it shuts down; an interruption of this command is no answer.
    if (answer && !body && body.error().code == errc::cancelled)
      return fail(stopped_error(id));
    if (body || !is_passing(body.error()) || tries >= repeated_questions ||
        !c.pause(question_pause))
      return body;
  }
}

result<json> await_row(client& c, const std::string& id) {
  for (;;) {
    const auto body = c.ask(get("/api/v1/dispatches/" + id));
    if (!body && !is_passing(body.error()))
      return fail(body.error());
    auto row = body ? part_of(object_of(*body), "dispatch") : json::object();
    const auto status = text_of(row, "status");
    if (body && status != "pending" && status != "running")
      return row;
    if (!c.pause(look_interval))
      return fail(errc::cancelled, "interrupted");
  }
}

std::optional<error> what_holds(client& c, const std::string& agent, const std::string& kernel) {
  const auto body = c.ask(get("/api/v1/why", {{"kernel", kernel}, {"agent", agent}}));
  if (!body)
    return std::nullopt;
  const auto why = object_of(*body);
  const auto of = agent + (kernel.empty() ? "" : " --kernel " + kernel);
  const auto held = [&](const std::string& what, const std::string& next) {
    return error{errc::locked, agent + " did not run: it is " + what, {}, next};
  };
  constexpr std::size_t reason_characters = 200;
  for (const auto& p : rows_of(why, "pauses"))
    if (text_of(p, "agent_id") == agent) {
      const auto reason = text_of(p, "reason");
      return held("paused" +
                      (reason.empty() ? "" : " (" + one_line(reason, reason_characters) + ")"),
                  "boyd resume " + of);
    }
  const auto newest =
      c.ask(get("/api/v1/dispatches",
                {{"kernel", text_of(why, "kernel_id")}, {"agent", agent}, {"limit", "1"}}));
  for (const auto& d : rows_of(newest ? object_of(*newest) : json::object(), "items")) {
    const auto status = text_of(d, "status");
    if (status == "running" || status == "pending")
      return held((status == "running" ? "already running" : "already waiting to run") +
                      (" (run " + short_id_of(d) + ")"),
                  "boyd logs " + of + " -f, or boyd dispatches cancel " + of);
  }
  return std::nullopt;
}

error why_not_run(client& c, const json& cycle, const std::string& agent, const std::string& kernel,
                  const std::string& cycle_id) {
  if (auto held = what_holds(c, agent, kernel))
    return std::move(*held);
  error e{errc::refused, "the agent did not run", "agent " + agent, "see: boyd why " + agent};
  const auto body = c.ask(get("/api/v1/why", {{"kernel", kernel}, {"agent", agent}}));
  for (const auto& d : rows_of(body ? object_of(*body) : json::object(), "decisions"))
    if (text_of(d, "cycle_id") == cycle_id && text_of(d, "agent_id") == agent) {
      const auto reason = text_of(d, "reason");
      if (reason == "paused" || reason == "running")
        e.code = errc::locked; // it was, and is no longer
      e.what +=
          ": " + reason +
          (text_of(d, "detail").empty() ? "" : " (" + in_user_zone(text_of(d, "detail")) + ")");
    }
  constexpr std::size_t longest = 2000; // it ends with what to do
  if (const auto broken = text_of(cycle, "error"); !broken.empty())
    e.what += "; " + one_line(broken, longest);
  return e;
}

int report_refusal(const json& answer, const arguments& args) {
  const auto running = text_of(answer, "cycle_id");
  const auto reason = text_of(answer, "reason");
  const auto why =
      args.kernel.empty() ? std::string("see: boyd why") : "see: boyd why --kernel " + args.kernel;
  // Where the kernel itself says what helps, that is the next thing to do.
  constexpr std::string_view remedy = "; to end the pause: ";
  const auto at = reason.find(remedy);
  const auto next = at != reason.npos         ? reason.substr(at + remedy.size())
                    : reason == shutting_down ? "wait until the node has stopped, then try again"
                                              : why;
  return report({errc::locked, "no cycle was started: " + reason.substr(0, at),
                 running.empty() ? "" : "cycle " + running, next},
                args.json);
}

int report_interruption(const client& c, const std::string& id) {
  const std::string text =
      c.online() ? "boyd: interrupted; cycle " + id + " continues in the node\n"
                 : "boyd: interrupted; cycle " + id + " will be resumed at the next start\n";
  write(text);
  return exit_code::failure;
}

} // namespace boyd::app
