#include "yaml.hpp"

#include <yaml-cpp/emitter.h>
#include <yaml-cpp/emittermanip.h>

#include <string_view>

namespace boyd::adapters {
namespace {

using config::tree;

bool is_alpha(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

bool is_digit(char c) {
  return c >= '0' && c <= '9';
}

/// "30s", "1MiB": digits, then a unit that makes no number in any base or exponent form.
bool is_quantity(std::string_view text) {
  const auto unit = text.find_first_not_of("0123456789");
  if (unit == 0 || unit == std::string_view::npos) {
    return false;
  }
  return text.substr(unit).find_first_not_of("msdhKMGiB") == std::string_view::npos;
}

/// Words without a meaning of their own in any YAML version; everything else is quoted.
bool is_bare_word(std::string_view text) {
  if (text.empty() || !is_alpha(text.front())) {
    return is_quantity(text);
  }
  std::string lower;
  for (const char c : text) {
    if (!is_alpha(c) && !is_digit(c) &&
        std::string_view("_-./").find(c) == std::string_view::npos) {
      return false;
    }
    lower += c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  }
  for (const auto* word : {"true", "false", "null", "yes", "no", "on", "off", "y", "n"}) {
    if (lower == word) {
      return false;
    }
  }
  return true;
}

/// Lines that a literal block gives back byte for byte.
bool is_block(std::string_view text) {
  if (text.size() < 2 || text.back() != '\n' || text[text.size() - 2] == '\n' ||
      text.front() == ' ' || text.front() == '\n') {
    return false;
  }
  for (const char c : text) {
    if ((c < ' ' && c != '\n') || c == '\x7f') {
      return false;
    }
  }
  return text.find(" \n") == std::string_view::npos;
}

void emit_text(YAML::Emitter& out, const std::string& text, bool key) {
  if (is_bare_word(text)) {
    out << text;
  } else if (!key && is_block(text)) {
    out << YAML::Literal << text.substr(0, text.size() - 1);
  } else {
    out << YAML::DoubleQuoted << text;
  }
}

void emit_node(YAML::Emitter& out, const tree& t) {
  switch (t.kind) {
  case tree::kind_t::scalar:
    if (t.plain && t.text.empty()) {
      out << YAML::Null;
    } else if (t.plain) {
      out << t.text;
    } else {
      emit_text(out, t.text, false);
    }
    return;
  case tree::kind_t::sequence:
    if (t.items.empty()) {
      out << YAML::Flow;
    }
    out << YAML::BeginSeq;
    for (const auto& item : t.items) {
      emit_node(out, item);
    }
    out << YAML::EndSeq;
    return;
  case tree::kind_t::map:
    if (t.items.empty()) {
      out << YAML::Flow;
    }
    out << YAML::BeginMap;
    for (std::size_t i = 0; i < t.items.size(); ++i) {
      out << YAML::Key;
      emit_text(out, t.keys[i].text, true);
      out << YAML::Value;
      emit_node(out, t.items[i]);
    }
    out << YAML::EndMap;
    return;
  }
}

} // namespace

std::string emit_yaml(const tree& t) {
  YAML::Emitter out;
  emit_node(out, t);
  return std::string(out.c_str(), out.size()) + "\n";
}

} // namespace boyd::adapters
