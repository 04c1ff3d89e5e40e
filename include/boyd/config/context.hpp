#pragma once

#include "boyd/context/block.hpp"
#include "boyd/context/wanted.hpp"

#include <cstdint>
#include <string>
#include <vector>

namespace boyd::config {

/// What becomes of citations that do not hold (docs/context.md).
enum class citation_contract : std::uint8_t { by_executor, observe, enforce };

/// `context:` of an agent: what its runs are given to read besides the prompt (docs/context.md).
struct context_settings {
  std::vector<context::wanted> items;
  context::order strategy = context::order::ranked;
  std::int64_t budget_tokens = 8000;
  citation_contract contract = citation_contract::by_executor;
  std::string workspace;          ///< absolute after loading; empty: the executor's
  std::string summarizer{};       ///< provider of the model that words summaries; empty: rules do
  std::string summarizer_model{}; ///< empty: the provider's

  bool operator==(const context_settings&) const = default;
};

} // namespace boyd::config
