#include "actors/mcp_server/actor.hpp"

#include "actors/mcp_server/parts.hpp"
#include "actors/support/ask.hpp"
#include "actors/support/handlers.hpp"
#include "boyd/config/redact.hpp"
#include "boyd/core/text.hpp"
#include "boyd/faults/points.hpp"
#include "boyd/mcp/content.hpp"
#include "boyd/ports/process_runner.hpp"

#include <caf/actor_system.hpp>
#include <caf/send.hpp>
#include <nlohmann/json.hpp>
#include <spdlog/spdlog.h>

#include <algorithm>
#include <csignal>
#include <map>
#include <optional>
#include <set>
#include <utility>

namespace boyd {

namespace mcp_server_impl {

namespace {

/// An address that does not answer is asked again after this long, doubling.
constexpr milliseconds first_wait = 500ms;
/// Of what one server causes in the log, of each kind.
constexpr int lines_per_minute = 60;
/// Waits that are longer are cut: the clock may be looked at more often, never less.
constexpr milliseconds longest_look = 30s;

void answer_askers(self_pointer self, const result<server_tools>& r) {
  for (auto& p : std::exchange(self->state.askers, {}))
    answer<server_tools>(p, r);
}

void answer_call(self_pointer self, const std::string& ticket, result<mcp_call_reply> r) {
  auto& calls = self->state.calls;
  const auto it = calls.find(ticket);
  if (it == calls.end())
    return;
  auto promise = it->second.promise;
  calls.erase(it);
  self->state.used_at = now_of(self);
  answer<mcp_call_reply>(promise, std::move(r));
}

/// A text among the arguments of our own tools about resources.
std::string argument(const std::string& arguments_json, const char* name) {
  const auto all = nlohmann::json::parse(arguments_json, nullptr, false);
  if (!all.is_object() || !all.contains(name) || !all.at(name).is_string())
    return {};
  return all.at(name).get<std::string>();
}

void send_call(self_pointer self, const std::string& ticket) {
  auto& s = self->state;
  const auto found = s.calls.find(ticket);
  if (found == s.calls.end() || found->second.sent)
    return;
  auto& c = found->second;
  const auto tool = std::ranges::find_if(
      s.tools, [&](const auto& t) { return t.definition.name == c.what.tool; });
  if (tool == s.tools.end() && s.session && s.session->is_listing())
    return; // it may be one that the server has just told of
  for (const auto& [name, why] : s.pinned.withheld)
    if (tool == s.tools.end() && c.what.tool.ends_with("__" + name))
      return answer_call(
          self, ticket,
          fail(errc::refused, "the tool " + name + " is not used: " + why, s.order.key,
               "a person can review it with: boyd tools show " + s.order.definition.name));
  if (tool == s.tools.end())
    return answer_call(self, ticket,
                       fail(errc::not_found, "the server has no tool " + c.what.tool, s.order.key,
                            "list the tools with: boyd tools show " + s.order.definition.name));
  if (auto passed = faults::pass("mcp.call"); !passed)
    return answer_call(self, ticket, fail(std::move(passed.error())));
  mcp::server_call call;
  call.key = ticket;
  call.timeout = s.order.definition.call_timeout;
  call.longest = s.order.definition.call_limit;
  using kind = mcp::offered_tool::kind_t;
  if (tool->kind == kind::list_resources) {
    call.kind = mcp::server_call::kind_t::list_resources;
    call.cursor = argument(c.what.arguments_json, "cursor");
  } else if (tool->kind == kind::read_resource) {
    call.kind = mcp::server_call::kind_t::read_resource;
    call.name = argument(c.what.arguments_json, "uri");
    if (call.name.empty())
      return answer_call(self, ticket,
                         fail(errc::invalid_argument, "missing parameter: uri (a string)"));
  } else {
    call.name = tool->name;
    call.arguments_json = c.what.arguments_json;
  }
  c.kind = tool->kind;
  c.sent = true;
  perform(self, s.session->call(std::move(call), now_of(self)));
}

/// Calls that came before the tools were known, or while they were read again.
void send_waiting(self_pointer self) {
  std::vector<std::string> waiting;
  for (const auto& [ticket, c] : self->state.calls)
    if (!c.sent)
      waiting.push_back(ticket);
  for (const auto& ticket : waiting)
    send_call(self, ticket);
}

std::vector<mcp::offered_tool>
offered_of(self_pointer self, const std::vector<mcp::server_tool>& tools, bool resources) {
  auto all = mcp::offer(self->state.order.definition.name, tools, resources);
  for (auto& t : all) {
    t.definition.description = told_cut(self, t.definition.description);
    t.definition.parameters_json = told(self, t.definition.parameters_json);
  }
  return all;
}

/// What differs from the pins, one line each, for people.
std::vector<std::string> differences_of(const server_state& s) {
  const auto& name = s.order.definition.name;
  std::vector<std::string> lines;
  std::map<std::string, std::vector<std::string>> by_reason;
  for (const auto& [tool, why] : s.pinned.withheld)
    by_reason[why].push_back(tool);
  for (const auto& [why, tools] : by_reason)
    lines.push_back((tools.size() == 1 ? "the tool " + tools.front()
                                       : std::to_string(tools.size()) + " tools") +
                    " of the server " + name + (tools.size() == 1 ? " is" : " are") +
                    " not used: " + why + " (see: boyd tools show " + name + ")");
  if (s.order.definition.pins.empty() && !s.order.pinned && s.first.has_tools)
    for (const auto& change : mcp::changes_since(s.first, s.pinned.usable))
      lines.push_back(
          "the server " + name +
          " has changed since its start; it is still used, because its tools have no pins: " +
          change);
  for (const auto& tool : s.pinned.gone)
    lines.push_back("the server " + name + " has no tool " + tool +
                    ", which is set in mcpServers." + name + ".pins");
  return lines;
}

/// Of the tools that the server has now only those are used that are as they were pinned.
void apply_pins(self_pointer self) {
  auto& s = self->state;
  const auto before = differences_of(s);
  s.pinned = mcp::by_pins(s.order.definition.pins, s.session->tools());
  if (!std::exchange(s.first.has_tools, true))
    s.first.tools = mcp::prints_of(s.session->tools());
  s.tools = offered_of(self, s.pinned.usable, s.session->has_resources());
  auto lines = differences_of(s);
  if (lines == before)
    return;
  for (const auto& line : lines)
    log_note(self, true, line);
  for (auto& line : lines)
    line = told(self, line);
  self->send(s.order.owner, server_withholds{{}, s.order.key, std::move(lines)});
}

/// Whether a call that the session holds may go out, by the tools that may be used now.
mcp::call_judge judge_of(self_pointer self) {
  std::set<std::string> names;
  for (const auto& t : self->state.pinned.usable)
    names.insert(t.name);
  return [names = std::move(names),
          key = self->state.order.key](const mcp::server_call& c) -> std::optional<error> {
    if (c.kind != mcp::server_call::kind_t::tool || names.contains(c.name))
      return std::nullopt;
    return error{errc::refused, "the tool " + c.name + " has changed and must not be used", key,
                 "review the change with: boyd tools ls"};
  };
}

void now_usable(self_pointer self) {
  auto& s = self->state;
  s.usable = true;
  s.refused.clear();
  apply_pins(self);
  answer_askers(self, server_tools{{}, s.tools, differences_of(s)});
  perform(self, s.session->on_tools_checked(judge_of(self), now_of(self)));
  if (self->state.session)
    send_waiting(self);
}

void now_refused(self_pointer self, const error& why) {
  auto& s = self->state;
  s.usable = false;
  s.refused = why.what;
  s.tools.clear();
  perform(self, s.session->on_tools_checked([why](const auto&) { return std::optional(why); },
                                            now_of(self)));
  answer_askers(self, fail(why));
  std::vector<std::string> waiting;
  for (const auto& [ticket, c] : s.calls)
    if (!c.sent)
      waiting.push_back(ticket);
  for (const auto& ticket : waiting)
    answer_call(self, ticket, fail(why));
}

/// The tools are known, or other ones than before.
void on_tools(self_pointer self) {
  auto& s = self->state;
  s.failures = 0;
  s.problem.clear();
  if (!s.order.pinned)
    return now_usable(self);
  s.usable = false;
  ask<bool>(
      self, s.order.owner, server_listed{{}, s.order.key, s.session->tools()},
      [self](result<bool> r) {
        if (!self->state.session || !self->state.session->is_ready())
          return;
        if (r)
          now_usable(self);
        else
          now_refused(self, r.error());
      },
      owner_patience);
}

void on_ready(self_pointer self) {
  auto& s = self->state;
  const auto era = s.session->era();
  const auto version = s.session->version();
  spdlog::info("{}: ready: {} ({} {}), {} tools", s.order.key,
               told(self, std::string(trim(s.session->server_says()))), mcp::name_of(era), version,
               s.session->tools().size());
  self->send(s.order.owner, server_found{{}, s.order.key, era});
  on_tools(self);
}

void on_call_done(self_pointer self, mcp::effect::call_done& e) {
  auto& s = self->state;
  const auto it = s.calls.find(e.key);
  if (it == s.calls.end())
    return;
  if (!e.result_json) {
    auto why = std::move(e.result_json.error());
    why.what = told_cut(self, why.what);
    why.where = s.order.key;
    return answer_call(self, e.key, fail(std::move(why)));
  }
  using kind = mcp::offered_tool::kind_t;
  const auto words = it->second.kind == kind::list_resources ? mcp::words_of_list(*e.result_json)
                     : it->second.kind == kind::read_resource
                         ? mcp::words_of_resource(*e.result_json)
                         : mcp::words_of_call(*e.result_json);
  // Its environment and the answers of people may hold what nobody else should read.
  answer_call(self, e.key, mcp_call_reply{{}, told(self, words.text), words.is_error});
}

} // namespace

namespace {

error being_restarted(const server_state& s) {
  return {errc::actor_down, "the server is being restarted", s.order.key, "try again"};
}

} // namespace

server_state::~server_state() {
  const auto gone = being_restarted(*this);
  for (auto& p : askers)
    p.deliver(result<server_tools>(fail(gone)));
  for (auto& [ticket, c] : calls)
    c.promise.deliver(result<mcp_call_reply>(fail(gone)));
  if (!order.context)
    return;
  if (process)
    order.context->ports.processes->signal(*process, SIGKILL);
  remove_scratch(*this);
  for (const auto& [number, handle] : exchanges)
    order.context->ports.http->cancel(handle);
}

std::string told(self_pointer self, const std::string& text) {
  return config::redact_text(sanitize_utf8(text), self->state.order.secrets);
}

std::string told_cut(self_pointer self, const std::string& text) {
  return config::redact_cut_end(sanitize_utf8(text), self->state.order.secrets);
}

bool may_log(self_pointer self, said_lines& lines, const char* what) {
  const auto now = now_of(self);
  if (now - lines.since >= 1min) {
    if (lines.count > lines_per_minute)
      spdlog::info("{}: {} more {} in that minute", self->state.order.key,
                   lines.count - lines_per_minute, what);
    lines = {0, now};
  }
  return ++lines.count <= lines_per_minute;
}

void log_note(self_pointer self, bool warn, const std::string& text) {
  if (may_log(self, self->state.notes, "lines about it"))
    spdlog::log(warn ? spdlog::level::warn : spdlog::level::info, "{}: {}", self->state.order.key,
                told_cut(self, text));
}

void lost(self_pointer self, const error& why) {
  auto& s = self->state;
  error say = why;
  say.what = told_cut(self, why.what);
  if (say.where.empty())
    say.where = s.order.key;
  s.problem = say.what;
  s.usable = false;
  answer_askers(self, fail(say));
  std::vector<std::string> tickets;
  for (const auto& [ticket, c] : s.calls)
    tickets.push_back(ticket);
  for (const auto& ticket : tickets)
    answer_call(self, ticket, fail(say));
  if (s.stage != ending::no)
    return;
  if (s.order.definition.url.empty()) // its state's end is its process's
    return self->quit(crash_error(to_string(say)));
  spdlog::warn("{}: {}", s.order.key, to_string(say));
  disconnect(self);
  s.session.reset();
  const auto wait = std::min(first_wait * (1 << std::min(s.failures, 10)), limits::backoff_cap);
  ++s.failures;
  s.not_before = now_of(self) + wait;
}

void perform(self_pointer self, mcp::session_effects effects) {
  auto& s = self->state;
  for (auto& any : effects) {
    if (auto* out = std::get_if<mcp::effect::send>(&any)) {
      send(self, *out);
    } else if (auto* left = std::get_if<mcp::effect::abandon>(&any)) {
      abandon(self, left->id);
    } else if (auto* done = std::get_if<mcp::effect::call_done>(&any)) {
      on_call_done(self, *done);
    } else if (std::holds_alternative<mcp::effect::ready>(any)) {
      on_ready(self);
    } else if (std::holds_alternative<mcp::effect::tools_changed>(any)) {
      log_note(self, true, "its list of tools has changed");
      on_tools(self);
    } else if (auto* question = std::get_if<mcp::effect::ask>(&any)) {
      ask_person(self, *question);
    } else if (auto* over = std::get_if<mcp::effect::withdraw>(&any)) {
      forget_question(self, over->number);
    } else if (auto* note = std::get_if<mcp::effect::note>(&any)) {
      log_note(self, note->warn, note->text);
    } else if (auto* failed = std::get_if<mcp::effect::failed>(&any)) {
      const auto why = failed->why;
      return lost(self, why);
    }
  }
  if (s.usable && s.session && !s.session->is_listing())
    send_waiting(self);
}

void look_again(self_pointer self) {
  auto& s = self->state;
  std::optional<steady_time> next;
  const auto also = [&](const std::optional<steady_time>& at) {
    if (at && (!next || *at < *next))
      next = at;
  };
  if (s.stage != ending::no) {
    also(s.next_stage);
  } else {
    if (s.session)
      also(s.session->next_time());
    if (s.link)
      also(s.link->next_time());
    also(s.unreported);
    also(s.used_at + s.order.definition.idle_timeout);
  }
  if (!next || (s.tick_at && *s.tick_at <= *next))
    return;
  const auto wait = std::clamp<milliseconds>(std::chrono::ceil<milliseconds>(*next - now_of(self)),
                                             1ms, longest_look);
  s.tick_at = now_of(self) + wait;
  self->delayed_send(self, wait, server_tick{{}, ++s.ticks});
}

namespace {

void on_tick(self_pointer self) {
  auto& s = self->state;
  s.tick_at.reset();
  const auto now = now_of(self);
  if (s.stage != ending::no) {
    end_process(self);
  } else {
    look_for_lost_end(self);
    if (s.session)
      perform(self, s.session->on_time(now));
    if (s.link)
      perform_http(self, s.link->on_time(now));
    if (s.calls.empty() && s.askers.empty() && now - s.used_at >= s.order.definition.idle_timeout) {
      s.used_at = now; // told again after as long again
      self->send(s.order.owner, server_idle{{}, s.order.key, s.requests});
    }
  }
  look_again(self);
}

/// An ordered end: calls are answered, then the process has a moment to end by itself.
void stop(self_pointer self) {
  auto& s = self->state;
  if (s.stage != ending::no)
    return;
  s.stage = ending::closed;
  const error why{errc::cancelled, "the server has been stopped", s.order.key, {}};
  if (s.session && !s.session->is_over())
    perform(self, s.session->on_closed(why));
  else
    lost(self, why);
  if (!say_goodbye(self))
    return self->quit(caf::exit_reason::user_shutdown);
  look_again(self);
}

/// Whether it can be asked now; an address that did not answer is tried again.
result<void> wanted(self_pointer self) {
  auto& s = self->state;
  const auto now = now_of(self);
  ++s.requests;
  s.used_at = now;
  if (s.stage != ending::no)
    return fail(errc::actor_down, "the server is being stopped", s.order.key, "try again");
  if (s.session)
    return {};
  if (now < s.not_before)
    return fail(errc::io_error, s.problem, s.order.key);
  connect(self);
  return {};
}

tools_promise tools_of(self_pointer self) {
  auto& s = self->state;
  auto promise = self->make_response_promise<result<server_tools>>();
  const answers_if_it_throws<server_tools> guard(promise, being_restarted(s));
  if (auto ok = wanted(self); !ok) {
    answer<server_tools>(promise, fail(std::move(ok.error())));
    return promise;
  }
  if (s.session)
    perform(self, s.session->refresh(now_of(self)));
  if (s.usable && s.session && s.session->is_ready())
    answer<server_tools>(promise, server_tools{{}, s.tools, differences_of(s)});
  else if (!s.refused.empty() && s.session && s.session->is_ready())
    answer<server_tools>(promise, fail(errc::refused, s.refused, s.order.key));
  else if (!s.session)
    answer<server_tools>(promise, fail(errc::io_error, s.problem, s.order.key));
  else
    s.askers.push_back(promise);
  look_again(self);
  return promise;
}

call_promise begin_call(self_pointer self, mcp_call& m) {
  auto& s = self->state;
  auto promise = self->make_response_promise<result<mcp_call_reply>>();
  const answers_if_it_throws<mcp_call_reply> guard(promise, being_restarted(s));
  auto ok = wanted(self);
  if (ok && s.calls.size() >= mcp::most_calls)
    ok = fail(errc::overloaded, "too many calls of this server in progress", s.order.key);
  if (ok && s.calls.contains(m.ticket))
    ok = fail(errc::already_exists, "this call is already in progress", s.order.key);
  if (ok && !s.session)
    ok = fail(errc::io_error, s.problem, s.order.key);
  if (ok && !s.refused.empty() && !s.usable)
    ok = fail(errc::refused, s.refused, s.order.key);
  if (!ok) {
    answer<mcp_call_reply>(promise, fail(std::move(ok.error())));
    return promise;
  }
  const auto ticket = m.ticket;
  s.calls.emplace(ticket, open_call{promise, std::move(m)});
  if (s.usable)
    send_call(self, ticket);
  look_again(self);
  return promise;
}

void cancel_call(self_pointer self, const std::string& ticket) {
  auto& s = self->state;
  if (s.calls.find(ticket) == s.calls.end())
    return;
  if (s.session)
    perform(self, s.session->cancel(ticket, now_of(self)));
  answer_call(self, ticket, fail(errc::cancelled, "the caller has ended", s.order.key));
  look_again(self);
}

std::string joined_lines(const std::vector<std::string>& lines) {
  std::string out;
  for (const auto& line : lines)
    out += (out.empty() ? "" : "; ") + line;
  return out;
}

/// All that the server has, for a person who looks at it, with what may not be used.
std::vector<mcp_tool_status> all_tools(self_pointer self) {
  const auto& s = self->state;
  std::vector<mcp_tool_status> all;
  for (auto& t : offered_of(self, s.session->tools(), s.session->has_resources())) {
    mcp_tool_status row{std::move(t.definition), {}, {}, s.refused};
    if (t.kind == mcp::offered_tool::kind_t::tool) {
      const auto own = std::ranges::find(s.session->tools(), t.name, &mcp::server_tool::name);
      row.own_name = t.name;
      row.pin = mcp::tool_pin(*own);
      if (const auto held = s.pinned.withheld.find(t.name); held != s.pinned.withheld.end())
        row.withheld = held->second;
    }
    all.push_back(std::move(row));
  }
  return all;
}

mcp_server_status status_of(self_pointer self, bool with_tools) {
  auto& s = self->state;
  const auto& d = s.order.definition;
  mcp_server_status r;
  r.name = d.name;
  r.transport = d.url.empty() ? "stdio" : "http";
  r.problem = s.refused.empty() ? s.problem : s.refused;
  r.sandbox = s.sandbox;
  if (s.session) {
    r.era = mcp::name_of(s.session->era());
    r.version = s.session->version();
    r.says = told(self, std::string(trim(s.session->server_says())));
    r.tool_count = s.tools.size();
  }
  const bool ready = s.session && s.session->is_ready();
  if (s.usable && !ready)
    r.problem = "the server has lost the session; connecting again";
  r.state = s.usable && ready    ? "ready"
            : !s.refused.empty() ? "changed"
            : s.session          ? "starting"
                                 : "unreachable";
  if (s.usable && ready && !s.pinned.withheld.empty()) {
    r.state = "changed";
    r.problem = told(self, joined_lines(differences_of(s)));
  }
  if (with_tools && s.session && s.session->is_ready())
    r.tools = all_tools(self);
  return r;
}

} // namespace

} // namespace mcp_server_impl

namespace {

using namespace mcp_server_impl;

server_impl::behavior_type server_behavior(self_pointer self, mcp_server_order order) {
  install_handlers(self, "mcp_server");
  self->set_exit_handler([self](caf::exit_msg&) { stop(self); });
  auto& s = self->state;
  s.order = std::move(order);
  const caf::actor_addr me = self->address();
  s.in = std::make_shared<inlet>([me] {
    if (auto strong = caf::actor_cast<caf::actor>(me))
      caf::anon_send(strong, inlet_ready{});
  });
  s.used_at = now_of(self);
  // Once the actor stands: a start that fails ends it.
  self->send(self, inlet_ready{});
  return {
      [self](server_tools_query&) { return tools_of(self); },
      [self](mcp_call& m) { return begin_call(self, m); },
      [self](mcp_cancel& m) { cancel_call(self, m.ticket); },
      [self](server_status_query& m) -> result<mcp_server_status> {
        return status_of(self, m.tools);
      },
      [self](inlet_ready&) {
        if (!self->state.session && self->state.requests == 0 && self->state.failures == 0 &&
            self->state.stage == ending::no)
          connect(self);
        take_in(self);
        look_again(self);
      },
      [self](approval_answer& m) { on_word(self, m); },
      [self](server_tick& m) {
        if (m.number == self->state.ticks)
          on_tick(self);
      },
  };
}

} // namespace

mcp_server_actor spawn_mcp_server(caf::actor_system& system, mcp_server_order order) {
  return system.spawn(server_behavior, std::move(order));
}

} // namespace boyd
