#include "boyd/queue/dispatch_json.hpp"
#include "boyd/queue/spool.hpp"
#include "support/pch.hpp"
#include "support/sim/disk.hpp"

#include <spdlog/spdlog.h>

#include <memory>

namespace boyd::spool_test {

using namespace boyd;
using namespace boyd::queue;

namespace {

const std::string path = "/home/run/spool.jsonl";

settlement result_of(int number) {
  settlement s;
  s.dispatch_id = "d" + std::to_string(number);
  s.fence = number;
  s.outcome.summary = "what came of number " + std::to_string(number);
  return s;
}

std::string content_of(const sim::sim_disk& disk, const std::string& of) {
  const auto seen = disk.look(of);
  return seen.content == nullptr ? "" : *seen.content;
}

/// Three results in a spool.
std::shared_ptr<sim::sim_disk> three() {
  auto disk = std::make_shared<sim::sim_disk>();
  REQUIRE(disk->make_directories("/home/run"));
  settlement_spool spool(disk, path);
  for (int i = 1; i <= 3; ++i)
    REQUIRE(spool.append("n1", {result_of(i)}));
  return disk;
}

std::vector<std::string> ids(const settlement_spool::content& c) {
  std::vector<std::string> all;
  for (const auto& s : c.items)
    all.push_back(s.item.dispatch_id);
  return all;
}

} // namespace

TEST_CASE("case 40 bitflip-jsonl: a spooled result with a flipped bit is set aside, the others are "
          "served") {
  const auto text = content_of(*three(), path);
  const auto begin = text.find('\n') + 1;
  const auto end = text.find('\n', begin);
  const auto sums = begin + 7; // the name of the check sum: without it the line is as it was
  const auto level = spdlog::get_level();
  spdlog::set_level(spdlog::level::off);
  for (auto at = begin; at < end; ++at) {
    auto disk = three();
    REQUIRE(disk->corrupt(path, at, 0x04));
    settlement_spool spool(disk, path);
    const auto content = spool.load();
    INFO("byte " << at - begin << " of " << end - begin);
    REQUIRE(content);
    if (at >= begin + 1 && at < sums && content->skipped == 0) {
      REQUIRE(ids(*content) == std::vector<std::string>{"d1", "d2", "d3"});
      REQUIRE(content->items[1].item.outcome == result_of(2).outcome);
      continue;
    }
    REQUIRE(content->skipped == 1);
    REQUIRE(ids(*content) == std::vector<std::string>{"d1", "d3"});
    const auto damaged = content_of(*disk, path).substr(begin, end - begin);
    // It is kept before its file goes.
    REQUIRE(spool.rewrite({}));
    REQUIRE(disk->look(path).content == nullptr);
    REQUIRE(content_of(*disk, path + ".damaged") == damaged + "\n");
  }
  spdlog::set_level(level);
}

TEST_CASE("a spool without check sums, of an earlier version, is read") {
  auto disk = std::make_shared<sim::sim_disk>();
  disk->put(path, settlement_to_json("n1", result_of(1)) + "\n");
  settlement_spool spool(disk, path);
  REQUIRE(spool.append("n1", {result_of(2)}));
  CHECK(ids(spool.load().value()) == std::vector<std::string>{"d1", "d2"});
}

} // namespace boyd::spool_test
