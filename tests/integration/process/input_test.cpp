#include "harness.hpp"
#include "support/pch.hpp"

#include <csignal>

namespace boyd::input_test {

using namespace boyd;
using namespace boyd::test;

/// Children whose stdin stays open: servers that are talked to as long as they live.

TEST_CASE("a stdin that stays open is written to again and again, then closed") {
  const auto runner = make_runner();
  recorder seen;
  auto spec = shell("while read -r line; do echo \"got $line\"; done; echo end");
  spec.input = "one\n";
  spec.input_stays = true;
  const auto handle = runner->start(spec, seen.events());
  REQUIRE(handle.has_value());
  REQUIRE(seen.wait_for_output("got one\n"));
  REQUIRE(runner->write(*handle, "two\n"));
  REQUIRE(seen.wait_for_output("got two\n"));
  REQUIRE(runner->write(*handle, "th"));
  REQUIRE(runner->write(*handle, "ree\n"));
  REQUIRE(seen.wait_for_output("got three\n"));
  CHECK(seen.exits() == 0);
  REQUIRE(runner->write(*handle, "four\n"));
  runner->close_input(*handle);
  CHECK_FALSE(runner->write(*handle, "five\n"));
  REQUIRE(seen.wait());
  CHECK(seen.out() == "got one\ngot two\ngot three\ngot four\nend\n");
  CHECK(seen.exit().exit_code == 0);
}

TEST_CASE("without input a stdin that stays open is open all the same") {
  const auto runner = make_runner();
  recorder seen;
  auto spec = shell("cat");
  spec.input_stays = true;
  const auto handle = runner->start(spec, seen.events());
  REQUIRE(handle.has_value());
  const std::string large(3u << 20, 'x');
  REQUIRE(runner->write(*handle, large));
  runner->close_input(*handle);
  REQUIRE(seen.wait());
  CHECK(seen.out() == large);
}

TEST_CASE("a child that does not read is not written to without bound") {
  const auto runner = make_runner();
  recorder seen;
  auto spec = shell("echo ready; exec sleep 1000");
  spec.input_stays = true;
  const auto handle = runner->start(spec, seen.events());
  REQUIRE(handle.has_value());
  REQUIRE(seen.wait_for_output("ready"));
  const std::string chunk(1u << 20, 'x');
  result<void> written;
  for (int i = 0; i < 100 && written; ++i)
    written = runner->write(*handle, chunk);
  REQUIRE_FALSE(written);
  CHECK(written.error().code == errc::overloaded);
  runner->signal(*handle, SIGKILL);
  REQUIRE(seen.wait());
  CHECK(seen.exit().signal == SIGKILL);
  const auto late = runner->write(*handle, "late");
  REQUIRE_FALSE(late);
  CHECK(late.error().code == errc::not_found);
}

TEST_CASE("a child that closes its stdin, or ends, is no trouble") {
  const auto runner = make_runner();
  recorder seen;
  auto spec = shell("exec 0<&-; echo closed; exec sleep 1000");
  spec.input_stays = true;
  const auto handle = runner->start(spec, seen.events());
  REQUIRE(handle.has_value());
  REQUIRE(seen.wait_for_output("closed"));
  (void)runner->write(*handle, "nobody reads this\n");
  runner->close_input(*handle);
  CHECK(seen.exits() == 0);
  runner->signal(*handle, SIGTERM);
  REQUIRE(seen.wait());
  recorder ended;
  auto plain = shell("true");
  const auto other = runner->start(plain, ended.events());
  REQUIRE(other.has_value());
  CHECK_FALSE(runner->write(*other, "it has no such stdin"));
  REQUIRE(ended.wait());
}

} // namespace boyd::input_test
