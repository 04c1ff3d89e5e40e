#include "confined_fixture.hpp"
#include "support/knob.hpp"
#include "support/pch.hpp"

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <fcntl.h>
#include <thread>

namespace boyd::confined_races_test {

using namespace boyd;
using boyd::test::confined_fixture;
using boyd::test::plenty;
namespace fs = std::filesystem;

namespace {

std::int64_t rounds() {
  return boyd::test::knob("BOYD_RACES", 3000);
}

/// Every write waits for the disk: reading and looking go on far more often.
constexpr int write_every = 30;

/// Exchanges two names over and over, as a hostile process in the workspace would.
class swapper {
 public:
  swapper(std::string a, std::string b) : a_(std::move(a)), b_(std::move(b)) {}
  swapper(const swapper&) = delete;
  swapper& operator=(const swapper&) = delete;
  ~swapper() {
    stop_ = true;
    thread_.join();
  }
  int swaps() const { return swaps_; }

 private:
  void run() {
    while (!stop_)
      if (::renameat2(AT_FDCWD, a_.c_str(), AT_FDCWD, b_.c_str(), RENAME_EXCHANGE) == 0)
        ++swaps_;
  }

  std::string a_;
  std::string b_;
  std::atomic<bool> stop_{false};
  std::atomic<int> swaps_{0};
  std::thread thread_{[this] { run(); }};
};

} // namespace

TEST_CASE("case 48 patch-symlink: a directory exchanged for a link meanwhile never leads out",
          "[confined]") {
  const bool without_openat2 = GENERATE(false, true);
  confined_fixture f(without_openat2);
  f.put(f.dir.file("outside/deep/f"), "SECRET");
  fs::create_directory_symlink("../outside", f.root + "/twin");
  int inside = 0;
  int refused = 0;
  {
    const swapper hostile(f.root + "/src", f.root + "/twin");
    for (int i = 0; i < rounds() || hostile.swaps() < 100; ++i) {
      const auto text = f.files->read(f.root, "src/deep/f", 0, plenty);
      if (text) {
        REQUIRE(text->text == "inside");
        ++inside;
      } else {
        ++refused;
      }
      const auto all = f.files->list(f.root, "src", 100);
      REQUIRE((!all || (all->entries.size() == 1 && all->entries[0].name == "deep")));
      if (i % write_every == 0)
        (void)f.files->write(f.root, "src/deep/planted", "x");
      if (const auto place = f.files->find(f.root, "src/deep"); place)
        REQUIRE(place->absolute.find("outside") == std::string::npos);
      REQUIRE_FALSE(fs::exists(f.dir.file("outside/deep/planted")));
    }
  }
  CHECK(inside > 0);
  CHECK(refused > 0);
}

TEST_CASE("case 48 patch-symlink: what is written beside exchanged names lands inside or nowhere",
          "[confined]") {
  const bool without_openat2 = GENERATE(false, true);
  confined_fixture f(without_openat2);
  fs::create_directory_symlink("../outside", f.root + "/twin");
  int written = 0;
  int refused = 0;
  {
    const swapper hostile(f.root + "/src", f.root + "/twin");
    for (int i = 0; i < rounds() / write_every || written == 0 || refused == 0; ++i) {
      // Fresh directories, too: their making must not follow the link either.
      const auto name = std::to_string(i % 8);
      if (f.files->write(f.root, "src/" + name + "/planted", "x"))
        ++written;
      else
        ++refused;
      if (f.files->write(f.root, "src/secret", "x"))
        ++written;
    }
  }
  CHECK(written > 0);
  CHECK(refused > 0);
  CHECK(f.get(f.dir.file("outside/secret")) == "SECRET");
  for (const auto& entry : fs::directory_iterator(f.dir.file("outside"))) {
    const auto name = entry.path().filename().string();
    INFO(name);
    CHECK((name == "secret" || name == "deep"));
  }
}

TEST_CASE("case 48 patch-symlink: a file exchanged for a link is never followed by a walk",
          "[confined]") {
  confined_fixture f;
  f.put(f.root + "/file", "inside");
  fs::create_symlink("../outside/secret", f.root + "/link");
  const swapper hostile(f.root + "/file", f.root + "/link");
  for (int i = 0; i < rounds() / 3 || hostile.swaps() < 100; ++i) {
    std::string seen;
    REQUIRE(f.files->walk(
        f.root, ".", {}, [](const std::string&) { return true; },
        [&](const std::string&, std::string_view text) {
          seen += text;
          return true;
        }));
    REQUIRE(seen.find("SECRET") == std::string::npos);
    if (i % write_every == 0)
      (void)f.files->write(f.root, "file", "inside");
    REQUIRE(f.get(f.dir.file("outside/secret")) == "SECRET");
  }
}

TEST_CASE("a file that is replaced all the time is there all the time", "[confined]") {
  confined_fixture f;
  REQUIRE(f.files->write(f.root, "file", std::string(100, 'a')));
  std::atomic<bool> stop{false};
  std::thread writer([&] {
    for (char c = 'a'; !stop; c = c == 'z' ? 'a' : static_cast<char>(c + 1))
      (void)f.files->write(f.root, "file", std::string(100, c));
  });
  int missing = 0;
  int torn = 0;
  for (int i = 0; i < rounds(); ++i) {
    const auto text = f.files->read(f.root, "file", 0, plenty);
    if (!text)
      ++missing;
    else if (text->text != std::string(100, text->text.front()))
      ++torn;
  }
  stop = true;
  writer.join();
  CHECK(missing == 0);
  CHECK(torn == 0);
}

} // namespace boyd::confined_races_test
