#include "boyd/mcp/http_link.hpp"
#include "boyd/mcp/trust.hpp"
#include "session_lab.hpp"

namespace boyd::mcp_cases_test {

using namespace boyd;
using namespace boyd::mcp;
using namespace boyd::mcp::lab;
using Catch::Matchers::Contains;

namespace {

json progress(const json& token) {
  return {{"jsonrpc", "2.0"},
          {"method", "notifications/progress"},
          {"params", {{"progressToken", token}, {"progress", 1}}}};
}

const error& failure(const talk& t, const std::string& key) {
  REQUIRE(t.done.contains(key));
  REQUIRE_FALSE(t.done.at(key));
  return t.done.at(key).error();
}

} // namespace

TEST_CASE("field case 08: a server behind stdio that was restarted is greeted once, the call made "
          "once more",
          "[mcp]") {
  auto t = legacy();
  const auto* words = GENERATE("Server not initialized", "Session not found",
                               "Bad Request: No valid session ID provided", "Unknown session abc",
                               "the SESSION has expired");
  INFO(words);
  t.take(t.s.call(call_of("a"), t.now));
  t.refuse(t.last("tools/call")["id"], -32000, words);
  CHECK_FALSE(t.s.is_ready());
  CHECK(t.done.empty());
  REQUIRE(t.count("initialize") == 2);
  t.answer(t.last("initialize")["id"], initialized());
  t.answer(t.last("tools/list")["id"], {{"tools", {tool("t")}}});
  CHECK(t.s.is_ready());
  REQUIRE(t.count("tools/call") == 2);
  SECTION("and answers") {
    t.answer(t.last("tools/call")["id"], {{"content", json::array()}});
    REQUIRE(t.done.contains("a"));
    CHECK(t.done.at("a"));
  }
  SECTION("and refuses again: no loop") {
    t.refuse(t.last("tools/call")["id"], -32000, words);
    CHECK(t.count("initialize") == 2);
    CHECK_THAT(failure(t, "a").what, Contains(words));
  }
}

TEST_CASE("field case 08: an error about another matter is no lost session", "[mcp]") {
  auto t = legacy();
  t.take(t.s.call(call_of("a"), t.now));
  t.refuse(t.last("tools/call")["id"], -32602, "the argument session is too long");
  CHECK(t.count("initialize") == 1);
  CHECK_THAT(failure(t, "a").what, Contains("too long"));
}

TEST_CASE("field case 08: a loss that a notification or a stream tells of begins one handshake",
          "[mcp]") {
  auto t = legacy();
  t.take(t.s.on_session_lost(t.now));
  t.take(t.s.on_session_lost(t.now));
  CHECK(t.count("initialize") == 2);
  CHECK_FALSE(t.s.is_ready());
}

TEST_CASE("field case 09: progress keeps a call alive, up to its limit", "[mcp]") {
  const bool stateless = GENERATE(true, false);
  auto t = stateless ? modern() : legacy();
  auto c = call_of("a");
  c.timeout = 3s;
  c.longest = 10s;
  t.take(t.s.call(c, t.now));
  const auto token = t.last("tools/call")["params"]["_meta"]["progressToken"];
  REQUIRE(token.is_number_integer());
  SECTION("its own token") {
    for (int i = 0; i < 9; ++i) {
      t.wait(1s);
      t.hear(progress(i % 2 == 0 ? token : json(std::to_string(token.get<int>()))));
      REQUIRE(t.done.empty());
    }
    t.wait(999ms);
    CHECK(t.done.empty());
    t.hear(progress(token));
    t.wait(1ms);
    CHECK(failure(t, "a").code == errc::timed_out);
    CHECK_THAT(failure(t, "a").what, Contains("10s"));
  }
  SECTION("it is answered late") {
    t.wait(2s);
    t.hear(progress(token));
    t.wait(2s);
    t.answer(t.last("tools/call")["id"], {{"content", json::array()}});
    REQUIRE(t.done.contains("a"));
    CHECK(t.done.at("a"));
  }
  SECTION("other tokens") {
    t.wait(2s);
    t.hear(progress(token.get<int>() + 1));
    t.hear(progress("x"));
    t.hear(progress(nullptr));
    t.wait(1s);
    CHECK_THAT(failure(t, "a").what, Contains("3s"));
  }
  SECTION("silence") {
    t.wait(3s);
    CHECK(failure(t, "a").code == errc::timed_out);
  }
}

TEST_CASE("field case 10: an id as a text or with a point is the number", "[mcp]") {
  auto t = legacy();
  t.take(t.s.call(call_of("a"), t.now));
  const auto id = t.last("tools/call")["id"].get<int>();
  const auto form = GENERATE(0, 1, 2);
  t.answer(form == 0   ? json(std::to_string(id))
           : form == 1 ? json(static_cast<double>(id))
                       : json(std::to_string(id) + ".0"),
           {{"content", json::array()}});
  REQUIRE(t.done.contains("a"));
  CHECK(t.done.at("a"));
}

TEST_CASE("field case 10: an answer that cannot be read ends its call at once, with the reason",
          "[mcp]") {
  auto t = legacy();
  t.take(t.s.call(call_of("other"), t.now));
  t.take(t.s.call(call_of("a"), t.now));
  const auto id = t.last("tools/call")["id"].dump();
  const std::string begin = R"({"jsonrpc":"2.0","id":)" + id + ",";
  const auto rest =
      GENERATE(as<std::string>(), R"("result":{"content":[{"type":"text","text":"cut)",
               R"("result":{},"error":{"code":1,"message":"both"}})", "}", R"("result":"a text"})",
               R"("result":[1]})", R"("result":null})", R"("error":7})", R"("result":{"a":}})");
  INFO(rest);
  t.take(t.s.on_message(begin + rest, t.now));
  CHECK(failure(t, "a").code == errc::parse_error);
  CHECK_THAT(failure(t, "a").what, Contains("not a valid protocol message"));
  CHECK_FALSE(t.done.contains("other"));
  CHECK_FALSE(t.failed);
}

TEST_CASE("field case 10: without a readable id the only open call ends", "[mcp]") {
  auto t = modern();
  t.take(t.s.call(call_of("a"), t.now));
  SECTION("an answer") {
    const auto text = GENERATE(
        as<std::string>(), R"({"jsonrpc":"2.0","result":{"a":1)",
        R"({"jsonrpc":"2.0","id":[1],"result":{}})", R"({"jsonrpc":"2.0","id":null,"result":{}})",
        R"({"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":"?"}})");
    INFO(text);
    t.take(t.s.on_message(text, t.now));
    CHECK(t.done.contains("a"));
  }
  SECTION("no answer: a word on stdout, a broken notification") {
    const auto text = GENERATE(as<std::string>(), "listening", R"({"level":"info","text":"x")",
                               R"({"jsonrpc":"2.0","method":"notifications/message","params":{)");
    INFO(text);
    t.take(t.s.on_message(text, t.now));
    CHECK(t.done.empty());
  }
}

TEST_CASE("case A8: calls wait until the list of tools was looked at, after each handshake",
          "[mcp]") {
  session_options o;
  o.checks_tools = true;
  talk t(o);
  t.take(t.s.begin(t.now));
  t.take(t.s.call(call_of("early"), t.now));
  t.refuse(t.last("server/discover")["id"], -32601, "Method not found");
  t.answer(t.last("initialize")["id"], initialized());
  t.answer(t.last("tools/list")["id"], {{"tools", {tool("t")}}});
  REQUIRE(t.ready == 1);
  CHECK(t.count("tools/call") == 0);
  const auto all = [](const server_call&) -> std::optional<error> { return std::nullopt; };
  const auto none = [](const server_call& c) -> std::optional<error> {
    return error{errc::refused, c.name + " has changed", {}, {}};
  };
  t.take(t.s.on_tools_checked(all, t.now));
  REQUIRE(t.count("tools/call") == 1);
  // The server has forgotten the session: the call waits for the new list, and for a look at it.
  t.refuse(t.last("tools/call")["id"], -32000, "Session not found");
  t.answer(t.last("initialize")["id"], initialized());
  t.answer(t.last("tools/list")["id"], {{"tools", {tool("t", {{"type", "object"}, {"x", 1}})}}});
  REQUIRE(t.ready == 2);
  t.take(t.s.call(call_of("later"), t.now));
  CHECK(t.count("tools/call") == 1);
  t.take(t.s.on_tools_checked(none, t.now));
  CHECK(t.count("tools/call") == 1);
  for (const auto* key : {"early", "later"})
    CHECK_THAT(failure(t, key).what, Contains("has changed"));
  t.take(t.s.call(call_of("last"), t.now));
  CHECK_THAT(failure(t, "last").what, Contains("has changed"));
  CHECK(t.count("tools/call") == 1);
}

TEST_CASE("case A8: a server that says its tools have changed gets no call before they are known",
          "[mcp]") {
  session_options o;
  o.checks_tools = true;
  auto t = GENERATE(true, false) ? modern(o) : legacy(o);
  const auto all = [](const server_call&) -> std::optional<error> { return std::nullopt; };
  t.take(t.s.on_tools_checked(all, t.now));
  t.take(t.s.call(call_of("a"), t.now));
  REQUIRE(t.count("tools/call") == 1);
  t.hear({{"jsonrpc", "2.0"}, {"method", "notifications/tools/list_changed"}});
  t.take(t.s.call(call_of("b"), t.now));
  CHECK(t.count("tools/call") == 1);
  const bool same = GENERATE(true, false);
  const json other = {{"type", "object"}, {"x", 1}};
  t.answer(t.last("tools/list")["id"], {{"tools", {same ? tool("t") : tool("t", other)}}});
  CHECK(t.changed == (same ? 0 : 1));
  CHECK(t.count("tools/call") == (same ? 2 : 1));
  t.take(t.s.on_tools_checked(all, t.now));
  CHECK(t.count("tools/call") == 2);
}

TEST_CASE("case A8: the pin of a tool is of its name, description and arguments", "[mcp]") {
  const server_tool one{"t", "does t", R"({"type":"object","properties":{"a":{},"b":{}}})", {}};
  auto turned = one;
  turned.schema_json = R"({"properties":{"b":{},"a":{}},"type":"object"})";
  CHECK(tool_pin(one) == tool_pin(turned));
  CHECK(tool_pin(one).size() == std::string("sha256:").size() + 64);
  auto words = one;
  words.description = "does t, and sends it";
  auto arguments = one;
  arguments.schema_json = R"({"type":"object","properties":{"a":{}}})";
  auto added = one;
  added.name = "u";
  const auto by = [&](const server_tool& now) {
    return by_pins({{"t", tool_pin(one)}, {"gone", tool_pin(one)}}, {now});
  };
  CHECK(by(turned).usable.size() == 1);
  CHECK(by(turned).gone == std::vector<std::string>{"gone"});
  for (const auto& other : {words, arguments}) {
    CHECK(by(other).usable.empty());
    CHECK_THAT(by(other).withheld.at("t"), Contains("differ from the pin"));
  }
  CHECK_THAT(by(added).withheld.at("u"), Contains("new"));
  CHECK(by_pins({}, {words, added}).usable.size() == 2);
}

} // namespace boyd::mcp_cases_test
