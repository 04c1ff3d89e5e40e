#include "cycle_watch.hpp"

#include "../exit_codes.hpp"
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
  write("boyd: " + text + "\n");
}

void progress::wait_for_end(milliseconds limit) {
  std::unique_lock lock(mutex_);
  changed_.wait_for(lock, limit, [&] { return ended_; });
}

void progress::show(const json& event) {
  const auto phase = text_of(event, "phase");
  if (phase == "output") {
    if (on_output_)
      on_output_({text_of(event, "dispatch_id"), text_of(event, "stream") == "stderr",
                  text_of(event, "text")});
    return;
  }
  const auto agent = text_of(event, "agent_id");
  auto text = terminal_.paint(colour::faint, clock_of(event, "at"));
  text += " " + terminal_.paint(colour::bold, phase);
  if (!agent.empty())
    text += " " + one_line(agent, 64);
  if (auto said = text_of(event, "text"); !said.empty())
    text += " " + one_line(said, 200);
  write(text + "\n");
  if (phase == "done") {
    ended_ = true;
    changed_.notify_all();
  }
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

error why_not_run(client& c, const json& cycle, const std::string& agent, const std::string& kernel,
                  const std::string& cycle_id) {
  error e{errc::refused, "the agent did not run", "agent " + agent, "see: boyd why " + agent};
  const auto answer =
      c.call(get("/api/v1/why", {{"kernel", kernel}, {"agent", agent}}), question_limit);
  const auto body = answer ? body_of(*answer) : result<std::string>(fail(answer.error()));
  for (const auto& d : rows_of(body ? object_of(*body) : json::object(), "decisions"))
    if (text_of(d, "cycle_id") == cycle_id && text_of(d, "agent_id") == agent)
      e.what += ": " + text_of(d, "reason") +
                (text_of(d, "detail").empty() ? "" : " (" + text_of(d, "detail") + ")");
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
  return report({errc::locked, "no cycle was started: " + reason,
                 running.empty() ? "" : "cycle " + running,
                 reason == shutting_down ? "wait until the node has stopped, then try again" : why},
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
