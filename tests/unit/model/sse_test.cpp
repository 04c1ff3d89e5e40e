#include "boyd/model/sse.hpp"
#include "support/pch.hpp"

#include <rapidcheck.h>

namespace boyd::sse_test {

using namespace boyd;
using model::sse_event;
using model::sse_reader;

namespace {

using events = std::vector<std::pair<std::string, std::string>>;

events read(const std::vector<std::string>& pieces) {
  sse_reader reader;
  events out;
  for (const auto& piece : pieces)
    REQUIRE(reader.feed(piece, [&](const sse_event& e) { out.emplace_back(e.type, e.data); }));
  return out;
}

} // namespace

TEST_CASE("sse: the examples of the standard", "[sse]") {
  CHECK(read({"data: YHOO\ndata: +2\ndata: 10\n\n"}) == events{{"", "YHOO\n+2\n10"}});
  CHECK(read({": test stream\n\ndata: first event\nid: 1\n\ndata:second event\nid\n\n"
              "data:  third event\n\n"}) ==
        events{{"", "first event"}, {"", "second event"}, {"", " third event"}});
  // The last block has no empty line behind it.
  CHECK(read({"data\n\ndata\ndata\n\ndata:"}) == events{{"", ""}, {"", "\n"}});
  CHECK(read({"data:test\n\ndata: test\n\n"}) == events{{"", "test"}, {"", "test"}});
  CHECK(read({"event: add\ndata: 73857293\n\nevent: remove\n\ndata: 1\n\n"}) ==
        events{{"add", "73857293"}, {"", "1"}});
}

TEST_CASE("sse: line ends, byte order mark and comments", "[sse]") {
  CHECK(read({"\xEF\xBB\xBF"
              "data: a\r\rdata: b\r\n\r\ndata: c\n\n"}) == events{{"", "a"}, {"", "b"}, {"", "c"}});
  CHECK(read({"data: a\r", "\n\r", "\n"}) == events{{"", "a"}});
  CHECK(read({"data: a\r\ndata: b\r", "\ndata: c\r\n\r\n"}) == events{{"", "a\nb\nc"}});
  CHECK(read({": OPENROUTER PROCESSING\n\n", "data: a\n: x\n\n"}) == events{{"", "a"}});
  CHECK(read({"data: a\n", "\xEF\xBB\xBF"
                           "data: b\n\n"}) == events{{"", "a"}});
}

TEST_CASE("sse: the cut does not matter", "[sse]") {
  CHECK(rc::check("same events", [] {
    const auto line = rc::gen::elementOf(std::vector<std::string>{
        "data: x", "data:", "data", ": comment", "event: e", "id: 1", "", "", "data: {\"a\":1}"});
    const auto end = rc::gen::elementOf(std::vector<std::string>{"\n", "\r", "\r\n"});
    std::string stream;
    for (const auto& [text, stop] :
         *rc::gen::container<std::vector<std::pair<std::string, std::string>>>(
             rc::gen::pair(line, end)))
      stream += text + stop;
    std::vector<std::string> pieces;
    for (std::size_t at = 0; at < stream.size();) {
      const auto length = *rc::gen::inRange<std::size_t>(1, 5);
      pieces.push_back(stream.substr(at, length));
      at += length;
    }
    RC_ASSERT(read(pieces) == read({stream}));
  }));
}

TEST_CASE("sse: an event has a limit, also without a line end", "[sse]") {
  const std::string part(1u << 20, 'x');
  for (const std::string start : {"data: ", ": ", ""}) {
    sse_reader reader;
    std::size_t fed = 0;
    REQUIRE(reader.feed(start, [](const sse_event&) {}));
    result<void> last;
    for (; last && fed < 2 * model::sse_event_bytes; fed += part.size())
      last = reader.feed(part, [](const sse_event&) {});
    REQUIRE_FALSE(last);
    CHECK(last.error().code == errc::limit_exceeded);
    CHECK(fed <= model::sse_event_bytes + part.size());
    CHECK(reader.pending() <= model::sse_event_bytes);
    CHECK_FALSE(reader.feed("\n\ndata: a\n\n", [](const sse_event&) { FAIL("given up"); }));
  }
  // In many lines, too.
  sse_reader reader;
  result<void> last;
  for (int i = 0; last && i < 20; ++i)
    last = reader.feed("data: " + part + '\n', [](const sse_event&) {});
  CHECK_FALSE(last);
}

TEST_CASE("sse: where a stream can be taken up again, and when", "[sse]") {
  sse_reader reader;
  const auto feed = [&](std::string_view bytes) {
    REQUIRE(reader.feed(bytes, [](const sse_event&) {
      // nop
    }));
  };
  CHECK(reader.last_id().empty());
  CHECK_FALSE(reader.retry());
  feed("id: one\nretry: 1500\ndata: x\n");
  CHECK(reader.last_id().empty()); // not complete
  CHECK(reader.retry() == 1500ms);
  feed("\n");
  CHECK(reader.last_id() == "one");
  feed("id: two\n\nretry: soon\n\nretry: 7x\n\n");
  CHECK(reader.last_id() == "two");
  CHECK(reader.retry() == 1500ms);
  feed(std::string_view("id: a\0b\n\n", 9));
  CHECK(reader.last_id() == "two");
}

} // namespace boyd::sse_test
