#include "boyd/mcp/session.hpp"

#include "boyd/core/json_depth.hpp"
#include "boyd/core/text.hpp"
#include "boyd/mcp/headers.hpp"
#include "session_internal.hpp"

#include <algorithm>
#include <utility>

namespace boyd::mcp {

namespace {

/// A server that sends so much that is no message is no server.
constexpr int most_odd_messages = 100;
/// Messages in one batch.
constexpr std::size_t most_in_batch = 256;
/// Of a log message of a server.
constexpr std::size_t note_characters = 500;

std::string short_text(const std::string& text) {
  return std::string(cut_characters(text, note_characters));
}

/// The server's own word for why there is no result: nobody's wrong use of this program.
error refused_by(const rpc_error& e) {
  return {e.code == rpc_code::internal_error ? errc::io_error : errc::refused,
          "the server answered with error " + std::to_string(e.code) + ": " + short_text(e.message),
          {},
          {}};
}

} // namespace

std::string_view name_of(era_t era) noexcept {
  switch (era) {
  case era_t::modern:
    return "stateless";
  case era_t::legacy:
    return "handshake";
  case era_t::unknown:
    break;
  }
  return {};
}

bool is_legacy_version(std::string_view version) noexcept {
  return std::ranges::find(legacy_versions, version) != legacy_versions.end();
}

// -- what goes out -------------------------------------------------------------------------------

void session::impl::note(bool warn, std::string text) {
  out.emplace_back(effect::note{warn, std::move(text)});
}

json session::impl::client_info() const {
  return {{"name", o.client_name}, {"version", o.client_version}};
}

json session::impl::capabilities() const {
  json all = json::object();
  if (o.asks)
    all["elicitation"] = {{"form", json::object()}, {"url", json::object()}};
  return all;
}

std::int64_t session::impl::request(open_request r, const std::string& method, json params,
                                    const std::string& name, steady_time now) {
  const auto id = ++last_id;
  if (era == era_t::modern || method == "server/discover") {
    auto& meta = params["_meta"];
    meta[meta_key::version] = version.empty() ? std::string(modern_version) : version;
    meta[meta_key::client] = client_info();
    meta[meta_key::capabilities] = capabilities();
  }
  effect::send e;
  e.id = id;
  e.method = method;
  e.name = name;
  e.stays_open = r.kind == open_request::kind_t::listen;
  e.patience = std::max(r.deadline - now, milliseconds{1});
  if (r.kind == open_request::kind_t::call) {
    params["_meta"]["progressToken"] = id;
    // The session ends it in time: progress and people's answers make it longer.
    e.patience = std::max(e.patience, calls.at(r.key).longest - now);
    if (o.asks)
      e.patience += o.question_timeout;
  }
  if (method == "tools/call")
    if (const auto tool = std::ranges::find(tools, name, &server_tool::name); tool != tools.end())
      e.param_headers = param_headers_of(tool->headers, dump(member(params, "arguments")));
  e.text = to_text(rpc_request{id, method, dump(params)});
  out.emplace_back(std::move(e));
  r.greeting = greetings;
  requests.emplace(id, std::move(r));
  return id;
}

void session::impl::notify(const std::string& method, json params) {
  effect::send e;
  e.method = method;
  e.text = to_text(rpc_notification{method, params.empty() ? std::string() : dump(params)});
  out.emplace_back(std::move(e));
}

void session::impl::respond(const rpc_id& id, json result) {
  effect::send e;
  e.text = to_text(rpc_response{id, dump(result), std::nullopt});
  out.emplace_back(std::move(e));
}

void session::impl::refuse(const rpc_id& id, std::int64_t code, const std::string& why) {
  effect::send e;
  e.text = to_text(rpc_response{id, {}, rpc_error{code, why, {}}});
  out.emplace_back(std::move(e));
}

// -- the end -------------------------------------------------------------------------------------

void session::impl::fail_all(const error& why) {
  for (const auto& [number, q] : questions)
    out.emplace_back(effect::withdraw{number});
  questions.clear();
  for (const auto& [key, c] : calls)
    out.emplace_back(effect::call_done{key, fail(why)});
  calls.clear();
  waiting.clear();
  requests.clear();
  listing = false;
}

void session::impl::fail_session(error why) {
  if (now_in == phase::over)
    return;
  fail_all(why);
  now_in = phase::over;
  out.emplace_back(effect::failed{std::move(why)});
}

void session::impl::odd(const std::string& what) {
  if (++odd_messages > most_odd_messages)
    return fail_session({errc::parse_error,
                         "too many invalid messages from the server; the last one: " + what,
                         {},
                         "a stdio server must write only protocol messages to stdout"});
  if (odd_messages <= 3)
    note(true, what);
}

// -- what comes in -------------------------------------------------------------------------------

void session::impl::on_response(const rpc_response& r, steady_time now,
                                std::optional<std::int64_t> via) {
  if (!r.id) {
    // Only an error comes without an id: the server could not read something of ours.
    const auto only = only_request(via);
    if (only && names_lost_session(*r.error))
      return on_response({rpc_id(*only), {}, r.error}, now, via);
    auto why = refused_by(*r.error);
    why.what = "the server could not read a message: " + why.what;
    if (!only || !end_unread(*only, std::move(why), now))
      odd("the server could not read a message: " + short_text(r.error->message));
    return;
  }
  const auto number = number_of(*r.id);
  const auto it = number ? requests.find(*number) : requests.end();
  if (it == requests.end())
    return; // late: no caller is waiting for it
  const auto open = it->second;
  requests.erase(it);
  using kind = open_request::kind_t;
  switch (open.kind) {
  case kind::discover:
    if (now_in != phase::probing && now_in != phase::greeting)
      return;
    if (r.error)
      return on_discover_error(*r.error, now);
    return on_discovered(parse(r.result_json), now);
  case kind::initialize:
    if (now_in != phase::greeting)
      return;
    if (r.error)
      return fail_session({errc::refused,
                           "the server refused the handshake: " + short_text(r.error->message),
                           {},
                           {}});
    return on_initialized(parse(r.result_json), now);
  case kind::tools:
    if (!r.error)
      return on_tools(parse(r.result_json), now);
    if (now_in == phase::ready && era == era_t::legacy && names_lost_session(*r.error))
      return greet_again(now);
    if (now_in == phase::listing)
      return fail_session({errc::refused,
                           "the server refused to list its tools: " + short_text(r.error->message),
                           {},
                           {}});
    note(true, "the server refused to list its tools again: " + short_text(r.error->message));
    return end_listing(now);
  case kind::listen:
    if (r.error)
      note(false, "the server does not report changes: " + short_text(r.error->message));
    else if (o.http)
      listen_at = now + 30s;
    return;
  case kind::call:
    break;
  }
  const auto call = calls.find(open.key);
  if (call == calls.end())
    return;
  call->second.request.reset();
  if (!r.error)
    return on_call_result(open.key, r.result_json, now);
  if (era != era_t::modern && !call->second.sent_again && names_lost_session(*r.error))
    return on_session_gone(call->second, open.greeting, now);
  finish_call(open.key, fail(refused_by(*r.error)));
}

void session::impl::on_notification(const rpc_notification& n, steady_time now) {
  const auto params = n.params_json.empty() ? json::object() : parse(n.params_json);
  if (n.method == "notifications/tools/list_changed") {
    list_in_doubt = tools_capability;
    if (now_in == phase::ready)
      list_tools(now);
    else
      list_again = true;
  } else if (n.method == "notifications/progress") {
    on_progress(params, now);
  } else if (n.method == "notifications/message") {
    const auto& data = member(params, "data");
    const auto level = text_in(params, "level");
    const bool warn = level != "debug" && level != "info" && level != "notice" && !level.empty();
    note(warn, "says: " + short_text(data.is_string() ? data.get<std::string>() : dump(data)));
  } else if (n.method == "notifications/cancelled") {
    // In the handshake era a server takes a question of its own back.
    const auto id = id_in(member(params, "requestId"));
    for (auto q = questions.begin(); q != questions.end(); ++q) {
      const auto& its = q->second.request;
      if (!id || !its || (*its != *id && (!number_of(*id) || number_of(*its) != number_of(*id))))
        continue;
      out.emplace_back(effect::withdraw{q->first});
      questions.erase(q);
      return;
    }
  }
}

void session::impl::on_request(const rpc_request& r, steady_time now,
                               std::optional<std::int64_t> via) {
  // A stateless server asks inside its results; nothing of ours may be an answer to it.
  if (era == era_t::modern)
    return odd("the server sent a request (" + short_text(r.method) +
               ") that its protocol revision does not allow");
  if (r.method == "ping")
    return respond(r.id, json::object());
  if (r.method != "elicitation/create")
    return refuse(r.id, rpc_code::method_not_found,
                  "this client does not support " + short_text(r.method));
  const auto params = r.params_json.empty() ? json::object() : parse(r.params_json);
  std::string call;
  if (const auto open = via ? requests.find(*via) : requests.end(); open != requests.end())
    call = open->second.key;
  if (call.empty() && calls.size() == 1)
    call = calls.begin()->first;
  ask(call, r.id, {}, params, now);
}

void session::impl::on_one(const rpc_message& m, steady_time now, std::optional<std::int64_t> via) {
  if (now_in == phase::over)
    return;
  if (const auto* response = std::get_if<rpc_response>(&m))
    on_response(*response, now, via);
  else if (const auto* notification = std::get_if<rpc_notification>(&m))
    on_notification(*notification, now);
  else
    on_request(std::get<rpc_request>(m), now, via);
}

session::session(session_options options) : impl_(std::make_unique<impl>(std::move(options))) {}
session::~session() = default;
session::session(session&&) noexcept = default;
session& session::operator=(session&&) noexcept = default;

session_effects session::begin(steady_time now) {
  auto& s = *impl_;
  s.connect_by = now + s.o.start_timeout;
  if (s.o.remembered == era_t::legacy)
    s.initialize(now);
  else
    s.discover(now);
  return s.take();
}

session_effects session::on_message(std::string_view text, steady_time now,
                                    std::optional<std::int64_t> via) {
  auto& s = *impl_;
  if (s.now_in == impl::phase::over)
    return {};
  s.on_text(text, now, via);
  return s.take();
}

void session::impl::on_text(std::string_view text, steady_time now,
                            std::optional<std::int64_t> via) {
  if (const auto first = text.find_first_not_of(" \t\r\n");
      first != std::string_view::npos && text[first] == '[') {
    const auto all = text.size() <= message_bytes && check_json_depth(text) ? parse(text) : json();
    if (all.is_array() && all.size() <= most_in_batch) {
      for (const auto& one : all)
        on_text(one.is_array() ? std::string("[") : dump(one), now, via);
      return;
    }
  }
  auto m = read_message(text);
  if (m)
    return on_one(*m, now, via);
  const auto seen = look_at_unreadable(text);
  const auto id = seen.id ? seen.id : only_request(via);
  error why{errc::parse_error,
            "the server's answer is not valid: " + m.error().what,
            {},
            "check the output of the server"};
  if (!seen.is_answer || !id || !end_unread(*id, std::move(why), now))
    odd(m.error().what);
}

session_effects session::on_undelivered(std::int64_t id, const delivery_failure& why,
                                        steady_time now) {
  auto& s = *impl_;
  const auto it = s.requests.find(id);
  if (it == s.requests.end() || s.now_in == impl::phase::over)
    return {};
  const auto open = it->second;
  s.requests.erase(it);
  const error e{why.status == 0 ? errc::io_error : errc::refused, why.what, {}, {}};
  using kind = open_request::kind_t;
  switch (open.kind) {
  case kind::discover:
    if (why.error)
      s.on_discover_error(*why.error, now);
    else if (why.status == 0 || why.status == 401 || why.status == 403)
      s.fail_session(e);
    else
      s.initialize(now);
    break;
  case kind::initialize:
  case kind::tools:
    if (open.kind == kind::tools && s.now_in == impl::phase::ready && why.session_gone) {
      s.greet_again(now);
    } else if (open.kind == kind::tools && s.now_in == impl::phase::ready) {
      s.note(true, "cannot list its tools again: " + why.what);
      s.end_listing(now);
    } else {
      s.fail_session(e);
    }
    break;
  case kind::listen:
    s.listen_at = now + 30s;
    break;
  case kind::call: {
    const auto call = s.calls.find(open.key);
    if (call == s.calls.end())
      break;
    call->second.request.reset();
    if (why.session_gone && !call->second.sent_again) {
      s.on_session_gone(call->second, open.greeting, now);
    } else if (why.error) {
      s.finish_call(open.key, fail(refused_by(*why.error)));
    } else {
      s.finish_call(open.key, fail(e));
    }
    break;
  }
  }
  return s.take();
}

session_effects session::on_session_lost(steady_time now) {
  auto& s = *impl_;
  if (s.now_in == impl::phase::ready && s.era == era_t::legacy)
    s.greet_again(now);
  return s.take();
}

session_effects session::call(server_call what, steady_time now) {
  auto& s = *impl_;
  const auto key = what.key;
  if (s.now_in == impl::phase::over || s.calls.size() >= most_calls || s.calls.contains(key)) {
    s.out.emplace_back(effect::call_done{
        key,
        s.calls.size() >= most_calls
            ? fail(errc::overloaded, "too many calls to this server at once")
            : fail(errc::actor_down, "the connection to the server is closed", {}, "try again")});
    return s.take();
  }
  open_call c;
  c.what = std::move(what);
  s.allow_time(c, now);
  s.calls.emplace(key, std::move(c));
  s.start_call(key, now);
  return s.take();
}

session_effects session::cancel(const std::string& key, steady_time now) {
  impl_->drop_call(key, "no caller is waiting for it", now);
  return impl_->take();
}

session_effects session::on_answer(std::uint64_t number, const question_answer& answer,
                                   steady_time now) {
  impl_->answered(number, answer, now);
  return impl_->take();
}

session_effects session::on_time(steady_time now) {
  auto& s = *impl_;
  if (s.now_in == impl::phase::over || s.now_in == impl::phase::fresh)
    return {};
  if (s.now_in != impl::phase::ready && now >= s.connect_by) {
    s.fail_session({errc::timed_out,
                    "the server was not ready within " + format_duration(s.o.start_timeout),
                    {},
                    "check its stderr, or raise start_timeout"});
    return s.take();
  }
  if (s.probe_until && now >= *s.probe_until) {
    s.probe_until.reset();
    s.initialize(now);
  }
  std::vector<std::string> late;
  for (const auto& [key, c] : s.calls)
    if (c.asked.empty() && c.deadline <= now)
      late.push_back(key);
  for (const auto& key : late) {
    const auto c = s.calls.at(key);
    const bool too_long = c.deadline >= c.longest && c.what.longest > c.what.timeout;
    s.drop_call(key, "timed out", now);
    s.out.emplace_back(effect::call_done{
        key, too_long ? fail(errc::timed_out,
                             "the server reported progress, but did not finish within " +
                                 format_duration(c.what.longest))
                      : fail(errc::timed_out, "the server did not answer within " +
                                                  format_duration(c.what.timeout))});
  }
  std::vector<std::uint64_t> unanswered;
  for (const auto& [number, q] : s.questions)
    if (q.deadline <= now)
      unanswered.push_back(number);
  for (const auto number : unanswered) {
    s.out.emplace_back(effect::withdraw{number});
    s.answered(number, {"cancel", {}}, now);
  }
  if (s.listing && s.now_in == impl::phase::ready) {
    const auto listing = std::ranges::find_if(s.requests, [&](const auto& r) {
      return r.second.kind == open_request::kind_t::tools && r.second.deadline <= now;
    });
    if (listing != s.requests.end()) {
      s.note(true, "listing its tools again timed out");
      s.requests.erase(listing);
      s.end_listing(now);
    }
  }
  if (s.listen_at && now >= *s.listen_at) {
    s.listen_at.reset();
    s.listen(now);
    s.list_tools(now);
  }
  return s.take();
}

session_effects session::refresh(steady_time now) {
  auto& s = *impl_;
  if (s.now_in == impl::phase::ready && s.old_from && now >= *s.old_from)
    s.list_tools(now);
  return s.take();
}

session_effects session::on_closed(const error& why) {
  impl_->fail_session(why);
  return impl_->take();
}

std::optional<steady_time> session::next_time() const {
  const auto& s = *impl_;
  std::optional<steady_time> first;
  const auto also = [&](const std::optional<steady_time>& at) {
    if (at && (!first || *at < *first))
      first = at;
  };
  if (s.now_in == impl::phase::over || s.now_in == impl::phase::fresh)
    return first;
  if (s.now_in != impl::phase::ready)
    also(s.connect_by);
  also(s.probe_until);
  also(s.listen_at);
  for (const auto& [key, c] : s.calls)
    if (c.asked.empty())
      also(c.deadline);
  for (const auto& [number, q] : s.questions)
    also(q.deadline);
  if (s.listing && s.now_in == impl::phase::ready)
    for (const auto& [id, r] : s.requests)
      if (r.kind == open_request::kind_t::tools)
        also(r.deadline);
  return first;
}

bool session::is_ready() const {
  return impl_->now_in == impl::phase::ready;
}

bool session::is_over() const {
  return impl_->now_in == impl::phase::over;
}

bool session::is_listing() const {
  return impl_->listing;
}

era_t session::era() const {
  return impl_->era;
}

const std::string& session::version() const {
  return impl_->version;
}

const std::string& session::server_says() const {
  return impl_->says;
}

const std::vector<server_tool>& session::tools() const {
  return impl_->tools;
}

bool session::has_resources() const {
  return impl_->resources_capability;
}

std::size_t session::calls() const {
  return impl_->calls.size();
}

} // namespace boyd::mcp
