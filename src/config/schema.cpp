#include "schema.hpp"

#include "embedded.hpp"

#include <charconv>
#include <cmath>
#include <optional>

namespace boyd::config {
namespace {

/// References in the schema are followed at most this far; it has no longer chains.
constexpr int reference_limit = 8;

const schema_json_t& dereference(const schema_json_t& rule) {
  const auto* at = &rule;
  for (int i = 0; i < reference_limit && at->contains("$ref"); ++i) {
    at = &schema_root().at(
        nlohmann::ordered_json::json_pointer(at->at("$ref").get<std::string>().substr(1)));
  }
  return *at;
}

bool holds(const schema_json_t& condition, const tree& value) {
  if (value.kind != tree::kind_t::map) {
    return false;
  }
  for (const auto& [key, rule] : condition.at("properties").items()) {
    const auto* found = value.find(key);
    if (found == nullptr || found->kind != tree::kind_t::scalar ||
        found->text != rule.at("const").get<std::string>()) {
      return false;
    }
  }
  return true;
}

std::optional<std::int64_t> integer(std::string_view text) {
  const bool sign = text.starts_with('-') || text.starts_with('+');
  const auto digits = text.substr(sign ? 1 : 0);
  // A leading zero is no decimal number to everybody: such texts stay texts.
  if (digits.empty() || digits.find_first_not_of("0123456789") != std::string_view::npos ||
      (digits.size() > 1 && digits.front() == '0')) {
    return std::nullopt;
  }
  const auto body = text.starts_with('+') ? digits : text;
  std::int64_t value = 0;
  const auto done = std::from_chars(body.data(), body.data() + body.size(), value);
  return done.ec == std::errc{} ? std::optional(value) : std::nullopt;
}

std::optional<double> real(std::string_view text) {
  if (text.find_first_not_of("0123456789.eE+-") != std::string_view::npos ||
      text.find_first_of("0123456789") == std::string_view::npos) {
    return std::nullopt;
  }
  const auto body = text.starts_with('+') ? text.substr(1) : text;
  double value = 0;
  const auto done = std::from_chars(body.data(), body.data() + body.size(), value);
  if (done.ec != std::errc{} || done.ptr != body.data() + body.size() || !std::isfinite(value)) {
    return std::nullopt;
  }
  return value;
}

bool allows(const schema_json_t& rule, std::string_view type) {
  const auto found = rule.find("type");
  if (found == rule.end()) {
    return false;
  }
  if (found->is_string()) {
    return found->get<std::string>() == type;
  }
  for (const auto& one : *found) {
    if (one.get<std::string>() == type) {
      return true;
    }
  }
  return false;
}

bool wants_text(const tree& scalar, const rules& at) {
  if (word(at, "x-kind") == "text") {
    return true;
  }
  if (!scalar.expanded) {
    return false;
  }
  for (const auto* rule : at) {
    if (allows(*rule, "integer") || allows(*rule, "number") || allows(*rule, "boolean")) {
      return false;
    }
  }
  return true;
}

nlohmann::json scalar_json(const tree& t, const rules& at) {
  const auto type = type_of(t);
  if (type == scalar_type::string || (type != scalar_type::null && wants_text(t, at)) ||
      (type == scalar_type::null && t.expanded && wants_text(t, at))) {
    return t.text;
  }
  switch (type) {
  case scalar_type::boolean:
    return t.text.front() == 't' || t.text.front() == 'T';
  case scalar_type::integer:
    return *integer(t.text);
  case scalar_type::real:
    return *real(t.text);
  default:
    return nullptr;
  }
}

std::string describe_text(const schema_json_t& rule, const std::string& kind) {
  static const std::vector<std::pair<std::string_view, std::string_view>> kinds{
      {"cron", "a schedule: five cron fields, @hourly and the like, \"@every 30s\", or {at: TIME}"},
      {"tz", "an IANA time zone such as Europe/Berlin"},
      {"name", "1 to 64 letters, digits, '.', '_' or '-', starting with a letter or digit"},
      {"path", "a path"},
      {"url", "http://HOST[:PORT][/PATH] or https://…"},
      {"base_url", "https://HOST[:PORT][/PATH], or http://… on the same machine"},
      {"dollars", "dollars such as 2.50, with at most six digits after the point"},
      {"word", "a string without spaces"},
      {"header_value", "one line of text"},
      {"tool",
       "read_file, write_file, list_dir, search_text, run_command, remember, recall, read_skill or "
       "mcp__SERVER__TOOL"},
      {"tool_pattern", "*, or a tool: read_file, write_file, list_dir, search_text, run_command, "
                       "remember, recall, read_skill or mcp__SERVER__TOOL"},
      {"store", "sqlite or postgres://user@host/db"},
      {"env_name", "the name of an environment variable"},
      {"requirement", "exit_zero, no_question, tool_action, or one of artifact: PATH, command: "
                      "[PROGRAM, …], schema: FILE"},
      {"context", "a list of references, or a map of keys and values"},
      {"reference", "@path, @path:10-30, #directory or @!command; as a map {item: …, required: …}"},
      {"text", "a string or number"},
      {"pointer", "a JSON pointer (RFC 6901) such as /type"},
      {"condition", "a value, a list of values, or {contains: TEXT}"},
      {"token", "an argument, or a list of arguments that belong together"},
      {"size", "a size such as 64KiB"},
  };
  if (kind == "duration") {
    std::string out = "a duration such as 30s";
    if (const auto low = rule.at("x-min").get<std::string>(); low != "0")
      out += ", at least " + low;
    return rule.contains("x-word") ? out + ", or " + rule.at("x-word").get<std::string>() : out;
  }
  for (const auto& [name, text] : kinds) {
    if (kind == name) {
      return std::string(text);
    }
  }
  return rule.value("minLength", 0) > 0 ? "a non-empty string" : "a string";
}

void walk_in(const std::string& key, const schema_json_t& rule, const tree& value,
             const std::function<void(const place&)>& visit) {
  const auto at = applicable(rule, value);
  visit({key, at, value});
  for (std::size_t i = 0; i < value.items.size(); ++i) {
    const bool map = value.kind == tree::kind_t::map;
    const auto* child = map ? rule_of_key(at, value.keys[i].text) : rule_of_items(at);
    if (child != nullptr) {
      walk_in(map ? child_path(key, value.keys[i].text) : child_path(key, i), *child,
              value.items[i], visit);
    }
  }
}

} // namespace

const schema_json_t& schema_root() {
  static const auto root = schema_json_t::parse(embedded::schema_text);
  return root;
}

rules applicable(const schema_json_t& rule, const tree& value) {
  const auto& base = dereference(rule);
  rules out{&base};
  if (base.contains("allOf")) {
    for (const auto& part : base.at("allOf")) {
      if (holds(part.at("if"), value)) {
        out.push_back(&dereference(part.at("then")));
      }
    }
  }
  return out;
}

const schema_json_t* rule_of_key(const rules& at, std::string_view key) {
  const std::string name(key);
  // The last rule is the most special one: a chosen `then` describes more than its base.
  for (auto rule = at.rbegin(); rule != at.rend(); ++rule) {
    const auto properties = (*rule)->find("properties");
    if (properties != (*rule)->end() && properties->contains(name)) {
      return &properties->at(name);
    }
  }
  for (const auto* rule : at) {
    const auto others = rule->find("additionalProperties");
    if (others != rule->end() && others->is_object()) {
      return &*others;
    }
  }
  return nullptr;
}

const schema_json_t* rule_of_items(const rules& at) {
  for (const auto* rule : at) {
    if (rule->contains("items")) {
      return &rule->at("items");
    }
  }
  return nullptr;
}

std::vector<std::string_view> key_names(const rules& at) {
  std::vector<std::string_view> out;
  const auto* rule = at.back();
  if (rule->contains("properties")) {
    for (const auto& entry : rule->at("properties").items()) {
      out.emplace_back(entry.key());
    }
  }
  return out;
}

std::string_view word(const rules& at, const char* name) {
  for (const auto* rule : at) {
    const auto found = rule->find(name);
    if (found != rule->end()) {
      return found->get_ref<const std::string&>();
    }
  }
  return {};
}

std::string describe(const schema_json_t& given) {
  const auto& rule = dereference(given);
  if (rule.contains("enum")) {
    std::string out;
    for (const auto& value : rule.at("enum")) {
      if (value != "") {
        out += (out.empty() ? "" : ", ") +
               (value.is_string() ? value.get<std::string>() : value.dump());
      }
    }
    return rule.at("enum").size() == 1 ? out : "one of " + out;
  }
  if (rule.contains("x-kind") && rule.at("x-kind") != "metadata") {
    return describe_text(rule, rule.at("x-kind").get<std::string>());
  }
  const auto kind = rule.find("type");
  const auto type = kind != rule.end() && kind->is_string() ? kind->get<std::string>() : "object";
  if (type == "integer" || type == "number") {
    return (type == "integer" ? "an integer from " : "a number from ") + rule.at("minimum").dump() +
           " to " + rule.at("maximum").dump();
  }
  if (type == "boolean") {
    return "true or false";
  }
  if (type == "array") {
    return rule.value("minItems", 0) > 0 ? "a list with at least one item" : "a list";
  }
  return type == "string" ? describe_text(rule, {}) : "a map of keys and values";
}

scalar_type type_of(const tree& t) {
  if (!t.plain) {
    return scalar_type::string;
  }
  const auto& s = t.text;
  if (s.empty() || s == "~" || s == "null" || s == "Null" || s == "NULL") {
    return scalar_type::null;
  }
  for (const auto* name : {"true", "True", "TRUE", "false", "False", "FALSE"}) {
    if (s == name) {
      return scalar_type::boolean;
    }
  }
  if (integer(s)) {
    return scalar_type::integer;
  }
  const bool zero_led =
      s.size() > 1 && s.find_first_not_of("0123456789") == std::string::npos && s.front() == '0';
  return !zero_led && real(s) ? scalar_type::real : scalar_type::string;
}

nlohmann::json json_of(const tree& value, const rules& at) {
  if (value.kind == tree::kind_t::scalar) {
    return scalar_json(value, at);
  }
  const bool map = value.kind == tree::kind_t::map;
  auto out = map ? nlohmann::json::object() : nlohmann::json::array();
  for (std::size_t i = 0; i < value.items.size(); ++i) {
    const auto& item = value.items[i];
    const auto* rule = map ? rule_of_key(at, value.keys[i].text) : rule_of_items(at);
    auto child = json_of(item, rule == nullptr ? rules{} : applicable(*rule, item));
    if (map) {
      out[value.keys[i].text] = std::move(child);
    } else {
      out.push_back(std::move(child));
    }
  }
  return out;
}

void walk(const tree& root, const std::function<void(const place&)>& visit) {
  walk_in({}, schema_root(), root, visit);
}

std::string child_path(const std::string& parent, std::string_view key) {
  return parent.empty() ? std::string(key) : parent + "." + std::string(key);
}

std::string child_path(const std::string& parent, std::size_t index) {
  return parent + "[" + std::to_string(index) + "]";
}

} // namespace boyd::config
