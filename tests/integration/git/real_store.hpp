#pragma once

#include "boyd/state/versioned_store.hpp"
#include "integration/git/fixture.hpp"
#include "src/adapters/posix/file_system.hpp"

#include <memory>
#include <string>

namespace boyd::test {

class hand_clock final : public clock_port {
 public:
  utc_time now() const override { return at(noon) + passed; }
  steady_time steady() const override { return steady_time{passed}; }

  milliseconds passed{0};
};

/// A versioned store over real files and real git.
struct real_store : git_home {
  std::shared_ptr<file_system> files = adapters::make_posix_file_system();
  hand_clock clock;
  state::versioned_store store{*files, *provider, clock, {path, who, true, true}};

  real_store() {
    const auto made = store.init();
    INFO((made ? std::string() : to_string(made.error())));
    REQUIRE(made);
  }
};

} // namespace boyd::test
