#include "boyd/core/sha256.hpp"
#include "boyd/tools/definitions.hpp"
#include "boyd/tools/file_prints.hpp"
#include "boyd/tools/perform.hpp"
#include "integration/posix/confined_fixture.hpp"
#include "src/adapters/posix/file_system.hpp"
#include "support/pch.hpp"

#include <nlohmann/json.hpp>

namespace boyd::perform_test {

using namespace boyd;
using namespace boyd::tools;
using config::policy_decision;
namespace fs = std::filesystem;

namespace {

struct fixture : test::confined_fixture {
  tool_outcome run(std::string_view tool, const nlohmann::json& arguments) {
    const auto call = read_call(tool, arguments.dump());
    if (!call)
      return failed_outcome(call.error());
    return perform(std::get<file_call>(*call), root, granted, place, *files, *real);
  }
  std::string text(std::string_view tool, const nlohmann::json& arguments) {
    const auto outcome = run(tool, arguments);
    INFO(outcome.text);
    CHECK_FALSE(outcome.is_error);
    return outcome.text;
  }
  std::string trouble(std::string_view tool, const nlohmann::json& arguments) {
    const auto outcome = run(tool, arguments);
    INFO(outcome.text);
    CHECK(outcome.is_error);
    return outcome.text;
  }

  permission granted{{}, {"*"}, 0};
  result_place place{home + "/executions/d-1/results", "1-call"};
  std::shared_ptr<file_system> real = adapters::make_posix_file_system();
};

bool mentions(const std::string& text, std::string_view part) {
  return text.find(part) != std::string::npos;
}

std::string lines(int from, int to) {
  std::string text;
  for (int i = from; i <= to; ++i)
    text += "line " + std::to_string(i) + "\n";
  return text;
}

} // namespace

TEST_CASE("what an action is about to meet is looked at, and nothing beyond the workspace",
          "[tools][perform]") {
  fixture f;
  f.put(f.root + "/run.sh", "echo a\n");
  fs::create_symlink(f.dir.file("outside/secret"), f.root + "/out");
  fs::create_symlink("run.sh", f.root + "/in");
  const std::vector<std::string> paths{f.root + "/run.sh", "none",       "src", "out", "in",
                                       "run.sh/x",         "/etc/passwd"};
  const auto look = [&] { return look_at_files(*f.files, f.root, paths).value(); };
  const auto before = look();
  REQUIRE(before.size() == paths.size());
  std::vector<std::string> states;
  for (const auto& p : before)
    states.push_back(p.state);
  const auto hash = "sha256:" + sha256_hex("echo a\n");
  CHECK(states ==
        std::vector<std::string>{hash, "missing", "other", "closed", hash, "closed", "closed"});
  CHECK(content_hash(before[0]) == sha256_hex("echo a\n"));
  CHECK(content_hash(before[1]).empty());
  CHECK(content_hash(before[3]) == "closed");
  CHECK(hash_of(look()) == hash_of(before));
  f.put(f.dir.file("outside/secret"), "ANOTHER");
  CHECK(hash_of(look()) == hash_of(before));
  f.put(f.root + "/run.sh", "echo b\n");
  CHECK(hash_of(look()) != hash_of(before));
  CHECK(hash_of({}).empty());
  fs::resize_file(f.root + "/run.sh", print_bytes + 1);
  CHECK(look().front().state == "size:" + std::to_string(print_bytes + 1));
  CHECK_FALSE(look_at_files(*f.files, f.root, std::vector<std::string>(most_prints + 1, "x")));
}

TEST_CASE("case 50 patch-base-moved: another file than a person's word was about is not replaced",
          "[tools][perform]") {
  fixture f;
  const nlohmann::json call{{"path", "plan"}, {"content", "mine"}};
  f.granted.before = sha256_hex("before");
  CHECK(mentions(f.trouble("write_file", call), "has changed since it was read"));
  f.put(f.root + "/plan", "another");
  CHECK(mentions(f.trouble("write_file", call), "has changed since it was read"));
  f.put(f.root + "/plan", "before");
  f.text("write_file", call);
  CHECK(f.get(f.root + "/plan") == "mine");
  f.granted.before = "";
  CHECK(mentions(f.trouble("write_file", call), "has changed since it was read"));
}

TEST_CASE("read_file gives lines, and says what is missing and how to go on", "[tools][perform]") {
  fixture f;
  f.put(f.root + "/small", "one\ntwo");
  CHECK(f.text("read_file", {{"path", "small"}}) == "one\ntwo");
  CHECK(f.text("read_file", {{"path", "small"}, {"line_numbers", true}}) == "1\tone\n2\ttwo");
  f.put(f.root + "/many", lines(1, 10'000));
  const auto first = f.text("read_file", {{"path", "many"}, {"limit", 3}});
  CHECK(first.starts_with(lines(1, 3)));
  CHECK(mentions(first, "[lines 1 to 3; up to byte 21 of "));
  CHECK(first.ends_with("continue with offset 4]\n"));
  const auto next =
      f.text("read_file", {{"path", "many"}, {"offset", 4}, {"limit", 2}, {"line_numbers", true}});
  CHECK(next.starts_with("4\tline 4\n5\tline 5\n["));
  CHECK(f.text("read_file", {{"path", "many"}, {"offset", 10'000}}) ==
        "line 10000\n[end of the file]\n");
  CHECK(f.text("read_file", {{"path", "many"}, {"offset", 10'001}}) ==
        "[past the end: the file has 10000 line ends and 98894 bytes]\n");
  // From page to page everything comes, once.
  std::string all;
  for (int offset = 1; offset <= 10'000;) {
    const auto page =
        f.text("read_file", {{"path", "many"}, {"offset", offset}, {"limit", 100'000}});
    CHECK(page.size() <= tool_result_bytes);
    const auto end = page.rfind("\n[") + 1;
    all += page.substr(0, end);
    const auto go_on = page.find("offset ", end);
    offset = go_on == std::string::npos ? 10'001 : std::stoi(page.substr(go_on + 7));
  }
  CHECK(all == lines(1, 10'000));
  f.put(f.root + "/empty", "");
  CHECK(f.text("read_file", {{"path", "empty"}}) == "[the file is empty]\n");
  CHECK(mentions(f.trouble("read_file", {{"path", "none"}}), "none: "));
  CHECK_FALSE(fs::exists(f.place.directory));
}

TEST_CASE("read_file goes through a line without end by bytes", "[tools][perform]") {
  fixture f;
  std::string whole;
  for (int i = 0; whole.size() < 200'000; ++i)
    whole += std::to_string(i) + "\xC3\xA4";
  f.put(f.root + "/long", whole);
  std::string all;
  nlohmann::json arguments{{"path", "long"}};
  for (int pages = 0; pages < 10; ++pages) {
    const auto page = f.text("read_file", arguments);
    const auto end = page.rfind("\n[");
    all += page.substr(0, end);
    const auto go_on = page.find("byte_offset ", end);
    if (go_on == std::string::npos)
      break;
    arguments["byte_offset"] = std::stoi(page.substr(go_on + 12));
  }
  CHECK(all == whole);
}

TEST_CASE("a binary file is described", "[tools][perform]") {
  fixture f;
  f.put(f.root + "/image", std::string("\x89PNG\r\n\x1a\n\0\0", 10));
  CHECK(f.text("read_file", {{"path", "image"}}) ==
        "[a binary file of 10 bytes, an image (PNG); it begins with 89 50 4e 47 0d 0a 1a 0a 00 "
        "00]\n");
  f.put(f.root + "/latin1", "caf\xE9\n");
  CHECK(f.text("read_file", {{"path", "latin1"}}) == "caf\xEF\xBF\xBD\n");
}

TEST_CASE("write_file writes, and what it may not write stays as it was", "[tools][perform]") {
  fixture f;
  CHECK(f.text("write_file", {{"path", "notes/a.md"}, {"content", "\xE2\x82\xAC"}}) ==
        "wrote 3 bytes to notes/a.md");
  CHECK(f.get(f.root + "/notes/a.md") == "\xE2\x82\xAC");
  for (const auto* path : {".git/hooks/pre-commit", "../x", "/etc/x", ".gitattributes"})
    CHECK(mentions(f.trouble("write_file", {{"path", path}, {"content", "x"}}), "error: "));
}

TEST_CASE("the objective changes by write_file, and only the node writes STATE.md",
          "[tools][perform]") {
  fixture f;
  f.root = f.home + "/kernel/default";
  fs::create_directories(f.root);
  f.text("write_file", {{"path", "GOAL.md"}, {"content", "Be better."}});
  CHECK(f.get(f.root + "/GOAL.md") == "Be better.");
  CHECK(mentions(f.trouble("write_file", {{"path", "STATE.md"}, {"content", "x"}}),
                 "STATE.md is written only by the node"));
}

TEST_CASE("list_dir names everything on a line of its own", "[tools][perform]") {
  fixture f;
  f.put(f.root + "/a", "12");
  f.put(f.root + "/b\nc", "");
  fs::create_symlink("/etc/passwd", f.root + "/link");
  CHECK(f.text("list_dir", {}) == "a  2 bytes\nb?c  0 bytes\nlink  symbolic link\nsrc/\n");
  fs::create_directory(f.root + "/none");
  CHECK(f.text("list_dir", {{"path", "none"}}) == "[the directory is empty]\n");
  for (int i = 0; i < 2100; ++i)
    f.put(f.root + "/none/" + std::to_string(i), "");
  CHECK(mentions(f.text("list_dir", {{"path", "none"}}), "[the first 2000 of 2100 entries"));
}

TEST_CASE("search_text finds lines and says what it passed over", "[tools][perform]") {
  fixture f;
  f.put(f.root + "/a.md", "one\nTwo needle\nneedle needle\n");
  f.put(f.root + "/src/b.cpp", std::string(1000, 'x') + "needle" + std::string(1000, 'y'));
  f.put(f.root + "/bin", std::string("needle\0", 7));
  const auto all = f.text("search_text", {{"query", "needle"}});
  CHECK(mentions(all, "a.md:2: Two needle\na.md:3: needle needle\n"));
  CHECK(mentions(all, "src/b.cpp:1: …xxx"));
  CHECK(mentions(all, "[3 lines found in 4 files"));
  CHECK(mentions(all, "1 binary files skipped"));
  CHECK(all.size() < 1000);
  CHECK(mentions(f.text("search_text", {{"query", "NEEDLE"}}), "[0 lines found"));
  CHECK(mentions(f.text("search_text", {{"query", "NEEDLE"}, {"ignore_case", true}}), "[3 lines"));
  CHECK(mentions(f.text("search_text", {{"query", "needle"}, {"files", "*.md"}}),
                 "[2 lines found in 1 files"));
  CHECK(mentions(f.text("search_text", {{"query", "needle"}, {"files", "src/**"}}),
                 "[1 lines found in 2 files"));
  CHECK(mentions(f.text("search_text", {{"query", "needle"}, {"path", "src"}}), "[1 lines"));
  std::string much;
  for (int i = 0; i < 1000; ++i)
    much += "needle\n";
  f.put(f.root + "/much", much);
  CHECK(mentions(f.text("search_text", {{"query", "needle"}, {"path", "much"}}),
                 "[500 lines found in 1 files, 7000 bytes; more matches"));
}

TEST_CASE("a long result is kept in a file and can be read from there", "[tools][perform]") {
  fixture f;
  const auto whole = lines(1, 20'000);
  f.place.name = "../../3 weird";
  const auto outcome = fit_result(whole, false, f.place, *f.real);
  CHECK(outcome.text.size() < tool_result_bytes + 200);
  CHECK(outcome.bytes == whole.size());
  CHECK(outcome.text.starts_with("line 1\n"));
  CHECK(outcome.text.ends_with("line 20000\n"));
  CHECK(mentions(outcome.text, " of " + std::to_string(whole.size()) +
                                   " bytes omitted; complete in @results/______3_weird.txt"));
  CHECK(f.get(outcome.spilled) == whole);
  CHECK(outcome.spilled == f.place.directory + "/______3_weird.txt");
  CHECK(f.text("read_file",
               {{"path", "@results/______3_weird.txt"}, {"offset", 10'000}, {"limit", 1}})
            .starts_with("line 10000\n"));
  f.trouble("read_file", {{"path", "@results/../record.json"}});
  // What was lost before is not said to be there.
  f.place.missing = 240'319;
  const auto part = fit_result(whole, false, f.place, *f.real);
  CHECK(mentions(
      part.text,
      "the stored part is in @results/______3_weird.txt (use read_file); 240319 more bytes"));
  CHECK_FALSE(mentions(part.text, "the whole"));
  f.place.missing = 0;
  // Cut between characters, and honest when the file cannot be kept.
  std::string wide;
  while (wide.size() < 3000)
    wide += "\xE2\x82\xAC";
  f.place.directory = "/proc/nowhere";
  const auto lost = fit_result(wide, true, f.place, *f.real, 1000);
  CHECK(lost.is_error);
  CHECK(lost.spilled.empty());
  CHECK(mentions(lost.text, "could not be stored"));
  CHECK_FALSE(mentions(lost.text, "\xEF\xBF\xBD"));
}

TEST_CASE("a rule about a path holds also behind a link", "[tools][perform]") {
  fixture f;
  fs::create_directories(f.root + "/private");
  f.put(f.root + "/private/key", "SECRET\n");
  fs::create_symlink("private/key", f.root + "/public");
  fs::create_directory_symlink("private", f.root + "/open");
  f.granted.policy.rules = {{"*", "private/**", "", "", policy_decision::deny, "not for agents"}};
  CHECK(mentions(f.trouble("read_file", {{"path", "public"}}),
                 "a link leads to private/key, which is denied by rule 1"));
  CHECK(mentions(f.trouble("list_dir", {{"path", "open"}}), "not for agents"));
  f.trouble("search_text", {{"query", "SECRET"}, {"path", "open"}});
  const auto found = f.text("search_text", {{"query", "SECRET"}});
  CHECK_FALSE(mentions(found, "key:"));
  CHECK(mentions(found, "1 files skipped: denied by the policy"));
  // A rule about reading holds for searching, too.
  f.granted.policy.rules = {{"read_file", "private/**", "", "", policy_decision::ask, ""}};
  CHECK_FALSE(mentions(f.text("search_text", {{"query", "SECRET"}}), "key:"));
  f.trouble("read_file", {{"path", "public"}});
  // A person was asked because of the same rule and said yes.
  f.granted.rule = 1;
  CHECK(f.text("read_file", {{"path", "public"}}) == "SECRET\n");
}

} // namespace boyd::perform_test
