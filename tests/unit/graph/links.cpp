#include "boyd/graph/links.hpp"

#include "support/pch.hpp"

#include <algorithm>
#include <string>
#include <vector>

namespace boyd::links_test {

using namespace boyd;
using namespace boyd::graph;

namespace {

/// What an index would have after all changes.
struct stored {
  std::vector<std::vector<fact_link>> blocks;
  std::vector<fact_link> fresh;
  std::vector<line_mark> marks;

  bool operator==(const stored&) const = default;

  void take(link_changes changes) {
    marks.insert(marks.end(), changes.marks.begin(), changes.marks.end());
    if (changes.full) {
      for (const auto& l : *changes.full) {
        const auto block = (l.line - 1) / lines_of_block;
        blocks.resize(std::max<std::size_t>(blocks.size(), block + 1));
        blocks[block].push_back(l);
      }
      fresh.clear();
    }
    fresh.insert(fresh.end(), changes.fresh.begin(), changes.fresh.end());
    std::ranges::sort(fresh);
  }
};

/// Facts whose changes are taken every so many lines, with a restart each time.
stored gathered(std::uint64_t lines, std::uint64_t batch) {
  stored all;
  link_collector links;
  for (std::uint64_t line = 1; line <= lines; ++line) {
    links.begin_line({line, 1, line * 100, line == 1});
    if (line % 5 != 0) // every fifth line is damaged
      links.take({"ctx_" + std::to_string(line % 7), "exec_" + std::to_string(line),
                  line % 11 == 0 ? "promoted_to" : "used_in", utc_time{}, "{}"},
                 line);
    if (link_collector::is_full(line))
      links.end_block();
    if (line % batch == 0) {
      all.take(links.take_changes());
      links = {};
      links.resume(all.fresh, line);
    }
  }
  all.take(links.take_changes());
  return all;
}

} // namespace

TEST_CASE("links: the same blocks whatever the batches were", "[links]") {
  const auto lines = 2 * lines_of_block + 1000;
  const auto all = gathered(lines, lines);
  REQUIRE(all.blocks.size() == 2);
  CHECK(all.fresh.size() > 1000);
  CHECK(all.marks.size() == lines / lines_between_marks + 1);
  for (const auto batch : {std::uint64_t{777}, std::uint64_t{65'535}, std::uint64_t{65'536}})
    CHECK(gathered(lines, batch) == all);
}

TEST_CASE("links: a rare type is found by itself, as well as its nodes", "[links]") {
  link_collector links;
  links.take({"ctx_1", "candidate_1", "promoted_to", utc_time{}, "{}"}, 1);
  links.take({"ctx_1", "exec_1", "used_in", utc_time{}, "{}"}, 2);
  const auto fresh = links.take_changes().fresh;
  const auto has = [&](const std::string& node, std::uint64_t line) {
    return std::ranges::find(fresh, fact_link{node_hash(node), line}) != fresh.end();
  };
  CHECK(fresh.size() == 5);
  CHECK(has("ctx_1", 1));
  CHECK(has("ctx_1", 2));
  CHECK(has("candidate_1", 1));
  CHECK(has("exec_1", 2));
  CHECK(has(type_node("promoted_to"), 1));
  CHECK_FALSE(is_node_id(type_node("promoted_to")));
}

TEST_CASE("links: a run is found by its agent, and by the id that people see", "[links]") {
  const edge end{"exec_0198d2a4-0000-7000-8000-4f3a91c2b007", "outcome_1", "resulted_in",
                 utc_time{}, R"({"agent":"writer"})"};
  CHECK(further_nodes(end) == std::vector{agent_node("writer"), short_node("4f3a91c2")});
  CHECK(is_found_by(end, "outcome_1"));
  CHECK(is_found_by(end, agent_node("writer")));
  CHECK_FALSE(is_found_by(end, agent_node("reader")));
  CHECK_FALSE(is_node_id(agent_node("writer")));
  CHECK_FALSE(is_node_id(short_node("4f3a91c2")));
  CHECK(further_nodes({"exec_short", "outcome_1", "resulted_in", utc_time{}, "{}"}).empty());
}

} // namespace boyd::links_test
