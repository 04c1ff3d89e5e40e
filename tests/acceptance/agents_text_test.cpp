#include "agreement.hpp"
#include "harness.hpp"
#include "support/pch.hpp"

#include <regex>

namespace boyd::agents_text_test {

using namespace boyd::test;

namespace {

const std::string start = "<!-- KERNEL_RUNTIME:START -->";
const std::string end_marker = "<!-- KERNEL_RUNTIME:END -->";

/// A file as a person left it, and as it must be after a cycle; @BLOCK@ stands for the new block
/// with its last line break, @ACTIONS@ for the reducer's own lines.
struct edited_file {
  std::string name;
  std::string before;
  std::string after;
};

/// The one block that speaks of this cycle becomes @BLOCK@, the reducer's lines become @ACTIONS@.
std::string with_tokens(std::string text, const std::string& cycle_id) {
  const auto inside = text.find("- latest_cycle_id: " + cycle_id);
  if (inside == std::string::npos)
    return "no block of cycle " + cycle_id + " in:\n" + text;
  const auto from = text.rfind(start, inside);
  auto to = text.find(end_marker, inside) + end_marker.size();
  to += text.compare(to, 2, "\r\n") == 0 ? 2 : 1;
  text.replace(from, to - from, "@BLOCK@");
  static const std::regex actions(
      R"((- [0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9:]{8}Z worker: hello \(done\)\r?\n)+)");
  return std::regex_replace(text, actions, "@ACTIONS@");
}

std::vector<edited_file> files() {
  const std::string old_block = start +
                                "\n## kernel_runtime\n- updated_at: 2026-02-13T10:00:00Z\n"
                                "- latest_cycle_id: old\n- latest_status: success\n" +
                                end_marker + "\n";
  const std::string odd("nul \0 and \xff\xfe\n", 13);
  std::vector<edited_file> all;
  all.push_back({"no block, no last line break", "# Mine\ntext without an end",
                 "# Mine\ntext without an end\n\n## recent_actions\n@ACTIONS@\n@BLOCK@"});
  all.push_back(
      {"markers within lines and in fences, tables of one's own",
       "# Notes\nThe marker `" + start + "` is quoted here.\n  " + start + "\n```markdown\n" +
           start + "\n| cycle_id | status |\n|---|---|\n" + end_marker +
           "\n```\n| cycle_id | status | dispatched |\n|----------|--------|---|\n"
           "| mine | success | 9 |\n\n## recent_actions\n(none yet)\n\n" +
           old_block + "after the block  \n\ttabs\n",
       "# Notes\nThe marker `" + start + "` is quoted here.\n  " + start + "\n```markdown\n" +
           start + "\n| cycle_id | status |\n|---|---|\n" + end_marker +
           "\n```\n| cycle_id | status | dispatched |\n|----------|--------|---|\n"
           "| mine | success | 9 |\n\n## recent_actions\n@ACTIONS@\n"
           "@BLOCK@after the block  \n\ttabs\n"});
  all.push_back({"a half block and a stray end",
                 "# Mine\n\n## recent_actions\n(none yet)\n\n" + start +
                     "\n## kernel_runtime\n- updated_at: 2026-02-13T10:00:00Z\n"
                     "- latest_cycle_id: half\nThis line is a person's.\n" +
                     end_marker + "\nSo is this.\n",
                 "# Mine\n\n## recent_actions\n@ACTIONS@\n@BLOCK@This line is a person's.\n"
                 "So is this.\n"});
  all.push_back({"two blocks",
                 "# Mine\n\n## recent_actions\n(none yet)\n\n" + old_block + "between\n" +
                     old_block + "last\n",
                 "# Mine\n\n## recent_actions\n@ACTIONS@\n@BLOCK@between\nlast\n"});
  all.push_back(
      {"line ends of two kinds",
       "# Mine\r\nwindows\r\n\r\n## recent_actions\r\n- a person's own line\r\n\r\n" + start +
           "\r\n## kernel_runtime\r\n- latest_cycle_id: old\r\n" + end_marker +
           "\r\nunix\nwindows\r\nno end",
       "# Mine\r\nwindows\r\n\r\n## recent_actions\r\n@ACTIONS@- a person's own line\r\n\r\n"
       "@BLOCK@unix\nwindows\r\nno end"});
  all.push_back(
      {"bytes that are no text, an open fence",
       "# Mine\n\n## recent_actions\n(none yet)\n\n" + odd + "```\nnever closed\n" + old_block +
           "tail",
       "# Mine\n\n## recent_actions\n@ACTIONS@\n" + odd + "```\nnever closed\n@BLOCK@tail"});
  return all;
}

} // namespace

TEST_CASE("line 6: a hand-edited STATE.md comes through a cycle byte for byte", "[acceptance]") {
  test_settings t;
  t.agents = {{"worker", "cat > @SITE@/prompt; echo hello", ""}};
  const site s(t);
  for (const auto& file : files()) {
    INFO(file.name);
    write_file(s.kernel("STATE.md"), file.before);
    const auto cycle = s.run({"cycle", "--json"});
    INFO(cycle.err);
    REQUIRE(cycle.code == 0);
    const auto id = cycle.json().at("cycle_id").get<std::string>();
    CHECK(with_tokens(s.state(), id) == file.after);
    CHECK(s.git({"status", "--porcelain"}).empty());
  }
}

TEST_CASE("line 6: what a person writes while agents run is kept", "[acceptance]") {
  test_settings t;
  t.agents = {{"worker", "say began; wait_for go; echo hello", ""}};
  const site s(t);
  node_process node(s.home(), s.log_path());
  node.wait_ready();
  auto cycle = s.start_cycle();
  REQUIRE(eventually([&] { return s.said("began") == 1; }));
  const std::string mine = "# Mine\n\n## recent_actions\n(none yet)\n\nwritten in mid-cycle\n";
  write_file(s.kernel("STATE.md"), mine);
  s.open_gate("go");
  const auto ended = cycle.finish();
  REQUIRE(ended.code == 0);
  CHECK(with_tokens(s.state(), ended.json().at("cycle_id").get<std::string>()) ==
        "# Mine\n\n## recent_actions\n@ACTIONS@\nwritten in mid-cycle\n\n@BLOCK@");
  const auto wrong = disagreements(s);
  INFO(told(wrong));
  CHECK(wrong.empty());
}

} // namespace boyd::agents_text_test
