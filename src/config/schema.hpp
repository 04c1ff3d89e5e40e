#pragma once

#include "boyd/config/tree.hpp"

#include <nlohmann/json.hpp>

#include <functional>
#include <string>
#include <string_view>
#include <vector>

/// Reading config/boyd.schema.json: which rules hold at a place of the configuration. The schema
/// uses few words of the language on purpose: $ref, properties, items, additionalProperties and
/// allOf of if/then on a constant key. Own words: x-kind (what a value means), x-keys (what the
/// keys of a map mean), x-min and x-max (bounds of durations), x-default-with (the default counts
/// only beside this key) and x-default-executor (only beside an executor of this type).
namespace boyd::config {

using schema_json_t = nlohmann::ordered_json;
/// The rules that hold together at one place.
using rules = std::vector<const schema_json_t*>;

/// The parsed schema; lives as long as the process.
const schema_json_t& schema_root();

/// `rule` with references followed and conditions decided by `value`.
rules applicable(const schema_json_t& rule, const tree& value);

/// The rule for the value under `key`, or null when such a key is not allowed or not described.
const schema_json_t* rule_of_key(const rules& at, std::string_view key);

/// The rule for the items of a list, or null.
const schema_json_t* rule_of_items(const rules& at);

/// All keys that are named for a map; views into the schema.
std::vector<std::string_view> key_names(const rules& at);

/// The text of a rule's word (x-kind, …), or empty.
std::string_view word(const rules& at, const char* name);

/// What a value may be, for a person: "an integer from 1 to 4096".
std::string describe(const schema_json_t& rule);

/// What a plain scalar is by YAML's core schema; integers beyond 64 bits are reals.
enum class scalar_type : std::uint8_t { null, boolean, integer, real, string };
scalar_type type_of(const tree& scalar);

/// A value as JSON, typed by its text and, for texts from ${…}, by what the rules want.
nlohmann::json json_of(const tree& value, const rules& at);

/// One value on a walk through the whole configuration.
struct place {
  const std::string& key; ///< dotted path
  const rules& at;
  const tree& value;
};

/// Visits every value that the schema describes, parents first, in the order of the file.
void walk(const tree& root, const std::function<void(const place&)>& visit);

/// "parent.key" and "parent[3]".
std::string child_path(const std::string& parent, std::string_view key);
std::string child_path(const std::string& parent, std::size_t index);

} // namespace boyd::config
