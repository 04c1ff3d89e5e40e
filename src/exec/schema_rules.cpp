#include "schema_rules.hpp"

#include "boyd/core/text.hpp"

#include <re2/re2.h>
#include <valijson/constraint_builder.hpp>
#include <valijson/constraints/concrete_constraints.hpp>
#include <valijson/internal/adapter.hpp>
#include <valijson/validation_results.hpp>

#include <algorithm>
#include <array>
#include <chrono>
#include <functional>
#include <map>
#include <memory>
#include <new>
#include <set>
#include <stdexcept>
#include <string_view>
#include <utility>
#include <vector>

namespace boyd::exec {
namespace {

using nlohmann::json;

constexpr const char* pattern_word = "x-boyd-pattern";
constexpr const char* format_word = "x-boyd-format";
/// Of a pattern in a finding.
constexpr std::size_t shown_characters = 120;
/// What one pattern may take when it is compiled.
constexpr std::int64_t pattern_memory = 1 << 20;
/// Subschemas of `patternProperties` that may stand for the names of one value.
constexpr std::size_t most_matches = 10'000;
constexpr std::size_t most_unique_items = 5'000;

/// Words whose value is data, not schemas.
constexpr std::array<std::string_view, 4> data_words{"enum", "const", "default", "examples"};
/// Words whose value is an object of named schemas.
constexpr std::array<std::string_view, 6> named_words{
    "properties", "patternProperties", "definitions", "$defs", "dependencies", "dependentSchemas"};

bool is_one_of(const auto& words, std::string_view word) {
  return std::ranges::find(words, word) != words.end();
}

/// ECMAScript's \uXXXX is \x{XXXX} in RE2; the rest that schemas use is the same.
std::string in_re2(std::string_view pattern) {
  std::string out;
  for (std::size_t i = 0; i < pattern.size(); ++i) {
    if (pattern[i] != '\\' || i + 1 == pattern.size()) {
      out += pattern[i];
    } else if (pattern[i + 1] == 'u' && i + 5 < pattern.size()) {
      out.append("\\x{").append(pattern.substr(i + 2, 4)).append("}");
      i += 5;
    } else {
      out.append(pattern.substr(i, 2));
      ++i;
    }
  }
  return out;
}

std::shared_ptr<const RE2> compiled(std::string_view pattern) {
  RE2::Options options;
  options.set_log_errors(false);
  options.set_max_mem(pattern_memory);
  auto out = std::make_shared<const RE2>(in_re2(pattern), options);
  if (!out->ok())
    throw std::runtime_error("its pattern \"" +
                             std::string(cut_characters(pattern, shown_characters)) +
                             "\" is not supported by RE2: " + out->error());
  return out;
}

/// Whether the fields that a format's expression found are a day of the calendar.
bool is_date(const std::string& text, std::string_view expression) {
  const auto form = compiled(expression);
  int year = 0;
  unsigned month = 0;
  unsigned day = 0;
  return RE2::FullMatch(text, *form, &year, &month, &day) &&
         std::chrono::year_month_day(std::chrono::year(year), std::chrono::month(month),
                                     std::chrono::day(day))
             .ok();
}

constexpr std::string_view date_form = R"((\d{4})-(\d\d)-(\d\d))";
constexpr std::string_view time_form =
    R"((?:[01]\d|2[0-3]):[0-5]\d:(?:[0-5]\d|60)(?:\.\d+)?(?:[Zz]|[+-](?:[01]\d|2[0-3]):[0-5]\d))";

/// Formats that are not known hold for any text, as the standard has it.
bool has_format(const std::string& text, const std::string& format) {
  if (format == "date")
    return is_date(text, date_form);
  if (format == "time")
    return RE2::FullMatch(text, *compiled(time_form));
  if (format == "date-time")
    return is_date(text, std::string(date_form) + "[Tt]" + std::string(time_form));
  return true;
}

/// A rule about a text: what holds, and what is said when it does not.
class text_rule : public valijson::constraints::PolyConstraint {
 public:
  using check = std::function<bool(const std::string&)>;
  text_rule(check holds, std::string finding)
      : holds_(std::move(holds)), finding_(std::move(finding)) {}

  bool validate(const valijson::adapters::Adapter& target, const std::vector<std::string>& context,
                valijson::ValidationResults* results) const override {
    if (!target.isString() || holds_(target.asString()))
      return true;
    if (results != nullptr)
      results->pushError(context, finding_);
    return false;
  }

 private:
  Constraint* cloneInto(void* place) const override { return new (place) text_rule(*this); }
  std::size_t sizeOf() const override { return sizeof(text_rule); }

  check holds_;
  std::string finding_;
};

class pattern_builder : public valijson::ConstraintBuilder {
  valijson::constraints::Constraint* make(const valijson::adapters::Adapter& rule) const override {
    const auto text = rule.asString();
    return new text_rule([form = compiled(text)](
                             const std::string& value) { return RE2::PartialMatch(value, *form); },
                         "does not match the pattern \"" +
                             std::string(cut_characters(text, shown_characters)) + "\"");
  }
};

class format_builder : public valijson::ConstraintBuilder {
  valijson::constraints::Constraint* make(const valijson::adapters::Adapter& rule) const override {
    const auto format = rule.asString();
    return new text_rule([format](const std::string& value) { return has_format(value, format); },
                         "is not a valid " + std::string(cut_characters(format, shown_characters)));
  }
};

void collect_names(const json& value, std::set<std::string>& names) {
  for (const auto& item : value.items()) {
    if (value.is_object())
      names.insert(item.key());
    if (item.value().is_structured())
      collect_names(item.value(), names);
  }
}

/// What lies in a schema and is a schema again, or a list of them.
void for_each_child(auto& schema, const auto& visit) {
  for (auto& item : schema.items()) {
    if (!item.value().is_structured() || is_one_of(data_words, item.key()))
      continue;
    if (!item.value().is_object() || !is_one_of(named_words, item.key()))
      visit(item.value());
    else
      for (auto& child : item.value())
        visit(child);
  }
}

/// One schema on its way to a form that can be used.
class rewriting {
 public:
  rewriting(const json& root, const json& value) : root_(root) { collect_names(value, names_); }

  void of(json& node);
  /// A schema that is reached again without a step into the value would be checked for ever.
  void follow(const json& node);

 private:
  void expand(json& node);
  const json& target_of(const std::string& reference) const;
  void follow_all(const json& list);

  const json& root_; ///< as it was written
  std::set<std::string> names_;
  std::size_t matches_ = 0;
  std::set<const json*> under_way_;
  std::set<const json*> done_;
};

/// What is copied is in its new form already.
void rewriting::of(json& node) {
  if (node.is_array())
    for (auto& child : node)
      of(child);
  if (!node.is_object())
    return;
  for_each_child(node, [this](json& child) { of(child); });
  for (const auto& [word, own] : {std::pair("pattern", pattern_word), {"format", format_word}})
    if (const auto found = node.find(word); found != node.end() && found->is_string()) {
      json text = *found;
      node.erase(found);
      node[own] = std::move(text);
    }
  expand(node);
}

void rewriting::expand(json& node) {
  const auto found = node.find("patternProperties");
  if (found == node.end() || !found->is_object())
    return;
  std::map<std::string, json> matched;
  for (const auto& item : found->items()) {
    const auto form = compiled(item.key());
    for (const auto& name : names_) {
      if (!RE2::PartialMatch(name, *form))
        continue;
      if (++matches_ > most_matches)
        throw std::runtime_error("patternProperties: more than " + std::to_string(most_matches) +
                                 " properties of the value match");
      auto& rules = matched[name];
      if (rules.is_null())
        rules = json::array();
      rules.push_back(item.value());
    }
  }
  node.erase("patternProperties");
  auto& properties = node["properties"];
  if (properties.is_null())
    properties = json::object();
  for (auto& [name, rules] : matched) {
    if (const auto own = properties.find(name); own != properties.end())
      rules.push_back(*own);
    properties[name] = rules.size() == 1 ? json(rules.front()) : json{{"allOf", rules}};
  }
}

const json& rewriting::target_of(const std::string& reference) const {
  const auto shown =
      "its $ref \"" + std::string(cut_characters(reference, shown_characters)) + "\"";
  if (!reference.starts_with('#') || reference.find('%') != std::string::npos)
    throw std::runtime_error(shown +
                             " leaves the document: only \"#\" and \"#/…\" (without %) can be "
                             "followed");
  std::string path = reference.substr(1);
  while (path.ends_with('/'))
    path.pop_back();
  // What is data is not rewritten, and a schema of data would be checked as it is.
  std::string_view before;
  for (const auto part : split(path, '/')) {
    if (!is_one_of(named_words, before) && is_one_of(data_words, part))
      throw std::runtime_error(shown + " leads to data, not to a schema");
    before = is_one_of(named_words, before) ? std::string_view{} : part;
  }
  const json::json_pointer place(path);
  if (!root_.contains(place))
    throw std::runtime_error(shown + " leads nowhere");
  return root_.at(place);
}

void rewriting::follow_all(const json& list) {
  for (const auto& child : list)
    follow(child);
}

void rewriting::follow(const json& node) {
  if (node.is_array())
    return follow_all(node);
  if (!node.is_object() || done_.contains(&node))
    return;
  if (!under_way_.insert(&node).second)
    throw std::runtime_error("a $ref leads back to itself");
  if (const auto ref = node.find("$ref"); ref != node.end() && ref->is_string())
    follow(target_of(ref->get_ref<const std::string&>()));
  for (const auto* word :
       {"allOf", "anyOf", "oneOf", "not", "if", "then", "else", "type", "extends", "disallow"})
    if (const auto child = node.find(word); child != node.end())
      follow(*child);
  for (const auto* word : {"dependencies", "dependentSchemas"})
    if (const auto children = node.find(word); children != node.end() && children->is_object())
      follow_all(*children);
  under_way_.erase(&node);
  done_.insert(&node);
}

void follow_everywhere(rewriting& r, const json& node) {
  if (node.is_array())
    for (const auto& child : node)
      follow_everywhere(r, child);
  if (!node.is_object())
    return;
  r.follow(node);
  for_each_child(node, [&r](const json& child) { follow_everywhere(r, child); });
}

bool wants_unique_items(const json& schema) {
  if (schema.is_object())
    if (const auto found = schema.find("uniqueItems"); found != schema.end() && *found == true)
      return true;
  return std::ranges::any_of(
      schema, [](const json& child) { return child.is_structured() && wants_unique_items(child); });
}

std::size_t longest_array(const json& value) {
  std::size_t most = value.is_array() ? value.size() : 0;
  for (const auto& child : value)
    if (child.is_structured())
      most = std::max(most, longest_array(child));
  return most;
}

} // namespace

nlohmann::json usable_schema(nlohmann::json schema, const nlohmann::json& value) {
  const json written = schema;
  rewriting r(written, value);
  follow_everywhere(r, written);
  r.of(schema);
  return schema;
}

void add_text_rules(valijson::SchemaParser& parser) {
  parser.addConstraintBuilder(pattern_word, new pattern_builder);
  parser.addConstraintBuilder(format_word, new format_builder);
}

std::string too_large_for(const nlohmann::json& schema, const nlohmann::json& value) {
  if (!value.is_structured() || !schema.is_structured() || !wants_unique_items(schema))
    return {};
  const auto items = longest_array(value);
  if (items <= most_unique_items)
    return {};
  return "an array has " + std::to_string(items) + " items; uniqueItems is checked only up to " +
         std::to_string(most_unique_items);
}

} // namespace boyd::exec
