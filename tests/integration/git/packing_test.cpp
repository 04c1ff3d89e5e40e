#include "boyd/core/limits.hpp"
#include "integration/git/fixture.hpp"

#include <algorithm>
#include <thread>

namespace boyd::packing_test {

using namespace boyd;
using namespace boyd::test;

namespace {

std::size_t packs(const git_home& h) {
  std::size_t n = 0;
  for (const auto& e : std::filesystem::directory_iterator(h.file(".git/objects/pack")))
    n += e.path().extension() == ".pack" ? 1 : 0;
  return n;
}

} // namespace

TEST_CASE("200 commits are packed, and all stay readable") {
  git_home h;
  std::vector<std::string> hashes;
  for (int i = 0; i < 200; ++i) {
    put(h.file("STATE.md"), "cycle " + std::to_string(i) + "\n");
    put(h.file("notes/" + std::to_string(i % 7) + ".md"), std::to_string(i));
    hashes.push_back(*h.commit_all("c" + std::to_string(i), noon + i));
  }
  const auto loose = h.repo->loose_objects().value();
  CHECK(loose >= 600);
  CHECK(h.repo->pack().value() == loose);
  CHECK(h.repo->loose_objects().value() == 0);
  CHECK(packs(h) == 1);
  CHECK(h.repo->pack().value() == 0);
  h.check_sound();
  h.check_clean();
  CHECK(h.git("count-objects -v").text.find("garbage: 0") != std::string::npos);
  for (int i = 0; i < 200; i += 13)
    CHECK(h.repo->read_at(hashes[static_cast<std::size_t>(i)], "STATE.md").value() ==
          "cycle " + std::to_string(i) + "\n");
  put(h.file("STATE.md"), "after\n");
  CHECK(h.commit_all("after"));
  CHECK(h.repo->history("", 1000).value().size() == 201);
  h.check_sound();
}

TEST_CASE("a flood of objects is packed some at a time") {
  git_home h;
  put(h.file("STATE.md"), "one\n");
  REQUIRE(h.commit_all("one"));
  // Loose objects by the thousand: written as a pack, which is taken apart.
  constexpr std::size_t flood = limits::pack_loose_at_once + 50;
  std::string stream;
  for (std::size_t i = 0; i < flood; ++i) {
    const auto text = std::to_string(i);
    stream += "blob\ndata " + std::to_string(text.size()) + "\n" + text + "\n";
  }
  put(h.file("../flood"), stream);
  REQUIRE(h.git("-c fastimport.unpackLimit=1000000 fast-import --quiet < ../flood").exit_code == 0);
  std::size_t packed = 0;
  std::size_t steps = 0;
  for (auto now = h.repo->pack().value(); now > 0; now = h.repo->pack().value()) {
    CHECK(now <= limits::pack_loose_at_once);
    packed += now;
    ++steps;
  }
  CHECK(packed >= flood);
  CHECK(steps == 2);
  CHECK(h.repo->loose_objects().value() == 0);
  h.check_sound();
}

TEST_CASE("many small packs are joined") {
  git_home h;
  for (int i = 0; i < 25; ++i) {
    put(h.file("STATE.md"), std::to_string(i) + "\n");
    REQUIRE(h.commit_all("c" + std::to_string(i)));
    REQUIRE(h.repo->pack());
    CHECK(packs(h) <= 21);
  }
  CHECK(packs(h) < 15);
  CHECK(h.subjects().size() == 25);
  h.check_sound();
}

TEST_CASE("a pack that a person keeps, and a damaged object, are left alone") {
  git_home h;
  for (int i = 0; i < 22; ++i) {
    put(h.file("STATE.md"), std::to_string(i) + "\n");
    REQUIRE(h.commit_all("c" + std::to_string(i)));
    if (i == 0) {
      REQUIRE(h.git("repack -q -d").exit_code == 0);
      for (const auto& e : std::filesystem::directory_iterator(h.file(".git/objects/pack")))
        if (e.path().extension() == ".pack") {
          auto keep = e.path();
          put(keep.replace_extension(".keep").string(), "");
          break;
        }
    } else if (i < 21) {
      REQUIRE(h.repo->pack());
    }
  }
  put(h.file(".git/objects/00/" + std::string(38, '0')), "damaged");
  REQUIRE(h.repo->pack());
  std::size_t kept = 0;
  for (const auto& e : std::filesystem::directory_iterator(h.file(".git/objects/pack")))
    if (e.path().extension() == ".keep") {
      auto pack = e.path();
      kept += std::filesystem::exists(pack.replace_extension(".pack")) ? 1 : 0;
    }
  CHECK(kept == 1);
  CHECK(std::filesystem::exists(h.file(".git/objects/00/" + std::string(38, '0'))));
  std::filesystem::remove(h.file(".git/objects/00/" + std::string(38, '0')));
  h.check_sound();
}

TEST_CASE("a repository that is taken away is noticed, and used again when it is back") {
  git_home h;
  put(h.file("a"), "1\n");
  REQUIRE(h.commit_all("one"));
  const std::string away = h.root.file("away");
  std::filesystem::rename(h.file(".git"), away);
  CHECK(h.repo->changes().error().code == errc::repository_unavailable);
  CHECK(h.repo->head().error().code == errc::repository_unavailable);
  CHECK(h.provider->open(h.path, h.who).error().code == errc::repository_unavailable);
  // Another one in its place is not ours.
  REQUIRE(shell(h.path, "git init -q .").exit_code == 0);
  CHECK(h.repo->commit({{"a", change_kind::modified}}, "x", at(noon)).error().code ==
        errc::repository_unavailable);
  std::filesystem::remove_all(h.file(".git"));
  std::filesystem::rename(away, h.file(".git"));
  auto again = h.provider->open(h.path, h.who);
  REQUIRE(again);
  put(h.file("a"), "2\n");
  CHECK((*again)->commit({{"a", change_kind::modified}}, "two", at(noon)).value());
  h.check_clean();
}

} // namespace boyd::packing_test
