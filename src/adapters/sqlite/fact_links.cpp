#include "fact_links.hpp"

#include <algorithm>
#include <limits>
#include <span>
#include <string>
#include <string_view>
#include <utility>

namespace boyd::adapters::sqlite {

const char* const link_tables = R"(
CREATE TABLE link_marks (
  line INTEGER PRIMARY KEY,
  segment INTEGER NOT NULL,
  offset INTEGER NOT NULL,
  begins INTEGER NOT NULL
);
CREATE INDEX link_segments ON link_marks (line) WHERE begins = 1;
CREATE TABLE link_fresh (
  node INTEGER NOT NULL,
  line INTEGER NOT NULL,
  PRIMARY KEY (node, line)
) WITHOUT ROWID;
CREATE TABLE link_pages (
  block INTEGER NOT NULL,
  node INTEGER NOT NULL,
  page INTEGER NOT NULL,
  links BLOB NOT NULL,
  UNIQUE (block, node, page)
);
)";

namespace {

// A page holds links of one block in order, packed: eight bytes of the node and two of the line in
// its block, the highest byte first. It fits into a page of the database, and the keys stand in an
// index of their own: in the tree of a table without row ids they would be far apart.
constexpr std::size_t node_bytes = 8;
constexpr std::size_t link_bytes = node_bytes + 2;
constexpr std::size_t links_of_page = 400;
constexpr unsigned byte_bits = 8;

std::uint64_t block_of(std::uint64_t line) {
  return (line - 1) / lines_of_block;
}

/// SQLite's integers have a sign; these sort as the numbers do.
std::int64_t key_of(std::uint64_t node) {
  return static_cast<std::int64_t>(node >> 1U);
}

void put(std::string& to, std::uint64_t value, std::size_t bytes) {
  for (auto i = bytes; i > 0; --i)
    to += static_cast<char>(value >> (byte_bits * (i - 1)));
}

std::uint64_t take(std::string_view from, std::size_t at, std::size_t bytes) {
  std::uint64_t value = 0;
  for (std::size_t i = 0; i < bytes; ++i)
    value = value << byte_bits | static_cast<unsigned char>(from[at + i]);
  return value;
}

std::string pack(std::span<const fact_link> some) {
  std::string page;
  page.reserve(some.size() * link_bytes);
  for (const auto& l : some) {
    put(page, l.node, node_bytes);
    put(page, (l.line - 1) % lines_of_block, link_bytes - node_bytes);
  }
  return page;
}

/// Appends the lines of `node` in a page of this block.
void unpack(std::string_view page, std::uint64_t block, std::uint64_t node,
            std::vector<std::uint64_t>& lines) {
  std::size_t low = 0;
  for (auto high = page.size() / link_bytes; low < high;) {
    const auto middle = low + (high - low) / 2;
    if (take(page, middle * link_bytes, node_bytes) < node)
      low = middle + 1;
    else
      high = middle;
  }
  for (auto at = low * link_bytes; at + link_bytes <= page.size(); at += link_bytes) {
    if (take(page, at, node_bytes) != node)
      return;
    lines.push_back(block * lines_of_block + 1 +
                    take(page, at + node_bytes, link_bytes - node_bytes));
  }
}

void put_marks(connection& db, const std::vector<line_mark>& marks) {
  auto s = db.prepare("INSERT OR REPLACE INTO link_marks (line, segment, offset, begins) "
                      "VALUES (?, ?, ?, ?)");
  for (const auto& m : marks) {
    s.bind(static_cast<std::int64_t>(m.line))
        .bind(static_cast<std::int64_t>(m.segment))
        .bind(static_cast<std::int64_t>(m.offset))
        .bind(m.begins_segment ? 1 : 0)
        .run();
    s.rewind();
  }
}

void put_fresh(connection& db, const std::vector<fact_link>& fresh) {
  auto s = db.prepare("INSERT OR REPLACE INTO link_fresh (node, line) VALUES (?, ?)");
  for (const auto& l : fresh) {
    s.bind(static_cast<std::int64_t>(l.node)).bind(static_cast<std::int64_t>(l.line)).run();
    s.rewind();
  }
}

/// Of one full block, or of several one behind the other.
void put_blocks(connection& db, std::span<const fact_link> all) {
  db.execute("DELETE FROM link_fresh");
  auto s = db.prepare("INSERT OR REPLACE INTO link_pages (block, node, page, links) "
                      "VALUES (?, ?, ?, ?)");
  std::int64_t page = 0;
  for (auto before = all.empty() ? 0 : block_of(all.front().line); !all.empty(); ++page) {
    const auto block = block_of(all.front().line);
    if (std::exchange(before, block) != block)
      page = 0; // the same pages, however many blocks came at once
    const auto end =
        std::ranges::find_if(all.first(std::min(all.size(), links_of_page)),
                             [&](const fact_link& l) { return block_of(l.line) != block; });
    const auto some = all.first(static_cast<std::size_t>(end - all.begin()));
    const auto packed = pack(some);
    s.bind(static_cast<std::int64_t>(block))
        .bind(key_of(some.front().node))
        .bind(page)
        .bind(packed)
        .run();
    s.rewind();
    all = all.subspan(some.size());
  }
}

/// The lines of a node in one full block, in order.
std::vector<std::uint64_t> in_block(statement& pages, std::uint64_t block, std::uint64_t node) {
  std::vector<std::uint64_t> lines;
  pages.bind(static_cast<std::int64_t>(block)).bind(key_of(node));
  bool goes_on = true;
  while (goes_on && pages.step()) {
    unpack(pages.view(1), block, node, lines);
    goes_on = pages.integer(0) == key_of(node); // it may begin on the page before
  }
  pages.rewind();
  std::ranges::sort(lines);
  return lines;
}

/// Of the block that the line belongs to, the index has those that are fresh.
void forget_from(connection& db, std::uint64_t line) {
  auto marks = db.prepare("DELETE FROM link_marks WHERE line >= ?");
  marks.bind(static_cast<std::int64_t>(line)).run();
  auto pages = db.prepare("DELETE FROM link_pages WHERE block >= ?");
  pages.bind(static_cast<std::int64_t>(block_of(line))).run();
}

std::optional<line_mark> read_mark(statement& s) {
  if (!s.step())
    return std::nullopt;
  return line_mark{static_cast<std::uint64_t>(s.integer(0)),
                   static_cast<std::uint32_t>(s.integer(1)),
                   static_cast<std::uint64_t>(s.integer(2)), s.integer(3) != 0};
}

std::int64_t signed_of(std::uint64_t n) {
  return static_cast<std::int64_t>(
      std::min(n, static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max())));
}

} // namespace

void put_links(connection& db, const link_changes& links) {
  if (links.anew_from)
    forget_from(db, *links.anew_from);
  put_marks(db, links.marks);
  if (links.full)
    put_blocks(db, *links.full);
  put_fresh(db, links.fresh);
}

void forget_links(connection& db) {
  for (const char* table : {"link_marks", "link_fresh", "link_pages"})
    db.execute(std::string("DELETE FROM ") + table);
}

std::vector<fact_link> fresh_links(connection& db) {
  std::vector<fact_link> all;
  auto s = db.prepare("SELECT node, line FROM link_fresh");
  while (s.step())
    all.push_back(
        {static_cast<std::uint64_t>(s.integer(0)), static_cast<std::uint64_t>(s.integer(1))});
  std::ranges::sort(all);
  return all;
}

std::vector<std::uint64_t> lines_of(connection& db, std::uint64_t node, std::uint64_t before,
                                    std::size_t most) {
  std::vector<std::uint64_t> found;
  auto fresh = db.prepare("SELECT line FROM link_fresh WHERE node = ? AND line < ? "
                          "ORDER BY line DESC LIMIT ?");
  fresh.bind(static_cast<std::int64_t>(node)).bind(signed_of(before)).bind(signed_of(most));
  while (fresh.step())
    found.push_back(static_cast<std::uint64_t>(fresh.integer(0)));
  auto newest = db.prepare("SELECT max(block) FROM link_pages");
  const bool any = newest.step() && !newest.null(0);
  auto pages = db.prepare("SELECT node, links FROM link_pages WHERE block = ? AND node <= ? "
                          "ORDER BY node DESC, page DESC");
  for (auto block = any ? newest.integer(0) : -1; block >= 0 && found.size() < most; --block) {
    const auto number = static_cast<std::uint64_t>(block);
    if (number * lines_of_block + 1 >= before)
      continue;
    const auto lines = in_block(pages, number, node);
    for (auto l = lines.rbegin(); l != lines.rend() && found.size() < most; ++l)
      if (*l < before)
        found.push_back(*l);
  }
  return found;
}

std::optional<line_mark> mark_before(connection& db, std::uint64_t line) {
  auto s = db.prepare("SELECT line, segment, offset, begins FROM link_marks WHERE line <= ? "
                      "ORDER BY line DESC LIMIT 1");
  s.bind(signed_of(line));
  return read_mark(s);
}

std::optional<line_mark> segment_of(connection& db, std::uint64_t line) {
  auto s = db.prepare("SELECT line, segment, offset, begins FROM link_marks WHERE begins = 1 "
                      "AND line <= ? ORDER BY line DESC LIMIT 1");
  s.bind(signed_of(line));
  return read_mark(s);
}

} // namespace boyd::adapters::sqlite
