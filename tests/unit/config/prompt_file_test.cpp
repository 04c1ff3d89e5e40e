#include "loading.hpp"
#include "support/pch.hpp"

namespace boyd::prompt_file_test {

using namespace boyd;
using namespace boyd::config;
using Catch::Matchers::Contains;

namespace {

std::string yaml(const std::string& more) {
  return "version: 1\n"
         "kernels:\n"
         "  - agents:\n"
         "      - agent_id: a\n"
         "        executor: {type: command, argv: [cat]}\n" +
         more;
}

load_result load_with(const std::string& more,
                      const std::string& content = "Say {TIME} ${HOME}\n") {
  static const auto zones = adapters::make_time_zones();
  return load(
      "/etc/boyd/boyd.yaml", yaml(more), [](const std::string&) { return std::nullopt; }, *zones,
      unset_variables::are_errors,
      [&](const std::string& path) -> result<std::string> {
        if (path != "/etc/boyd/prompts/a.md")
          return fail(errc::not_found, "no such file", path);
        return content;
      });
}

} // namespace

TEST_CASE("a prompt is read from a file, as it is", "[config]") {
  const auto loaded = load_with("        prompt_file: prompts/a.md\n");
  INFO(testing::texts(loaded));
  REQUIRE(loaded.value);
  CHECK(loaded.value->kernels[0].agents[0].prompt == "Say {TIME} ${HOME}\n");
  // What the node works by is shown.
  CHECK_THAT(loaded.value->redacted_yaml, Contains("Say {TIME}") && !Contains("prompt_file"));
}

TEST_CASE("a prompt's file that does not do is a finding with its line", "[config]") {
  const auto finding = [](const std::string& more, const std::string& content = "text") {
    const auto loaded = load_with(more, content);
    REQUIRE_FALSE(loaded.value);
    return testing::texts(loaded);
  };
  CHECK_THAT(finding("        prompt_file: prompts/b.md\n"),
             Contains("boyd.yaml:6:22: kernels[0].agents[0].prompt_file: cannot read the file"));
  CHECK_THAT(finding("        prompt_file: ../a.md\n"),
             Contains("outside the folder of the configuration"));
  CHECK_THAT(finding("        prompt_file: /etc/boyd/prompts/a.md\n"),
             Contains("outside the folder of the configuration"));
  CHECK_THAT(finding("        prompt: x\n        prompt_file: prompts/a.md\n"),
             Contains("prompt is also set; expected one of prompt and prompt_file"));
  CHECK_THAT(finding("        prompt_file: prompts/a.md\n", "\xff\xfe"), Contains("is not text"));
  CHECK_THAT(
      finding("        prompt_file: prompts/a.md\n", std::string(limits::prompt_bytes + 1, 'x')),
      Contains("at most "));
  CHECK_THAT(finding("        prompt_file: [a]\n"), Contains("prompt_file"));
  CHECK_THAT(finding("        prompt_fiel: prompts/a.md\n"), Contains("did you mean prompt_file?"));
}

} // namespace boyd::prompt_file_test
