#pragma once

#include "acceptance/harness.hpp"

#include <string>
#include <vector>

namespace boyd::test {

/// An edge that the rows say must be in a home's knowledge graph.
struct wanted_edge {
  std::string type;
  std::string from;
  std::string to;
};

/// Where the knowledge graph of a home whose node has ended breaks its promises; empty when it does
/// not: the product's own verification finds the chain whole up to the head of the newest commit,
/// the heads of all commits are lines of it, in the commits' order, each fact and each decision
/// stands once, nothing was cut off or set aside, and `wanted` is there.
std::vector<std::string> graph_faults(const site& home, const std::vector<wanted_edge>& wanted);

} // namespace boyd::test
