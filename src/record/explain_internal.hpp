#pragma once

#include "../core/json_values.hpp"
#include "boyd/record/explain.hpp"

#include <nlohmann/json.hpp>

#include <cstdint>
#include <string>
#include <string_view>

/// Private to src/record: the words of an explanation, and its sections.
namespace boyd::record::words {

using json = nlohmann::json;

/// Text from outside as code on one line; no character of it means something to Markdown.
std::string code(std::string_view text);
/// The same for a cell of a table.
std::string cell(std::string_view text);
/// "2026-02-13 10:00:00 UTC".
std::string moment(utc_time t);
/// "1 file", "2 files".
std::string counted(std::int64_t n, std::string_view one, std::string_view more);
/// "a, b and c".
std::string listed(const std::vector<std::string>& all);

/// A JSON value of a record; null for none.
json value(const std::string& text);

/// The last attempt; null: there is none.
const attempt* last_of(const execution& e);
/// What it could read at first.
const context::snapshot* first_snapshot(const execution& e);
bool names(const std::vector<named_item>& items, std::string_view id);
/// What became of an item that a prompt showed: cited, used (not cited), or given (no more than
/// that).
std::string use_of(const execution& e, std::string_view id);
/// All items of the first snapshot: cited ones first, then used ones, then others that were given,
/// then those that were not shown; each in their order.
std::vector<const context::snapshot_item*> items_by_use(const execution& e);
/// "C2 `path`"; without a key the path alone.
std::string with_key(const context::snapshot_item& i);
/// Nothing: the log did not know it.
const known_item* known_to(const attempt& a, std::string_view id);
/// Behind what an item's fact of this type says: its place in the log, where that is known.
std::string place_of(const execution& e, const std::string& from, const std::string& type);

// explain_summary.cpp
/// "a program", "an AI model with tools".
std::string what_it_is(const attempt* a);
std::string summary(const execution& e);
// explain_items.cpp
std::string skill_suggestions(const execution& e);
std::string bank_usage(const execution& e);
std::string evolution(const execution& e);
std::string retrospective(const execution& e);
std::string recommendations(const execution& e);
// explain_turns.cpp
std::string turn_by_turn(const execution& e);
// explain_facts.cpp
std::string provenance(const execution& e, bool with_graph);

} // namespace boyd::record::words
