#include "boyd/mcp/form.hpp"

#include "boyd/core/json_depth.hpp"
#include "boyd/tools/describe.hpp"
#include "json.hpp"

#include <algorithm>
#include <optional>
#include <string>
#include <vector>

namespace boyd::mcp {

namespace {

/// One of the values that a field may have.
struct choice {
  json value;
  std::string title;
};

/// Values alone (`enum`, with `enumNames` or without), or with titles (`oneOf`, `anyOf`).
std::optional<std::vector<choice>> choices_of(const json& field) {
  std::vector<choice> all;
  if (const auto& values = member(field, "enum"); values.is_array()) {
    const auto& names = member(field, "enumNames");
    for (std::size_t i = 0; i < values.size(); ++i)
      all.push_back({values[i], names.is_array() && i < names.size() && names[i].is_string()
                                    ? names[i].get<std::string>()
                                    : std::string()});
    return all;
  }
  for (const auto* name : {"oneOf", "anyOf"})
    if (const auto& values = member(field, name); values.is_array()) {
      for (const auto& one : values)
        all.push_back({member(one, "const"), text_in(one, "title")});
      return all;
    }
  return std::nullopt;
}

std::string words_of(const std::vector<choice>& choices) {
  std::string out;
  for (const auto& c : choices)
    out += (out.empty() ? "" : ", ") + dump(c.value) +
           (c.title.empty() ? std::string() : " (" + c.title + ")");
  return out;
}

std::string kind_of(const json& field) {
  if (const auto choices = choices_of(field))
    return "one of " + words_of(*choices);
  const auto kind = text_in(field, "type");
  if (kind == "array")
    if (const auto choices = choices_of(member(field, "items")))
      return "a list of values from " + words_of(*choices);
  return kind.empty() ? "any" : kind;
}

bool is_one_of(const std::vector<choice>& choices, const json& value) {
  return std::ranges::find(choices, value, &choice::value) != choices.end();
}

bool fits_list(const json& field, const json& value) {
  if (!value.is_array())
    return false;
  const auto choices = choices_of(member(field, "items"));
  return !choices ||
         std::ranges::all_of(value, [&](const json& one) { return is_one_of(*choices, one); });
}

bool fits(const json& field, const json& value) {
  const auto type = text_in(field, "type");
  if (const auto choices = choices_of(field))
    return is_one_of(*choices, value);
  if (type == "string")
    return value.is_string();
  if (type == "integer")
    return value.is_number_integer();
  if (type == "number")
    return value.is_number();
  if (type == "boolean")
    return value.is_boolean();
  if (type == "array")
    return fits_list(field, value);
  return !value.is_null();
}

bool is_required(const json& schema, const std::string& name) {
  const auto& required = member(schema, "required");
  return required.is_array() && std::ranges::find(required, json(name)) != required.end();
}

/// Words of the server, marked line for line: none of them can look like a word of this program.
std::string in_bars(std::string_view text) {
  const auto seen = tools::visible_text(text);
  std::string out = "| ";
  for (const char c : seen) {
    out += c;
    if (c == '\n')
      out += "| ";
  }
  return out + "\n";
}

} // namespace

std::string question_text(const std::string& server, const question& q) {
  std::string out =
      "The tool server " + server + " asks (its own text is marked with |):\n" + in_bars(q.message);
  if (q.mode == "url")
    return out + "It asks you to open this address:\n" + in_bars(q.url) +
           "Approve to confirm that you have opened it, or will.\n";
  const auto schema = parse(q.schema_json);
  const auto& fields = member(schema, "properties");
  if (!fields.is_object() || fields.empty())
    return out + "There are no fields to fill in.\n";
  out += "Fields:\n";
  for (const auto& [name, field] : fields.items()) {
    std::string line =
        name + " (" + kind_of(field) + (is_required(schema, name) ? ", required" : "");
    if (const auto& standard = member(field, "default"); !standard.is_null())
      line += ", default: " + dump(standard);
    line += ")";
    if (const auto says = text_in(field, "description"); !says.empty())
      line += ": " + says;
    out += in_bars(line);
  }
  return out + "To answer, approve with --reason and the fields as a JSON object. Never enter a "
               "password or a key: the answer is recorded.\n";
}

result<std::string> form_content(std::string_view schema_json, std::string_view note) {
  const auto schema = parse(schema_json);
  json given = check_json_depth(note) ? parse(note) : json();
  if (!given.is_object())
    given = json::object();
  json out = json::object();
  const auto& fields = member(schema, "properties");
  if (fields.is_object())
    for (const auto& [name, field] : fields.items()) {
      const auto it = given.find(name);
      const auto& value = it != given.end() ? *it : member(field, "default");
      if (value.is_null()) {
        if (is_required(schema, name))
          return fail(errc::invalid_argument, "required field missing: " + name);
        continue;
      }
      if (!fits(field, value))
        return fail(errc::invalid_argument, "the field " + name + " must be " + kind_of(field));
      out[name] = value;
    }
  return dump(out);
}

} // namespace boyd::mcp
