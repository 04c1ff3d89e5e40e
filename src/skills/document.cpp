#include "boyd/skills/document.hpp"

#include "boyd/core/text.hpp"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <array>
#include <utility>

namespace boyd::skills {

namespace {

using config::tree;
using namespace std::string_view_literals;

/// Some editors begin a file with it.
constexpr auto byte_order_mark = "\xEF\xBB\xBF"sv;
constexpr std::array keys{"name"sv,          "description"sv,   "license"sv,
                          "compatibility"sv, "allowed-tools"sv, "metadata"sv};

bool is_small(char c) {
  return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9');
}

/// A text in quotes that YAML reads back.
std::string quoted(const std::string& text) {
  return nlohmann::json(text).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

/// The front matter without its marks, and what stands behind it.
struct halves {
  std::string_view front;
  std::string_view body;
};

std::optional<halves> halves_of(std::string_view text, std::vector<finding>& findings) {
  constexpr auto mark = "---"sv;
  if (text.starts_with(byte_order_mark))
    text.remove_prefix(byte_order_mark.size());
  const auto line_at = [&](std::size_t at) {
    const auto line = text.substr(at, text.find('\n', at) - at);
    return line.substr(0, line.find_last_not_of(" \t\r") + 1);
  };
  if (line_at(0) != mark) {
    findings.push_back({1, "no front matter: the file does not begin with a line ---",
                        "begin it with ---, name: …, description: … and a second ---"});
    return std::nullopt;
  }
  const auto begin = text.find('\n');
  auto at = begin == text.npos ? text.size() : begin + 1;
  const auto first = at;
  while (at < text.size()) {
    const auto end = std::min(text.find('\n', at), text.size());
    if (line_at(at) == mark)
      return halves{text.substr(first, at - first), text.substr(std::min(end + 1, text.size()))};
    at = end + 1;
  }
  findings.push_back({1, "the front matter has no end", "close it with a line ---"});
  return std::nullopt;
}

/// 0: there is no such key.
int line_of(const tree& front, std::string_view key) {
  for (const auto& k : front.keys)
    if (k.text == key)
      return k.at.line;
  return 0;
}

/// Reads the members; each trouble is a finding at its line.
class front_reader {
 public:
  front_reader(const tree& front, std::vector<finding>& findings)
      : front_(front), findings_(findings) {}

  document read() {
    document d;
    d.name = required("name");
    d.description = required("description");
    d.license = text("license");
    d.compatibility = text("compatibility");
    d.allowed_tools = tools();
    read_metadata(d);
    check_lengths(d);
    for (const auto& key : front_.keys)
      if (std::ranges::find(keys, key.text) == keys.end())
        tell(key.at.line, key.text + ": the Agent Skills format has no such key",
             "put it under metadata, or leave it: it is passed over", false);
    return d;
  }

 private:
  void tell(int line, std::string problem, std::string next, bool is_error = true) {
    findings_.push_back({std::max(line, 1), std::move(problem), std::move(next), is_error});
  }

  int line_of(std::string_view key) const { return skills::line_of(front_, key); }

  std::string text(std::string_view key) {
    const auto* value = front_.find(key);
    if (value == nullptr)
      return {};
    if (value->kind == tree::kind_t::scalar)
      return std::string(trim(value->text));
    tell(line_of(key), std::string(key) + " is no text", "write one text");
    return {};
  }

  std::string required(std::string_view key) {
    auto value = text(key);
    const auto* known = front_.find(key);
    if (value.empty() && (known == nullptr || known->kind == tree::kind_t::scalar))
      tell(line_of(key), std::string(key) + (known == nullptr ? " is missing" : " is empty"),
           key == "name" ? "name it as its folder: small letters, digits and hyphens"
                         : "say what the skill does and when it is to be used");
    return value;
  }

  /// A text with blanks, or a list, which some tools write.
  std::string tools() {
    const auto* value = front_.find("allowed-tools");
    if (value == nullptr || value->kind != tree::kind_t::sequence)
      return text("allowed-tools");
    std::string all;
    for (const auto& one : value->items)
      if (one.kind == tree::kind_t::scalar)
        all.append(all.empty() ? "" : " ").append(one.text);
    return all;
  }

  void read_metadata(document& d) {
    const auto* metadata = front_.find("metadata");
    if (metadata == nullptr)
      return;
    if (metadata->kind != tree::kind_t::map) {
      if (!metadata->text.empty() || metadata->kind == tree::kind_t::sequence)
        tell(line_of("metadata"), "metadata is no map", "write KEY: TEXT below it");
      return;
    }
    for (std::size_t i = 0; i < metadata->items.size(); ++i)
      if (metadata->items[i].kind == tree::kind_t::scalar)
        d.metadata[metadata->keys[i].text] = metadata->items[i].text;
  }

  void check_lengths(const document& d) {
    if (!d.name.empty() && !is_skill_name(d.name))
      tell(line_of("name"), "not a skill's name: " + std::string(cut_characters(d.name, 100)),
           "use small letters, digits and single hyphens between them, at most 64 characters");
    const auto check = [&](std::string_view key, const std::string& value, std::size_t most) {
      if (const auto n = count_characters(value); n > most)
        tell(line_of(key), std::string(key) + " has " + std::to_string(n) + " characters",
             "shorten it to " + std::to_string(most));
    };
    check("description", d.description, most_description_characters);
    check("compatibility", d.compatibility, most_compatibility_characters);
  }

  const tree& front_;
  std::vector<finding>& findings_;
};

bool has_error(const std::vector<finding>& findings) {
  return std::ranges::any_of(findings, &finding::is_error);
}

} // namespace

bool is_skill_name(std::string_view name) noexcept {
  if (name.empty() || name.size() > most_name_characters || name.front() == '-' ||
      name.back() == '-' || name.find("--") != name.npos)
    return false;
  return std::ranges::all_of(name, [](char c) { return is_small(c) || c == '-'; });
}

std::string name_of_path(std::string_view path) {
  auto last = path.substr(path.rfind('/') + 1);
  if (const auto dot = last.rfind('.'); dot != last.npos && dot > 0)
    last = last.substr(0, dot);
  std::string name;
  for (const char c : last) {
    const auto small = c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
    if (is_small(small))
      name += small;
    else if (!name.empty() && name.back() != '-')
      name += '-';
    if (name.size() == most_name_characters)
      break;
  }
  while (!name.empty() && name.back() == '-')
    name.pop_back();
  return name.empty() ? "skill" : name;
}

parsed_document parse_document(std::string_view text, const config::tree_parser& yaml,
                               std::string_view folder) {
  parsed_document out;
  if (text.size() > most_document_bytes) {
    out.findings.push_back({1, "the file has " + std::to_string(text.size()) + " bytes",
                            "shorten it to " + std::to_string(most_document_bytes) +
                                " bytes; what is long goes into files beside it"});
    return out;
  }
  const auto parts = halves_of(text, out.findings);
  if (!parts)
    return out;
  // The line of the mark before it is empty here, so that lines are those of the file.
  const auto front = yaml("SKILL.md", "\n" + std::string(parts->front));
  for (const auto& f : front.findings)
    out.findings.push_back({std::max(f.line, 2), f.problem,
                            f.expected.empty() || f.expected == "YAML"
                                ? "put texts with a colon, or with a sign at their begin, in quotes"
                                : f.expected});
  if (!front.value || has_error(out.findings))
    return out;
  if (front.value->kind != tree::kind_t::map) {
    out.findings.push_back({2, "the front matter is no map", "write name: … and description: …"});
    return out;
  }
  auto d = front_reader(*front.value, out.findings).read();
  if (!folder.empty() && d.name != folder && is_skill_name(d.name))
    out.findings.push_back(
        {std::max(line_of(*front.value, "name"), 2),
         "the skill is called " + d.name + " and stands in a folder " + std::string(folder),
         "give both the same name"});
  if (trim(parts->body).empty())
    out.findings.push_back(
        {2, "there is nothing behind the front matter", "write what to do", false});
  std::ranges::stable_sort(out.findings, {}, &finding::line);
  if (has_error(out.findings))
    return out;
  d.body = parts->body;
  out.value = std::move(d);
  return out;
}

std::string render_document(const document& d) {
  std::string out = "---\nname: " + d.name + "\ndescription: " + quoted(d.description) + "\n";
  const auto add = [&](const char* key, const std::string& value) {
    if (!value.empty())
      out += std::string(key) + ": " + quoted(value) + "\n";
  };
  add("license", d.license);
  add("compatibility", d.compatibility);
  add("allowed-tools", d.allowed_tools);
  if (!d.metadata.empty())
    out += "metadata:\n";
  for (const auto& [key, value] : d.metadata)
    out += "  " + quoted(key) + ": " + quoted(value) + "\n";
  out += "---\n";
  if (!d.body.starts_with('\n'))
    out += '\n';
  out += d.body;
  if (!out.ends_with('\n'))
    out += '\n';
  return out;
}

std::string to_text(const finding& f) {
  return "line " + std::to_string(f.line) + ": " + f.problem +
         (f.next.empty() ? std::string() : "; " + f.next);
}

} // namespace boyd::skills
