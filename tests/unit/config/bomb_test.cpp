#include "loading.hpp"
#include "support/pch.hpp"
#include "support/sanitized.hpp"

#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

namespace boyd::bomb_test {

using namespace boyd::config::testing;
using boyd::adapters::parse_yaml;

namespace {

/// What a hostile file may cost at most: far above need, far below harm.
constexpr rlim_t memory_bytes = rlim_t{2} << 30;
constexpr rlim_t cpu_seconds = 60;

/// Loads `text` in a child under limits of memory and processor time; true when the child came to
/// an end by itself and the file was refused with a finding.
bool refused_within_limits(const std::string& text) {
  const pid_t child = fork();
  if (child == 0) {
    const rlimit memory{memory_bytes, memory_bytes};
    if (!boyd::test::sanitized())
      setrlimit(RLIMIT_AS, &memory);
    const rlimit cpu{cpu_seconds, cpu_seconds};
    setrlimit(RLIMIT_CPU, &cpu);
    const auto loaded = load_text(text);
    _exit(!loaded.value && !loaded.findings.empty() ? 0 : 1);
  }
  int status = -1;
  return child > 0 && waitpid(child, &status, 0) == child && WIFEXITED(status) &&
         WEXITSTATUS(status) == 0;
}

std::string repeat(std::string_view part, std::size_t times) {
  std::string out;
  for (std::size_t i = 0; i < times; ++i) {
    out += part;
  }
  return out;
}

std::string alias_bomb() {
  std::string out = "a0: &a0 [x, x, x, x, x, x, x, x, x]\n";
  for (int i = 1; i < 30; ++i) {
    const auto n = std::to_string(i);
    const auto before = "*a" + std::to_string(i - 1);
    out += "a" + n + ": &a" + n + " [" + before;
    for (int j = 0; j < 8; ++j) {
      out += ", " + before;
    }
    out += "]\n";
  }
  return out;
}

/// The only finding's line; checks that there is one.
int refused_line(const std::string& text) {
  const auto result = parse_yaml("boyd.yaml", text);
  CHECK_FALSE(result.value.has_value());
  REQUIRE(result.findings.size() == 1);
  INFO(result.findings.front().text());
  return result.findings.front().line;
}

} // namespace

TEST_CASE("config-bomb: hostile files are refused within limits", "[config-bomb]") {
  const std::vector<std::pair<std::string, std::string>> bombs{
      {"comma", ","},
      {"commas", repeat(",", 100'000)},
      {"colon", ":"},
      {"colons", repeat(": ", 100'000)},
      {"open lists", repeat("[", 500'000)},
      {"open lists in lines", repeat("[\n", 300'000)},
      {"open maps", repeat("{", 60'000)},
      {"nested flow maps", repeat("{a: ", 10'000)},
      {"nested dashes", repeat("- ", 30'000)},
      {"nested questions", repeat("? ", 30'000)},
      {"deep indentation",
       [] {
         std::string out;
         for (std::size_t i = 0; i < 1'000; ++i) {
           out += std::string(i, ' ') + "a:\n";
         }
         return out;
       }()},
      {"alias bomb", alias_bomb()},
      {"long alias", "a: &a " + std::string(60'000, 'x') + "\nb: [" + repeat("*a, ", 10'000) + "]"},
      {"self alias", "a: &a [*a]"},
      {"unknown alias", "a: *b"},
      {"many anchors", repeat("- &a x\n", 100'000)},
      {"many values", "a: [" + repeat("1,", 30'000) + "]\nb: [" + repeat("1,", 30'000) + "]\nc: [" +
                          repeat("1,", 30'000) + "]\nd: [" + repeat("1,", 30'000) + "]"},
      {"long line", "version: 1\nkernels: " + std::string(1'000'000, 'x')},
      {"long quote", "version: '" + repeat("x\n", 400'000)},
      {"comments", repeat("#\n", 500'000)},
      {"documents", repeat("---\n", 200'000)},
      {"tags", repeat("!a ", 20'000)},
      {"percent", repeat("%TAG ! tag:x,2000:\n", 20'000)},
      {"over a mebibyte", std::string((1u << 20) + 1, ' ')},
      {"long name", with_agent("        cooldown: " + std::string(60'000, 'a') + "\n")},
      {"many unknown keys",
       [] {
         std::string out;
         for (int i = 0; i < 40'000; ++i) {
           out += "k" + std::to_string(i) + ": 1\n";
         }
         return out;
       }()},
      {"many agents", "version: 1\nkernels:\n- agents: [" + repeat("{}, ", 12'000) + "]"},
  };
  for (const auto& [name, text] : bombs) {
    INFO(name);
    CHECK(refused_within_limits(text));
  }
}

TEST_CASE("config-bomb: the finding names the line", "[config-bomb]") {
  CHECK(refused_line("version: 1\nkernels: x\n" + std::string(1, '\0')) == 3);
  CHECK(refused_line("\xEF\xBB\xBFversion: 1\n") == 1);
  CHECK(refused_line("version: 1\na: \xff\n") == 2);
  CHECK(refused_line("version: 1\nb: " + std::string(1'000'000, 'x')) == 2);
  CHECK(refused_line("version: 1\nx: [1, }\n") == 2);
  CHECK(refused_line("version: 1\nkernels:\n\t- a\n") == 3);
  CHECK(refused_line("version: 1\n---\nversion: 1\n") == 2);
  CHECK(refused_line("version: 1\n? [a]\n: b\n") == 2);
  CHECK(refused_line("version: 1\na: \"\\0\"\n") == 2);
  CHECK(refused_line("version: 1\na: !!python/object x\n") == 2);
  CHECK(refused_line("a: &a [*a]\n") == 1);
  CHECK(refused_line("version: 1\n" + std::string(300, 'k') + ": 1\n") == 2);
  CHECK(refused_line("x: 1\ny: " + repeat("[", 100) + repeat("]", 100)) == 2);
  CHECK(refused_line("") == 0);
  CHECK(refused_line("# only a comment\n") == 0);
}

TEST_CASE("config-bomb: duplicate keys are told with both lines, and do not hide others",
          "[config-bomb]") {
  const auto result = load_text("version: 1\nnode: {}\nnode: {}\nkernels: []\nbogus: 1\n");
  CHECK_FALSE(result.value.has_value());
  const auto* duplicate = about(result, "node");
  REQUIRE(duplicate != nullptr);
  CHECK(duplicate->line == 3);
  CHECK(duplicate->problem.find("line 2") != std::string::npos);
  CHECK(about(result, "bogus") != nullptr);
  CHECK(about(result, "kernels") != nullptr);
}

TEST_CASE("yaml: what people write is read", "[yaml]") {
  const auto result =
      parse_yaml("f", "--- # start\na: &x [1, 'two', \"three\"]\nb: *x\nc: |\n  l1\n"
                      "  \tl2\nd:\ne: !!str 5\n...\n");
  REQUIRE(result.findings.empty());
  REQUIRE(result.value.has_value());
  const auto& t = *result.value;
  REQUIRE(t.find("b") != nullptr);
  CHECK(t.find("b")->items.size() == 3);
  CHECK(t.find("b")->at.line == 3);
  CHECK(t.find("a")->items[0].plain);
  CHECK_FALSE(t.find("a")->items[1].plain);
  CHECK(t.find("c")->text == "l1\n\tl2\n");
  CHECK(t.find("d")->at == boyd::config::mark{7, 1});
  CHECK_FALSE(t.find("e")->plain);
  CHECK(t.keys[1].at == boyd::config::mark{3, 1});
}

} // namespace boyd::bomb_test
