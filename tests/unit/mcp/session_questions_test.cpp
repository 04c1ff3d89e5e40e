#include "session_lab.hpp"

namespace boyd::session_questions_test {

using namespace boyd;
using namespace boyd::mcp;
using namespace boyd::mcp::lab;
using Catch::Matchers::Contains;

namespace {

const json question_params = {{"message", "Which colour?"},
                              {"requestedSchema", {{"type", "object"}}}};

json wants(const json& inputs, const json& state = nullptr) {
  json r = {{"resultType", "input_required"}, {"inputRequests", inputs}};
  if (!state.is_null())
    r["requestState"] = state;
  return r;
}

json elicit() {
  return {{"method", "elicitation/create"}, {"params", question_params}};
}

} // namespace

TEST_CASE("session: a question inside a result goes to a person, its answer with a new request",
          "[mcp]") {
  session_options o;
  o.asks = true;
  auto t = modern(o);
  CHECK(t.last("tools/list")["params"]["_meta"]["io.modelcontextprotocol/clientCapabilities"]
                            ["elicitation"]
                                .contains("form"));
  t.take(t.s.call(call_of("a", R"({"x":1})"), t.now));
  const auto first = t.last("tools/call")["id"];
  t.answer(first, wants({{"one", elicit()}, {"two", elicit()}}, "opaque \"state\""));
  REQUIRE(t.asked.size() == 2);
  CHECK(t.asked[0].second.call == "a");
  CHECK(t.asked[0].second.message == "Which colour?");
  // A person's time is not the server's.
  t.wait(1h);
  CHECK(t.done.empty());
  t.take(t.s.on_answer(t.asked[0].first, {"accept", R"({"colour":"red"})"}, t.now));
  CHECK(t.count("tools/call") == 1);
  t.take(t.s.on_answer(t.asked[1].first, {"decline", {}}, t.now));
  REQUIRE(t.count("tools/call") == 2);
  const auto& again = t.last("tools/call");
  CHECK(again["id"] != first);
  CHECK(again["params"]["requestState"] == "opaque \"state\"");
  CHECK(again["params"]["arguments"] == json{{"x", 1}});
  CHECK(again["params"]["inputResponses"] ==
        json{{"one", {{"action", "accept"}, {"content", {{"colour", "red"}}}}},
             {"two", {{"action", "decline"}}}});
  t.answer(again["id"], {{"resultType", "complete"}, {"content", json::array()}});
  CHECK(t.done.at("a").has_value());
  // Nothing of it stays for the next call.
  t.take(t.s.call(call_of("b"), t.now));
  CHECK_FALSE(t.last("tools/call")["params"].contains("inputResponses"));
  CHECK_FALSE(t.last("tools/call")["params"].contains("requestState"));
}

TEST_CASE("session: without anybody to ask a question is declined, once, and noted", "[mcp]") {
  auto t = modern();
  t.take(t.s.call(call_of("a"), t.now));
  t.answer(t.last("tools/call")["id"], wants({{"one", elicit()}, {"two", elicit()}}));
  CHECK(t.count("tools/call") == 2);
  const auto& again = t.last("tools/call")["params"];
  CHECK(again["inputResponses"]["two"]["action"] == "decline");
  CHECK_FALSE(again.contains("requestState"));
  CHECK_THAT(t.notes.back(), Contains("Which colour?") && Contains("no person can be asked here"));
  auto l = legacy();
  l.hear({{"jsonrpc", "2.0"},
          {"id", "q"},
          {"method", "elicitation/create"},
          {"params", question_params}});
  CHECK(l.sent.back()["result"]["action"] == "decline");
  CHECK(l.sent.back()["id"] == "q");
}

TEST_CASE("session: what is asked in circles, or of somebody else, fails the call", "[mcp]") {
  auto t = modern();
  t.take(t.s.call(call_of("a"), t.now));
  SECTION("rounds without end") {
    for (int i = 0; i < 50 && t.done.empty(); ++i)
      t.answer(t.last("tools/call")["id"], wants({{"one", elicit()}}));
    CHECK(t.done.at("a").error().code == errc::limit_exceeded);
  }
  SECTION("sampling") {
    t.answer(t.last("tools/call")["id"],
             wants({{"s", {{"method", "sampling/createMessage"}, {"params", json::object()}}}}));
    CHECK_THAT(t.done.at("a").error().what, Contains("sampling/createMessage"));
  }
  SECTION("nothing at all") {
    t.answer(t.last("tools/call")["id"], {{"resultType", "input_required"}});
    CHECK(t.done.at("a").error().code == errc::parse_error);
  }
  SECTION("state alone is sent back at once") {
    t.answer(t.last("tools/call")["id"],
             {{"resultType", "input_required"}, {"requestState", "again"}});
    CHECK(t.last("tools/call")["params"]["requestState"] == "again");
    CHECK_FALSE(t.last("tools/call")["params"].contains("inputResponses"));
  }
  SECTION("an unknown type of result") {
    t.answer(t.last("tools/call")["id"], {{"resultType", "task"}});
    CHECK(t.done.at("a").error().code == errc::parse_error);
  }
}

TEST_CASE("session: a question of the handshake era is answered as such, withdrawn with its call",
          "[mcp]") {
  session_options o;
  o.asks = true;
  auto t = legacy(o);
  t.take(t.s.call(call_of("a"), t.now));
  const json ask = {{"jsonrpc", "2.0"},
                    {"id", 77},
                    {"method", "elicitation/create"},
                    {"params", question_params}};
  t.hear(ask);
  REQUIRE(t.asked.size() == 1);
  CHECK(t.asked[0].second.call == "a");
  t.wait(30min);
  CHECK(t.done.empty());
  SECTION("answered") {
    t.take(t.s.on_answer(t.asked[0].first, {"accept", R"({"colour":"red"})"}, t.now));
    CHECK(t.sent.back()["id"] == 77);
    CHECK(t.sent.back()["result"]["content"]["colour"] == "red");
    t.wait(2min);
    CHECK_FALSE(t.done.at("a"));
  }
  SECTION("taken back by the server") {
    t.hear({{"jsonrpc", "2.0"},
            {"method", "notifications/cancelled"},
            {"params", {{"requestId", 77}}}});
    CHECK(t.withdrawn == std::vector{t.asked[0].first});
  }
  SECTION("the call is cancelled") {
    t.take(t.s.cancel("a", t.now));
    CHECK(t.withdrawn == std::vector{t.asked[0].first});
    const auto before = t.sent.size();
    t.take(t.s.on_answer(t.asked[0].first, {"accept", "{}"}, t.now));
    CHECK(t.sent.size() == before);
  }
  SECTION("nobody answers for a day") {
    t.wait(std::chrono::hours{24});
    CHECK(t.sent.back()["result"]["action"] == "cancel");
  }
}

} // namespace boyd::session_questions_test
