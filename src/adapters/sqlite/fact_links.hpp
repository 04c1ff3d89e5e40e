#pragma once

#include "boyd/ports/knowledge_index.hpp"
#include "connection.hpp"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

/// The links of facts in the index of knowledge: rows for the newest lines of the log, packed pages
/// for each full block of older ones. All throw `failure`.
namespace boyd::adapters::sqlite {

extern const char* const link_tables;

/// Within the caller's transaction.
void put_links(connection& db, const link_changes& links);
void forget_links(connection& db);

std::vector<fact_link> fresh_links(connection& db);
std::vector<std::uint64_t> lines_of(connection& db, std::uint64_t node, std::uint64_t before,
                                    std::size_t most);
std::optional<line_mark> mark_before(connection& db, std::uint64_t line);
std::optional<line_mark> segment_of(connection& db, std::uint64_t line);

} // namespace boyd::adapters::sqlite
