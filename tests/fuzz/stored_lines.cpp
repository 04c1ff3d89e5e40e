#include "boyd/graph/edge_log.hpp"
#include "boyd/queue/dispatch_json.hpp"
#include "fuzz/target.hpp"

namespace boyd::fuzz {
namespace {

/// A line of graph.jsonl: read or refused; what was read can be written and is read the same.
void run_edge(std::string_view input) {
  const auto line = graph::parse_edge(input);
  if (line) {
    graph::edge_chain chain;
    if (const auto written = chain.append(line->fact)) {
      const auto again = graph::parse_edge(*written);
      require(again && again->fact.from == line->fact.from && again->fact.to == line->fact.to &&
                  again->fact.type == line->fact.type,
              "an edge that was written is read back");
      require(again && graph::is_as_written(*written, *again), "it is taken for what it is");
    }
  }
  const auto report = graph::verify(input);
  require(report.chained + report.older <= report.lines, "lines are counted once");
  for (const auto& p : report.problems)
    require(p.line <= report.lines + 1, "a problem's line is in the log");
}

/// A line of the result spool: read or refused; reading, writing and reading again is stable.
void run_settlement(std::string_view input) {
  const auto read = queue::settlement_from_json(input);
  if (!read)
    return;
  const auto written = queue::settlement_to_json(read->node_id, read->item);
  require(written.find('\n') == std::string::npos, "a settlement is one line");
  const auto again = queue::settlement_from_json(written);
  require(again.has_value(), "a settlement that was written is read back");
  require(again && queue::settlement_to_json(again->node_id, again->item) == written,
          "a settlement is written the same twice");
}

const registration registered_edge{"graph_line", run_edge};
const registration registered_settlement{"spool_line", run_settlement};

} // namespace
} // namespace boyd::fuzz
