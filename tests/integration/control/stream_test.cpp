#include "integration/control/fixture.hpp"

#include <thread>

namespace boyd::stream_test {

using namespace boyd;
using namespace boyd::test;

namespace {

const http_request events{"GET", "/api/v1/events", {}, ""};

} // namespace

TEST_CASE("two clients read the same events", "[http][stream]") {
  served node;
  std::vector<std::vector<std::string>> lines(2);
  std::vector<std::thread> readers;
  for (auto& mine : lines)
    readers.emplace_back([&node, &mine] {
      const auto read = adapters::control_stream(
          node.path(), events,
          [&mine](std::string_view line) {
            mine.emplace_back(line);
            return true;
          },
          [] { return true; });
      if (!read)
        mine.push_back(to_string(read.error()));
    });
  {
    const auto first = node.stream(1);
    const auto second = node.stream(2);
    for (int i = 0; i < 1000; ++i) {
      const auto line = std::to_string(i) + "\n";
      CHECK(first->send(line));
      CHECK(second->send(line));
    }
  }
  node.let_streams_go();
  for (auto& reader : readers)
    reader.join();
  for (const auto& mine : lines) {
    REQUIRE(mine.size() == 1000);
    CHECK(mine.front() == "0");
    CHECK(mine.back() == "999");
  }
}

TEST_CASE("a line split over chunks is one line; the reader may stop", "[http][stream]") {
  served node;
  std::vector<std::string> lines;
  std::thread sender([&node] {
    const auto stream = node.stream(1);
    for (const auto part : {"one ", "line\ntwo\n", "three\n"})
      stream->send(part);
  });
  const auto read = adapters::control_stream(
      node.path(), events,
      [&](std::string_view line) {
        lines.emplace_back(line);
        return line != "two";
      },
      [] { return true; });
  sender.join();
  CHECK(read);
  CHECK(lines == std::vector<std::string>{"one line", "two"});
}

TEST_CASE("a reader that does not read is dropped", "[http][stream]") {
  served node;
  raw_client lazy(node.path());
  REQUIRE(lazy.send(get("/api/v1/events")));
  const auto stream = node.stream(1);
  const std::string chunk(4095, 'e');
  // What the socket and the buffer hold together is far below this.
  std::size_t sent = 0;
  while (sent < 100'000 && stream->send(chunk + "\n"))
    ++sent;
  CHECK(sent < 100'000);
  CHECK_FALSE(stream->send("x\n"));
  const auto all = lazy.read_all();
  CHECK(all.starts_with("HTTP/1.1 200"));
  CHECK_FALSE(all.ends_with("0\r\n\r\n"));
  CHECK_FALSE(all.ends_with("timeout"));
  CHECK(node.is_well());
}

TEST_CASE("a stream whose reader has gone says so and frees its place", "[http][stream]") {
  served node([](control_server_options& options) { options.max_connections = 1; });
  raw_client client(node.path());
  REQUIRE(client.send(get("/api/v1/events")));
  const auto stream = node.stream(1);
  client.read_until("\r\n\r\n");
  client.hang_up();
  CHECK(wait_until([&] { return !stream->send("x\n"); }));
  CHECK(wait_until([&] { return node.is_well(); }));
}

TEST_CASE("a chunk above the bound is refused at once", "[http][stream]") {
  served node;
  raw_client client(node.path());
  REQUIRE(client.send(get("/api/v1/events")));
  CHECK_FALSE(node.stream(1)->send(std::string(adapters::http_stream_buffer_bytes + 1, 'x')));
  CHECK_FALSE(client.read_all().ends_with("timeout"));
}

TEST_CASE("HTTP/1.0 readers get the lines bare", "[http][stream]") {
  served node;
  raw_client old(node.path());
  REQUIRE(old.send("GET /api/v1/events HTTP/1.0\r\n\r\n"));
  node.stream(1)->send("line\n");
  node.let_streams_go();
  CHECK(old.read_all().ends_with("\r\n\r\nline\n"));
}

TEST_CASE("a stream that is refused gives the server's error", "[http][stream]") {
  served node([](control_server_options& options) {
    options.on_stream = {};
    options.on_request = [](const http_request&, const auto& respond) {
      respond(adapters::error_response(error{errc::not_found, "no such kernel", "", ""}));
    };
  });
  const auto read = adapters::control_stream(
      node.path(), events, [](std::string_view) { return true; }, [] { return true; });
  REQUIRE_FALSE(read);
  CHECK(read.error().code == errc::not_found);
  CHECK(read.error().what == "no such kernel");
}

TEST_CASE("a reader ends when told", "[http][stream]") {
  served node;
  CHECK(adapters::control_stream(
      node.path(), events, [](std::string_view) { return true; }, [] { return false; }));
  const auto none = adapters::control_stream(
      node.dir.file("none"), events, [](std::string_view) { return true; }, [] { return true; });
  REQUIRE_FALSE(none);
  CHECK(none.error().what == "no node is running");
}

} // namespace boyd::stream_test
