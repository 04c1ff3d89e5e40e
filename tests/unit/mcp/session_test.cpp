#include "session_lab.hpp"

namespace boyd::session_test {

using namespace boyd;
using namespace boyd::mcp;
using namespace boyd::mcp::lab;
using Catch::Matchers::Contains;

TEST_CASE("session: a stateless server is found by its answer to server/discover", "[mcp]") {
  auto t = modern();
  CHECK(t.s.era() == era_t::modern);
  CHECK(t.s.version() == "2026-07-28");
  CHECK(t.s.server_says() == "s 1");
  CHECK(t.ready == 1);
  CHECK(t.count("initialize") == 0);
  for (const auto& m : t.sent) {
    if (!m.contains("id"))
      continue;
    const auto& meta = m["params"]["_meta"];
    CHECK(meta["io.modelcontextprotocol/protocolVersion"] == "2026-07-28");
    CHECK(meta["io.modelcontextprotocol/clientInfo"]["name"] == "boyd");
    CHECK(meta["io.modelcontextprotocol/clientCapabilities"].is_object());
  }
  // It is asked to tell of changes.
  CHECK(t.last("subscriptions/listen")["params"]["notifications"]["toolsListChanged"] == true);
}

TEST_CASE("session: any other error means the handshake", "[mcp]") {
  const int code = GENERATE(-32601, -32602, -32000, 1, -32603);
  talk t;
  t.take(t.s.begin(t.now));
  t.refuse(t.last("server/discover")["id"], code, "what?");
  const auto& hello = t.last("initialize");
  CHECK(hello["params"]["protocolVersion"] == "2025-11-25");
  CHECK_FALSE(hello["params"].contains("_meta"));
  t.answer(hello["id"], initialized("2025-03-26"));
  CHECK(t.count("notifications/initialized") == 1);
  CHECK(t.s.version() == "2025-03-26");
  CHECK(t.s.era() == era_t::legacy);
  t.answer(t.last("tools/list")["id"], {{"tools", json::array()}});
  CHECK(t.s.is_ready());
  CHECK(t.count("subscriptions/listen") == 0);
}

TEST_CASE("session: silence on stdio means the handshake, a late answer takes it back", "[mcp]") {
  talk t;
  t.take(t.s.begin(t.now));
  const auto discover = t.last("server/discover")["id"];
  REQUIRE(t.s.next_time());
  t.wait(5s);
  REQUIRE(t.count("initialize") == 1);
  SECTION("silent for ever") {
    t.answer(t.last("initialize")["id"], initialized());
    CHECK(t.s.era() == era_t::legacy);
  }
  SECTION("slow") {
    t.answer(discover, discovered());
    CHECK(t.s.era() == era_t::modern);
    t.refuse(t.last("initialize")["id"], -32601, "no handshake here");
    CHECK_FALSE(t.failed);
    t.answer(t.last("tools/list")["id"], {{"tools", json::array()}});
    CHECK(t.s.is_ready());
  }
}

TEST_CASE("session: a version that is refused is chosen from the server's", "[mcp]") {
  talk t;
  t.take(t.s.begin(t.now));
  const auto first = t.last("server/discover")["id"];
  SECTION("the same, once more") {
    t.refuse(first, -32022, "no", {{"supported", {"2026-07-28"}}});
    CHECK(t.count("server/discover") == 2);
    CHECK(t.last("server/discover")["id"] != first);
    t.refuse(t.last("server/discover")["id"], -32022, "no", {{"supported", {"2026-07-28"}}});
    REQUIRE(t.failed);
    CHECK_THAT(t.failed->what, Contains("2026-07-28"));
  }
  SECTION("an older one") {
    t.refuse(first, -32022, "no", {{"supported", {"2025-11-25"}}});
    CHECK(t.count("initialize") == 1);
  }
  SECTION("none in common") {
    t.refuse(first, -32022, "no", {{"supported", {"2031-01-01"}}});
    REQUIRE(t.failed);
    CHECK(t.count("initialize") == 0);
  }
  SECTION("a recognised error of the stateless era is no reason for the handshake") {
    t.refuse(first, -32021, "sampling is required");
    REQUIRE(t.failed);
    CHECK(t.count("initialize") == 0);
  }
}

TEST_CASE("session: what a server was is remembered, an unknown version ends it", "[mcp]") {
  session_options o;
  o.remembered = era_t::legacy;
  talk t(o);
  t.take(t.s.begin(t.now));
  CHECK(t.count("server/discover") == 0);
  t.answer(t.last("initialize")["id"], initialized("1999-01-01"));
  REQUIRE(t.failed);
  CHECK_THAT(t.failed->what, Contains("1999-01-01"));
}

TEST_CASE("session: the list of tools comes in pages, and has bounds", "[mcp]") {
  talk t;
  t.take(t.s.begin(t.now));
  t.answer(t.last("server/discover")["id"], discovered());
  SECTION("joined") {
    t.answer(t.last("tools/list")["id"], {{"tools", {tool("a")}}, {"nextCursor", "2"}});
    CHECK(t.last("tools/list")["params"]["cursor"] == "2");
    CHECK_FALSE(t.s.is_ready());
    t.answer(t.last("tools/list")["id"], {{"tools", {tool("b")}}});
    REQUIRE(t.s.tools().size() == 2);
    CHECK(t.s.tools()[1].name == "b");
  }
  SECTION("a circle ends") {
    t.answer(t.last("tools/list")["id"], {{"tools", {tool("a")}}, {"nextCursor", "x"}});
    t.answer(t.last("tools/list")["id"], {{"tools", {tool("b")}}, {"nextCursor", "x"}});
    CHECK(t.s.is_ready());
    CHECK_THAT(t.notes.back(), Contains("repeats itself"));
  }
  SECTION("pages without end end") {
    for (int i = 0; i < 1000 && !t.s.is_ready(); ++i)
      t.answer(t.last("tools/list")["id"],
               {{"tools", json::array()}, {"nextCursor", std::to_string(i)}});
    CHECK(t.s.is_ready());
    CHECK(t.count("tools/list") == static_cast<int>(most_pages));
  }
  SECTION("too many tools") {
    json many = json::array();
    for (std::size_t i = 0; i < most_tools + 5; ++i)
      many.push_back(tool("t" + std::to_string(i)));
    t.answer(t.last("tools/list")["id"], {{"tools", many}});
    CHECK(t.s.tools().size() == most_tools);
  }
  SECTION("tools that are none are left out, the others stay") {
    t.answer(t.last("tools/list")["id"], {{"tools",
                                           {tool("good"),
                                            tool("good"),
                                            tool(""),
                                            tool("kernel_goal"),
                                            {{"name", "no schema"}},
                                            tool("array", {{"type", "array"}}),
                                            7}}});
    REQUIRE(t.s.tools().size() == 1);
    CHECK(t.notes.size() == 6);
  }
  SECTION("not at all") {
    t.refuse(t.last("tools/list")["id"], -32603, "broken");
    REQUIRE(t.failed);
    CHECK_THAT(t.failed->what, Contains("broken"));
  }
}

TEST_CASE("session: a list that changes is read again, and told only when it differs", "[mcp]") {
  auto t = modern();
  const json changed = {{"jsonrpc", "2.0"}, {"method", "notifications/tools/list_changed"}};
  t.hear(changed);
  t.hear(changed); // while the list is read
  CHECK(t.count("tools/list") == 2);
  t.answer(t.last("tools/list")["id"], {{"tools", {tool("t")}}});
  CHECK(t.changed == 0);
  CHECK(t.count("tools/list") == 3);
  t.answer(t.last("tools/list")["id"], {{"tools", {tool("t"), tool("u")}}});
  CHECK(t.changed == 1);
  CHECK(t.s.tools().size() == 2);
  CHECK_FALSE(t.s.is_listing());
  // Its trouble with that is none of the calls'.
  t.hear(changed);
  t.refuse(t.last("tools/list")["id"], -32603, "broken");
  CHECK(t.s.is_ready());
  t.hear(changed);
  t.wait(61s);
  CHECK_FALSE(t.s.is_listing());
  CHECK(t.s.is_ready());
}

TEST_CASE("session: calls wait until the tools are known, and are answered by their id", "[mcp]") {
  talk t;
  t.take(t.s.begin(t.now));
  t.take(t.s.call(call_of("early"), t.now));
  CHECK(t.count("tools/call") == 0);
  t.answer(t.last("server/discover")["id"], discovered());
  t.answer(t.last("tools/list")["id"], {{"tools", {tool("t")}}});
  REQUIRE(t.count("tools/call") == 1);
  const auto early = t.last("tools/call")["id"];
  t.take(t.s.call(call_of("second", R"({"x":1})"), t.now));
  const auto second = t.last("tools/call");
  CHECK(second["params"]["arguments"] == json{{"x", 1}});
  CHECK(second["params"]["name"] == "t");
  t.answer(second["id"], {{"content", {{{"type", "text"}, {"text", "two"}}}}});
  REQUIRE(t.done.count("second") == 1);
  CHECK(t.done.count("early") == 0);
  t.refuse(early, -32602, "Unknown tool: t");
  REQUIRE(t.done.count("early") == 1);
  CHECK(t.done.at("early").error().code == errc::refused);
  CHECK_THAT(t.done.at("early").error().what, Contains("-32602"));
  // Late and unknown answers change nothing.
  t.answer(early, {{"content", json::array()}});
  t.answer(9999, {{"content", json::array()}});
  t.answer("text", {{"content", json::array()}});
  CHECK(t.s.calls() == 0);
}

TEST_CASE("session: a call has its time; the server is told by the transport's own way", "[mcp]") {
  session_options o;
  o.http = GENERATE(false, true);
  auto t = GENERATE(true, false) ? modern(o) : legacy(o);
  t.take(t.s.call(call_of("slow"), t.now));
  const auto id = t.last("tools/call")["id"].get<std::int64_t>();
  REQUIRE(t.s.next_time());
  t.wait(2min);
  REQUIRE(t.done.count("slow") == 1);
  CHECK(t.done.at("slow").error().code == errc::timed_out);
  const bool by_stream = o.http && t.s.era() == era_t::modern;
  CHECK(t.count("notifications/cancelled") == (by_stream ? 0 : 1));
  CHECK(t.abandoned.size() == (o.http ? 1U : 0U));
  if (!by_stream)
    CHECK(t.last("notifications/cancelled")["params"]["requestId"] == id);
  t.answer(id, {{"content", json::array()}});
  // A caller who gives up hears nothing.
  t.take(t.s.call(call_of("other"), t.now));
  t.take(t.s.cancel("other", t.now));
  CHECK(t.done.count("other") == 0);
  CHECK(t.s.calls() == 0);
}

TEST_CASE("session: a server that is not ready in time, dies or talks nonsense ends all calls",
          "[mcp]") {
  SECTION("not ready") {
    talk t;
    t.take(t.s.begin(t.now));
    t.take(t.s.call(call_of("a"), t.now));
    t.wait(30s);
    t.wait(30s);
    REQUIRE(t.failed);
    CHECK(t.failed->code == errc::timed_out);
    CHECK_FALSE(t.done.at("a"));
  }
  SECTION("dies in a call") {
    auto t = modern();
    t.take(t.s.call(call_of("a"), t.now));
    t.take(t.s.on_closed({errc::actor_down, "it ended with exit code 3", {}, {}}));
    CHECK_THAT(t.done.at("a").error().what, Contains("exit code 3"));
    CHECK(t.s.is_over());
    talk after;
    std::swap(after.s, t.s);
    after.take(after.s.call(call_of("b"), t.now));
    CHECK_FALSE(after.done.at("b"));
  }
  SECTION("nonsense") {
    auto t = modern();
    t.take(t.s.on_message("hello", t.now));
    CHECK_FALSE(t.failed);
    for (int i = 0; i < 200 && !t.failed; ++i)
      t.take(t.s.on_message("{}", t.now));
    REQUIRE(t.failed);
    CHECK_THAT(t.failed->next, Contains("stdout"));
  }
}

TEST_CASE("session: too many calls at once are refused, not kept", "[mcp]") {
  auto t = modern();
  for (std::size_t i = 0; i < most_calls; ++i)
    t.take(t.s.call(call_of(std::to_string(i)), t.now));
  CHECK(t.done.empty());
  t.take(t.s.call(call_of("one more"), t.now));
  CHECK(t.done.at("one more").error().code == errc::overloaded);
}

TEST_CASE("session: a ping is answered, other requests are refused (handshake)", "[mcp]") {
  auto t = legacy();
  t.hear({{"jsonrpc", "2.0"}, {"id", "p"}, {"method", "ping"}});
  CHECK(t.sent.back() == json{{"jsonrpc", "2.0"}, {"id", "p"}, {"result", json::object()}});
  t.hear({{"jsonrpc", "2.0"}, {"id", 5}, {"method", "sampling/createMessage"}});
  CHECK(t.sent.back()["error"]["code"] == -32601);
  t.hear({{"jsonrpc", "2.0"},
          {"method", "notifications/message"},
          {"params", {{"level", "error"}, {"data", "disk full"}}}});
  CHECK_THAT(t.notes.back(), Contains("disk full"));
  // A stateless server may not ask so, and nothing of ours may be an answer to it.
  auto m = modern();
  const auto before = m.sent.size();
  m.hear({{"jsonrpc", "2.0"}, {"id", "p"}, {"method", "ping"}});
  CHECK(m.sent.size() == before);
}

TEST_CASE("session: a batch is taken apart (2025-03-26)", "[mcp]") {
  auto t = legacy();
  t.take(t.s.call(call_of("a"), t.now));
  const auto id = t.last("tools/call")["id"];
  t.hear(json::array({{{"jsonrpc", "2.0"}, {"id", "p"}, {"method", "ping"}},
                      {{"jsonrpc", "2.0"}, {"id", id}, {"result", json::object()}}}));
  CHECK(t.done.count("a") == 1);
}

TEST_CASE("session: over HTTP a refusal with a status says which era it is", "[mcp]") {
  session_options o;
  o.http = true;
  talk t(o);
  t.take(t.s.begin(t.now));
  const auto id = t.last("server/discover")["id"].get<std::int64_t>();
  // No silence is waited for: every request has an answer of its own.
  CHECK(*t.s.next_time() == t.now + 60s);
  SECTION("400 without a word") {
    t.take(t.s.on_undelivered(id, {400, "HTTP status 400", {}, false}, t.now));
    CHECK(t.count("initialize") == 1);
  }
  SECTION("a version") {
    t.take(t.s.on_undelivered(
        id, {400, "x", rpc_error{-32022, "no", R"({"supported":["2026-07-28"]})"}, false}, t.now));
    CHECK(t.count("server/discover") == 2);
  }
  SECTION("an unknown method") {
    t.take(t.s.on_undelivered(id, {404, "x", rpc_error{-32601, "no", {}}, false}, t.now));
    CHECK(t.count("initialize") == 1);
  }
  SECTION("a key is wanted") {
    t.take(t.s.on_undelivered(id, {401, "it wants a key", {}, false}, t.now));
    REQUIRE(t.failed);
    CHECK(t.count("initialize") == 0);
  }
  SECTION("nobody there") {
    t.take(t.s.on_undelivered(id, {0, "connection refused", {}, false}, t.now));
    REQUIRE(t.failed);
    CHECK(t.failed->code == errc::io_error);
  }
}

TEST_CASE("session: a forgotten session is begun anew, and the call made once more", "[mcp]") {
  session_options o;
  o.http = true;
  auto t = legacy(o);
  t.take(t.s.call(call_of("a"), t.now));
  const auto id = t.last("tools/call")["id"].get<std::int64_t>();
  t.take(t.s.on_undelivered(id, {404, "gone", {}, true}, t.now));
  CHECK(t.count("initialize") == 2);
  CHECK(t.count("server/discover") == 1);
  t.answer(t.last("initialize")["id"], initialized());
  t.answer(t.last("tools/list")["id"], {{"tools", {tool("t")}}});
  CHECK(t.count("tools/call") == 2);
  t.answer(t.last("tools/call")["id"], {{"content", json::array()}});
  CHECK(t.done.at("a").has_value());
}

TEST_CASE("session: a list whose server tells nothing is read again when it is old", "[mcp]") {
  talk t;
  t.take(t.s.begin(t.now));
  t.answer(t.last("server/discover")["id"], discovered({{"tools", json::object()}}));
  t.answer(t.last("tools/list")["id"], {{"tools", {tool("t")}}, {"ttlMs", 60000}});
  CHECK(t.count("subscriptions/listen") == 0);
  t.take(t.s.refresh(t.now + 59s));
  CHECK(t.count("tools/list") == 1);
  t.take(t.s.refresh(t.now + 60s));
  CHECK(t.count("tools/list") == 2);
  t.take(t.s.refresh(t.now + 61s));
  CHECK(t.count("tools/list") == 2);
}

TEST_CASE("session: a server without tools is ready at once", "[mcp]") {
  talk t;
  t.take(t.s.begin(t.now));
  t.answer(t.last("server/discover")["id"], discovered({{"resources", json::object()}}));
  CHECK(t.s.is_ready());
  CHECK(t.s.has_resources());
  server_call read;
  read.key = "r";
  read.kind = server_call::kind_t::read_resource;
  read.name = "test://one";
  t.take(t.s.call(read, t.now));
  CHECK(t.last("resources/read")["params"]["uri"] == "test://one");
  CHECK(t.sends.back().name == "test://one");
}

} // namespace boyd::session_test
