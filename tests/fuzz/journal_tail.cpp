#include "boyd/files/journal.hpp"
#include "fuzz/target.hpp"
#include "support/sim/disk.hpp"

namespace boyd::fuzz {
namespace {

constexpr const char* path = "/log.jsonl";

bool looks_whole(std::string_view line) {
  return line.size() >= 2 && line.front() == '{' && line.back() == '}';
}

/// Where a tail must be cut, written the plain way: after the last line that ends and is whole.
std::size_t good_end(std::string_view content) {
  std::size_t good = 0;
  std::size_t start = 0;
  while (start < content.size()) {
    const auto end = content.find('\n', start);
    if (end == std::string_view::npos)
      break;
    if (looks_whole(content.substr(start, end - start)))
      good = end + 1;
    start = end + 1;
  }
  return good;
}

std::string content_of(const sim::sim_disk& disk, const std::string& name) {
  const auto seen = disk.look(name);
  return seen.content == nullptr ? std::string{} : *seen.content;
}

/// A journal file of any bytes opens with every whole line kept and every cut byte set aside, takes
/// an append, and opens again without another cut.
void run(std::string_view input) {
  sim::sim_disk disk;
  disk.put(path, input);
  files::journal_options options;
  options.parses = looks_whole;

  const auto kept = input.substr(0, good_end(input));
  {
    auto journal = files::journal::open(disk, path, options);
    require(journal.has_value(), "any small file opens");
    require(content_of(disk, path) == kept, "what is kept are the whole lines");
    require(content_of(disk, std::string(path) + ".torn").find(input.substr(kept.size())) !=
                std::string::npos,
            "what is cut is set aside");
    require(journal->append({"{1}", "{2}"}).has_value(), "it goes on");
  }
  const auto torn = content_of(disk, std::string(path) + ".torn");
  const auto again = files::journal::open(disk, path, options);
  require(again && content_of(disk, std::string(path) + ".torn") == torn,
          "a mended journal needs no mending");
  require(content_of(disk, path) == std::string(kept) + "{1}\n{2}\n", "the append follows");
}

const registration registered{"journal_tail", run};

} // namespace
} // namespace boyd::fuzz
