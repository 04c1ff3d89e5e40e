#include "integration/postgres/fixture.hpp"
#include "src/adapters/postgres/call_limit.hpp"
#include "src/adapters/postgres/session.hpp"
#include "src/adapters/postgres/store.hpp"
#include "support/pch.hpp"
#include "support/postgres/server.hpp"
#include "support/wait.hpp"

#include <fcntl.h>
#include <sys/resource.h>
#include <unistd.h>

namespace boyd::descriptors_test {

using namespace boyd;
using namespace boyd::test;
using test::postgres::options_for;

namespace {

/// Takes all descriptors but `left` from this process.
class scarce_descriptors {
 public:
  explicit scarce_descriptors(std::size_t left) {
    constexpr rlim_t most = 256;
    ::getrlimit(RLIMIT_NOFILE, &before_);
    const rlimit low{std::min(most, before_.rlim_cur), before_.rlim_max};
    ::setrlimit(RLIMIT_NOFILE, &low);
    for (int fd = take(); fd >= 0; fd = take())
      taken_.push_back(fd);
    give_back(left);
  }
  ~scarce_descriptors() {
    give_back(taken_.size());
    ::setrlimit(RLIMIT_NOFILE, &before_);
  }
  scarce_descriptors(const scarce_descriptors&) = delete;
  scarce_descriptors& operator=(const scarce_descriptors&) = delete;

 private:
  static int take() { return ::open("/dev/null", O_RDONLY | O_CLOEXEC); }

  void give_back(std::size_t n) {
    for (; n > 0 && !taken_.empty(); --n) {
      ::close(taken_.back());
      taken_.pop_back();
    }
  }

  rlimit before_{};
  std::vector<int> taken_;
};

/// Tells that a back-off is drawn, which is then a long one.
class told_entropy final : public entropy {
 public:
  std::uint64_t next() override {
    drawn.signal();
    return ~std::uint64_t{0};
  }
  event_latch drawn;
};

} // namespace

TEST_CASE("case 46 fd-exhaustion: there is no time limit that could not end a call", "[postgres]") {
  int ends[2];
  REQUIRE(::pipe2(ends, O_CLOEXEC) == 0);
  {
    const scarce_descriptors none(0);
    try {
      const adapters::postgres::call_limit limit(ends[0]);
      FAIL("a time limit without a descriptor");
    } catch (const adapters::postgres::failure& f) {
      CHECK(f.connection_lost);
      CHECK(f.why.code == errc::store_unavailable);
    }
  }
  ::close(ends[0]);
  ::close(ends[1]);
}

TEST_CASE("case 46 fd-exhaustion: a session is opened with all that it needs, or the store is away "
          "and says why",
          "[postgres]") {
  if (shared_postgres() == nullptr)
    return;
  const auto options = options_for(shared_postgres()->make_database());
  REQUIRE(adapters::make_postgres_store(options)->open()); // and migrated
  const auto store = adapters::make_postgres_store(options);
  std::string said;
  bool opened = false;
  constexpr std::size_t plenty = 16;
  for (std::size_t left = 0; left < plenty && !opened; ++left) {
    const scarce_descriptors few(left);
    const auto tried = store->open();
    opened = tried.has_value();
    if (opened)
      break;
    INFO("with " << left << " descriptors: " << to_string(tried.error()));
    CHECK(tried.error().code == errc::store_unavailable);
    CHECK_FALSE(tried.error().next.empty());
    said += to_string(tried.error()) + "\n";
    CHECK(store->apply({store::list_nodes{}}).error().code == errc::store_unavailable);
  }
  INFO(said);
  CHECK(said.find("no file descriptor for the time limit of calls") != std::string::npos);
  REQUIRE(opened);
  CHECK(store->apply({store::list_nodes{}}));
}

TEST_CASE("case 46 fd-exhaustion: a listener without a descriptor ends when it is told to, and "
          "listens when there is one",
          "[postgres]") {
  if (shared_postgres() == nullptr)
    return;
  auto options = options_for(shared_postgres()->make_database());
  const auto random = std::make_shared<told_entropy>();
  options.random = random;
  event_latch woken;
  const auto listen = [&] {
    return adapters::make_postgres_wakeups(options, [&](const auto&) { woken.signal(); });
  };
  std::unique_ptr<wakeup_source> source;
  {
    const scarce_descriptors none(0);
    {
      const auto ended = listen();
      REQUIRE(random->drawn.wait(1)); // it has found none, and waits
    }
    const auto before = random->drawn.count();
    source = listen();
    REQUIRE(random->drawn.wait(before + 1));
    CHECK(woken.count() == 0);
  }
  CHECK(woken.wait(1));
}

} // namespace boyd::descriptors_test
