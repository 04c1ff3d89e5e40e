#pragma once

#include "../core/json_values.hpp"
#include "boyd/context/item.hpp"
#include "boyd/graph/inspector.hpp"

#include <nlohmann/json.hpp>

#include <map>
#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace boyd::graph {

using json = nlohmann::ordered_json;

/// Of one node; more are not looked at.
inline constexpr std::size_t most_facts = 10'000;

std::string dump(const json& answer);
/// A meta that cannot be read is empty.
json meta_of(const cited_fact& f);
/// Of a `validated_by`: null where the run's outcome is not the skill's.
json success_json(const json& meta);
/// The same behind "A run followed it".
std::string success_in_words(const json& meta);
double rounded(double share);
std::string time_text(utc_time t);

/// The facts of a type, or of a node: the newest first, as far as they are looked at.
result<std::vector<cited_fact>> newest_first(const inspection& in, const std::string& node);
/// The same, the oldest first.
result<std::vector<cited_fact>> oldest_first(const inspection& in, const std::string& node);

/// What the log says of the latest path of an item; its id when it says none.
result<std::string> path_of(const inspection& in, const std::string& id);

/// Ids of skills that have this id or name, in whatever kernel; else those whose ids begin so.
result<std::set<std::string>> skills_called(const inspection& in, const std::string& text);

/// The node that somebody calls so: by its id or the beginning of one, the path of a context, the
/// name of a skill, or an agent's (its newest run). `not_found`; `conflict` when several fit.
result<std::string> find_node(const inspection& in, const std::string& text);

/// The end of an answer: how much of the log could not be believed, or was not looked at.
void tell_left_out(const inspection& in, json& answer);

} // namespace boyd::graph
