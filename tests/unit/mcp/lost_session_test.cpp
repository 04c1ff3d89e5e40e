#include "boyd/mcp/http_link.hpp"
#include "boyd/mcp/session.hpp"
#include "support/pch.hpp"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <deque>
#include <map>
#include <set>

namespace boyd::lost_session_test {

using namespace boyd;
using namespace boyd::mcp;
using Catch::Matchers::Contains;
using nlohmann::json;

namespace {

std::string header(const http_request& r, const std::string& name) {
  const auto it = std::ranges::find(r.headers, name, &http_headers::value_type::first);
  return it == r.headers.end() ? std::string() : it->second;
}

/// A session and its link, with a server of the handshake era at the other end. Requests are
/// answered one after the other by answer_all(), in the order that they came in or as they were put
/// back.
class conversation {
 public:
  session client;
  http_link link{http_target{"http://127.0.0.1:1/mcp", {}}};
  std::set<std::string> sessions; ///< that the server knows
  int gone = 404;                 ///< the status of a session that is not known
  std::string gone_body{};
  bool knows_nobody = false; ///< calls are answered with 404, whatever session they name
  std::deque<http_effect::start> pending;
  std::map<std::string, result<std::string>> done;
  std::map<std::string, int> heard; ///< by method
  std::vector<std::string> without_session;
  bool failed = false;
  steady_time now{};

  conversation() : client(options()) {
    perform(client.begin(now));
    answer_all();
    REQUIRE(client.is_ready());
  }

  void call(const std::string& key) {
    server_call c;
    c.key = key;
    c.name = "t";
    perform(client.call(std::move(c), now));
  }

  void answer_all() {
    for (int most = 1000; !pending.empty(); --most) {
      REQUIRE(most > 0);
      answer_next();
    }
  }
  void answer_next() {
    const auto next = pending.front();
    pending.pop_front();
    answer(next);
  }
  void perform(session_effects effects) {
    for (auto& any : effects) {
      if (auto* e = std::get_if<effect::send>(&any))
        perform(link.send(*e, client.era(), client.version(), now));
      else if (auto* d = std::get_if<effect::call_done>(&any))
        done.emplace(d->key, d->result_json);
      else if (std::holds_alternative<effect::failed>(any))
        failed = true;
    }
  }

 private:
  static session_options options() {
    session_options o;
    o.http = true;
    o.remembered = era_t::legacy;
    o.list_lifetime = 5min;
    return o;
  }

  void perform(http_effects effects) {
    for (auto& any : effects) {
      if (auto* s = std::get_if<http_effect::start>(&any))
        pending.push_back(*s);
      else if (auto* m = std::get_if<http_effect::message>(&any))
        perform(client.on_message(m->text, now, m->via));
      else if (std::holds_alternative<http_effect::session_lost>(any))
        perform(client.on_session_lost(now));
      else if (auto* u = std::get_if<http_effect::undelivered>(&any))
        perform(client.on_undelivered(u->id, u->why, now));
    }
  }

  void answer(const http_effect::start& s) {
    const auto m = json::parse(s.request.body);
    const auto method = m.value("method", "");
    ++heard[method];
    const auto name = header(s.request, "Mcp-Session-Id");
    if (method == "initialize") {
      const auto fresh = "session-" + std::to_string(++last_);
      sessions.insert(fresh);
      return reply(s, 200,
                   result_of(m, {{"protocolVersion", "2025-11-25"},
                                 {"capabilities", {{"tools", json::object()}}}}),
                   {{"mcp-session-id", fresh}});
    }
    if (name.empty()) {
      without_session.push_back(method);
      return reply(s, 400, {});
    }
    if (!sessions.contains(name) || (knows_nobody && method == "tools/call"))
      return reply(s, gone, gone_body);
    if (method == "tools/list")
      return reply(
          s, 200,
          result_of(m, {{"tools", {{{"name", "t"}, {"inputSchema", {{"type", "object"}}}}}}}));
    if (method == "tools/call")
      return reply(s, 200, result_of(m, {{"content", json::array()}}));
    reply(s, 202, {});
  }
  static std::string result_of(const json& m, const json& result) {
    return json{{"jsonrpc", "2.0"}, {"id", m["id"]}, {"result", result}}.dump();
  }
  void reply(const http_effect::start& s, int status, const std::string& body,
             http_headers headers = {}) {
    headers.emplace_back("content-type", "application/json");
    perform(link.on_head(s.exchange, {status, std::move(headers)}, now));
    perform(link.on_body(s.exchange, body, now));
    perform(link.on_end(s.exchange, {}, now));
  }

  int last_ = 0;
};

} // namespace

TEST_CASE("field case 08: a lost session that is told by 400 or its kin is begun anew, once",
          "[mcp]") {
  conversation c;
  const auto form = GENERATE(0, 1, 2, 3, 4);
  c.gone = form == 3 ? 410 : form == 4 ? 422 : 400;
  c.gone_body =
      form == 1
          ? R"({"jsonrpc":"2.0","id":null,"error":{"code":-32000,"message":"Bad Request: No valid session ID provided"}})"
      : form == 2 ? "Bad Request: session is unknown"
      : form == 4 ? "Session not found"
                  : "";
  SECTION("after a restart") {
    c.sessions.clear();
    c.call("a");
    c.answer_all();
    CHECK(c.heard["initialize"] == 2);
    CHECK(c.heard["tools/call"] == 2);
    REQUIRE(c.done.contains("a"));
    CHECK(c.done.at("a"));
  }
  SECTION("for ever") {
    c.knows_nobody = true;
    c.call("a");
    c.answer_all();
    CHECK(c.heard["initialize"] == 2);
    CHECK(c.heard["tools/call"] == 2);
    REQUIRE(c.done.contains("a"));
    CHECK_FALSE(c.done.at("a"));
  }
}

TEST_CASE("lost session: noticed by a refresh of the list, it is begun anew", "[mcp]") {
  conversation c;
  c.sessions.clear(); // the server was restarted
  c.now += 6min;
  c.perform(c.client.refresh(c.now));
  c.answer_all();
  CHECK(c.heard["initialize"] == 2);
  c.call("a");
  c.answer_all();
  CHECK(c.without_session.empty());
  REQUIRE(c.done.contains("a"));
  CHECK(c.done.at("a"));
}

TEST_CASE("lost session: a call beside the refresh that notices it is made in the new one",
          "[mcp]") {
  conversation c;
  c.sessions.clear();
  c.now += 6min;
  c.perform(c.client.refresh(c.now));
  c.call("a");
  c.answer_all();
  CHECK(c.heard["initialize"] == 2);
  REQUIRE(c.done.contains("a"));
  CHECK(c.done.at("a"));
}

TEST_CASE("lost session: several calls under way share one new session", "[mcp]") {
  conversation c;
  c.sessions.clear();
  for (const auto* key : {"a", "b", "c"})
    c.call(key);
  REQUIRE(c.pending.size() == 3);
  // The last one hears of the loss when the new session is in use already.
  const auto late = c.pending.back();
  c.pending.pop_back();
  c.answer_all();
  c.pending.push_back(late);
  c.answer_all();
  CHECK(c.heard["initialize"] == 2);
  CHECK(c.without_session.empty());
  CHECK_FALSE(c.failed);
  for (const auto* key : {"a", "b", "c"}) {
    INFO(key);
    REQUIRE(c.done.contains(key));
    CHECK(c.done.at(key));
  }
}

TEST_CASE("lost session: the late news of one does not touch a handshake on its way", "[mcp]") {
  conversation c;
  c.sessions.clear();
  c.call("a");
  c.call("b");
  c.answer_next(); // a is refused: the handshake is sent
  REQUIRE(c.pending.size() == 2);
  std::swap(c.pending[0], c.pending[1]);
  c.answer_next(); // the new session is there
  c.answer_all();  // and b hears of the old one
  CHECK(c.heard["initialize"] == 2);
  CHECK(c.without_session.empty());
  CHECK(c.done.at("a"));
  CHECK(c.done.at("b"));
}

TEST_CASE("lost session: a server that answers each call with 404 is asked twice, not for ever",
          "[mcp]") {
  conversation c;
  c.knows_nobody = true;
  c.call("a");
  c.answer_all();
  CHECK(c.heard["tools/call"] == 2);
  CHECK(c.heard["initialize"] == 2);
  REQUIRE(c.done.contains("a"));
  REQUIRE_FALSE(c.done.at("a"));
  CHECK_THAT(c.done.at("a").error().what, Contains("404"));
  // The next call has its own two.
  c.call("b");
  c.answer_all();
  CHECK(c.heard["tools/call"] == 4);
  CHECK_FALSE(c.done.at("b"));
}

} // namespace boyd::lost_session_test
