#include "loading.hpp"
#include "support/pch.hpp"

#include <string>

namespace boyd::heartbeat_test {

using namespace boyd::config;
using namespace boyd::config::testing;

TEST_CASE("heartbeat_url: an address of the web, or nothing", "[config]") {
  const std::string kernel = "version: 1\nkernels:\n  - kernel_id: k\n";
  const auto without = load_text(kernel);
  REQUIRE(without.value);
  CHECK(without.value->kernels.at(0).heartbeat_url.empty());
  const auto with = load_text(kernel + "    heartbeat_url: https://m.example.org/${BEAT_KEY}\n",
                              {{"BEAT_KEY", "abcdefgh"}});
  INFO(texts(with));
  REQUIRE(with.value);
  CHECK(with.value->kernels.at(0).heartbeat_url == "https://m.example.org/abcdefgh");
  CHECK(with.value->redacted_yaml.find("abcdefgh") == std::string::npos);
  for (const auto* wrong : {"ftp://a/", "monitor", "http://me:word@a/", "http://a:99999/"}) {
    const auto r = load_text(kernel + "    heartbeat_url: " + wrong + "\n");
    INFO(texts(r));
    CHECK_FALSE(r.value);
    const auto* found = about(r, "kernels[0].heartbeat_url");
    REQUIRE(found != nullptr);
    CHECK(found->line == 4);
    CHECK(found->expected.find("https://") != std::string::npos);
  }
}

} // namespace boyd::heartbeat_test
