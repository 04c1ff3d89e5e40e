#include "boyd/config/redact.hpp"
#include "boyd/config/secret_shapes.hpp"
#include "support/pch.hpp"
#include "support/planted_secrets.hpp"

#include <nlohmann/json.hpp>
#include <rapidcheck.h>

namespace boyd::secret_shapes_test {

using namespace boyd::config;
using namespace boyd::test;
using Catch::Matchers::Contains;

namespace {

std::string base64_of(std::mt19937& random, std::size_t length) {
  std::string out;
  for (std::size_t i = 0; i < length; ++i)
    out += "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"[random() % 64];
  return out;
}

/// What keys stand between: nothing of it is a letter or a digit of a text.
std::string anything_but_words(unsigned seed) {
  static const std::vector<std::string> between{
      "",         " ",          "\n",       "\"",      "'", "(",   ")",        "=",
      ":",        ", ",         "\\n",      "\\u001b", "`", "%20", "\t> ",     "|",
      "\x1b[32m", "\\u001b[0m", "\xC3\xA4", "$",       "[", "]",   "{\"a\":\""};
  return between[seed % between.size()];
}

} // namespace

TEST_CASE("case 56 secret-in-answer: each form of a secret disappears, the rest stays",
          "[secrets]") {
  secret_maker make(GENERATE(1U, 2U, 3U));
  for (const auto& s : make.all()) {
    INFO(s.name << ": " << s.text);
    for (const auto& [before, after] : std::vector<std::pair<std::string, std::string>>{
             {"", ""}, {"see ", " there"}, {"(", ")"}, {"\"", "\","}, {"a\n", "\nb"}}) {
      const auto told = redact_shapes(before + s.text + after);
      CHECK_FALSE(shows_part_of(told, s.core));
      CHECK_THAT(told, Contains("[redacted]"));
      CHECK(told.starts_with(before));
      CHECK(told.ends_with(after));
      CHECK(redact_shapes(told) == told);
    }
  }
}

TEST_CASE("shapes: what only resembles a secret is left alone", "[secrets]") {
  const std::string dashes(5, '-');
  const std::vector<std::string> harmless{
      "commit 9c1185a5c5e9fc54612808977ee8f548b2258d31",
      "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855",
      "token: 123e4567-e89b-12d3-a456-426614174000",
      "id 123e4567-e89b-12d3-a456-426614174000, d-01JD3F6Y8Q4V7K2M9X5R0T1B6C",
      R"({"hash":"5f2c0a","prev":"9c1185a5c5e9fc54612808977ee8f548b2258d31","kind":"dispatch"})",
      "ask-me, task-force-2, risk-free, desk-lamp-17, sk-learn, sk-fading-circle12",
      "sk-container-id-1234567 sk-estimator-doc-link sk-text-repr-fallback-12",
      "ghp_ is how they begin; ghp_xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx is none",
      "npm_config_cache=/home/me/.npm, npm_package_devDependencies_typescript_version",
      "hf_hub_download(repo_id), HF_HOME=/data",
      "AKIA, AKIAB, MAKIAVELLI12345678901, AIza, Waltz, Aizawa",
      "eyJ eyJhbGci.b.c eyJ0.eyJ1.x",
      "password: hunter2, password = get_password_from_vault2(name), passwd: x",
      "password: ${DB_PASSWORD_2024_X1}, api_key=$OPENAI_API_KEY_V2X4",
      "password=changeme-please-2024, secret: my-secret-is-in-the-vault-2",
      "token=os.environ2[\"T0K3N\"]",
      "DB_PASSWORD_FILE=/run/secrets/db4a7c9e1f3b5d2a8c, public_key: 4a7c9e1f3b5d2a8c4a7c",
      "PWD=/srv/app2/release-3B4x/v5, \"OLDPWD\": \"/tmp/r-reader4b/h18x9y\"",
      "nextPageToken: 4a7c9e1f3b5d2a8c4a7c, max_tokens: 4096, tokens=120000",
      "Authorization: Bearer YOUR_ACCESS_TOKEN_GOES_HERE, the bearer of this letter2",
      "monkey: 4a7c9e1f3b5d2a8c4a7c, hotkey=a1b2c3d4e5f6a7b8c9",
      "pypi-server, pypi-simple-index-of-a-long-name-that-goes-on-and-on-and-on-and-on",
      "glpat-, xoxb-short, xoxo-kisses",
      dashes + "BEGIN CERTIFICATE" + dashes + "\nMIIB\n" + dashes + "END CERTIFICATE" + dashes,
      dashes + "BEGIN PUBLIC KEY" + dashes + "\nMIIB\n" + dashes + "END PUBLIC KEY" + dashes,
      "a file with " + dashes + "BEGIN RSA PRIVATE KEY" + dashes +
          " in it is found by include/boyd/config/secret/shapes, as it should",
      "| --- | :-: | ---- |",
      "2026-11-22T19:30:00Z",
      "http://127.0.0.1:8080/v1/models?x=1",
      "[redacted] password=[redacted]"};
  for (const auto& text : harmless) {
    INFO(text);
    CHECK(redact_shapes(text) == text);
    CHECK(redact_shapes("x " + text + "\n") == "x " + text + "\n");
  }
}

TEST_CASE("shapes: base64 of images and of anything else is left alone", "[secrets]") {
  std::mt19937 random(7);
  for (int i = 0; i < 20; ++i) {
    const auto text = "data:image/png;base64," + base64_of(random, 20'000) + "==";
    CHECK(redact_shapes(text) == text);
  }
}

TEST_CASE("shapes: a text without the beginnings of secrets never changes", "[secrets]") {
  REQUIRE(rc::check("no anchor, no change", [](std::string text) {
    std::erase_if(text,
                  [](char c) { return std::string("_-JIz=:Bb").find(c) != std::string::npos; });
    RC_ASSERT(redact_shapes(text) == text);
    RC_ASSERT(redact_shapes(text, cut_at::end) == text);
  }));
}

TEST_CASE("shapes: every planted secret disappears whatever stands around it", "[secrets]") {
  REQUIRE(rc::check("planted", [](unsigned seed, const std::string& head, const std::string& tail,
                                  unsigned before, unsigned after) {
    secret_maker make(seed);
    for (const auto& s : make.all()) {
      // An opening quote or bracket would be a part of the value's name or its end of the call.
      const auto left = head + "\n" + anything_but_words(before) + "\n ";
      const auto told = redact_shapes(left + s.text + "\n" + anything_but_words(after) + tail);
      if (shows_part_of(told, s.core))
        RC_FAIL(s.name + ": " + told);
    }
  }));
  REQUIRE(rc::check("directly against it", [](unsigned seed, unsigned before, unsigned after) {
    secret_maker make(seed);
    for (const auto& s : make.all()) {
      if (s.name.ends_with(' ') || s.name.find('=') != std::string::npos)
        continue; // their ends are what stands around them
      const auto told =
          redact_shapes(anything_but_words(before) + s.text + anything_but_words(after));
      if (shows_part_of(told, s.core))
        RC_FAIL(s.name + ": " + told);
    }
  }));
}

TEST_CASE("shapes: JSON stays JSON, with the same members", "[secrets]") {
  REQUIRE(rc::check("planted in JSON", [](unsigned seed, const std::string& text, unsigned n) {
    using nlohmann::json;
    secret_maker make(seed);
    json value = json::array();
    for (const auto& s : make.all())
      value.push_back({{"name", text},
                       {"text", anything_but_words(n) + s.text + "\n\"" + text},
                       {"nested", json{{"password", s.text}}.dump(
                                      -1, ' ', false, json::error_handler_t::replace)}});
    const auto told = json::parse(
        redact_shapes(value.dump(-1, ' ', false, json::error_handler_t::replace)), nullptr, false);
    RC_ASSERT(!told.is_discarded());
    RC_ASSERT(told.size() == value.size());
    for (std::size_t i = 0; i < told.size(); ++i)
      RC_ASSERT(told[i].size() == value[i].size());
  }));
}

TEST_CASE("shapes: escapes before a key are not torn", "[secrets]") {
  secret_maker make(5);
  const auto npm = make.with_prefix(std::string("n") + "pm_", 36);
  // A line break and "pm_…": in JSON it must stay a line break.
  CHECK(redact_shapes("\"a\\" + npm.text + "\"") == "\"a\\n[redacted]\"");
  const auto gh = make.with_prefix(std::string("gh") + "p_", 36);
  CHECK(redact_shapes("\"a\\n" + gh.text + "\"") == "\"a\\n[redacted]\"");
  CHECK(redact_shapes("\\u0041" + gh.text) == "\\u0041[redacted]");
  CHECK(redact_shapes("x%20" + gh.text) == "x%20[redacted]");
  CHECK(redact_shapes("\x1b[1;32m" + gh.text + "\x1b[0m") == "\x1b[1;32m[redacted]\x1b[0m");
}

TEST_CASE("shapes: the keys of a private key in a program's strings disappear", "[secrets]") {
  secret_maker make(9);
  const auto pem = make.pem("EC PRIVATE KEY", 4);
  std::string program;
  std::istringstream in(pem.text);
  for (std::string line; std::getline(in, line);)
    program += "    \"" + line + "\\n\"\n";
  const auto told = redact_shapes(program);
  INFO(told);
  CHECK_FALSE(shows_part_of(told, pem.core));
  CHECK(std::count(told.begin(), told.end(), '"') ==
        std::count(program.begin(), program.end(), '"'));
}

TEST_CASE("shapes: the labels of a private key hide nothing but a key", "[secrets]") {
  const std::string dashes(5, '-');
  const auto between = [&](const std::string& body) {
    return "echo tidy # " + dashes + "BEGIN PRIVATE KEY" + dashes + body + dashes +
           "END PRIVATE KEY" + dashes + "\n";
  };
  for (const auto* body :
       {"\necho pwned > pwned.txt; id >> pwned.txt\n: ", "\\necho pwned > pwned.txt\\n: ",
        "\nreboot\n", "\npoweroff\nhalt\n", "\n/usr/sbin/reboot\n", " id ", "\nComment: x\nid\n",
        "\nProc-Type: 4; id\n", "\n\n", ""}) {
    INFO(body);
    CHECK(redact_shapes(between(body)) == between(body));
  }
  // Around and among the lines of a key everything else is shown, too.
  secret_maker make(13);
  const auto line = make.key(64, "+/");
  for (const auto* words : {"id >> pwned.txt", "reboot", "a\\b", "rm -r ."}) {
    INFO(words);
    for (const auto& body :
         {"\n" + line + "\n" + words + "\n" + line + "\n",
          "\n" + std::string(words) + "\n" + line + "\n", "\n" + line + "\n" + words + "\n"}) {
      const auto told = redact_shapes(between(body));
      CHECK_THAT(told, Contains(words) && Contains("BEGIN") && Contains("END"));
      CHECK_FALSE(shows_part_of(told, line));
    }
  }
}

TEST_CASE("shapes: a private key disappears as it is written elsewhere, too", "[secrets]") {
  secret_maker make(17);
  const std::string dashes(5, '-');
  const auto line = make.key(64, "+/");
  const auto last = make.key(22, "+/") + "==";
  const auto key = [&](const std::string& between, const std::string& headers = {}) {
    return dashes + "BEGIN RSA PRIVATE KEY" + dashes + between + headers + line + between + line +
           between + last + between + dashes + "END RSA PRIVATE KEY" + dashes;
  };
  for (const auto& text :
       {key("\n"), key("\r\n"), key("\\n"), key("\\\\n"), key("\\r\\n"), key(" "), key("\n    "),
        key("\n", "Proc-Type: 4,ENCRYPTED\nDEK-Info: AES-128-CBC,0A1B2C3D\n\n"),
        key("\n", "Version: GnuPG v2\nComment: made here (2026)\n\n")}) {
    INFO(text);
    CHECK(redact_shapes("a " + text + " b") == "a [redacted] b");
  }
}

TEST_CASE("shapes: what was taken is told", "[secrets]") {
  secret_maker make(19);
  const auto key = make.with_prefix(std::string("gh") + "p_", 36).text;
  std::vector<hidden_part> hidden;
  const auto told =
      redact_text("say swordfish to https://me:hush@a.example with " + key, {"swordfish"}, hidden);
  CHECK(told == "say [redacted] to https://me:[redacted]@a.example with [redacted]");
  REQUIRE(hidden.size() == 3);
  CHECK((hidden[0].text == "hush" && !hidden[0].known));
  CHECK((hidden[1].text == "swordfish" && hidden[1].known));
  CHECK((hidden[2].text == key && !hidden[2].known));
  // One that was redacted before ends the search for no other.
  CHECK(redact_text("a://b:[redacted]@c d://e:hush@f", {}) ==
        "a://b:[redacted]@c d://e:[redacted]@f");
}

TEST_CASE("shapes: no part of a secret is left at a cut", "[secrets]") {
  secret_maker make(11);
  for (const auto& s : make.all()) {
    const auto from = s.text.find(s.core);
    REQUIRE(from != std::string::npos);
    for (std::size_t n = 12; n <= s.core.size(); ++n) {
      const auto text = "it is " + s.text.substr(0, from + n);
      INFO(s.name << ": " << text);
      CHECK_FALSE(shows_part_of(redact_shapes(text, cut_at::end), s.core));
      CHECK_FALSE(shows_part_of(redact_cut_end(text, {}), s.core));
    }
    for (std::size_t n = 0; n + 12 <= s.core.size(); ++n) {
      const auto text = s.text.substr(from + n) + " it was";
      INFO(s.name << ": " << text);
      CHECK_FALSE(shows_part_of(redact_shapes(text, cut_at::begin), s.core));
    }
  }
  for (const auto* text : {"uses sk-learn", "the rest is in results", "npm_config", "exit code 1",
                           "wrote 12 files", "ghp_", "", "password: "}) {
    INFO(text);
    CHECK(redact_shapes(text, cut_at::end) == text);
    CHECK(redact_shapes(text, cut_at::begin) == text);
  }
}

TEST_CASE("shapes: texts made to be slow are not", "[secrets]") {
  // Each would take hours in steps that grow with the square of the length.
  const std::string dashes(5, '-');
  for (const auto& piece : std::vector<std::string>{
           "sk-", "eyJaaaaaaaaaa-", "eyJaaaaaaaaaa.", "eyJaaaaaaaaaa-eyJaaaaaaa.", "token=", "_",
           "ghp_", "bearer ", "://", "authorization:", dashes + "BEGIN PRIVATE KEY" + dashes,
           dashes + "BEGIN PRIVATE KEY" + dashes + "\"", "AIza-", "AKIA-", "password=\\\""}) {
    std::string text;
    while (text.size() < (1u << 20))
      text += piece;
    INFO(piece);
    CHECK(redact_shapes(text).size() <= text.size() * 11);
    CHECK(redact_shapes(text, cut_at::end).size() <= text.size() * 11);
  }
}

} // namespace boyd::secret_shapes_test
