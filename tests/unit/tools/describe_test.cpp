#include "boyd/core/sha256.hpp"
#include "boyd/tools/describe.hpp"
#include "support/pch.hpp"

#include <nlohmann/json.hpp>
#include <rapidcheck.h>

namespace boyd::describe_test {

using namespace boyd;
using namespace boyd::tools;
using Catch::Matchers::Contains;

TEST_CASE("what would be done is told as the tool reads it", "[tools][describe]") {
  SECTION("a file: all of it") {
    const auto text =
        describe_call("write_file", R"({"path":"docs/a.md","content":"one\n\ttwo\n"})");
    CHECK_THAT(text, Contains("tool: write_file\n") && Contains("path: \"docs/a.md\"") &&
                         Contains("9 bytes, sha256 " + sha256_hex("one\n\ttwo\n")) &&
                         Contains("\n\none\n\ttwo\n"));
  }
  SECTION("a program: which words are one argument") {
    const auto text = describe_call("run_command", R"({"argv":["rm","-r","a b"],"cwd":"src"})");
    CHECK_THAT(text, Contains(R"(program: ["rm","-r","a b"])") && Contains("directory: \"src\""));
  }
  SECTION("a shell's line") {
    const auto text = describe_call("run_command", R"({"command":"make && make install"})");
    CHECK_THAT(text, Contains("shell (/bin/sh -c):\n\nmake && make install"));
  }
  SECTION("of two members of one name the one that counts") {
    const auto text =
        describe_call("write_file", R"({"path":"harmless","path":"/etc/x","content":""})");
    const auto told = describe_call("write_file", R"({"path":"/etc/x","content":""})");
    CHECK((text == told || text.find("arguments:") != std::string::npos));
  }
  SECTION("tools of others: their arguments as they came") {
    CHECK_THAT(describe_call("mcp__files__move", R"({"to": "x"})"),
               Contains("tool: mcp__files__move") && Contains(R"({"to": "x"})"));
  }
}

TEST_CASE("whoever decides is told how much they do not see", "[tools][describe]") {
  const std::string dashes(5, '-');
  const std::string key = std::string("gh") + "p_" + "a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8";
  const auto shown =
      show_call("run_command", R"({"command":"push )" + key + " hush99\"}", {"hush99"});
  CHECK(shown.refused.empty());
  CHECK(shown.text.starts_with(
      "NOT ALL OF THIS IS SHOWN: 2 parts look like secrets and are shown as [redacted]\n"));
  CHECK_THAT(shown.text, Contains("  40 bytes, sha256 " + sha256_hex(key) + "\n") &&
                             Contains("  6 bytes, a secret of the node's configuration\n") &&
                             Contains("push [redacted] [redacted]"));
  CHECK(shown.text.find(sha256_hex("hush99")) == std::string::npos);
  const std::string plain = R"({"command":"make"})";
  CHECK(show_call("run_command", plain, {}).text == describe_call("run_command", plain));
}

TEST_CASE("nobody is asked about what redaction could hide more of than a secret",
          "[tools][describe]") {
  const std::string dashes(5, '-');
  const auto block = [&](const std::string& body) {
    return dashes + "BEGIN PRIVATE KEY" + dashes + body + dashes + "END PRIVATE KEY" + dashes;
  };
  const auto of_command = [](const std::string& line) {
    return show_call("run_command", nlohmann::json{{"command", line}}.dump(), {});
  };
  const std::string line = "/tmp/a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8s9T0u1V2w3X4y5Z6";
  CHECK_THAT(of_command("true # " + block("\n" + line + "\n")).refused,
             Contains("could not review the whole request"));
  CHECK_FALSE(of_command("echo a://b:;id>>x;@c").refused.empty());
  CHECK_FALSE(of_command("echo password=aB3$(id)x9Y8z7W6v5U4").text.find("$(id)") ==
              std::string::npos);
  // What hides nothing is shown, whatever it resembles.
  const auto harmless = of_command("true # " + block("\necho pwned; id\n: "));
  CHECK(harmless.refused.empty());
  CHECK_THAT(harmless.text, Contains("echo pwned; id"));
  // A file may hold a key: it runs nothing.
  const auto file = show_call(
      "write_file",
      nlohmann::json{{"path", "key.pem"}, {"content", block("\n" + line + line + "\n")}}.dump(),
      {});
  CHECK(file.refused.empty());
  CHECK_THAT(file.text,
             Contains("NOT ALL OF THIS IS SHOWN: 1 part looks like a secret and is shown"));
}

TEST_CASE("nothing in it moves the cursor, hides or reorders", "[tools][describe]") {
  CHECK(visible_text("plain äöü 漢字 😀\n\tx") == "plain äöü 漢字 😀\n\tx");
  CHECK(visible_text("a\x1b[2Jb\rc\b") == "a\\x1B[2Jb\\x0Dc\\x08");
  CHECK(visible_text(std::string_view("a\0b", 3)) == "a\\x00b");
  CHECK(visible_text("user\u202Enimda\u2066") == "user\\u{202E}nimda\\u{2066}");
  CHECK(visible_text("a\u200Bb\uFEFF\u00ADc") == "a\\u{200B}b\\u{FEFF}\\u{00AD}c");
  CHECK(visible_text("\xC2\x9B"
                     "31m") == "\\u{009B}31m");
  CHECK(visible_text("\xff\xc0\xaf\xed\xa0\x80\xf5") == "\\xFF\\xC0\\xAF\\xED\\xA0\\x80\\xF5");
  CHECK(visible_text("cut \xe6\xbc") == "cut \\xE6\\xBC");
  CHECK_THAT(describe_call("write_file", "{\"path\":\"a\xE2\x80\xAE"
                                         "b\",\"content\":\"\\u001b[1A\"}"),
             Contains("\\u{202E}") && Contains("\\x1B[1A"));
}

TEST_CASE("any bytes become text that can be shown, and shown again", "[tools][describe]") {
  CHECK(rc::check("visible_text", [](const std::string& bytes) {
    const auto text = visible_text(bytes);
    RC_ASSERT(visible_text(text) == text);
    RC_ASSERT(nlohmann::json(text).dump().size() >= text.size());
    for (const char c : text)
      RC_ASSERT((static_cast<unsigned char>(c) >= 0x20 || c == '\n' || c == '\t'));
  }));
  CHECK(rc::check("describe_call", [](const std::string& bytes) {
    const auto text = describe_call("write_file", bytes);
    RC_ASSERT(visible_text(text) == text);
  }));
}

} // namespace boyd::describe_test
