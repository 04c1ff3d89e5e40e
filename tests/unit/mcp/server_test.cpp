#include "boyd/mcp/protocol.hpp"
#include "boyd/mcp/server.hpp"
#include "support/pch.hpp"

#include <nlohmann/json.hpp>
#include <rapidcheck.h>

namespace boyd::server_test {

using namespace boyd;
using namespace boyd::mcp;
using nlohmann::json;

namespace {

constexpr auto echo_schema =
    R"({"type":"object","properties":{"text":{"type":"string"},"n":{"type":"integer"}},"required":["text"]})";

/// A server with the tool `echo`; "boom" makes it fail.
server echo_server(std::vector<std::string>* seen = nullptr) {
  return {"1.2.3",
          "Use it.",
          {{"echo", "Echo", "Says it again.", echo_schema, false}},
          [seen](const served_tool& tool, const std::string& arguments) -> result<std::string> {
            if (seen != nullptr)
              seen->push_back(tool.name + " " + arguments);
            const auto given = json::parse(arguments);
            if (given["text"] == "boom")
              return fail(errc::not_found, "no such thing", "there", "look elsewhere");
            return json{{"said", given["text"]}}.dump();
          }};
}

json ask(server& s, const json& message) {
  const auto answer = s.on_message(message.dump());
  REQUIRE(answer);
  return json::parse(*answer);
}

json request(const std::string& method, json params = json::object(), int id = 1) {
  return {{"jsonrpc", "2.0"}, {"id", id}, {"method", method}, {"params", std::move(params)}};
}

json stateless(json params = json::object(), const std::string& version = "2026-07-28") {
  params["_meta"] = {{meta_key::version, version},
                     {meta_key::client, {{"name", "t"}, {"version", "1"}}},
                     {meta_key::capabilities, json::object()}};
  return params;
}

} // namespace

TEST_CASE("mcp server: the handshake agrees on a revision, then tools are listed and called",
          "[mcp]") {
  auto s = echo_server();
  CHECK(ask(s, request("tools/list"))["error"]["code"] == rpc_code::invalid_request);
  const auto hello =
      ask(s, request("initialize", {{"protocolVersion", "2025-06-18"},
                                    {"capabilities", json::object()},
                                    {"clientInfo", {{"name", "t"}, {"version", "1"}}}}));
  CHECK(hello["result"]["protocolVersion"] == "2025-06-18");
  CHECK(hello["result"]["serverInfo"]["version"] == "1.2.3");
  CHECK_FALSE(s.on_message(R"({"jsonrpc":"2.0","method":"notifications/initialized"})"));
  const auto list = ask(s, request("tools/list"))["result"]["tools"];
  REQUIRE(list.size() == 1);
  CHECK(list[0]["inputSchema"] == json::parse(echo_schema));
  CHECK(list[0]["annotations"]["readOnlyHint"] == true);
  const auto done =
      ask(s, request("tools/call", {{"name", "echo"}, {"arguments", {{"text", "hi"}}}}));
  CHECK(done["result"]["structuredContent"] == json{{"said", "hi"}});
  CHECK(done["result"]["isError"] == false);
  CHECK(ask(s, request("ping"))["result"] == json::object());
  CHECK(ask(s, request("resources/list"))["error"]["code"] == rpc_code::method_not_found);
}

TEST_CASE("mcp server: an unknown revision of the handshake is answered with the newest", "[mcp]") {
  auto s = echo_server();
  const auto hello = ask(s, request("initialize", {{"protocolVersion", "1999-01-01"}}));
  CHECK(hello["result"]["protocolVersion"] == legacy_versions.front());
}

TEST_CASE("mcp server: stateless requests need no handshake, and say which revision they are of",
          "[mcp]") {
  auto s = echo_server();
  const auto found = ask(s, request("server/discover", stateless()))["result"];
  CHECK(found["supportedVersions"] == json::array({"2026-07-28"}));
  CHECK(found["resultType"] == "complete");
  const auto list = ask(s, request("tools/list", stateless()))["result"];
  CHECK(list["tools"].size() == 1);
  CHECK(list["ttlMs"].is_number());
  const auto done =
      ask(s, request("tools/call", stateless({{"name", "echo"}, {"arguments", {{"text", "hi"}}}})));
  CHECK(done["result"]["structuredContent"] == json{{"said", "hi"}});
  CHECK(ask(s, request("ping", stateless()))["error"]["code"] == rpc_code::method_not_found);
  const auto other = ask(s, request("tools/list", stateless(json::object(), "2030-01-01")));
  CHECK(other["error"]["code"] == rpc_code::unsupported_version);
  CHECK(other["error"]["data"]["supported"] == json::array({"2026-07-28"}));
  auto odd = stateless();
  odd["_meta"][meta_key::capabilities] = "all";
  CHECK(ask(s, request("tools/list", odd))["error"]["code"] == rpc_code::invalid_params);
}

TEST_CASE("case A8: a stateless request without clientInfo or capabilities is served", "[mcp]") {
  auto s = echo_server();
  for (const auto* missing : {meta_key::client, meta_key::capabilities}) {
    for (const bool null : {false, true}) {
      auto bare = stateless({{"name", "echo"}, {"arguments", {{"text", "hi"}}}});
      if (null)
        bare["_meta"][missing] = nullptr;
      else
        bare["_meta"].erase(missing);
      CHECK(ask(s, request("tools/call", bare))["result"]["structuredContent"] ==
            json{{"said", "hi"}});
      CHECK(ask(s, request("tools/list", bare))["result"]["tools"].size() == 1);
      CHECK(ask(s, request("server/discover", bare))["result"]["resultType"] == "complete");
    }
  }
}

TEST_CASE("mcp server: a tool's failure is an answer, a wrong call is an error and does nothing",
          "[mcp]") {
  std::vector<std::string> seen;
  auto s = echo_server(&seen);
  const auto call = [&](json params) {
    return ask(s, request("tools/call", stateless(std::move(params))));
  };
  const auto failed = call({{"name", "echo"}, {"arguments", {{"text", "boom"}}}})["result"];
  CHECK(failed["isError"] == true);
  CHECK(failed["content"][0]["text"] == "there: no such thing; look elsewhere");
  CHECK(seen.size() == 1);
  for (const auto& wrong : {json{{"name", "nothing"}}, json{{"name", "echo"}},
                            json{{"name", "echo"}, {"arguments", {{"text", 7}}}},
                            json{{"name", "echo"}, {"arguments", {{"text", "a"}, {"n", -1}}}},
                            json{{"name", "echo"}, {"arguments", {{"text", "a"}, {"x", "b"}}}},
                            json{{"name", "echo"}, {"arguments", json::array()}}})
    CHECK(call(wrong)["error"]["code"] == rpc_code::invalid_params);
  CHECK(seen.size() == 1);
}

TEST_CASE("mcp server: any bytes are answered or read over", "[mcp]") {
  auto s = echo_server();
  const auto answer = s.on_message("{");
  REQUIRE(answer);
  CHECK(json::parse(*answer)["error"]["code"] == rpc_code::parse_error);
  CHECK_FALSE(s.on_message(R"({"jsonrpc":"2.0","id":1,"result":{}})"));
  CHECK(rc::check([&](const std::string& bytes) {
    if (const auto said = s.on_message(bytes)) {
      RC_ASSERT(json::parse(*said, nullptr, false).is_object());
      RC_ASSERT(said->find('\n') == std::string::npos);
    }
  }));
}

} // namespace boyd::server_test
