#include "boyd/mcp/json_rpc.hpp"
#include "boyd/mcp/line_reader.hpp"
#include "support/pch.hpp"

#include <rapidcheck.h>

namespace boyd::json_rpc_test {

using namespace boyd;
using namespace boyd::mcp;

namespace {

errc problem_of(std::string_view text) {
  const auto m = read_message(text);
  REQUIRE_FALSE(m);
  return m.error().code;
}

} // namespace

TEST_CASE("json-rpc: requests, notifications and answers are told apart", "[mcp]") {
  const auto request = read_message(R"({"jsonrpc":"2.0","id":7,"method":"a/b","params":{"x":1}})");
  REQUIRE(request);
  CHECK(std::get<rpc_request>(*request) ==
        rpc_request{rpc_id(std::int64_t{7}), "a/b", R"({"x":1})"});
  const auto named = read_message(R"({"jsonrpc":"2.0","id":"q-1","method":"a"})");
  REQUIRE(named);
  CHECK(std::get<rpc_request>(*named).id == rpc_id(std::string("q-1")));
  const auto note = read_message(R"({"jsonrpc":"2.0","method":"n"})");
  REQUIRE(note);
  CHECK(std::get<rpc_notification>(*note) == rpc_notification{"n", {}});
  const auto answer = read_message(R"({"jsonrpc":"2.0","id":1.0,"result":{}})");
  REQUIRE(answer);
  CHECK(std::get<rpc_response>(*answer).id == rpc_id(std::int64_t{1}));
  const auto failed = read_message(
      R"({"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":"what?","data":[1]}})");
  REQUIRE(failed);
  const auto& r = std::get<rpc_response>(*failed);
  CHECK_FALSE(r.id);
  CHECK(r.error == rpc_error{-32700, "what?", "[1]"});
}

TEST_CASE("json-rpc: what is no message is refused, without a crash and without its bytes",
          "[mcp]") {
  for (const auto* text :
       {"", "x", "{", "[]", "1", "null", R"({"id":1})", R"({"jsonrpc":"1.0","method":"a"})",
        R"({"jsonrpc":"2.0"})", R"({"jsonrpc":"2.0","id":1,"method":2})",
        R"({"jsonrpc":"2.0","id":null,"method":"a"})", R"({"jsonrpc":"2.0","id":1.5,"method":"a"})",
        R"({"jsonrpc":"2.0","id":{},"result":{}})", R"({"jsonrpc":"2.0","id":1,"result":3})",
        R"({"jsonrpc":"2.0","id":1,"result":{},"error":{}})", R"({"jsonrpc":"2.0","result":{}})",
        R"({"jsonrpc":"2.0","id":99999999999999999999,"method":"a"})", "\xff\xfe"})
    CHECK(problem_of(text) == errc::parse_error);
  CHECK(problem_of(std::string(200, '[')) == errc::limit_exceeded);
  CHECK(problem_of(std::string(message_bytes + 1, ' ')) == errc::limit_exceeded);
}

TEST_CASE("json-rpc: what is written is read again", "[mcp]") {
  const rpc_request request{rpc_id(std::int64_t{-3}), "tools/call", R"({"name":"x\ny"})"};
  CHECK(to_text(request).find('\n') == std::string::npos);
  CHECK(std::get<rpc_request>(*read_message(to_text(request))) == request);
  const rpc_notification note{"n", {}};
  CHECK(std::get<rpc_notification>(*read_message(to_text(note))) == note);
  const rpc_response failed{rpc_id(std::string("a")), {}, rpc_error{-1, "no", R"({"a":1})"}};
  CHECK(std::get<rpc_response>(*read_message(to_text(failed))) == failed);
}

TEST_CASE("lines: the cut does not matter, and a line has an end", "[mcp]") {
  CHECK(rc::check("same lines", [] {
    const auto pieces = *rc::gen::container<std::vector<std::string>>(
        rc::gen::elementOf(std::vector<std::string>{"a", "{}", "\n", "\r\n", " ", "", "\n\n"}));
    std::string whole;
    std::vector<std::string> one;
    std::vector<std::string> many;
    line_reader in_pieces;
    for (const auto& p : pieces) {
      whole += p;
      RC_ASSERT(in_pieces.feed(p, [&](std::string_view l) { many.emplace_back(l); }).has_value());
    }
    line_reader at_once;
    RC_ASSERT(at_once.feed(whole, [&](std::string_view l) { one.emplace_back(l); }).has_value());
    RC_ASSERT(one == many);
  }));
  line_reader small(10);
  int taken = 0;
  const auto count = [&](std::string_view) { ++taken; };
  CHECK(small.feed("0123456789\n", count));
  const auto over = small.feed("01234567890", count);
  REQUIRE_FALSE(over);
  CHECK(over.error().code == errc::limit_exceeded);
  CHECK_FALSE(small.feed("a\n", count));
  CHECK(taken == 1);
  CHECK(small.pending() == 0);
}

TEST_CASE("field case 10: an answer that is almost JSON is read", "[mcp]") {
  const auto result_of = [](const std::string& result) {
    const auto m = read_message(R"({"jsonrpc":"2.0","id":1,"result":)" + result + "}");
    REQUIRE(m.has_value());
    return std::get<rpc_response>(*m).result_json;
  };
  CHECK(result_of(R"({"n":NaN,"m":-Infinity})") == R"({"n":null,"m":null})");
  CHECK(result_of("{\"t\":\"caf\xE9 \\ud83d\"}") == "{\"t\":\"caf\uFFFD \uFFFD\"}");
  CHECK_FALSE(read_message(R"({"jsonrpc":"2.0","id":1,"result":{"n":)"));
}

} // namespace boyd::json_rpc_test
