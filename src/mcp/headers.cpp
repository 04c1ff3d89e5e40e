#include "boyd/mcp/headers.hpp"

#include "json.hpp"

#include <algorithm>
#include <array>
#include <cstdint>
#include <optional>
#include <set>

namespace boyd::mcp {

namespace {

constexpr std::string_view mark = "x-mcp-header";
constexpr std::string_view encoded_begin = "=?base64?";
constexpr std::string_view encoded_end = "?=";
/// Marks in one schema; more are against good sense.
constexpr std::size_t most_marks = 64;
constexpr std::int64_t safe_integer = 9007199254740991;

std::string base64(std::string_view bytes) {
  constexpr std::string_view digits =
      "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  constexpr std::uint32_t six_bits = 63;
  std::string out;
  for (std::size_t i = 0; i < bytes.size(); i += 3) {
    std::uint32_t group = 0;
    for (std::size_t j = 0; j < 3; ++j)
      group = group << 8 | (i + j < bytes.size() ? static_cast<unsigned char>(bytes[i + j]) : 0U);
    for (std::size_t j = 0; j < 4; ++j)
      out += i + j > bytes.size() ? '=' : digits[group >> (18 - 6 * j) & six_bits];
  }
  return out;
}

bool is_token(std::string_view name) {
  constexpr std::string_view others = "!#$%&'*+-.^_`|~";
  return !name.empty() && std::ranges::all_of(name, [&](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
           others.find(c) != std::string_view::npos;
  });
}

std::string lower_case(std::string text) {
  std::ranges::transform(text, text.begin(), [](char c) {
    return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  });
  return text;
}

/// Looks through a schema: marks count below chains of `properties` alone, and are wrong elsewhere.
class mark_reader {
 public:
  /// `on_chain`: `at` is reached by `properties` alone.
  void visit(const json& at, const std::vector<std::string>& path, bool on_chain) {
    if (!problem.empty())
      return;
    if (at.is_array())
      for (const auto& item : at)
        visit(item, path, false);
    if (!at.is_object())
      return;
    if (const auto here = at.find(mark); here != at.end())
      take(*here, at, path, on_chain);
    for (const auto& [key, value] : at.items()) {
      if (key == "properties" && on_chain && value.is_object()) {
        for (const auto& [name, schema] : value.items()) {
          auto below = path;
          below.push_back(name);
          visit(schema, below, true);
        }
      } else if (!is_data(key)) {
        visit(value, path, false);
      }
    }
  }

  std::string problem;
  std::vector<param_header> found;

 private:
  /// Words whose values are no schemas.
  static bool is_data(std::string_view key) {
    constexpr std::array<std::string_view, 5> words{"default", "const", "enum", "examples",
                                                    "required"};
    return std::ranges::find(words, key) != words.end();
  }

  void take(const json& name, const json& schema, const std::vector<std::string>& path,
            bool on_chain) {
    const auto type = text_in(schema, "type");
    if (!name.is_string() || !is_token(name.get<std::string>()))
      problem = "an x-mcp-header that is not a header name";
    else if (!on_chain || path.empty())
      problem = "an x-mcp-header outside of plain properties";
    else if (type != "string" && type != "integer" && type != "boolean")
      problem = "an x-mcp-header on a parameter that is not a string, integer or boolean";
    else if (!names_.insert(lower_case(name.get<std::string>())).second)
      problem = "two x-mcp-headers with the same name";
    else if (found.size() >= most_marks)
      problem = "too many x-mcp-headers";
    else
      found.push_back({path, name.get<std::string>()});
  }

  std::set<std::string> names_;
};

std::optional<std::string> text_of(const json& value) {
  if (value.is_string())
    return value.get<std::string>();
  if (value.is_boolean())
    return value.get<bool>() ? "true" : "false";
  if (value.is_number_integer())
    return std::to_string(value.get<std::int64_t>());
  if (value.is_number_float()) {
    const auto n = value.get<double>();
    if (n >= -static_cast<double>(safe_integer) && n <= static_cast<double>(safe_integer) &&
        n == static_cast<double>(static_cast<std::int64_t>(n)))
      return std::to_string(static_cast<std::int64_t>(n));
  }
  return std::nullopt;
}

} // namespace

std::string header_value(std::string_view text) {
  const bool plain =
      std::ranges::all_of(text, [](char c) { return (c >= ' ' && c <= '~') || c == '\t'; });
  const auto is_blank = [](char c) { return c == ' ' || c == '\t'; };
  const bool padded = !text.empty() && (is_blank(text.front()) || is_blank(text.back()));
  const bool as_encoded = text.starts_with(encoded_begin) && text.ends_with(encoded_end);
  if (plain && !padded && !as_encoded)
    return std::string(text);
  return std::string(encoded_begin) + base64(text) + std::string(encoded_end);
}

result<std::vector<param_header>> read_param_headers(std::string_view schema_json) {
  mark_reader reader;
  reader.visit(parse(schema_json), {}, true);
  if (!reader.problem.empty())
    return fail(errc::refused, reader.problem);
  return std::move(reader.found);
}

std::vector<std::pair<std::string, std::string>>
param_headers_of(const std::vector<param_header>& marks, std::string_view arguments_json) {
  std::vector<std::pair<std::string, std::string>> out;
  if (marks.empty() || arguments_json.empty())
    return out;
  const auto arguments = parse(arguments_json);
  for (const auto& m : marks) {
    const json* at = &arguments;
    for (const auto& name : m.path)
      at = &member(*at, name.c_str());
    if (auto text = text_of(*at))
      out.emplace_back("Mcp-Param-" + m.name, header_value(*text));
  }
  return out;
}

} // namespace boyd::mcp
