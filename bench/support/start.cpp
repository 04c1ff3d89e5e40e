#include "bench/support/start.hpp"

#include "bench/support/wiring.hpp"

#include <cstdio>

namespace boyd::bench {

int start(int argc, char** argv, const program& p) {
  auto args = arguments::parse(argc, argv, p.keys, {"--json", "--help"});
  if (!args || args->has("--help")) {
    std::fprintf(stderr, "%s%s", args ? "" : (to_string(args.error()) + "\n").c_str(), p.usage);
    return args ? 0 : 2;
  }
  quiet_logs();
  if (auto done = p.run(*args); !done) {
    std::fprintf(stderr, "%s: %s\n", p.name, to_string(done.error()).c_str());
    return 1;
  }
  return 0;
}

} // namespace boyd::bench
