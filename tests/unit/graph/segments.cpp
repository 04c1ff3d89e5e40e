#include "boyd/graph/segments.hpp"

#include "src/adapters/zstd/unpack.hpp"
#include "support/pch.hpp"
#include "support/sim/disk.hpp"

#include <algorithm>
#include <array>
#include <random>
#include <string>
#include <utility>
#include <vector>
#include <zstd.h>

namespace boyd::segments_test {

using namespace boyd;
using namespace boyd::graph;
using Catch::Matchers::Contains;

namespace {

constexpr const char* folder = "/home/knowledge/";

/// Three segments of ten facts each on a simulated disk.
struct three_segments {
  sim::sim_disk disk;
  edge_chain chain;
  std::vector<std::vector<std::string>> lines;

  three_segments() {
    REQUIRE(disk.make_directories("/home/knowledge"));
    for (std::uint32_t s = 1; s <= 3; ++s) {
      auto& mine = lines.emplace_back();
      for (int i = 0; i < 10; ++i)
        mine.push_back(chain
                           .append({"ctx_" + std::to_string(i), "exec_" + std::to_string(s),
                                    "used_in", utc_time{milliseconds{i}}, R"({"path":"a"})"})
                           .value());
    }
    write();
  }

  static std::string text_of(const std::vector<std::string>& some) {
    std::string text;
    for (const auto& line : some)
      text += line + "\n";
    return text;
  }
  std::string path(std::size_t s) const {
    return folder + segment{static_cast<std::uint32_t>(s + 1), false}.name();
  }
  void write() {
    for (std::size_t s = 0; s < lines.size(); ++s)
      disk.put(path(s), text_of(lines[s]));
  }
  segment_files files() { return {disk, "/home", adapters::unpack_zstd}; }
  log_report verify() {
    auto all = files();
    const auto report = verify_log(all, {chain.head()});
    REQUIRE(report);
    return *report;
  }
};

} // namespace

TEST_CASE("segments: the first is graph.jsonl, and names are read back", "[segments]") {
  CHECK(segment{1, false}.name() == "graph.jsonl");
  CHECK(segment{2, true}.file() == "graph-000002.jsonl.zst");
  CHECK(segment{2, true}.name() == "graph-000002.jsonl");
  CHECK(segment{1234567, false}.file() == "graph-1234567.jsonl");
  const auto found = segments_among(
      {"graph-000003.jsonl", "graph.jsonl", "graph-000002.jsonl.zst", "graph-000002.jsonl",
       "graph-1234567.jsonl", "index.db", "graph.jsonl.lost", "graph.jsonl.torn", "graph-2.jsonl",
       "graph-000001.jsonl", "graph-0000003.jsonl", "graph-00000x.jsonl", "graph-.jsonl"});
  CHECK(found == std::vector<segment>{{1, false}, {2, false}, {3, false}, {1234567, false}});
}

TEST_CASE("segments: the chain is checked across them", "[segments]") {
  three_segments f;
  const auto report = f.verify();
  CHECK(report.intact());
  CHECK(report.segments == 3);
  CHECK(report.facts == 30);
  CHECK(report.last_sequence == 30);
  auto files = f.files();
  CHECK(log_has_line(files, f.chain.head()).value());
  CHECK_FALSE(log_has_line(files, std::string(64, 'a')).value());
}

TEST_CASE("segments: the tail spans them, and its lines have their places", "[segments]") {
  three_segments f;
  auto files = f.files();
  const auto segments = files.list().value();
  const auto last = three_segments::text_of(f.lines[2]);
  const auto tail = read_tail(files, segments, last.size() + 500).value();
  CHECK_FALSE(tail.is_whole);
  REQUIRE(tail.parts.size() == 2);
  CHECK(tail.text.ends_with(last));
  CHECK(verify_end(tail.text, 0).intact());
  const auto before =
      static_cast<std::size_t>(std::ranges::count(tail.text.substr(0, tail.parts[1].begin), '\n'));
  CHECK(before >= 1);
  CHECK(place_in_tail(files, tail, before).value() == "graph-000002.jsonl:10");
  CHECK(place_in_tail(files, tail, before + 3).value() == "graph-000003.jsonl:3");
  const auto whole = read_tail(files, segments, std::size_t{1} << 20).value();
  CHECK(whole.is_whole);
  CHECK(verify(whole.text).intact());
  CHECK(place_in_tail(files, whole, 1).value() == "graph.jsonl:1");
}

TEST_CASE("segments: what stands behind the ends that a node tells is named and not checked",
          "[segments]") {
  three_segments f;
  auto files = f.files();
  const auto size = [&](std::size_t s) { return f.disk.snapshot().at(f.path(s)).size(); };
  const written_log::segment_ends ends{{1, size(0)}, {2, size(1)}, {3, size(2)}};
  CHECK(lines_behind(files, ends).value().empty());
  CHECK(lines_behind(files, {}).value().empty());
  const auto head = f.chain.head();
  // Lines that go on well, in the last segment and in a new one; and one in a segment that is full.
  const auto add = [&](std::size_t s) {
    const auto path = f.path(s);
    const auto all = f.disk.snapshot();
    const auto it = all.find(path);
    f.disk.put(path, (it == all.end() ? std::string() : it->second) +
                         f.chain.append({"ctx_9", "exec_9", "used_in", utc_time{}, "{}"}).value() +
                         "\n");
  };
  for (const std::size_t s : {std::size_t{2}, std::size_t{3}, std::size_t{0}})
    add(s);
  const auto behind = lines_behind(files, ends).value();
  REQUIRE(behind.size() == 3);
  CHECK(behind[0].place == "graph.jsonl:11");
  CHECK(behind[1].place == "graph-000003.jsonl:11");
  CHECK(behind[2].place == "graph-000004.jsonl:1");
  CHECK(behind[2].kind == chain_problem_kind::foreign);
  const auto report = verify_log(files, {head}, ends).value();
  CHECK(report.intact());
  CHECK(report.facts == 30);
  CHECK(report.unconfirmed == 0);
  CHECK_FALSE(verify_log(files, {head}).value().intact());
}

TEST_CASE("segments: a torn end of an older one is told, and merges with nothing", "[segments]") {
  three_segments f;
  auto torn = three_segments::text_of(f.lines[0]);
  torn.resize(torn.size() - 20);
  f.disk.put(f.path(0), torn);
  const auto report = f.verify();
  REQUIRE_FALSE(report.intact());
  CHECK(report.problems.front().place == "graph.jsonl:10");
  CHECK(report.facts == 29);
}

TEST_CASE("segments: a missing one is named", "[segments]") {
  three_segments f;
  REQUIRE(f.disk.unlink(f.path(1)));
  const auto report = f.verify();
  REQUIRE_FALSE(report.intact());
  CHECK(report.problems.front().place == "graph-000002.jsonl");
  CHECK(report.problems.front().kind == chain_problem_kind::removed);
}

namespace {

/// All of it, in pieces of at most so many bytes.
result<std::string> unpacked(std::string_view packed, std::size_t most) {
  const auto step = adapters::unpack_zstd();
  std::string all;
  for (;;) {
    const bool is_end = packed.empty();
    const auto piece = step(packed, most);
    if (!piece)
      return piece;
    CHECK(piece->size() <= most);
    all += *piece;
    if (is_end && piece->empty())
      return all;
  }
}

std::string packed_with_zstd(const std::string& text) {
  std::string packed(ZSTD_compressBound(text.size()), '\0');
  const auto size = ZSTD_compress(packed.data(), packed.size(), text.data(), text.size(), 1);
  REQUIRE(ZSTD_isError(size) == 0);
  packed.resize(size);
  return packed;
}

} // namespace

TEST_CASE("segments: what zstd has compressed is read the same", "[segments]") {
  // printf 'first\nsecond\n' | zstd -c
  constexpr std::array<unsigned char, 26> packed{
      0x28, 0xb5, 0x2f, 0xfd, 0x04, 0x58, 0x69, 0x00, 0x00, 0x66, 0x69, 0x72, 0x73,
      0x74, 0x0a, 0x73, 0x65, 0x63, 0x6f, 0x6e, 0x64, 0x0a, 0x61, 0xfc, 0xbd, 0xfe};
  const std::string bytes(packed.begin(), packed.end());
  for (const auto most : std::array<std::size_t, 4>{1, 5, 13, 1000}) {
    CHECK(unpacked(bytes, most).value() == "first\nsecond\n");
    CHECK(unpacked(bytes + bytes, most).value() == "first\nsecond\nfirst\nsecond\n");
  }
  for (std::size_t size = 0; size < bytes.size(); ++size)
    CHECK(unpacked(bytes.substr(0, size), 1000).error().code == errc::corrupt);
  CHECK_FALSE(unpacked("no frame at all", 1000));

  sim::sim_disk disk;
  REQUIRE(disk.make_directories("/home/knowledge"));
  disk.put(std::string(folder) + "graph.jsonl.zst", bytes);
  segment_files files(disk, "/home", adapters::unpack_zstd);
  const auto all = files.list().value();
  REQUIRE(all == std::vector<segment>{{1, true}});
  CHECK(files.size(all.front()).value() == 13);
  CHECK(files.read(all.front(), 6, 6).value() == "second");
  CHECK(files.read(all.front(), 13, 6).value().empty());
  segment_files without(disk, "/home", nullptr);
  CHECK(without.read(all.front(), 0, 6).error().code == errc::refused);
}

TEST_CASE("segments: a large compressed one is read piece by piece, at any place", "[segments]") {
  std::string text;
  std::mt19937 numbers{7}; // NOLINT: on purpose
  while (text.size() < (std::size_t{30} << 20))
    text += "line " + std::to_string(numbers()) + "\n";
  auto packed = packed_with_zstd(text);
  sim::sim_disk disk;
  REQUIRE(disk.make_directories("/home/knowledge"));
  const auto path = std::string(folder) + "graph.jsonl.zst";
  disk.put(path, packed);
  std::size_t largest = 0;
  segment_files files(disk, "/home", [&largest] {
    return unpack_step(
        [&largest, step = adapters::unpack_zstd()](std::string_view& from, std::size_t most) {
          largest = std::max({largest, from.size(), most});
          return step(from, most);
        });
  });
  const segment which{1, true};
  CHECK(files.size(which).value() == text.size());
  constexpr std::size_t part = 3 << 20;
  std::string read;
  for (auto more = files.read(which, 0, part).value(); !more.empty();
       more = files.read(which, read.size(), part).value())
    read += more;
  CHECK((read == text));
  for (int i = 0; i < 40; ++i) {
    const auto at = numbers() % text.size();
    const auto most = 1 + numbers() % 100'000;
    CHECK((files.read(which, at, most).value() == text.substr(at, most)));
  }
  for (auto at = text.size(); at > part; at -= part) // backwards, as questions do
    CHECK((files.read(which, at - part, part).value() == text.substr(at - part, part)));
  CHECK(largest <= (std::size_t{1} << 20)); // neither file nor text stands there whole
  // What stands before the damage is served.
  packed.resize(packed.size() / 2);
  disk.put(path, packed);
  segment_files damaged(disk, "/home", adapters::unpack_zstd);
  CHECK((damaged.read(which, 0, part).value() == text.substr(0, part)));
  const auto torn = damaged.read(which, text.size() - part, part);
  REQUIRE_FALSE(torn);
  CHECK(torn.error().code == errc::corrupt);
  CHECK_THAT(torn.error().what, Contains("the data ends too early"));
  CHECK((damaged.read(which, 0, part).value() == text.substr(0, part)));
}

TEST_CASE("segments: the lines before the damage of a compressed one are checked", "[segments]") {
  three_segments f;
  const auto text = three_segments::text_of(f.lines[0]);
  REQUIRE(f.disk.unlink(f.path(0)));
  auto packed = packed_with_zstd(text);
  f.disk.put(f.path(0) + ".zst", packed);
  CHECK(f.verify().intact());
  f.lines[0][3].replace(f.lines[0][3].find("ctx_3"), 5, "ctx_9");
  f.disk.put(f.path(0) + ".zst", packed_with_zstd(three_segments::text_of(f.lines[0])));
  const auto changed = f.verify();
  REQUIRE_FALSE(changed.intact());
  CHECK(changed.problems.front().place == "graph.jsonl:4");
  packed.resize(packed.size() - 1);
  f.disk.put(f.path(0) + ".zst", packed);
  const auto torn = f.verify();
  REQUIRE_FALSE(torn.intact());
  CHECK(torn.problems.front().place == "graph.jsonl.zst");
  CHECK(torn.segments == 3);
}

namespace {

/// Draws numbers, the same ones every time.
struct dice {
  std::mt19937 source{20260213}; // NOLINT: on purpose

  std::size_t below(std::size_t n) {
    return std::uniform_int_distribution<std::size_t>(0, n - 1)(source);
  }
};

struct tampering {
  std::string what;
  std::size_t segment = 0; ///< of the place that is named first
  std::size_t line = 0;    ///< in it, from 0

  std::string place() const {
    return boyd::graph::segment{static_cast<std::uint32_t>(segment + 1), false}.name() + ":" +
           std::to_string(line + 1);
  }
};

/// The line that does not follow from the one before it when lines are missing at a place: the
/// last one where they were at the very end.
tampering missing_at(const three_segments& f, std::string what, std::size_t s, std::size_t i) {
  if (i < f.lines[s].size())
    return {std::move(what), s, i};
  if (s + 1 < f.lines.size())
    return {std::move(what), s + 1, 0};
  return i > 0 ? tampering{std::move(what), s, i - 1}
               : tampering{std::move(what), s - 1, f.lines[s - 1].size() - 1};
}

tampering flip_a_bit(three_segments& f, std::size_t s, std::size_t i, dice& d) {
  auto& line = f.lines[s][i];
  const auto at = d.below(line.size());
  line[at] = static_cast<char>(line[at] ^ static_cast<char>(1U << d.below(7)));
  return {"a bit flips", s, i};
}

tampering swap_in_segment(three_segments& f, std::size_t s, std::size_t i, dice& d) {
  auto& lines = f.lines[s];
  const auto other = (i + 1 + d.below(lines.size() - 1)) % lines.size();
  std::swap(lines[i], lines[other]);
  return {"two lines are swapped", s, std::min(i, other)};
}

tampering swap_segments(three_segments& f, std::size_t s, std::size_t i, dice& d) {
  const auto t = (s + 1 + d.below(f.lines.size() - 1)) % f.lines.size();
  const auto j = d.below(f.lines[t].size());
  std::swap(f.lines[s][i], f.lines[t][j]);
  return {"lines of two segments are swapped", std::min(s, t), s < t ? i : j};
}

tampering repeat_a_line(three_segments& f, std::size_t s, std::size_t i, dice& d) {
  auto& lines = f.lines[s];
  const auto which = d.below(lines.size());
  const auto copy = lines[which];
  lines.insert(lines.begin() + static_cast<std::ptrdiff_t>(i), copy);
  return {"a line is repeated", s, which == i ? i + 1 : i};
}

/// Each is one: no two lines are equal.
tampering tamper(three_segments& f, dice& d) {
  const auto s = d.below(f.lines.size());
  auto& lines = f.lines[s];
  const auto i = d.below(lines.size());
  switch (d.below(6)) {
  case 0:
    return flip_a_bit(f, s, i, d);
  case 1:
    lines.erase(lines.begin() + static_cast<std::ptrdiff_t>(i));
    return missing_at(f, "a line is removed", s, i);
  case 2:
    return swap_in_segment(f, s, i, d);
  case 3:
    return swap_segments(f, s, i, d);
  case 4:
    lines.resize(i);
    return missing_at(f, "a segment is cut", s, i);
  default:
    return repeat_a_line(f, s, i, d);
  }
}

} // namespace

// docs/knowledge.md: given the newest commit, nothing is changed, removed, swapped or cut unseen.
TEST_CASE("segments: 1,000 random tamperings, none missed, each named by its place", "[segments]") {
  dice d;
  for (int round = 0; round < 1000; ++round) {
    three_segments f;
    const auto sound = f.lines;
    const auto done = tamper(f, d);
    REQUIRE(f.lines != sound);
    f.write();
    INFO(round << ": " << done.what << ", at " << done.place());
    const auto report = f.verify();
    REQUIRE_FALSE(report.intact());
    CHECK(report.problems.front().place == done.place());
  }
}

} // namespace boyd::segments_test
