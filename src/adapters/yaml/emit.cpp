#include "yaml.hpp"

#include <yaml-cpp/emitter.h>
#include <yaml-cpp/emittermanip.h>

#include <cctype>

namespace boyd::adapters {
namespace {

using config::tree;

/// Words without a meaning of their own in any YAML version; everything else is quoted.
bool is_bare_word(const std::string& text) {
  if (text.empty() || std::isalpha(static_cast<unsigned char>(text.front())) == 0) {
    return false;
  }
  for (const char c : text) {
    if (std::isalnum(static_cast<unsigned char>(c)) == 0 && c != '_' && c != '-' && c != '.' &&
        c != '/') {
      return false;
    }
  }
  for (const auto* word : {"true", "false", "null", "yes", "no", "on", "off", "y", "n"}) {
    std::string lower = text;
    for (auto& c : lower) {
      c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
    }
    if (lower == word) {
      return false;
    }
  }
  return true;
}

void emit_text(YAML::Emitter& out, const std::string& text) {
  if (is_bare_word(text)) {
    out << text;
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
      emit_text(out, t.text);
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
      emit_text(out, t.keys[i].text);
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
