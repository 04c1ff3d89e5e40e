#pragma once

#include "boyd/graph/edge_log.hpp"

#include <optional>
#include <string_view>

namespace boyd::graph {

/// A line as edge_chain::append writes it, of printable ASCII without escapes and with a meta of
/// texts and numbers: most lines, read in a tenth of the time that a JSON value takes. Nothing: the
/// line has to be read as JSON, and may be no edge. What is read here is what parse_edge says.
std::optional<logged_edge> read_plain_line(std::string_view line);

} // namespace boyd::graph
