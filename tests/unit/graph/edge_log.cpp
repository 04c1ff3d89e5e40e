#include "boyd/graph/edge_log.hpp"

#include "boyd/core/crc32.hpp"
#include "boyd/core/sha256.hpp"
#include "support/pch.hpp"

#include <rapidcheck.h>

using namespace boyd;
using namespace boyd::graph;

namespace {

edge used_in(int number) {
  return {"ctx_" + std::to_string(number), "exec_1", "used_in",
          from_unix_ms(1737420000000 + number), "{}"};
}

std::vector<std::string> chain_of(int count) {
  edge_chain chain;
  std::vector<std::string> lines;
  for (int i = 0; i < count; ++i) {
    lines.push_back(chain.append(used_in(i)).value());
  }
  return lines;
}

/// The same as versions before check sums wrote it: chained, but without `crc`.
std::vector<std::string> older_chain_of(int count) {
  constexpr std::size_t seal = std::string_view(R"(,"crc":"01234567"})").size();
  auto lines = chain_of(count);
  std::string prev(genesis);
  for (auto& line : lines) {
    line.resize(line.size() - seal);
    line.replace(line.size() - 1 - prev.size(), prev.size(), prev);
    line += '}';
    prev = sha256_hex(line);
  }
  return lines;
}

std::string joined(const std::vector<std::string>& lines) {
  std::string text;
  for (const auto& line : lines) {
    text += line + "\n";
  }
  return text;
}

using kind = chain_problem_kind;

/// Line numbers and kinds, for comparing.
std::vector<std::pair<std::size_t, kind>> found(const chain_report& report) {
  std::vector<std::pair<std::size_t, kind>> all;
  for (const auto& problem : report.problems) {
    all.emplace_back(problem.line, problem.kind);
  }
  return all;
}

using problems = std::vector<std::pair<std::size_t, kind>>;

} // namespace

TEST_CASE("an edge is one JSON line with its place in the chain", "[graph]") {
  edge_chain chain;
  auto fact = used_in(7);
  fact.meta_json = R"({"why":"ü", "n": 1})";
  const auto line = chain.append(fact).value();
  const std::string text =
      R"({"from":"ctx_7","to":"exec_1","type":"used_in","timestamp":1737420000007,)"
      R"("meta":{"why":"ü","n":1},"seq":1,"prev":")" +
      std::string(genesis) + "\"";
  CHECK(line == text + R"(,"crc":")" + crc32_hex(text) + "\"}");
  CHECK(chain.head() == sha256_hex(line));
  CHECK(chain.sequence() == 1);
  const auto second = parse_edge(chain.append(used_in(8)).value()).value();
  CHECK(second.seq == 2U);
  CHECK(second.prev == sha256_hex(line));
}

TEST_CASE("what is not an edge is refused and does not move the chain", "[graph]") {
  edge_chain chain;
  const auto refused = [&](edge fact) {
    const auto line = chain.append(fact);
    return line ? errc::bug : line.error().code;
  };
  auto fact = used_in(1);
  SECTION("node") {
    fact.from = "node_1";
  }
  SECTION("bare prefix") {
    fact.to = "exec_";
  }
  SECTION("control character") {
    fact.to = "exec_\n1";
  }
  SECTION("type") {
    fact.type = "likes";
  }
  SECTION("meta no object") {
    fact.meta_json = "[1]";
  }
  SECTION("meta no JSON") {
    fact.meta_json = "{";
  }
  CHECK(refused(fact) == errc::invalid_argument);
  fact = used_in(1);
  fact.meta_json = "{\"a\":" + std::string(100'000, '[') + std::string(100'000, ']') + "}";
  CHECK(refused(fact) == errc::limit_exceeded);
  fact.meta_json = "{\"a\":\"" + std::string(max_line_bytes, 'x') + "\"}";
  CHECK(refused(fact) == errc::limit_exceeded);
  CHECK(chain.sequence() == 0);
  CHECK(chain.head() == genesis);
}

TEST_CASE("a chain of a version before check sums is read, and goes on with them", "[graph]") {
  const auto lines = older_chain_of(2);
  auto chain = edge_chain::resume(lines.back()).value();
  const auto next = chain.append(used_in(2)).value();
  CHECK(next.find("\"crc\":") != std::string::npos);
  const auto report = verify(joined(lines) + next + "\n");
  CHECK(report.intact());
  CHECK(report.last_sequence == 3);
}

TEST_CASE("a chain goes on after its last line", "[graph]") {
  const auto lines = chain_of(3);
  auto resumed = edge_chain::resume(lines[1]).value();
  CHECK(resumed.append(used_in(2)).value() == lines[2]);
  CHECK(edge_chain::resume("").value().head() == genesis);
  CHECK(edge_chain::resume("{}").error().code == errc::corrupt);
}

TEST_CASE("lines of older logs are read, and the chain begins after them", "[graph]") {
  const std::string old =
      R"({"from":"ctx_a","to":"exec_b","type":"used_in","timestamp":1737420000000,"meta":{"k":[1]}})";
  const auto read = parse_edge(old).value();
  CHECK_FALSE(read.seq);
  CHECK(read.fact.meta_json == R"({"k":[1]})");
  auto chain = edge_chain::resume(old).value();
  const auto next = chain.append(used_in(1)).value();
  auto report = verify(old + "\n" + next + "\n");
  CHECK(report.intact());
  CHECK(report.older == 1);
  CHECK(report.chained == 1);
  CHECK(found(verify(next + "\n" + old + "\n")).back() ==
        std::pair(std::size_t{2}, kind::unchained));
}

TEST_CASE("a line without a seal behind sealed ones does not count, and the chain goes on",
          "[graph]") {
  const std::string bare =
      R"({"from":"ctx_a","to":"exec_b","type":"used_in","timestamp":1737420000000,"meta":{}})";
  auto lines = chain_of(3);
  SECTION("at the end") {
    lines.push_back(bare);
    auto report = verify(joined(lines));
    CHECK(found(report) == problems{{4, kind::unchained}});
    CHECK(report.last_sequence == 3);
    auto chain = edge_chain::resume(bare, report.last_sequence + report.damaged_at_end).value();
    for (const int next : {4, 5})
      lines.push_back(chain.append(used_in(next)).value());
    report = verify(joined(lines));
    CHECK(found(report) == problems{{4, kind::unchained}});
    CHECK(report.older == 0);
    CHECK(report.chained == 5);
  }
  SECTION("between two") {
    lines.insert(lines.begin() + 2, bare);
    CHECK(found(verify(joined(lines))) == problems{{3, kind::unchained}});
  }
  const auto text = joined(lines);
  const auto read = sort_lines(text, verify(text));
  CHECK(read.damaged == std::vector<std::string_view>{bare});
  CHECK(read.served.size() == lines.size() - 1);
}

TEST_CASE("malformed lines are named", "[graph]") {
  for (const std::string line :
       {"", "x", "[]", "{}", R"({"from":"ctx_a","to":"exec_b","type":"used_in"})",
        R"({"from":1,"to":"exec_b","type":"used_in","timestamp":1})",
        R"({"from":"ctx_a","to":"exec_b","type":"used_in","timestamp":1,"meta":3})",
        R"({"from":"ctx_a","to":"exec_b","type":"used_in","timestamp":1,"seq":1})",
        R"({"from":"ctx_a","to":"exec_b","type":"used_in","timestamp":1,"seq":-1,"prev":"ab"})"}) {
    CHECK(parse_edge(line).error().code == errc::parse_error);
  }
  CHECK(parse_edge(std::string(200'000, '[')).error().code == errc::parse_error);
}

TEST_CASE("an intact log verifies, with its anchor", "[graph]") {
  const auto lines = chain_of(5);
  const auto report = verify(joined(lines), sha256_hex(lines[3]));
  CHECK(report.intact());
  CHECK(report.lines == 5);
  CHECK(report.last_sequence == 5);
  CHECK(report.head == sha256_hex(lines[4]));
  CHECK(verify("").intact());
  CHECK(verify("", std::string(genesis)).intact());
}

TEST_CASE("every change and removal is found and placed", "[graph]") {
  const bool older = GENERATE(false, true);
  auto lines = older ? older_chain_of(6) : chain_of(6);
  const auto head = sha256_hex(lines.back());
  CHECK(verify(joined(lines), head).intact());
  SECTION("a changed line") {
    lines[2].replace(lines[2].find("ctx_2"), 5, "ctx_9");
    CHECK(found(verify(joined(lines), head)) == problems{{3, kind::changed}});
  }
  SECTION("a damaged line") {
    lines[2][0] = '#';
    CHECK(found(verify(joined(lines), head)) == problems{{3, kind::malformed}});
  }
  SECTION("a removed line") {
    lines.erase(lines.begin() + 2);
    CHECK(found(verify(joined(lines), head)) == problems{{3, kind::removed}});
  }
  SECTION("a removed beginning") {
    lines.erase(lines.begin());
    CHECK(found(verify(joined(lines), head)) == problems{{1, kind::removed}});
  }
  SECTION("a repeated line") {
    lines.insert(lines.begin() + 2, lines[1]);
    CHECK(found(verify(joined(lines), head)) == problems{{3, kind::out_of_order}});
  }
  SECTION("a removed end is seen by the anchor alone") {
    lines.pop_back();
    CHECK(verify(joined(lines)).intact());
    CHECK(found(verify(joined(lines), head)) == problems{{5, kind::head_missing}});
  }
  SECTION("a changed end too, where it has no check sum") {
    lines.back().replace(lines.back().find("ctx_5"), 5, "ctx_9");
    CHECK(found(verify(joined(lines), head)) ==
          (older ? problems{{6, kind::head_missing}}
                 : problems{{6, kind::changed}, {6, kind::head_missing}}));
  }
  SECTION("a torn end") {
    const auto text = joined(lines);
    const auto report = verify(text.substr(0, text.size() - 10));
    CHECK(found(report) == problems{{6, kind::torn}, {6, kind::malformed}});
  }
}

TEST_CASE("no flipped bit goes unseen", "[graph]") {
  const auto lines = chain_of(8);
  const auto text = joined(lines);
  const auto head = sha256_hex(lines.back());
  CHECK(rc::check("flip one bit", [&] {
    auto damaged = text;
    const auto at = *rc::gen::inRange<std::size_t>(0, text.size());
    damaged[at] = static_cast<char>(damaged[at] ^ (1 << *rc::gen::inRange(0, 8)));
    RC_ASSERT_FALSE(verify(damaged, head).intact());
  }));
}

TEST_CASE("what was appended is read back", "[graph]") {
  CHECK(rc::check("append and parse", [](const std::string& tail, std::int64_t ms) {
    edge_chain chain;
    const edge fact{"ctx_1", "outcome_2", "resulted_in", from_unix_ms(ms), "{}"};
    auto odd = fact;
    odd.from = "skill_" + tail;
    if (const auto line = chain.append(odd)) {
      RC_ASSERT(line->find('\n') == std::string::npos);
      RC_ASSERT(parse_edge(*line).has_value());
    }
    const auto read = parse_edge(chain.append(fact).value());
    RC_ASSERT(read.has_value());
    RC_ASSERT(read->fact == fact);
  }));
}

TEST_CASE("case 40 bitflip-jsonl: a flipped bit is found in its line, and all others are served",
          "[graph][faults]") {
  const auto lines = GENERATE(chain_of(5), older_chain_of(5));
  const auto good = joined(lines);
  const std::size_t begin = lines[0].size() + lines[1].size() + 2;
  const std::size_t end = begin + lines[2].size(); // its line break makes two lines one
  for (std::size_t at = begin; at <= end; ++at) {
    for (const int bit : {0, 3, 5}) {
      auto text = good;
      text[at] = static_cast<char>(static_cast<unsigned char>(text[at]) ^ (1U << bit));
      const auto report = verify(text);
      INFO("byte " << at - begin << " of line 3, bit " << bit);
      REQUIRE_FALSE(report.intact());
      const auto read = sort_lines(text, report);
      const auto serves = [&](const std::string& line) {
        return std::find(read.served.begin(), read.served.end(), line) != read.served.end();
      };
      REQUIRE((serves(lines[0]) && serves(lines[1]) && serves(lines[4])));
      // Its line break makes two lines one; all other bits hit line 3 alone.
      REQUIRE(serves(lines[3]) == (at < end));
      REQUIRE(read.served.size() == (at < end ? 4U : 3U));
      REQUIRE_FALSE(read.damaged.empty());
    }
  }
}

TEST_CASE(
    "case 40 bitflip-jsonl: a flipped bit of the last line, to which nothing is chained yet, is "
    "found, and the chain goes on behind it",
    "[graph][faults]") {
  const auto lines = chain_of(3);
  const auto before = joined({lines[0], lines[1]});
  for (std::size_t at = 0; at < lines[2].size(); ++at) {
    for (unsigned bit = 0; bit < 8; ++bit) {
      auto last = lines[2];
      last[at] = static_cast<char>(static_cast<unsigned char>(last[at]) ^ (1U << bit));
      auto text = before + last + "\n";
      const auto report = verify(text);
      INFO("byte " << at << " of the last line, bit " << bit);
      REQUIRE_FALSE(report.intact());
      REQUIRE(sort_lines(text, report).served == std::vector<std::string_view>{lines[0], lines[1]});
      if (!parse_edge(last))
        continue;
      REQUIRE(report.last_sequence + report.damaged_at_end == 3);
      auto chain = edge_chain::resume(last, report.last_sequence + report.damaged_at_end).value();
      for (const int next : {3, 4})
        text += chain.append(used_in(next)).value() + "\n";
      REQUIRE(found(verify(text)) == problems{{3, kind::changed}});
      REQUIRE(verify(text).last_sequence == 5);
    }
  }
}

TEST_CASE(
    "case 40 bitflip-jsonl: several damaged lines, one behind the other, are all that is told",
    "[graph][faults]") {
  auto lines = chain_of(6);
  lines[2][0] = '#';
  lines[3].replace(lines[3].find("ctx_3"), 5, "ctx_7");
  CHECK(found(verify(joined(lines))) == problems{{3, kind::malformed}, {4, kind::changed}});
}

TEST_CASE("the end of a log is checked by itself, with its own line numbers", "[graph]") {
  const auto lines = chain_of(6);
  auto text = joined({lines.begin() + 2, lines.end()});
  CHECK(verify_end(text, 2).intact());
  CHECK(verify_end(text, 2).head == verify(joined(lines)).head);
  const auto at = text.find("exec_", lines[2].size());
  text[at] = 'E';
  const auto report = verify_end(text, 2);
  REQUIRE(report.damaged() == std::vector<std::size_t>{4});
  const auto read = sort_lines(text, report, 2);
  CHECK(read.served == std::vector<std::string_view>{lines[2], lines[4], lines[5]});
  CHECK(read.damaged.size() == 1);
}

TEST_CASE("a foreign line between two others takes neither of them away", "[graph]") {
  auto lines = chain_of(3);
  lines.insert(lines.begin() + 1, "no edge at all");
  const auto text = joined(lines);
  const auto read = sort_lines(text, verify(text));
  CHECK(read.served == std::vector<std::string_view>{lines[0], lines[2], lines[3]});
  CHECK(read.damaged == std::vector<std::string_view>{lines[1]});
}

TEST_CASE("a plain line reads as the same line that is not plain", "[graph]") {
  const auto general = [](const std::string& line) { return parse_edge("{ " + line.substr(1)); };
  edge_chain chain;
  for (const auto* meta :
       {"{}", R"({"a":"b"})", R"({"agent":"w","attempt":1,"status":"done"})", R"({"n":0,"m":""})",
        R"({"n":-1})", R"({"n":1.0})", R"({"a":{"b":1}})", R"({"a":[]})", R"({"a":true})",
        R"({"a":"\u00fc\"\\"})", R"({"a":1,"b":2,"c":3,"d":4,"e":5,"f":6,"g":7,"h":8,"i":9})",
        R"({"n":12345678901234567890})"}) {
    auto fact = used_in(1);
    fact.meta_json = meta;
    const auto line = chain.append(fact).value();
    CHECK(parse_edge(line).value() == general(line).value());
  }
  // One byte of a line away from what is written.
  const auto line = chain.append(used_in(2)).value();
  for (std::size_t i = 1; i < line.size(); ++i)
    for (const char other : {'"', '\\', '{', '}', ',', ':', '0', '1', ' ', 'a', '\x7f', '\n'}) {
      auto changed = line;
      changed[i] = other;
      CAPTURE(changed);
      const auto read = parse_edge(changed);
      const auto expected = general(changed);
      REQUIRE(read.has_value() == expected.has_value());
      if (read)
        CHECK(*read == *expected);
    }
}

TEST_CASE("keys that stand twice are read as JSON has them", "[graph]") {
  edge_chain chain;
  auto line = chain.append(used_in(1)).value();
  line.replace(line.find("{}"), 2, R"({"a":1,"a":2})");
  CHECK(parse_edge(line).value() == parse_edge("{ " + line.substr(1)).value());
}
