#include "boyd/state/restarts.hpp"

#include "support/pch.hpp"

#include <map>
#include <string>

using namespace boyd;

TEST_CASE("recorded restarts: what was written is read, newest first", "[restarts]") {
  std::map<std::string, std::string> facts;
  for (int i = 0; i < 3; ++i) {
    const restart_event e{"part-" + std::to_string(i), "no UTF-8: \xff", from_unix_ms(1000 * i)};
    facts[state::restart_key(e, 1)] = state::render_restart(e);
  }
  const restart_event twin{"part-3", "in the same millisecond", from_unix_ms(2000)};
  facts[state::restart_key(twin, 2)] = state::render_restart(twin);
  facts["9"] = "no JSON";
  facts["8"] = "{\"part\":7}";
  const auto read = state::parse_restarts(facts);
  REQUIRE(read.size() == 4);
  CHECK(read[0].part == "part-3");
  CHECK(read[1].part == "part-2");
  CHECK(read[3].part == "part-0");
  CHECK(read[3].at == from_unix_ms(0));
  CHECK(read[3].cause.starts_with("no UTF-8: "));
}

TEST_CASE("recorded restarts: a very long cause is cut", "[restarts]") {
  const restart_event e{"store", std::string(100'000, 'x'), {}};
  CHECK(state::render_restart(e).size() < 2000);
}

TEST_CASE("restarts that nobody writes down: the newest are kept, up to a bound", "[restarts]") {
  restart_log log;
  for (std::size_t i = 0; i < restart_log::most + 5; ++i)
    log.note({std::to_string(i), "", {}});
  const auto all = log.take();
  REQUIRE(all.size() == restart_log::most);
  CHECK(all.front().part == "5");
  CHECK(log.take().empty());
}
