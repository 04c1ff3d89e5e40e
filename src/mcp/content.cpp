#include "boyd/mcp/content.hpp"

#include "json.hpp"

#include <algorithm>

namespace boyd::mcp {

namespace {

/// Parts of one result that are looked at.
constexpr std::size_t most_parts = 10'000;

void add(std::string& text, const std::string& part) {
  if (!text.empty() && !text.ends_with('\n'))
    text += '\n';
  text += part;
}

/// "image image/png, 1234 bytes": Base64 has four characters for three bytes.
std::string bytes_words(const std::string& what, const json& part, const char* data) {
  const auto type = text_in(part, "mimeType");
  const auto encoded = text_in(part, data);
  const auto padding = std::ranges::count(
      encoded.substr(encoded.size() - std::min<std::size_t>(encoded.size(), 2)), '=');
  const auto size = encoded.size() / 4 * 3 - static_cast<std::size_t>(padding);
  return what + (type.empty() ? "" : " " + type) + ", " +
         std::to_string(encoded.size() < 4 ? 0 : size) + " bytes, not shown";
}

std::string resource_words(const json& r) {
  const auto uri = text_in(r, "uri");
  if (member(r, "text").is_string())
    return "[" + uri + "]\n" + text_in(r, "text");
  return "[" + uri + ": " + bytes_words("data", r, "blob") + "]";
}

std::string link_words(const json& r) {
  auto out = text_in(r, "uri");
  auto name = text_in(r, "title");
  if (name.empty())
    name = text_in(r, "name");
  if (!name.empty())
    out += "  " + name;
  if (const auto type = text_in(r, "mimeType"); !type.empty())
    out += "  (" + type + ")";
  if (const auto says = text_in(r, "description"); !says.empty())
    out += "  " + says;
  return out;
}

/// The first parts of a list in words; `none` when there are none.
result_words words_of_each(const json& list, std::string (*words)(const json&), const char* none) {
  result_words out;
  for (std::size_t i = 0; list.is_array() && i < std::min(list.size(), most_parts); ++i)
    add(out.text, words(list[i]));
  if (out.text.empty())
    out.text = none;
  return out;
}

} // namespace

result_words words_of_call(std::string_view result_json) {
  const auto all = parse(result_json);
  result_words out;
  out.is_error = member(all, "isError") == true;
  const auto& content = member(all, "content");
  bool has_text = false;
  for (std::size_t i = 0; content.is_array() && i < std::min(content.size(), most_parts); ++i) {
    const auto& part = content[i];
    const auto type = text_in(part, "type");
    if (type == "text") {
      add(out.text, text_in(part, "text"));
      has_text = true;
    } else if (type == "image" || type == "audio") {
      add(out.text, "[" + bytes_words(type, part, "data") + "]");
    } else if (type == "resource") {
      add(out.text, resource_words(member(part, "resource")));
      has_text = true;
    } else if (type == "resource_link") {
      add(out.text, "[resource " + link_words(part) + "]");
    } else {
      add(out.text, "[a part of unknown type " + type.substr(0, 100) + "]");
    }
  }
  if (content.is_array() && content.size() > most_parts)
    add(out.text, "[" + std::to_string(content.size() - most_parts) + " more parts]");
  if (const auto& structured = member(all, "structuredContent"); !has_text && !structured.is_null())
    add(out.text, dump(structured));
  if (out.text.empty())
    out.text = out.is_error ? "the tool failed without a message" : "(no content)";
  return out;
}

result_words words_of_list(std::string_view result_json) {
  const auto all = parse(result_json);
  auto out = words_of_each(member(all, "resources"), link_words, "(no resources)");
  if (const auto next = text_in(all, "nextCursor"); !next.empty())
    add(out.text, "[more resources: call again with this cursor: " + next + "]");
  return out;
}

result_words words_of_resource(std::string_view result_json) {
  const auto all = parse(result_json);
  return words_of_each(member(all, "contents"), resource_words, "(no content)");
}

} // namespace boyd::mcp
