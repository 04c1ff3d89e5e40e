#include "boyd/mcp/http_link.hpp"
#include "support/pch.hpp"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <map>

namespace boyd::http_link_test {

using namespace boyd;
using namespace boyd::mcp;
using Catch::Matchers::Contains;
using nlohmann::json;

namespace {

/// A link, and what it wants.
class wire {
 public:
  http_link link{http_target{"http://127.0.0.1:1/mcp", {{"Authorization", "Bearer k"}}}};
  std::vector<http_effect::start> started;
  std::vector<std::uint64_t> cancelled;
  std::vector<http_effect::message> messages;
  std::vector<http_effect::undelivered> undelivered;
  std::vector<std::string> notes;
  steady_time now{};

  void take(http_effects effects) {
    for (auto& any : effects) {
      if (auto* s = std::get_if<http_effect::start>(&any))
        started.push_back(*s);
      else if (auto* c = std::get_if<http_effect::cancel>(&any))
        cancelled.push_back(c->exchange);
      else if (auto* m = std::get_if<http_effect::message>(&any))
        messages.push_back(*m);
      else if (auto* u = std::get_if<http_effect::undelivered>(&any))
        undelivered.push_back(*u);
      else
        notes.push_back(std::get<http_effect::note>(any).text);
    }
  }

  void post(std::optional<std::int64_t> id, const std::string& method, era_t era = era_t::modern,
            const std::string& version = "2026-07-28") {
    effect::send e;
    e.id = id;
    e.method = method;
    e.text = "{}";
    take(link.send(e, era, version, now));
  }
  std::uint64_t last() const { return started.back().exchange; }
  void answer(int status, const std::string& type, const std::string& body,
              const http_headers& more = {}) {
    const auto n = last();
    http_head head{status, more};
    head.headers.emplace_back("content-type", type);
    take(link.on_head(n, head, now));
    take(link.on_body(n, body, now));
    take(link.on_end(n, {}, now));
  }
  /// Of the last request; empty when it has none.
  std::string header(const std::string& name) const {
    const auto& all = started.back().request.headers;
    const auto it = std::ranges::find(all, name, &http_headers::value_type::first);
    return it == all.end() ? std::string() : it->second;
  }
};

std::string answer_to(std::int64_t id) {
  return json{{"jsonrpc", "2.0"}, {"id", id}, {"result", json::object()}}.dump();
}

/// A session of the handshake era with an id.
wire greeted() {
  wire w;
  w.post(1, "initialize", era_t::unknown, "");
  w.answer(200, "application/json", answer_to(1), {{"mcp-session-id", "abc"}});
  return w;
}

} // namespace

TEST_CASE("http link: a stateless request carries its headers", "[mcp]") {
  wire w;
  effect::send e;
  e.id = 4;
  e.method = "tools/call";
  e.name = "größe";
  e.text = R"({"x":1})";
  e.param_headers = {{"Mcp-Param-Region", "eu"}};
  w.take(w.link.send(e, era_t::modern, "2026-07-28", w.now));
  const auto& r = w.started.back().request;
  CHECK(r.method == "POST");
  CHECK(r.body == R"({"x":1})");
  CHECK(w.header("Accept") == "application/json, text/event-stream");
  CHECK(w.header("Content-Type") == "application/json");
  CHECK(w.header("MCP-Protocol-Version") == "2026-07-28");
  CHECK(w.header("Mcp-Method") == "tools/call");
  CHECK(w.header("Mcp-Name") == "=?base64?Z3LDtsOfZQ==?=");
  CHECK(w.header("Mcp-Param-Region") == "eu");
  CHECK(w.header("Authorization") == "Bearer k");
  w.answer(200, "application/json; charset=utf-8", answer_to(4));
  REQUIRE(w.messages.size() == 1);
  CHECK(w.messages[0].via == 4);
  CHECK(w.undelivered.empty());
  // The first question is of the stateless era before anything is known.
  w.post(5, "server/discover", era_t::unknown, "");
  CHECK(w.header("MCP-Protocol-Version") == "2026-07-28");
  CHECK(w.header("Mcp-Method") == "server/discover");
}

TEST_CASE("http link: a stream of events brings messages as they come, in any pieces", "[mcp]") {
  wire w;
  w.post(1, "tools/call");
  const auto n = w.last();
  w.take(w.link.on_head(n, {200, {{"content-type", "text/event-stream"}}}, w.now));
  const std::string stream = ": hello\n\nid: 1\ndata:\n\nevent: message\ndata: {\"a\":1}\n\n"
                             "event: other\ndata: {\"b\":1}\n\ndata: " +
                             answer_to(1) + "\n\n";
  for (const char c : stream)
    w.take(w.link.on_body(n, std::string(1, c), w.now));
  REQUIRE(w.messages.size() == 2);
  CHECK(w.messages[0].text == "{\"a\":1}");
  // The answer has come: the stream is of no more use.
  CHECK(w.cancelled == std::vector{n});
  w.take(w.link.on_end(n, fail(errc::cancelled, "cancelled"), w.now));
  CHECK(w.undelivered.empty());
}

TEST_CASE("http link: what is no answer is told with its status and its words", "[mcp]") {
  wire w;
  w.post(1, "tools/list");
  w.answer(400, "application/json",
           R"({"jsonrpc":"2.0","id":1,"error":{"code":-32022,"message":"no such version"}})");
  REQUIRE(w.undelivered.size() == 1);
  CHECK(w.undelivered[0].why.status == 400);
  REQUIRE(w.undelivered[0].why.error);
  CHECK(w.undelivered[0].why.error->code == -32022);
  w.post(2, "tools/list");
  w.answer(401, "text/html", "<html>go away</html>");
  CHECK_THAT(w.undelivered[1].why.what, Contains("401") && Contains("Authorization"));
  w.post(3, "tools/list");
  w.answer(302, "text/html", "");
  CHECK_THAT(w.undelivered[2].why.what, Contains("redirects"));
  w.post(4, "tools/list");
  w.answer(202, "", "");
  CHECK(w.undelivered[3].why.status == 0);
  w.post(5, "tools/list");
  w.take(w.link.on_end(w.last(), fail(errc::io_error, "connection refused"), w.now));
  CHECK_THAT(w.undelivered[4].why.what, Contains("connection refused"));
  w.post(6, "tools/list");
  w.answer(200, "application/json", answer_to(99));
  CHECK(w.undelivered[5].id == 6);
  // A stateless stream that breaks is not taken up again.
  w.post(7, "tools/call");
  const auto n = w.last();
  w.take(w.link.on_head(n, {200, {{"content-type", "text/event-stream"}}}, w.now));
  w.take(w.link.on_body(n, "id: 3\ndata: {}\n\n", w.now));
  w.take(w.link.on_end(n, {}, w.now));
  CHECK(w.undelivered.size() == 7);
  CHECK_FALSE(w.link.next_time());
}

TEST_CASE("http link: a session of the handshake era is kept, lost and given back", "[mcp]") {
  auto w = greeted();
  w.post(std::nullopt, "notifications/initialized", era_t::legacy, "2025-11-25");
  CHECK(w.header("Mcp-Session-Id") == "abc");
  CHECK(w.header("MCP-Protocol-Version") == "2025-11-25");
  CHECK(w.header("Mcp-Method").empty());
  w.answer(202, "", "");
  CHECK(w.notes.empty());
  SECTION("lost") {
    w.post(2, "tools/call", era_t::legacy, "2025-11-25");
    w.answer(404, "application/json", "");
    REQUIRE(w.undelivered.size() == 1);
    CHECK(w.undelivered[0].why.session_gone);
    w.post(3, "initialize", era_t::unknown, "");
    CHECK(w.header("Mcp-Session-Id").empty());
    CHECK(w.header("MCP-Protocol-Version").empty());
  }
  SECTION("given back") {
    w.take(w.link.close("2025-11-25"));
    CHECK(w.started.back().request.method == "DELETE");
    CHECK(w.header("Mcp-Session-Id") == "abc");
  }
}

TEST_CASE("http link: a broken stream of the handshake era is taken up after the asked wait",
          "[mcp]") {
  auto w = greeted();
  w.post(2, "tools/call", era_t::legacy, "2025-11-25");
  const auto n = w.last();
  w.take(w.link.on_head(n, {200, {{"content-type", "text/event-stream"}}}, w.now));
  w.take(w.link.on_body(n, "id: ev-7\nretry: 1500\ndata:\n\n", w.now));
  w.take(w.link.on_end(n, {}, w.now));
  CHECK(w.undelivered.empty());
  REQUIRE(w.link.next_time());
  CHECK(*w.link.next_time() == w.now + 1500ms);
  const auto before = w.started.size();
  w.take(w.link.on_time(w.now + 1499ms));
  CHECK(w.started.size() == before);
  w.now += 1500ms;
  w.take(w.link.on_time(w.now));
  REQUIRE(w.started.size() == before + 1);
  CHECK(w.started.back().request.method == "GET");
  CHECK(w.header("Last-Event-ID") == "ev-7");
  CHECK(w.header("Accept") == "text/event-stream");
  CHECK(w.header("Mcp-Session-Id") == "abc");
  SECTION("and brings the answer") {
    w.answer(200, "text/event-stream", "id: ev-8\ndata: " + answer_to(2) + "\n\n");
    CHECK(w.messages.back().text == answer_to(2));
    CHECK(w.messages.back().via == 2);
    CHECK(w.undelivered.empty());
  }
  SECTION("but not for ever") {
    for (int i = 0; i < 50 && w.undelivered.empty(); ++i) {
      w.take(w.link.on_end(w.last(), fail(errc::io_error, "refused"), w.now));
      if (w.link.next_time()) {
        w.now = *w.link.next_time();
        w.take(w.link.on_time(w.now));
      }
    }
    CHECK(w.undelivered.size() == 1);
  }
  SECTION("nor when nobody waits any more") {
    w.take(w.link.abandon(2));
    CHECK(w.cancelled.back() == w.last());
    CHECK_FALSE(w.link.next_time());
  }
}

TEST_CASE("http link: what a server says by itself is listened to, where it offers that", "[mcp]") {
  auto w = greeted();
  w.take(w.link.listen("2025-11-25", w.now));
  REQUIRE(w.started.back().request.method == "GET");
  CHECK(w.header("Last-Event-ID").empty());
  SECTION("not offered") {
    w.answer(405, "", "");
    CHECK_FALSE(w.link.next_time());
    CHECK(w.notes.empty());
  }
  SECTION("offered") {
    const auto n = w.last();
    w.take(w.link.on_head(n, {200, {{"content-type", "text/event-stream"}}}, w.now));
    w.take(w.link.on_body(n, "data: {\"method\":\"x\"}\n\n", w.now));
    CHECK(w.messages.back().text == "{\"method\":\"x\"}");
    CHECK_FALSE(w.messages.back().via);
    w.take(w.link.on_end(n, fail(errc::io_error, "broke"), w.now));
    REQUIRE(w.link.next_time());
    // Listened to already.
    w.take(w.link.listen("2025-11-25", w.now));
    CHECK(w.last() == n);
  }
}

TEST_CASE("http link: an event without end is given up", "[mcp]") {
  wire w;
  w.post(1, "tools/call");
  const auto n = w.last();
  w.take(w.link.on_head(n, {200, {{"content-type", "text/event-stream"}}}, w.now));
  const std::string chunk(1u << 20, 'x');
  for (int i = 0; i < 20 && w.undelivered.empty(); ++i)
    w.take(w.link.on_body(n, i == 0 ? "data: " + chunk : chunk, w.now));
  REQUIRE(w.undelivered.size() == 1);
  CHECK(w.cancelled == std::vector{n});
}

} // namespace boyd::http_link_test
