#include "crash/campaign.hpp"
#include "support/pch.hpp"

#include <nlohmann/json.hpp>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <set>
#include <string>
#include <vector>

namespace boyd::memory_test {

using namespace boyd::crash;
using namespace std::chrono_literals;

namespace {

std::string bytes_of(const std::filesystem::path& file) {
  std::ifstream in(file, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

/// All of the kernel's memory but for the imported lines, past Boyd.
std::string remembered(const std::string& home) {
  namespace fs = std::filesystem;
  const fs::path kernel = home + "/kernel/default";
  std::string all = bytes_of(kernel / "MEMORY.md");
  for (const char* folder : {"archive", "research"})
    if (fs::is_directory(kernel / folder))
      for (const auto& file : fs::directory_iterator(kernel / folder))
        if (file.path().extension() == ".md")
          all += bytes_of(file.path());
  return all;
}

/// The texts of imported lines that end, past Boyd. A line that is none throws `broken`.
std::multiset<std::string> imported(const std::string& home, const std::string& about) {
  namespace fs = std::filesystem;
  std::multiset<std::string> texts;
  const fs::path archive = home + "/kernel/default/archive";
  if (!fs::is_directory(archive))
    return texts;
  for (const auto& file : fs::directory_iterator(archive)) {
    if (file.path().extension() != ".jsonl")
      continue;
    const auto bytes = bytes_of(file.path());
    for (std::size_t at = 0; at < bytes.size();) {
      const auto end = bytes.find('\n', at);
      if (end == std::string::npos)
        break; // was not acknowledged
      const auto line = nlohmann::json::parse(bytes.substr(at, end - at), nullptr, false);
      if (!line.is_object())
        throw broken("half a line in " + file.path().string() + "\n" + about);
      texts.insert(line.at("text").get<std::string>());
      at = end + 1;
    }
  }
  return texts;
}

struct ledger {
  std::vector<std::string> appended; ///< acknowledged
  std::set<std::string> imported;    ///< acknowledged
};

void check(const proving_ground& ground, const ledger& known, const std::string& about) {
  const auto text = remembered(ground.home());
  for (const auto& entry : known.appended)
    if (text.find(entry) == std::string::npos)
      throw broken("PROMISE BROKEN: an acknowledged entry of the memory is gone: " + entry + "\n" +
                   about);
  const auto lines = imported(ground.home(), about);
  for (const auto& entry : known.imported)
    if (!lines.contains(entry))
      throw broken("PROMISE BROKEN: an acknowledged imported entry is gone: " + entry + "\n" +
                   about);
  for (const auto& entry : lines)
    if (lines.count(entry) > 1)
      throw broken("PROMISE BROKEN: an imported entry stands twice: " + entry + "\n" + about);
}

std::string import_file(const proving_ground& ground, std::uint64_t round) {
  const auto path = ground.home() + ".lines.jsonl";
  std::ofstream out(path);
  for (int month = 1; month <= 3; ++month)
    out << "{\"time\":\"2026-0" << month << "-13T10:00:00Z\",\"text\":\"imported " << round << "."
        << month << ".\"}\n";
  return path;
}

} // namespace

TEST_CASE("case 32 kill-every-io: killed while something is remembered", "[crash]") {
  const auto e = effort_of(160, 12s);
  proving_ground ground;
  ground.seed(e.seed);
  ground.begin_anew();
  ledger known;
  const auto append = [&](std::uint64_t round, const fault& f) {
    // Every other one is too long for its section, and all of them soon too many.
    auto text = "entry " + std::to_string(round) + ".";
    if (round % 2 == 0)
      text += std::string(100, 'x') + std::to_string(round) + ".";
    const auto ended = ground.run({"memory", "append", "Important Facts", text}, f);
    if (ended.code == 0)
      known.appended.push_back(text);
    return ended.code;
  };
  const auto import_lines = [&](std::uint64_t round, const fault& f) {
    const auto ended = ground.run({"memory", "import", import_file(ground, round), "--json"}, f);
    if (ended.code == 0)
      for (int month = 1; month <= 3; ++month)
        known.imported.insert("imported " + std::to_string(round) + "." + std::to_string(month) +
                              ".");
    return ended.code;
  };
  REQUIRE(append(0, {}) == 0);
  const auto calls_of_append = ground.faults().calls();
  REQUIRE(import_lines(0, {}) == 0);
  const auto calls_of_import = ground.faults().calls();
  REQUIRE(calls_of_append > 0);
  REQUIRE(calls_of_import > 0);
  tally points(e);
  const auto appends = [](std::uint64_t round) { return round % 3 != 0; };
  // True: the fault has struck.
  const auto survives = [&](std::uint64_t round, const fault& f) {
    const auto what = about(e, points.done(), f);
    INFO(what);
    const auto code = appends(round) ? append(round, f) : import_lines(round, f);
    const bool struck = ground.faults().struck();
    if (struck) {
      points.one();
      CHECK(code == killed);
    }
    check(ground, known, what);
    // The next try, without a fault, is good, whatever the kill has left.
    REQUIRE((appends(round) ? append(round, {}) : import_lines(round, {})) == 0);
    check(ground, known, what);
    const auto found =
        ground.run({"memory", "recall",
                    appends(round) ? "entry " + std::to_string(round) : "imported", "--json"},
                   {});
    INFO(found.out << found.err);
    REQUIRE(found.code == 0);
    REQUIRE_FALSE(found.json().at("items").empty());
    return struck;
  };
  if (e.all) {
    // A short entry, one that is too long, an import: each call of each, on a copy of the same
    // home, whose section is full.
    constexpr std::uint64_t full = 40;
    for (std::uint64_t round = full; round > 3; --round)
      REQUIRE(append(round, {}) == 0);
    ground.keep();
    const auto kept = known;
    for (std::uint64_t round = 1; round <= 3; ++round)
      for (std::uint64_t call = 1; !points.enough(); ++call) {
        ground.restore();
        known = kept;
        if (!survives(round, {.what = action::kill, .at = call}))
          break;
      }
  } else {
    for (std::uint64_t round = 1; !points.enough(); ++round)
      survives(round, {.what = action::kill,
                       .at = ground.random(appends(round) ? calls_of_append : calls_of_import)});
  }
  points.report("kill points of memory append and import", ground);
  CHECK(points.done() > 0);
}

} // namespace boyd::memory_test
