#include "actors/mcp_server/parts.hpp"
#include "actors/support/ask.hpp"
#include "boyd/config/redact.hpp"
#include "boyd/core/ids.hpp"
#include "boyd/core/text.hpp"
#include "boyd/exec/command_line.hpp"
#include "boyd/exec/exit_class.hpp"
#include "boyd/exec/sandbox.hpp"
#include "boyd/faults/faulty_ports.hpp"
#include "boyd/faults/points.hpp"
#include "boyd/ports/entropy.hpp"
#include "boyd/ports/process_runner.hpp"

#include <caf/actor_cast.hpp>
#include <caf/send.hpp>
#include <spdlog/spdlog.h>

#include <algorithm>
#include <csignal>
#include <set>
#include <utility>

namespace boyd::mcp_server_impl {

namespace {

/// Of one line of stderr in the log.
constexpr std::size_t err_characters = 500;
/// Of stderr, for the reason of an end.
constexpr std::size_t err_tail_bytes = 2000;
/// A server whose input is closed has so long, and once more after SIGTERM.
constexpr milliseconds ending_step = 1500ms;
/// A process that has ended for so long and of whose end nobody told: nobody will.
constexpr milliseconds report_patience = 5s;

/// Beyond what programs of runs get: nothing. A server is nobody's run.
result<std::vector<std::pair<std::string, std::string>>> environment_of(const server_state& s) {
  config::command_executor as_command;
  as_command.env_pass = s.order.definition.env_pass;
  as_command.env = s.order.definition.env;
  auto all = exec::build_environment(as_command, {}, s.order.context->environment);
  if (!all)
    return all;
  std::set<std::string> own;
  for (const auto& [name, value] : s.order.definition.env)
    own.insert(name);
  std::erase_if(
      *all, [&](const auto& v) { return v.first.starts_with("BOYD_") && own.count(v.first) == 0; });
  return all;
}

/// A server that a workspace names is kept in the sandbox of the agent that uses it: whoever can
/// write there decides what runs.
result<void> put_into_sandbox(server_state& s, process_spec& spec) {
  if (!s.order.confinement)
    return {};
  const auto& ports = s.order.context->ports;
  exec::run_identity who;
  who.home = s.order.context->home;
  who.agent_id = s.order.key;
  who.dispatch_id = "mcp-" + make_uuid_v7(ports.clock->now(), *ports.random);
  const auto report = exec::confine(spec, s.order.confinement->settings, ports.processes->sandbox(),
                                    s.order.confinement->places, who);
  if (!report)
    return fail(report.error());
  s.sandbox = report->mode;
  for (const auto& lack : report->lacking)
    s.sandbox += "; not enforced: " + lack;
  if (report->mode != "off")
    s.scratch = spec.sandbox->scratch;
  if (report->mode == "limits" || report->mode == "off")
    spdlog::warn("{}: its access to files is not restricted: sandbox {}", s.order.key, s.sandbox);
  return {};
}

result<process_handle> start_process(self_pointer self) {
  auto& s = self->state;
  auto environment = environment_of(s);
  if (!environment)
    return fail(std::move(environment.error()));
  process_spec spec;
  spec.argv = {s.order.definition.command};
  for (const auto& a : s.order.definition.args)
    spec.argv.push_back(a);
  spec.cwd = s.order.cwd;
  spec.cwd_within = s.order.cwd_within;
  spec.environment = std::move(*environment);
  spec.input_stays = true;
  // Of the configuration: nobody's files are kept from it, it is no agent's. But it gains no
  // rights, and leaves no core.
  auto sandbox = std::make_shared<sandbox_spec>();
  sandbox->unix_sockets = true;
  spec.sandbox = std::move(sandbox);
  if (auto kept = put_into_sandbox(s, spec); !kept)
    return fail(std::move(kept.error()));
  process_events events;
  events.on_output = [in = s.in](output_stream stream, std::string_view bytes) {
    if (stream == output_stream::out)
      in->put(inlet::out_bytes{std::string(bytes)}, bytes.size());
    else
      in->put(inlet::err_bytes{std::string(bytes)}, bytes.size());
  };
  events.on_exit = [in = s.in](const process_exit& e) { in->put(e, 0); };
  return s.order.context->ports.processes->start(
      std::move(spec), faults::watched(std::move(events), faults::mcp_processes));
}

/// Lines to the log, no more than a bound in a minute; the newest are kept for the reason of an
/// end.
void take_err(self_pointer self, const std::string& bytes) {
  auto& s = self->state;
  s.err_tail += bytes;
  if (s.err_tail.size() > 2 * err_tail_bytes)
    s.err_tail.erase(0, s.err_tail.size() - err_tail_bytes);
  s.err_line += bytes;
  const auto end = s.err_line.rfind('\n');
  if (end == std::string::npos)
    return s.err_line.resize(std::min(s.err_line.size(), 4 * err_characters));
  // What came together is redacted together: a key may have several lines.
  const auto lines = told(self, s.err_line.substr(0, end));
  s.err_line.erase(0, end + 1);
  for (const auto line : split(lines, '\n'))
    if (!trim(line).empty() && may_log(self, s.err_lines, "lines of its stderr"))
      spdlog::info("{} (stderr): {}", s.order.key, cut_characters(line, err_characters));
}

void start_exchange(self_pointer self, mcp::http_effect::start& e) {
  auto& s = self->state;
  http_events events;
  const auto number = e.exchange;
  events.on_head = [in = s.in, number](const http_head& head) {
    in->put(inlet::head_of{number, head}, 0);
  };
  events.on_body = [in = s.in, number](std::string_view bytes) {
    in->put(inlet::body_of{number, std::string(bytes)}, bytes.size());
  };
  events.on_end = [in = s.in, number](const result<void>& transport) {
    in->put(inlet::end_of{number, transport}, 0);
  };
  s.exchanges[number] = s.order.context->ports.http->start(
      std::move(e.request), faults::watched(std::move(events), faults::point("mcp.answer")));
}

/// Starts the process; the session's first words follow.
void begin_process(self_pointer self) {
  auto& s = self->state;
  auto started = start_process(self);
  if (!started)
    return perform(self, s.session->on_closed(started.error()));
  s.process = *started;
  perform(self, s.session->begin(now_of(self)));
}

/// What it runs may be another thing than when it was trusted, also when it is started once more.
void begin_trusted_process(self_pointer self) {
  ask<bool>(
      self, self->state.order.owner, server_starting{{}, self->state.order.key},
      [self](const result<bool>& r) {
        auto& s = self->state;
        if (s.stage != ending::no || !s.session || s.session->is_over() || s.process)
          return;
        if (r)
          begin_process(self);
        else
          perform(self, s.session->on_closed(r.error()));
        look_again(self);
      },
      owner_patience);
}

/// The newest of what it wrote to stderr, redacted: its beginning is cut off where it was long.
std::string err_tail(const server_state& s) {
  auto said = s.err_tail;
  const bool cut = said.size() >= err_tail_bytes;
  if (cut)
    said.erase(0, said.size() - err_tail_bytes);
  said = sanitize_utf8(said);
  if (cut)
    said = config::redact_cut_begin(std::move(said), s.order.secrets);
  said = config::redact_text(std::move(said), s.order.secrets);
  return std::string(trim(said));
}

/// What is left of the process has ended.
void on_gone(self_pointer self, bool had_started, std::string why) {
  auto& s = self->state;
  s.process.reset();
  remove_scratch(s);
  if (s.stage != ending::no)
    return self->quit(caf::exit_reason::user_shutdown);
  if (const auto tail = err_tail(s); !tail.empty())
    why += "; its last output: " + tail;
  const error gone{had_started ? errc::actor_down : errc::spawn_failed,
                   "the server has stopped: " + why, s.order.key,
                   had_started ? "try again" : "check `command` of the server"};
  if (s.session && !s.session->is_over())
    perform(self, s.session->on_closed(gone));
  else
    lost(self, gone);
}

} // namespace

void look_for_lost_end(self_pointer self) {
  auto& s = self->state;
  if (!s.process || s.order.context->ports.processes->runs(*s.process)) {
    s.unreported.reset();
    return;
  }
  if (!s.unreported)
    s.unreported = now_of(self) + report_patience;
  if (now_of(self) < *s.unreported)
    return;
  s.unreported.reset();
  on_gone(self, true, "it ended without an exit status");
}

namespace {

void take_piece(self_pointer self, inlet::piece& any) {
  auto& s = self->state;
  const auto now = now_of(self);
  if (auto* out = std::get_if<inlet::out_bytes>(&any)) {
    auto fed = s.lines.feed(out->bytes, [&](std::string_view line) {
      if (s.session)
        perform(self, s.session->on_message(line, now));
    });
    if (!fed && s.session)
      perform(self, s.session->on_closed(fed.error()));
  } else if (auto* err = std::get_if<inlet::err_bytes>(&any)) {
    take_err(self, err->bytes);
  } else if (auto* exit = std::get_if<process_exit>(&any)) {
    on_gone(self, exit->started,
            (exit->started ? "" : "not started: ") + exec::describe_exit(*exit));
  } else if (!s.link) {
    return; // of a connection before
  } else if (auto* head = std::get_if<inlet::head_of>(&any)) {
    perform_http(self, s.link->on_head(head->exchange, head->head, now));
  } else if (auto* body = std::get_if<inlet::body_of>(&any)) {
    perform_http(self, s.link->on_body(body->exchange, body->bytes, now));
  } else if (auto* end = std::get_if<inlet::end_of>(&any)) {
    s.exchanges.erase(end->exchange);
    perform_http(self, s.link->on_end(end->exchange, end->transport, now));
    if (s.stage != ending::no && s.exchanges.empty() && !s.process)
      self->quit(caf::exit_reason::user_shutdown);
  }
}

} // namespace

void connect(self_pointer self) {
  auto& s = self->state;
  const auto& d = s.order.definition;
  const auto now = now_of(self);
  mcp::session_options o;
  o.client_version = s.order.context->version;
  o.http = !d.url.empty();
  o.start_timeout = d.start_timeout;
  o.remembered = s.order.remembered;
  o.asks = static_cast<bool>(s.order.approvals);
  o.checks_tools = true;
  s.usable = false;
  s.session.emplace(o);
  if (auto passed = faults::pass("mcp.start"); !passed)
    return perform(self, s.session->on_closed(passed.error()));
  if (o.http) {
    if (!s.order.context->ports.http)
      return perform(
          self, s.session->on_closed({errc::refused, "this node cannot make HTTP calls", {}, {}}));
    s.link.emplace(mcp::http_target{d.url, d.headers});
  } else {
    return s.order.pinned ? begin_trusted_process(self) : begin_process(self);
  }
  perform(self, s.session->begin(now));
}

void remove_scratch(server_state& s) {
  if (!s.scratch.empty())
    exec::remove_scratch(*s.order.context->ports.processes, std::exchange(s.scratch, {}));
}

void send(self_pointer self, const mcp::effect::send& e) {
  auto& s = self->state;
  if (s.link) {
    perform_http(self, s.link->send(e, s.session->era(), s.session->version(), now_of(self)));
    // Before anything is asked, so that what the server says by itself has its place.
    if (e.method == "notifications/initialized" && s.link && s.session)
      perform_http(self, s.link->listen(s.session->version(), now_of(self)));
    return;
  }
  if (!s.process)
    return;
  auto written = s.order.context->ports.processes->write(*s.process, e.text + "\n");
  // One that has ended says so itself.
  if (!written && written.error().code != errc::not_found)
    perform(self, s.session->on_closed(written.error()));
}

void abandon(self_pointer self, std::int64_t id) {
  if (self->state.link)
    perform_http(self, self->state.link->abandon(id));
}

void perform_http(self_pointer self, mcp::http_effects effects) {
  auto& s = self->state;
  for (auto& any : effects) {
    if (auto* start = std::get_if<mcp::http_effect::start>(&any)) {
      start_exchange(self, *start);
    } else if (auto* cancel = std::get_if<mcp::http_effect::cancel>(&any)) {
      if (const auto it = s.exchanges.find(cancel->exchange); it != s.exchanges.end()) {
        s.order.context->ports.http->cancel(it->second);
        s.exchanges.erase(it);
      }
    } else if (auto* message = std::get_if<mcp::http_effect::message>(&any)) {
      if (s.session)
        perform(self, s.session->on_message(message->text, now_of(self), message->via));
    } else if (auto* gone = std::get_if<mcp::http_effect::undelivered>(&any)) {
      if (s.session)
        perform(self, s.session->on_undelivered(gone->id, gone->why, now_of(self)));
    } else if (std::holds_alternative<mcp::http_effect::session_lost>(any)) {
      if (s.session)
        perform(self, s.session->on_session_lost(now_of(self)));
    } else if (auto* note = std::get_if<mcp::http_effect::note>(&any)) {
      log_note(self, false, note->text);
    }
  }
}

void take_in(self_pointer self) {
  auto& s = self->state;
  auto taken = s.in->take();
  for (auto& piece : taken.pieces)
    take_piece(self, piece);
  if (taken.overflow && s.session && !s.session->is_over())
    perform(self, s.session->on_closed({errc::limit_exceeded,
                                        "the server writes faster than Boyd can read",
                                        s.order.key,
                                        {}}));
}

void disconnect(self_pointer self) {
  auto& s = self->state;
  if (!s.link)
    return;
  const auto version = s.session ? s.session->version() : std::string();
  perform_http(self, s.link->close(version));
  s.link.reset();
}

bool say_goodbye(self_pointer self) {
  auto& s = self->state;
  s.stage = ending::closed;
  s.next_stage = now_of(self) + ending_step;
  if (s.link) // a session that the server keeps is given back
    perform_http(self, s.link->close(s.session ? s.session->version() : std::string()));
  if (s.process)
    s.order.context->ports.processes->close_input(*s.process);
  return s.process || !s.exchanges.empty();
}

void end_process(self_pointer self) {
  auto& s = self->state;
  if (now_of(self) < s.next_stage)
    return;
  if (!s.process)
    return self->quit(caf::exit_reason::user_shutdown);
  s.next_stage = now_of(self) + ending_step;
  if (s.stage == ending::closed) {
    s.stage = ending::terminated;
    s.order.context->ports.processes->signal(*s.process, SIGTERM);
  } else if (s.stage == ending::terminated) {
    s.stage = ending::killed;
    s.order.context->ports.processes->signal(*s.process, SIGKILL);
  } else {
    // Nobody reports its end: the runner keeps an eye on it.
    self->quit(caf::exit_reason::user_shutdown);
  }
}

} // namespace boyd::mcp_server_impl
