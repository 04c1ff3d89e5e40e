#include "src/adapters/posix/service_manager.hpp"
#include "src/adapters/unique_fd.hpp"
#include "support/pch.hpp"
#include "support/temp_dir.hpp"

#include <array>
#include <cstdlib>
#include <cstring>
#include <optional>
#include <string>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

namespace boyd::service_manager_test {

using namespace boyd;
using adapters::service_manager;

namespace {

/// systemd's side: a datagram socket; `name` is a path, or "@…" for an abstract one.
class listener {
 public:
  explicit listener(const std::string& name)
      : fd_(::socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0)) {
    ::sockaddr_un at{};
    at.sun_family = AF_UNIX;
    name.copy(at.sun_path, sizeof at.sun_path - 1);
    if (name.front() == '@')
      at.sun_path[0] = '\0';
    const auto size = static_cast<::socklen_t>(offsetof(::sockaddr_un, sun_path) + name.size());
    REQUIRE(::bind(fd_.get(), reinterpret_cast<const ::sockaddr*>(&at), size) == 0);
    ::setenv("NOTIFY_SOCKET", name.c_str(), 1);
  }
  ~listener() {
    for (const char* key : {"NOTIFY_SOCKET", "WATCHDOG_USEC", "WATCHDOG_PID"})
      ::unsetenv(key);
  }

  std::string next() const {
    std::array<char, 4096> text{};
    const auto n = ::recv(fd_.get(), text.data(), text.size(), 0);
    return n < 0 ? "" : std::string(text.data(), static_cast<std::size_t>(n));
  }

 private:
  adapters::unique_fd fd_;
};

} // namespace

TEST_CASE("the service manager hears what it is told, over a path and an abstract name",
          "[service_manager]") {
  const test::temp_dir directory;
  for (const auto& name : {directory.file("notify"), "@boyd-test-" + std::to_string(::getpid())}) {
    const listener systemd(name);
    auto manager = service_manager::from_environment();
    REQUIRE(manager);
    CHECK(manager->present());
    REQUIRE(manager->notify("READY=1\nSTATUS=runs"));
    CHECK(systemd.next() == "READY=1\nSTATUS=runs");
    REQUIRE(manager->notify("WATCHDOG=1"));
    CHECK(systemd.next() == "WATCHDOG=1");
    CHECK(std::getenv("NOTIFY_SOCKET") == nullptr); // children do not speak for the node
  }
}

TEST_CASE("the watchdog's limit counts only for the process that it names", "[service_manager]") {
  const test::temp_dir directory;
  const auto limit_with = [&](const char* usec, const std::string& pid) {
    const listener systemd(directory.file("n" + pid + usec));
    ::setenv("WATCHDOG_USEC", usec, 1);
    if (!pid.empty())
      ::setenv("WATCHDOG_PID", pid.c_str(), 1);
    auto manager = service_manager::from_environment();
    REQUIRE(manager);
    CHECK(std::getenv("WATCHDOG_USEC") == nullptr);
    return manager->watchdog();
  };
  CHECK(limit_with("3000000", std::to_string(::getpid())) == std::optional<milliseconds>(3s));
  CHECK(limit_with("3000000", "") == std::optional<milliseconds>(3s));
  CHECK(limit_with("3000000", "1") == std::nullopt);
  CHECK(limit_with("0", "") == std::nullopt);
  CHECK(limit_with("3s", "") == std::nullopt);
}

TEST_CASE("without a service manager nothing is told, and that is fine", "[service_manager]") {
  auto manager = service_manager::from_environment();
  REQUIRE(manager);
  CHECK_FALSE(manager->present());
  CHECK(manager->notify("READY=1"));
}

TEST_CASE("a service manager that is not there is an error, not a hang", "[service_manager]") {
  const test::temp_dir directory;
  ::setenv("NOTIFY_SOCKET", directory.file("nobody").c_str(), 1);
  auto manager = service_manager::from_environment();
  REQUIRE(manager);
  CHECK(manager->notify("READY=1").error().code == errc::not_found);
  for (const auto& bad : std::vector<std::string>{"relative", "/", std::string(200, '/')}) {
    ::setenv("NOTIFY_SOCKET", bad.c_str(), 1);
    const auto refused = service_manager::from_environment();
    REQUIRE_FALSE(refused);
    CHECK(refused.error().code == errc::invalid_argument);
  }
}

} // namespace boyd::service_manager_test
