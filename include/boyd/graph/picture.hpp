#pragma once

#include "boyd/core/result.hpp"

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

/// Pictures of a part of the graph. Pure; labels may hold anything.
namespace boyd::graph {

struct picture_node {
  std::string id;
  std::string label; ///< a path, or the id
  double score = 0;  ///< importance of a context or skill; 0: none

  bool operator==(const picture_node&) const = default;
};

struct picture_edge {
  std::string from;
  std::string to;
  std::string type;
  std::int64_t weight = 1; ///< facts that say so

  bool operator==(const picture_edge&) const = default;
};

struct picture {
  std::vector<picture_node> nodes; ///< different ids
  std::vector<picture_edge> edges; ///< between them
  bool cut = false;                ///< there is more of it

  bool operator==(const picture&) const = default;
};

std::string to_json(const picture& p);
/// `parse_error`: it is none.
result<picture> read_picture(std::string_view json);

/// graph TD: derived_from -->, supports ==>, others -.->
std::string to_mermaid(const picture& p);
/// rankdir=LR: contexts as boxes, skills as ellipses, decisions as diamonds.
std::string to_dot(const picture& p);
/// [Nodes] and [Edges].
std::string to_text(const picture& p);

} // namespace boyd::graph
