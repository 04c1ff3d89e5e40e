#include "harness.hpp"
#include "src/adapters/posix/open_files.hpp"
#include "support/pch.hpp"

#include <sys/resource.h>

namespace boyd::open_files_test {

using namespace boyd;
using namespace boyd::test;

TEST_CASE("children get the limit of open files that the node was started with") {
  rlimit before{};
  ::getrlimit(RLIMIT_NOFILE, &before);
  const rlimit low{200, before.rlim_max};
  ::setrlimit(RLIMIT_NOFILE, &low);
  const auto raised = adapters::raise_open_files();
  rlimit now{};
  ::getrlimit(RLIMIT_NOFILE, &now);
  adapters::process_runner_options options;
  options.open_files = raised.before;
  const auto runner = adapters::make_process_runner(options);
  ::setrlimit(RLIMIT_NOFILE, &before);
  CHECK(raised.before == 200);
  CHECK(raised.now == before.rlim_max);
  CHECK(now.rlim_cur == before.rlim_max);
  REQUIRE(runner);
  recorder r;
  REQUIRE((*runner)->start(shell("ulimit -Sn; ulimit -Hn"), r.events()).has_value());
  REQUIRE(r.wait());
  const auto hard =
      before.rlim_max == RLIM_INFINITY ? std::string("unlimited") : std::to_string(before.rlim_max);
  CHECK(r.out() == "200\n" + hard + "\n");
}

} // namespace boyd::open_files_test
