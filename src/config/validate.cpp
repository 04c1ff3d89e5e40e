#include "boyd/core/text.hpp"
#include "passes.hpp"
#include "schema.hpp"

#include <valijson/adapters/nlohmann_json_adapter.hpp>
#include <valijson/schema.hpp>
#include <valijson/schema_parser.hpp>
#include <valijson/validation_results.hpp>
#include <valijson/validator.hpp>

#include <algorithm>
#include <charconv>
#include <memory>
#include <set>

namespace boyd::config {
namespace {

/// Words that the library must not see where check_meaning decides: its regular expressions recurse
/// over the text, so that a long value would overflow the stack, and a length or bound would only
/// repeat the finding.
void leave_to_meaning(nlohmann::json& rule) {
  if (rule.is_object()) {
    const bool special = rule.contains("x-kind") && rule["x-kind"].is_string() &&
                         rule["x-kind"] != "requirement" && rule["x-kind"] != "metadata";
    rule.erase("pattern");
    if (special) {
      for (const auto* word : {"minimum", "maximum", "minLength"}) {
        rule.erase(word);
      }
    }
  }
  for (auto& child : rule) {
    if (child.is_structured()) {
      leave_to_meaning(child);
    }
  }
}

const valijson::Schema& compiled_schema() {
  static const auto compiled = [] {
    nlohmann::json rules = schema_root(); // the library knows this kind alone
    leave_to_meaning(rules);
    auto out = std::make_unique<valijson::Schema>();
    valijson::SchemaParser parser;
    parser.populateSchema(valijson::adapters::NlohmannJsonAdapter(rules), *out);
    return out;
  }();
  return *compiled;
}

/// Where one of the library's errors lies.
struct location {
  const tree* value = nullptr;
  std::string key;
  rules at;
};

std::optional<std::size_t> index_of(const tree& parent, std::string_view name) {
  if (parent.kind == tree::kind_t::map) {
    for (std::size_t i = 0; i < parent.keys.size(); ++i) {
      if (parent.keys[i].text == name) {
        return i;
      }
    }
    return std::nullopt;
  }
  std::size_t index = 0;
  const auto done = std::from_chars(name.data(), name.data() + name.size(), index);
  return done.ec == std::errc{} && index < parent.items.size() ? std::optional(index)
                                                               : std::nullopt;
}

/// Follows the library's context: "<root>", then "[key]" or "[3]" for each step down.
location locate(const tree& root, const std::vector<std::string>& context) {
  location out{&root, {}, applicable(schema_root(), root)};
  for (std::size_t i = 1; i < context.size(); ++i) {
    const auto name = std::string_view(context[i]).substr(1, context[i].size() - 2);
    const auto index = index_of(*out.value, name);
    if (!index) {
      break;
    }
    const bool map = out.value->kind == tree::kind_t::map;
    const auto* rule = map ? rule_of_key(out.at, name) : rule_of_items(out.at);
    out.key = map ? child_path(out.key, name) : child_path(out.key, *index);
    out.value = &out.value->items[*index];
    out.at = rule == nullptr ? rules{} : applicable(*rule, *out.value);
  }
  return out;
}

void report_unknown_keys(pass& p, const location& where) {
  const auto names = key_names(where.at);
  for (const auto& key : where.value->keys) {
    if (std::find(names.begin(), names.end(), key.text) != names.end()) {
      continue;
    }
    std::string expected = "one of";
    for (const auto name : names) {
      expected += (expected.back() == 'f' ? " " : ", ") + std::string(name);
    }
    p.report(key.at, child_path(where.key, key.text), "unknown key", expected,
             std::string(nearest(key.text, names)));
  }
}

void report_missing(pass& p, const location& where, const std::string& description) {
  const auto open = description.find('\'');
  const auto close = description.rfind('\'');
  const auto name = description.substr(open + 1, close - open - 1);
  const auto* rule = rule_of_key(where.at, name);
  p.report(where.value->at, child_path(where.key, name), "missing",
           rule == nullptr ? "a value" : describe(*rule));
}

void report_value(pass& p, const location& where, const std::string& description) {
  std::string near;
  std::string problem = shown(*where.value);
  const auto* rule = where.at.empty() ? nullptr : where.at.front();
  if (description.starts_with("Failed to match against any enum")) {
    problem += " is not a known value";
    std::vector<std::string_view> values;
    if (rule != nullptr && rule->contains("enum")) {
      // Views into the schema, which outlives them.
      for (const auto& value : rule->at("enum")) {
        if (value.is_string()) {
          values.emplace_back(value.get_ref<const std::string&>());
        }
      }
    }
    near = where.value->secret ? "" : std::string(nearest(where.value->text, values));
  } else if (description.starts_with("Value type")) {
    problem = problem == "nothing"                        ? "a value is missing"
              : where.value->kind == tree::kind_t::scalar ? problem + " is of the wrong type"
                                                          : "found " + problem;
  } else if (description.starts_with("Expected number")) {
    problem += " is out of range";
  } else if (description.find("no more than") != std::string::npos) {
    problem +=
        where.value->kind == tree::kind_t::scalar ? " is too long" : " with too many entries";
  } else if (description.find("no fewer than") != std::string::npos) {
    problem +=
        where.value->kind == tree::kind_t::scalar ? " is too short" : " with too few entries";
  } else {
    problem += " is not valid: " + description;
  }
  p.report(where.value->at, where.key, problem, rule == nullptr ? "another value" : describe(*rule),
           near);
}

} // namespace

void validate(pass& p, const tree& root) {
  const auto json = json_of(root, applicable(schema_root(), root));
  valijson::ValidationResults results;
  valijson::Validator validator(valijson::Validator::kStrongTypes);
  const valijson::adapters::NlohmannJsonAdapter target(json);
  if (validator.validate(compiled_schema(), target, &results)) {
    return;
  }
  valijson::ValidationResults::Error error;
  while (results.popError(error)) {
    const auto& text = error.description;
    // The library repeats each finding at every level above it.
    if (text.starts_with("Failed to validate")) {
      continue;
    }
    const auto where = locate(root, error.context);
    if (text.starts_with("Object contains a property")) {
      report_unknown_keys(p, where);
    } else if (text.starts_with("Missing required")) {
      report_missing(p, where, text);
    } else {
      report_value(p, where, text);
    }
  }
}

} // namespace boyd::config
