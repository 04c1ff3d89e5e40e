#pragma once

#include "support/pch.hpp"
#include "support/telling.hpp"
#include "support/temp_dir.hpp"

#include <nlohmann/json.hpp>

#include <cstdlib>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

namespace boyd::test {

/// What Mermaid's own parser, where BOYD_MERMAID names the directory that scripts/mermaid-parser
/// made, says of those that it does not take; empty: it takes all of them, or nobody was asked,
/// which is told.
inline std::string not_mermaid(const std::vector<std::string>& pictures) {
  const char* parser = std::getenv("BOYD_MERMAID");
  const char* top = std::getenv("BOYD_SOURCE_DIR");
  REQUIRE(top != nullptr);
  if (parser == nullptr) {
    tell_skipped("Mermaid's own parser", "BOYD_MERMAID names no directory with it");
    return {};
  }
  const temp_dir folder;
  std::ofstream(folder.file("pictures.json"))
      << nlohmann::json(pictures).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
  const auto code =
      std::system(("node '" + std::string(top) + "/tests/data/mermaid/parse.mjs' '" + parser +
                   "' '" + folder.file("pictures.json") + "' >'" + folder.file("said") + "' 2>&1")
                      .c_str());
  std::ifstream said(folder.file("said"));
  const std::string words{std::istreambuf_iterator<char>(said), {}};
  INFO(words);
  CHECK(code == 0);
  return code == 0 ? std::string() : words;
}

} // namespace boyd::test
