#include "boyd/mcp/http_link.hpp"

#include "boyd/core/media_type.hpp"
#include "boyd/core/text.hpp"
#include "boyd/mcp/headers.hpp"
#include "boyd/model/sse.hpp"

#include <algorithm>
#include <map>
#include <utility>

namespace boyd::mcp {

namespace {

/// Of an answer that is no success.
constexpr std::size_t refusal_bytes = 64u << 10;
/// An answer's transport has a little longer than its session waits.
constexpr milliseconds slack = 5s;
constexpr milliseconds longest_stream = std::chrono::hours{24};
constexpr milliseconds usual_retry = 1s;
constexpr milliseconds shortest_retry = 50ms;
constexpr milliseconds longest_retry = 5min;
/// A stream that cannot be opened so often is given up.
constexpr int most_tries = 5;
constexpr std::size_t session_id_bytes = 1024;

constexpr int http_ok = 200;
constexpr int http_accepted = 202;
constexpr int http_no_content = 204;
constexpr int http_redirect = 300;
constexpr int http_unauthorized = 401;
constexpr int http_forbidden = 403;
constexpr int http_not_found = 404;
constexpr int http_no_method = 405;
constexpr int http_bad_request = 400;
constexpr int http_gone = 410;
constexpr int http_server_error = 500;

std::string header(const http_head& head, std::string_view name) {
  const auto it = std::ranges::find(head.headers, name, &http_headers::value_type::first);
  return it == head.headers.end() ? std::string() : it->second;
}

bool is_event_stream(const http_head& head) {
  return is_media_type(header(head, "content-type"), "text/event-stream");
}

enum class purpose : std::uint8_t { post, resume, listen, farewell };

/// One HTTP request that is under way, or that waits to be taken up again.
struct exchange_t {
  purpose what = purpose::post;
  std::optional<std::int64_t> id; ///< of the request that it brings the answer of
  bool begins_session = false;    ///< its answer's head names the session
  bool modern = false;
  std::string session;   ///< that it was sent in; empty: none
  bool was_open = false; ///< a stream of the server's own words, in that session
  bool greets = false;   ///< part of the handshake
  http_head head;
  bool stream = false;
  std::string body;
  model::sse_reader events;
  bool answered = false; ///< the answer came
  int tries = 0;         ///< since it was open
  std::string resume_from;
  std::optional<steady_time> again_at; ///< it is not under way, and will be then
};

} // namespace

struct http_link::impl {
  explicit impl(http_target t) : target(std::move(t)) {}

  http_target target;
  std::string session_id;
  std::string version; ///< of the handshake era
  std::uint64_t last = 0;
  std::map<std::uint64_t, exchange_t> exchanges;
  bool listens = false;
  http_effects out;

  http_effects take() { return std::exchange(out, {}); }

  http_request base(const char* method) const {
    http_request r;
    r.method = method;
    r.url = target.url;
    r.headers = target.headers;
    return r;
  }

  void add_session(http_request& r) const {
    if (!session_id.empty())
      r.headers.emplace_back("Mcp-Session-Id", session_id);
    if (!version.empty())
      r.headers.emplace_back("MCP-Protocol-Version", version);
  }

  void start(exchange_t e, http_request r) {
    const auto number = ++last;
    exchanges.emplace(number, std::move(e));
    out.emplace_back(http_effect::start{number, std::move(r)});
  }

  /// GET, from the last event on where there was one.
  void get(exchange_t e) {
    auto r = base("GET");
    r.headers.emplace_back("Accept", "text/event-stream");
    add_session(r);
    e.session = session_id;
    if (!e.resume_from.empty())
      r.headers.emplace_back("Last-Event-ID", e.resume_from);
    r.timeout = longest_stream;
    e.head = {};
    e.stream = false;
    e.body.clear();
    e.events = {};
    e.again_at.reset();
    start(std::move(e), std::move(r));
  }

  void take_message(exchange_t& e, const std::string& text) {
    if (text.find_first_not_of(" \t\r\n") == std::string::npos)
      return; // primes the stream to be taken up again
    if (e.id) {
      const auto m = read_message(text);
      if (const auto* r = m ? std::get_if<rpc_response>(&*m) : nullptr)
        e.answered = e.answered || !r->id || number_of(*r->id) == e.id;
      else if (!m)
        e.answered = e.answered || look_at_unreadable(text).is_answer;
    }
    out.emplace_back(http_effect::message{text, e.id});
  }

  void refuse(const exchange_t& e, delivery_failure why) {
    if (e.id)
      out.emplace_back(http_effect::undelivered{*e.id, std::move(why)});
    else if (e.what == purpose::post)
      out.emplace_back(http_effect::note{why.what});
  }

  void ended_badly(const exchange_t& e);
  void ended(exchange_t e, const result<void>& transport, steady_time now);
  bool take_up(exchange_t& e, steady_time now);
};

namespace {

/// Whether a refusal says that the server does not know the session: 404 as the protocol has it, or
/// 400 (and its kin) as many servers have it, unless its words are about another matter.
bool is_session_lost(const exchange_t& e) {
  const int status = e.head.status;
  if (e.session.empty() || status < http_bad_request || status >= http_server_error ||
      status == http_unauthorized || status == http_forbidden || status == http_no_method)
    return false;
  if (status == http_not_found || status == http_gone)
    return true;
  const auto m = read_message(e.body);
  const auto* r = m ? std::get_if<rpc_response>(&*m) : nullptr;
  if (r != nullptr && r->error)
    return names_lost_session(*r->error) ||
           (status == http_bad_request && !r->id && r->error->code != rpc_code::parse_error);
  return status == http_bad_request || names_lost_session({0, e.body, {}});
}

} // namespace

/// The answer is no success.
void http_link::impl::ended_badly(const exchange_t& e) {
  delivery_failure why;
  why.status = e.head.status;
  why.what = "the server answered with HTTP status " + std::to_string(e.head.status);
  if (const auto m = read_message(e.body))
    if (const auto* r = std::get_if<rpc_response>(&*m); r != nullptr && r->error)
      why.error = r->error;
  if (e.head.status == http_unauthorized || e.head.status == http_forbidden)
    why.what += "; it needs a key: set `headers: {Authorization: …}` of the server";
  else if (e.head.status >= http_redirect && e.head.status < 400)
    why.what += "; redirects are not followed: use the address of the redirect";
  // Last, so that a secret which the cut goes through is found.
  if (why.error)
    why.what += "; its message: " + std::string(cut_characters(why.error->message, 500));
  why.session_gone = is_session_lost(e);
  const bool lost_outside = why.session_gone && !e.id && e.session == session_id && !e.greets;
  refuse(e, std::move(why));
  if (lost_outside)
    out.emplace_back(http_effect::session_lost{});
}

/// Whether a broken stream is to be taken up again.
bool http_link::impl::take_up(exchange_t& e, steady_time now) {
  if (e.stream)
    e.tries = 0; // it was open: a server may end it now and then
  if (e.modern || ++e.tries > most_tries)
    return false;
  if (!e.events.last_id().empty())
    e.resume_from = e.events.last_id();
  if (e.what != purpose::listen && e.resume_from.empty())
    return false;
  const auto asked = e.events.retry().value_or(usual_retry * (1 << (e.tries - 1)));
  e.again_at = now + std::clamp(asked, shortest_retry, longest_retry);
  if (e.what == purpose::post)
    e.what = purpose::resume;
  return true;
}

void http_link::impl::ended(exchange_t e, const result<void>& transport, steady_time now) {
  if (e.what == purpose::farewell || e.answered)
    return;
  const int status = e.head.status;
  if (e.what == purpose::listen && e.was_open && is_session_lost(e)) {
    if (e.session != session_id && !session_id.empty()) {
      e.was_open = false;
      return get(std::move(e)); // of the session before
    }
    listens = false; // begun again behind the new handshake
    if (!session_id.empty())
      out.emplace_back(http_effect::session_lost{});
    return;
  }
  if (e.what == purpose::listen &&
      (status == http_no_method || (status >= 400 && !session_id.empty()) ||
       (status != 0 && !e.stream))) {
    listens = false; // it says nothing by itself
    return;
  }
  if (transport && status != 0 && (status < http_ok || status >= http_redirect))
    return ended_badly(e);
  if (!e.id && e.what == purpose::post) {
    if (!transport)
      refuse(e, {0, transport.error().what, {}, false});
    return;
  }
  if (e.stream || (e.what != purpose::post && !transport)) {
    if (take_up(e, now)) {
      exchanges.emplace(++last, std::move(e));
      return;
    }
  } else if (transport && status != http_accepted && status != http_no_content) {
    take_message(e, e.body);
    if (e.answered)
      return;
  }
  if (e.what == purpose::listen) {
    listens = false;
    return;
  }
  refuse(e, {0,
             transport ? "the server ended its answer before the result"
                       : to_string(transport.error()),
             {},
             false});
}

http_link::http_link(http_target target) : impl_(std::make_unique<impl>(std::move(target))) {}
http_link::~http_link() = default;
http_link::http_link(http_link&&) noexcept = default;
http_link& http_link::operator=(http_link&&) noexcept = default;

http_effects http_link::send(const effect::send& what, era_t era, const std::string& version,
                             steady_time /*now*/) {
  auto& s = *impl_;
  auto r = s.base("POST");
  r.headers.emplace_back("Content-Type", "application/json");
  r.headers.emplace_back("Accept", "application/json, text/event-stream");
  exchange_t e;
  e.id = what.id;
  e.modern = era == era_t::modern || what.method == "server/discover";
  e.begins_session = what.method == "initialize";
  e.greets = e.begins_session || what.method == "notifications/initialized";
  if (e.modern) {
    r.headers.emplace_back("MCP-Protocol-Version",
                           version.empty() ? std::string(modern_version) : version);
    r.headers.emplace_back("Mcp-Method", what.method);
    if (!what.name.empty())
      r.headers.emplace_back("Mcp-Name", header_value(what.name));
    for (const auto& h : what.param_headers)
      r.headers.push_back(h);
  } else if (e.begins_session) {
    s.session_id.clear();
    s.version.clear();
  } else {
    s.version = version;
    s.add_session(r);
    e.session = s.session_id;
  }
  r.body = what.text;
  r.timeout = what.stays_open ? longest_stream : what.patience + slack;
  s.start(std::move(e), std::move(r));
  return s.take();
}

http_effects http_link::abandon(std::int64_t id) {
  auto& s = *impl_;
  for (auto it = s.exchanges.begin(); it != s.exchanges.end();) {
    if (it->second.id != id) {
      ++it;
      continue;
    }
    if (!it->second.again_at)
      s.out.emplace_back(http_effect::cancel{it->first});
    it = s.exchanges.erase(it);
  }
  return s.take();
}

http_effects http_link::listen(const std::string& version, steady_time /*now*/) {
  auto& s = *impl_;
  if (std::exchange(s.listens, true))
    return {};
  s.version = version;
  exchange_t e;
  e.what = purpose::listen;
  s.get(std::move(e));
  return s.take();
}

http_effects http_link::close(const std::string& version) {
  auto& s = *impl_;
  for (const auto& [number, e] : s.exchanges)
    if (!e.again_at)
      s.out.emplace_back(http_effect::cancel{number});
  s.exchanges.clear();
  if (!s.session_id.empty()) {
    s.version = version;
    auto r = s.base("DELETE");
    s.add_session(r);
    r.timeout = slack;
    exchange_t e;
    e.what = purpose::farewell;
    s.start(std::move(e), std::move(r));
    s.session_id.clear();
  }
  return s.take();
}

http_effects http_link::on_head(std::uint64_t exchange, const http_head& head,
                                steady_time /*now*/) {
  auto& s = *impl_;
  const auto it = s.exchanges.find(exchange);
  if (it == s.exchanges.end())
    return {};
  auto& e = it->second;
  e.head = head;
  const bool well = head.status >= http_ok && head.status < http_redirect;
  e.stream = well && is_event_stream(head);
  e.was_open = e.was_open || (e.stream && e.what == purpose::listen);
  if (well && e.begins_session)
    if (auto id = header(head, "mcp-session-id");
        id.size() <= session_id_bytes &&
        std::ranges::all_of(id, [](char c) { return c > ' ' && c <= '~'; }))
      s.session_id = std::move(id);
  return {};
}

http_effects http_link::on_body(std::uint64_t exchange, std::string_view bytes, steady_time now) {
  auto& s = *impl_;
  const auto it = s.exchanges.find(exchange);
  if (it == s.exchanges.end())
    return {};
  auto& e = it->second;
  if (!e.stream) {
    const bool well = e.head.status < http_redirect;
    const auto most = well ? message_bytes + 1 : refusal_bytes;
    e.body += bytes.substr(0, most - std::min(most, e.body.size()));
    return {};
  }
  auto taken = e.events.feed(bytes, [&](const model::sse_event& event) {
    // Other kinds of events are not the protocol's.
    if (event.type.empty() || event.type == "message")
      s.take_message(e, event.data);
  });
  if (!taken) {
    auto ended = std::move(e);
    s.exchanges.erase(it);
    s.out.emplace_back(http_effect::cancel{exchange});
    ended.modern = true; // such a stream is not taken up again
    s.ended(std::move(ended), fail(std::move(taken.error())), now);
  } else if (e.answered) {
    // The server should end the stream now; nothing more is wanted of it.
    s.exchanges.erase(it);
    s.out.emplace_back(http_effect::cancel{exchange});
  }
  return s.take();
}

http_effects http_link::on_end(std::uint64_t exchange, const result<void>& transport,
                               steady_time now) {
  auto& s = *impl_;
  const auto it = s.exchanges.find(exchange);
  if (it == s.exchanges.end())
    return {};
  auto e = std::move(it->second);
  s.exchanges.erase(it);
  s.ended(std::move(e), transport, now);
  return s.take();
}

http_effects http_link::on_time(steady_time now) {
  auto& s = *impl_;
  std::vector<std::uint64_t> due;
  for (const auto& [number, e] : s.exchanges)
    if (e.again_at && *e.again_at <= now)
      due.push_back(number);
  for (const auto number : due) {
    auto e = std::move(s.exchanges.at(number));
    s.exchanges.erase(number);
    s.get(std::move(e));
  }
  return s.take();
}

std::optional<steady_time> http_link::next_time() const {
  std::optional<steady_time> first;
  for (const auto& [number, e] : impl_->exchanges)
    if (e.again_at && (!first || *e.again_at < *first))
      first = e.again_at;
  return first;
}

} // namespace boyd::mcp
