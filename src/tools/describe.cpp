#include "boyd/tools/describe.hpp"

#include "boyd/config/redact.hpp"
#include "boyd/core/sha256.hpp"
#include "boyd/tools/call.hpp"
#include "boyd/tools/definitions.hpp"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <utility>

namespace boyd::tools {

namespace {

using json = nlohmann::json;

/// First and last of each run of characters that nobody sees as what they are.
constexpr std::array<std::pair<std::uint32_t, std::uint32_t>, 13> unseen{{
    {0x7F, 0x9F},       // delete, and the second set of control characters
    {0xAD, 0xAD},       // soft hyphen
    {0x34F, 0x34F},     // grapheme joiner
    {0x61C, 0x61C},     // direction
    {0x115F, 0x1160},   // fillers
    {0x17B4, 0x17B5},   // vowels without a shape
    {0x180B, 0x180F},   // selectors
    {0x200B, 0x200F},   // blanks without width, joiners, directions
    {0x2028, 0x202E},   // separators, directions
    {0x2060, 0x206F},   // joiners, invisible signs, directions
    {0xFE00, 0xFE0F},   // selectors
    {0xFEFF, 0xFEFF},   // byte order mark
    {0xE0000, 0xE0FFF}, // tags, selectors
}};

constexpr std::uint32_t first_seen = 0x20;

bool is_unseen(std::uint32_t c) {
  if (c < first_seen)
    return c != '\n' && c != '\t';
  for (const auto& [first, last] : unseen)
    if (c >= first && c <= last)
      return true;
  return false;
}

/// A character and how many bytes it has; no bytes: `text` does not begin with one.
struct decoded {
  std::uint32_t value = 0;
  std::size_t bytes = 0;
};

decoded first_of(std::string_view text) {
  const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(text[i]); };
  const std::uint32_t lead = byte(0);
  if (lead < 0x80)
    return {lead, 1};
  const std::size_t size = lead >= 0xF0 && lead < 0xF5 ? 4 : lead >= 0xE0 ? 3 : 2;
  if (lead < 0xC2 || lead >= 0xF5 || text.size() < size)
    return {};
  std::uint32_t value = lead & (0xFFU >> (size + 1));
  for (std::size_t i = 1; i < size; ++i) {
    if ((byte(i) & 0xC0U) != 0x80U)
      return {};
    value = (value << 6U) | (byte(i) & 0x3FU);
  }
  constexpr std::array<std::uint32_t, 5> least{0, 0, 0x80, 0x800, 0x10000};
  const bool surrogate = value >= 0xD800 && value <= 0xDFFF;
  return value < least.at(size) || value > 0x10FFFF || surrogate ? decoded{} : decoded{value, size};
}

std::string escaped(const char* format, std::uint32_t value) {
  std::array<char, 16> text{};
  std::snprintf(text.data(), text.size(), format, static_cast<unsigned>(value));
  return text.data();
}

/// One line: a quoted text when it has several.
std::string quoted(const std::string& text) {
  return json(text).dump(-1, ' ', false, json::error_handler_t::replace);
}

std::string words_of(const read_file_call& c) {
  return "path: " + quoted(c.path) + "\nfrom line: " + std::to_string(c.offset) +
         "\nlines: " + std::to_string(c.limit) +
         (c.byte_offset > 0 ? "\nfrom byte: " + std::to_string(c.byte_offset) : "") + "\n";
}

std::string words_of(const write_file_call& c) {
  return "path: " + quoted(c.path) + "\ncontent: " + std::to_string(c.content.size()) +
         " bytes, sha256 " + sha256_hex(c.content) + "\n\n" + c.content;
}

std::string words_of(const list_dir_call& c) {
  return "path: " + quoted(c.path) + "\n";
}

std::string words_of(const search_text_call& c) {
  return "text: " + quoted(c.query) + "\npath: " + quoted(c.path) + "\nfiles: " + quoted(c.files) +
         (c.ignore_case ? "\nignoring case" : "") + "\n";
}

std::string words_of(const file_call& c) {
  return std::visit([](const auto& one) { return words_of(one); }, c);
}

std::string words_of(const remember_call& c) {
  return "section: " + quoted(c.section) + "\n\n" + c.text;
}

std::string words_of(const recall_call& c) {
  return "question: " + quoted(c.query) + "\ntokens: " + std::to_string(c.budget_tokens) + "\n";
}

std::string words_of(const read_skill_call& c) {
  return "skill: " + quoted(c.name) + "\n";
}

std::string words_of(const run_command_call& c) {
  std::string out =
      "directory: " + quoted(c.cwd) + "\nat most: " + std::to_string(c.timeout_seconds) + " s\n";
  if (c.argv.empty())
    return out + "shell (/bin/sh -c):\n\n" + c.command;
  return out + "program: " + json(c.argv).dump(-1, ' ', false, json::error_handler_t::replace) +
         "\n";
}

/// One word to a shell as to a person: nothing in it begins another command, or is replaced.
bool is_plain_word(std::string_view text) {
  return std::ranges::all_of(text, [](char c) {
    return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
           std::string_view("_-+/=.,:@%^#~").find(c) != std::string_view::npos;
  });
}

/// A block of a private key holds nothing else (config::redact_shapes), but a line of it may still
/// be the name of a program.
bool is_mere_secret(std::string_view tool, const config::hidden_part& part) {
  return part.known || is_plain_word(part.text) ||
         (tool != run_command_name && part.text.starts_with("-----BEGIN "));
}

std::string words_of(const std::vector<config::hidden_part>& hidden) {
  const bool one = hidden.size() == 1;
  std::string out =
      "NOT ALL OF THIS IS SHOWN: " + std::to_string(hidden.size()) +
      (one ? " part looks like a secret and is" : " parts look like secrets and are") +
      " shown as [redacted]\n";
  for (const auto& part : hidden)
    out += "  " + std::to_string(part.text.size()) + " bytes, " +
           // Its hash would help whoever guesses a short one.
           (part.known ? std::string("a secret of the node's configuration")
                       : "sha256 " + sha256_hex(part.text)) +
           "\n";
  return out + "\n";
}

} // namespace

std::string visible_text(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  while (!text.empty()) {
    const auto c = first_of(text);
    if (c.bytes == 0)
      out += escaped("\\x%02X", static_cast<unsigned char>(text.front()));
    else if (is_unseen(c.value))
      out += escaped(c.value < 0x80 ? "\\x%02X" : "\\u{%04X}", c.value);
    else
      out += text.substr(0, c.bytes);
    text.remove_prefix(c.bytes == 0 ? 1 : c.bytes);
  }
  return out;
}

std::string describe_call(std::string_view tool, std::string_view arguments_json) {
  std::string out = "tool: " + std::string(tool) + "\n";
  if (const auto call = read_call(tool, arguments_json))
    out += std::visit([](const auto& one) { return words_of(one); }, *call);
  else
    out += "arguments:\n\n" + std::string(arguments_json);
  return visible_text(out);
}

shown_call show_call(std::string_view tool, std::string_view arguments_json,
                     const std::vector<std::string>& secrets) {
  std::vector<config::hidden_part> hidden;
  auto text = config::redact_text(describe_call(tool, arguments_json), secrets, hidden);
  const auto odd = std::ranges::find_if_not(
      hidden, [&](const auto& part) { return is_mere_secret(tool, part); });
  if (odd != hidden.end())
    return {std::move(text), "a person could not review the whole request: a part of " +
                                 std::to_string(odd->text.size()) +
                                 " bytes looks like a secret, but may be something else; leave the "
                                 "secret out, or read it from a file or a variable"};
  return {hidden.empty() ? std::move(text) : words_of(hidden) + text, {}};
}

} // namespace boyd::tools
