#include "boyd/faults/points.hpp"
#include "integration/control/fixture.hpp"
#include "support/heard_log.hpp"

#include <rapidcheck.h>

#include <cstdio>
#include <fcntl.h>
#include <filesystem>
#include <fstream>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <thread>
#include <unistd.h>

namespace boyd::robustness_test {

using namespace boyd;
using namespace boyd::test;

namespace {

mode_t mode_of(const std::string& path) {
  struct stat info {};
  REQUIRE(::stat(path.c_str(), &info) == 0);
  return info.st_mode & 07777;
}

/// A socket file nobody listens on.
void leave_dead_socket(const std::string& path) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  path.copy(address.sun_path, sizeof address.sun_path - 1);
  const int fd = ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  REQUIRE(::bind(fd, reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0);
  ::close(fd);
}

} // namespace

TEST_CASE("the socket is for its owner alone and goes with the server", "[http][file]") {
  served node;
  CHECK(mode_of(node.path()) == 0600);
  CHECK(mode_of(node.dir.file("run")) == 0700);
  node.server().stop();
  CHECK_FALSE(std::filesystem::exists(node.path()));
  node.server().stop();
  const auto answer = adapters::control_call(node.path(), {"GET", "/", {}, ""}, patience);
  REQUIRE_FALSE(answer);
  CHECK(answer.error().code == errc::not_found);
  CHECK(answer.error().what == "no node is running");
}

TEST_CASE("a loose directory is closed to others", "[http][file]") {
  served node([](control_server_options& options) {
    const auto run = std::filesystem::path(options.socket_path).parent_path();
    std::filesystem::create_directory(run);
    std::filesystem::permissions(run, std::filesystem::perms::all);
  });
  CHECK(mode_of(node.dir.file("run")) == 0700);
}

TEST_CASE("a dead socket is replaced, a live one and a file are not", "[http][file]") {
  served node([](control_server_options& options) {
    std::filesystem::create_directory(std::filesystem::path(options.socket_path).parent_path());
    leave_dead_socket(options.socket_path);
    const auto nobody = adapters::control_call(options.socket_path, {"GET", "/", {}, ""}, patience);
    REQUIRE_FALSE(nobody);
    CHECK(nobody.error().code == errc::not_found);
  });
  CHECK(node.is_well());

  control_server_options second;
  second.on_request = [](const http_request&, const auto& respond) { respond({}); };
  second.socket_path = node.path();
  const auto refused = adapters::start_control_server(second);
  REQUIRE_FALSE(refused);
  CHECK(refused.error().code == errc::locked);
  CHECK(node.is_well());

  second.socket_path = node.dir.file("run/file");
  std::ofstream(second.socket_path) << "precious";
  const auto no_socket = adapters::start_control_server(second);
  REQUIRE_FALSE(no_socket);
  CHECK(no_socket.error().code == errc::refused);
  CHECK(std::filesystem::file_size(second.socket_path) == 8);

  second.socket_path = node.dir.file("missing/run/control.sock");
  const auto nowhere = adapters::start_control_server(second);
  REQUIRE_FALSE(nowhere);
  CHECK(nowhere.error().code == errc::not_found);
}

TEST_CASE("a socket that took the name is not removed by stop", "[http][file]") {
  served node;
  std::filesystem::rename(node.path(), node.path() + ".old");
  leave_dead_socket(node.path());
  node.server().stop();
  CHECK(std::filesystem::exists(node.path()));
}

TEST_CASE("a socket file that somebody removed is made anew, its directory, too", "[http][file]") {
  test::heard_log log;
  served node([](control_server_options& options) { options.file_check = 5ms; });
  const auto is_there = [&] {
    return std::filesystem::exists(node.path()) &&
           adapters::control_call(node.path(), {"GET", "/", {}, ""}, patience).has_value();
  };
  std::filesystem::remove(node.path());
  CHECK(wait_until(is_there));
  std::filesystem::remove_all(node.dir.file("run"));
  CHECK(wait_until(is_there));
  CHECK(mode_of(node.path()) == 0600);
  CHECK(mode_of(node.dir.file("run")) == 0700);
  // At once: the server makes a directory that is gone within milliseconds.
  std::ofstream(node.dir.file("away")) << "in the way";
  REQUIRE(::renameat2(AT_FDCWD, node.dir.file("run").c_str(), AT_FDCWD,
                      node.dir.file("away").c_str(), RENAME_EXCHANGE) == 0);
  CHECK(
      wait_until([&] { return log.text().find("cannot be created again") != std::string::npos; }));
  std::filesystem::remove(node.dir.file("run"));
  CHECK(wait_until(is_there));
  node.server().stop();
  CHECK_FALSE(std::filesystem::exists(node.path()));
}

TEST_CASE("a path longer than sun_path works for both sides", "[http][file]") {
  served node([](control_server_options& options) {
    auto deep = std::filesystem::path(options.socket_path).parent_path();
    for (int i = 0; i < 5; ++i)
      deep /= std::string(60, static_cast<char>('a' + i));
    std::filesystem::create_directories(deep);
    options.socket_path = deep / "control.sock";
  });
  REQUIRE(node.path().size() > 300);
  CHECK(node.is_well());
  node.server().stop();
  CHECK_FALSE(std::filesystem::exists(node.path()));
}

TEST_CASE("another user is refused", "[http][file]") {
  if (::geteuid() != 0)
    return; // only root can become somebody else
  constexpr long nobody = 65534;
  served node;
  // The rights of the files would keep the stranger out before the check is reached.
  ::chmod(node.dir.path().c_str(), 0755);
  ::chmod(node.dir.file("run").c_str(), 0755);
  ::chmod(node.path().c_str(), 0666);
  std::string answer;
  std::thread stranger([&] {
    // The system call changes this thread alone.
    if (::syscall(SYS_setresuid, -1L, nobody, -1L) == 0) {
      raw_client client(node.path());
      client.send(get("/"));
      answer = client.read_all();
    }
  });
  stranger.join();
  CHECK(answer.starts_with("HTTP/1.1 403"));
  CHECK(node.is_well());
}

TEST_CASE("a slow head and a silent connection are ended", "[http][time]") {
  served node([](control_server_options& options) {
    options.head_timeout = 50ms;
    options.body_timeout = 50ms;
    options.idle_timeout = 50ms;
  });
  raw_client slow(node.path());
  REQUIRE(slow.send("GET / HTTP/1.1\r\nHo"));
  CHECK(slow.read_all().starts_with("HTTP/1.1 408"));
  raw_client silent(node.path());
  CHECK(silent.read_all().starts_with("HTTP/1.1 408"));
  raw_client idle(node.path());
  REQUIRE(idle.send(get("/once")));
  CHECK(idle.read_all().ends_with("GET /once bytes=0"));
  raw_client half_body(node.path());
  REQUIRE(half_body.send("POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 9\r\n\r\nabc"));
  CHECK(half_body.read_all().starts_with("HTTP/1.1 408"));
  CHECK(node.is_well());
}

TEST_CASE("a handler that does not answer in time is answered for, but not a wait",
          "[http][time]") {
  served node([](control_server_options& options) { options.answer_timeout = 50ms; });
  raw_client waits(node.path());
  REQUIRE(waits.send(get("/hold?wait=1", "Connection: close\r\n")));
  const auto long_wait = node.held(1);
  raw_client hurries(node.path());
  REQUIRE(hurries.send(get("/hold")));
  CHECK(hurries.read_until("boyd.error/1").starts_with("HTTP/1.1 503"));
  // The connection lives on; the late answer must not become the next request's.
  node.held(2)({200, "text/plain", "too late"});
  REQUIRE(hurries.send(get("/next", "Connection: close\r\n")));
  const auto all = hurries.read_all();
  CHECK(all.find("too late") == std::string::npos);
  CHECK(all.ends_with("GET /next bytes=0"));
  long_wait({200, "text/plain", "recorded"});
  CHECK(waits.read_all().ends_with("recorded"));
}

TEST_CASE("a client gives up after its own timeout or when told", "[http][time]") {
  served node;
  const http_request hold{"GET", "/hold", {}, ""};
  const auto late = adapters::control_call(node.path(), hold, 30ms);
  REQUIRE_FALSE(late);
  CHECK(late.error().code == errc::timed_out);
  const auto told = adapters::control_call(node.path(), hold, patience, [] { return false; });
  REQUIRE_FALSE(told);
  CHECK(told.error().code == errc::cancelled);
}

TEST_CASE("an answer that is dropped is a 503; a throwing handler a 500", "[http]") {
  served node([](control_server_options& options) {
    options.on_request = [](const http_request& request, const auto&) {
      if (request.path == "/throw")
        throw std::runtime_error("oh");
    };
  });
  const auto dropped = adapters::control_call(node.path(), {"GET", "/", {}, ""}, patience);
  REQUIRE(dropped);
  CHECK(dropped->status == 503);
  CHECK(adapters::error_of(*dropped).code == errc::actor_down);
  const auto thrown = adapters::control_call(node.path(), {"GET", "/throw", {}, ""}, patience);
  REQUIRE(thrown);
  CHECK(thrown->status == 500);
}

TEST_CASE("an answer that could break the head is not sent as such", "[http]") {
  served node([](control_server_options& options) {
    options.on_request = [](const http_request&, const auto& respond) {
      respond({9999, "text/plain\r\nX: y", "body"});
      respond({200, "text/plain", "second"});
    };
  });
  const auto answer = adapters::control_call(node.path(), {"GET", "/", {}, ""}, patience);
  REQUIRE(answer);
  CHECK(answer->status == 500);
  CHECK(answer->body == "body");
}

TEST_CASE("sixty-four clients and one more", "[http][caps]") {
  served node;
  std::vector<raw_client> clients;
  for (std::size_t i = 0; i < limits::http_connections; ++i) {
    clients.emplace_back(node.path());
    REQUIRE(clients.back().send(get("/hold", "Connection: close\r\n")));
  }
  node.held(limits::http_connections);
  raw_client more(node.path());
  CHECK(more.read_all().starts_with("HTTP/1.1 503"));
  const auto refused = adapters::control_call(node.path(), {"GET", "/", {}, ""}, patience);
  REQUIRE(refused);
  CHECK(refused->status == 503);
  clients.front().hang_up();
  CHECK(wait_until([&] { return node.is_well(); }));
  for (std::size_t i = 1; i < clients.size(); ++i)
    node.held(i + 1)({200, "text/plain", "at last"});
  for (std::size_t i = 1; i < clients.size(); ++i)
    REQUIRE(clients[i].read_all().ends_with("at last"));
}

TEST_CASE("an answer for a client that has gone is dropped", "[http]") {
  served node([](control_server_options& options) { options.max_connections = 1; });
  raw_client client(node.path());
  REQUIRE(client.send(get("/hold")));
  const auto respond = node.held(1);
  client.hang_up();
  // The only place is free again while the answer is still due.
  REQUIRE(wait_until([&] { return node.is_well(); }));
  respond({200, "text/plain", std::string(1u << 20, 'x')});
  CHECK(wait_until([&] { return node.is_well(); }));
}

TEST_CASE("stop answers those who wait; later answers and events do nothing", "[http][stop]") {
  served node;
  raw_client waiting(node.path());
  REQUIRE(waiting.send(get("/hold")));
  const auto respond = node.held(1);
  raw_client idle(node.path());
  REQUIRE(idle.send(get("/1")));
  idle.read_until("bytes=0");
  raw_client events(node.path());
  REQUIRE(events.send(get("/api/v1/events")));
  const auto stream = node.stream(1);
  REQUIRE(stream->send("last\n"));
  node.server().stop();
  const auto answer = waiting.read_all();
  CHECK(answer.starts_with("HTTP/1.1 503"));
  CHECK(answer.find("the node is stopping") != std::string::npos);
  CHECK(events.read_all().ends_with("5\r\nlast\n\r\n0\r\n\r\n"));
  CHECK(idle.read_all().ends_with("bytes=0"));
  CHECK_FALSE(stream->send("more\n"));
  respond({});
  node.destroy();
  CHECK_FALSE(stream->send("more\n"));
  respond({});
}

TEST_CASE("an answer given just before stop arrives", "[http][stop]") {
  served node;
  raw_client client(node.path());
  REQUIRE(client.send(get("/hold")));
  node.held(1)({200, "text/plain", "in time"});
  node.server().stop();
  CHECK(client.read_all().ends_with("in time"));
}

TEST_CASE("stop does not wait for a client that does not read", "[http][stop]") {
  served node;
  raw_client client(node.path());
  REQUIRE(client.send(get("/hold")));
  node.held(1)({200, "text/plain", std::string(8u << 20, 'x')});
  node.server().stop();
  CHECK(client.read_all().size() < (8u << 20));
}

TEST_CASE("case 46 fd-exhaustion: the server waits, says so once, and then goes on",
          "[http][caps]") {
  const heard_log log; // before the server's thread, which logs, and until after it
  served node;
  raw_client early(node.path());
  REQUIRE(early.send(get("/a")));
  early.read_until("GET /a bytes=0");
  raw_client late;
  const int next = ::open("/dev/null", O_RDONLY | O_CLOEXEC);
  ::close(next);
  rlimit before{};
  REQUIRE(::getrlimit(RLIMIT_NOFILE, &before) == 0);
  rlimit none = before;
  none.rlim_cur = static_cast<rlim_t>(next);
  REQUIRE(::setrlimit(RLIMIT_NOFILE, &none) == 0);
  const bool connected = late.connect(node.path()) && late.send(get("/c", "Connection: close\r\n"));
  // Its connection stays: were it closed, there would be a descriptor for the next client.
  early.send(get("/b"));
  const auto meanwhile = early.read_until("GET /b bytes=0");
  // It tries ten times a second, and is quiet about it.
  const std::string trouble = "control socket: cannot accept clients";
  const bool begun = wait_until([&] { return log.times(trouble) == 1; });
  const bool storm = wait_until([&] { return log.times("control socket: ") > 1; }, 350ms);
  ::setrlimit(RLIMIT_NOFILE, &before);
  CHECK(begun);
  CHECK_FALSE(storm);
  CHECK(connected);
  CHECK(meanwhile.ends_with("GET /b bytes=0"));
  CHECK(late.read_all().ends_with("GET /c bytes=0"));
  CHECK(wait_until([&] { return log.times("control socket: accepting clients again") == 1; }));
  CHECK(log.times(trouble) == 1);
}

TEST_CASE("faults on the socket cost a client its answer or some time, and can always be ended",
          "[http][faults]") {
  served node;
  const auto arm = [](const char* point, faults::action what, int count) {
    faults::arming a;
    a.point = point;
    a.what = what;
    a.count = count;
    a.delay = what == faults::action::delay ? 30ms : 0ms;
    REQUIRE(faults::arm({a}, 1));
  };
  const auto call = [&](const char* path) {
    return adapters::control_call(node.path(), {"GET", path, {}, ""}, patience);
  };
  SECTION("a client that is not taken waits for the next look") {
    arm("control.accept", faults::action::error, -1);
    CHECK(call("/a"));
    CHECK(call("/b"));
    CHECK(faults::triggered("control.accept") >= 2);
  }
  SECTION("an answer that is lost ends the connection") {
    arm("control.reply", faults::action::drop, -1);
    CHECK_FALSE(call("/a"));
    CHECK(call("/api/v1/chaos"));
  }
  SECTION("an answer that is late") {
    arm("control.reply", faults::action::delay, 1);
    CHECK(call("/a"));
  }
  faults::disarm();
  CHECK(node.is_well());
}

TEST_CASE("random bytes do not hurt the server", "[http][property]") {
  served node([](control_server_options& options) { options.head_timeout = 20ms; });
  const std::vector<std::string> pieces{"GET ",
                                        "POST ",
                                        "/",
                                        " HTTP/1.1",
                                        "\r\n",
                                        "\r",
                                        "\n",
                                        ": ",
                                        "Host: x",
                                        "Content-Length: 5",
                                        "0\r\n",
                                        "%",
                                        "..",
                                        "?a=b&",
                                        "Transfer-Encoding: chunked",
                                        "\t",
                                        "Expect: 100-continue",
                                        "Connection: keep-alive"};
  REQUIRE(rc::check("any bytes, then a good request", [&] {
    std::string bytes;
    for (const auto& piece : *rc::gen::container<std::vector<std::string>>(
             rc::gen::oneOf(rc::gen::elementOf(pieces),
                            rc::gen::container<std::string>(rc::gen::arbitrary<char>()))))
      bytes += piece;
    raw_client client(node.path());
    client.send(bytes);
    client.end_of_sending();
    const auto answer = client.read_all();
    RC_ASSERT(!answer.ends_with("timeout"));
    RC_ASSERT(answer.empty() || answer.starts_with("HTTP/1.1 "));
    RC_ASSERT(node.is_well());
  }));
}

} // namespace boyd::robustness_test
