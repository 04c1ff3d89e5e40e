#include "boyd/graph/picture.hpp"

#include "../core/json_values.hpp"
#include "boyd/core/text.hpp"

#include <nlohmann/json.hpp>

#include <cstdio>
#include <map>

namespace boyd::graph {

namespace {

using json = nlohmann::ordered_json;

constexpr std::size_t longest_label = 80; // characters

/// One line, whole characters, no longer than a picture bears.
std::string plain(const std::string& label) {
  std::string text;
  for (const char c : sanitize_utf8(label))
    text += static_cast<unsigned char>(c) < ' ' || c == '\x7f' ? ' ' : c;
  const auto cut = cut_characters(text, longest_label);
  return std::string(cut) + (cut.size() < text.size() ? "…" : "");
}

/// "0.72", the same in every locale.
std::string score_text(double score) {
  constexpr double hundred = 100;
  const auto hundredths = static_cast<long>(score * hundred + 0.5);
  const auto rest = std::to_string(hundredths % 100);
  return std::to_string(hundredths / 100) + "." + (rest.size() < 2 ? "0" : "") + rest;
}

std::string labelled(const picture_node& n) {
  return plain(n.label) + (n.score > 0 ? " (" + score_text(n.score) + ")" : std::string());
}

std::string edge_label(const picture_edge& e) {
  return plain(e.type) + (e.weight > 1 ? " x" + std::to_string(e.weight) : std::string());
}

/// Names that both languages take whatever an id holds.
std::map<std::string, std::string> names_of(const picture& p) {
  std::map<std::string, std::string> names;
  for (const auto& n : p.nodes)
    names.try_emplace(n.id, "n" + std::to_string(names.size() + 1));
  return names;
}

/// Mermaid reads entity codes inside of quotes; everything that is not a plain character is one. It
/// takes no quotes with nothing in them.
std::string mermaid_text(const std::string& label) {
  std::string out = label.empty() ? " " : "";
  for (const char c : label) {
    const bool is_plain = (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') ||
                          (c >= 'A' && c <= 'Z') || c == ' ' || c == '.' || c == '/' || c == '-' ||
                          c == '_' || c == ',' || static_cast<unsigned char>(c) >= 0x80;
    out += is_plain ? std::string(1, c)
                    : "#" + std::to_string(static_cast<int>(static_cast<unsigned char>(c))) + ";";
  }
  return out;
}

std::string dot_text(const std::string& label) {
  std::string out;
  for (const char c : label) {
    if (c == '"' || c == '\\')
      out += '\\';
    out += c;
  }
  return out;
}

std::string_view shape_of(std::string_view id) {
  if (id.starts_with("ctx_"))
    return "box";
  if (id.starts_with("decision_"))
    return "diamond";
  return id.starts_with("skill_") ? "ellipse" : "plaintext";
}

} // namespace

std::string to_json(const picture& p) {
  json nodes = json::array();
  for (const auto& n : p.nodes)
    nodes.push_back({{"id", n.id}, {"label", n.label}, {"score", n.score}});
  json edges = json::array();
  for (const auto& e : p.edges)
    edges.push_back({{"from", e.from}, {"to", e.to}, {"type", e.type}, {"weight", e.weight}});
  return json{{"nodes", std::move(nodes)}, {"edges", std::move(edges)}, {"cut", p.cut}}.dump(
      -1, ' ', false, json::error_handler_t::replace);
}

result<picture> read_picture(std::string_view text) {
  const auto j = json::parse(text, nullptr, false);
  if (!j.is_object() || !j.contains("nodes") || !j.contains("edges") || !j["nodes"].is_array() ||
      !j["edges"].is_array())
    return fail(errc::parse_error, "not a picture of the graph");
  picture p;
  for (const auto& n : j["nodes"])
    p.nodes.push_back({text_in(n, "id"), text_in(n, "label"), share_in(n, "score")});
  for (const auto& e : j["edges"])
    p.edges.push_back({text_in(e, "from"), text_in(e, "to"), text_in(e, "type"),
                       e.contains("weight") ? number_in(e, "weight") : 1});
  p.cut = flag_in(j, "cut");
  return p;
}

std::string to_mermaid(const picture& p) {
  const auto names = names_of(p);
  std::string out = "graph TD\n";
  for (const auto& n : p.nodes) {
    const auto label = "\"" + mermaid_text(labelled(n)) + "\"";
    const bool is_skill = n.id.starts_with("skill_");
    const bool is_decision = n.id.starts_with("decision_");
    out += "  " + names.at(n.id) +
           (is_skill      ? "(["
            : is_decision ? "{"
                          : "[") +
           label +
           (is_skill      ? "])"
            : is_decision ? "}"
                          : "]") +
           "\n";
  }
  for (const auto& e : p.edges) {
    const auto* arrow = e.type == "derived_from" ? "-->" : e.type == "supports" ? "==>" : "-.->";
    out += "  " + names.at(e.from) + " " + arrow + "|\"" + mermaid_text(edge_label(e)) + "\"| " +
           names.at(e.to) + "\n";
  }
  return out + (p.cut ? "%% Not all facts are shown.\n" : "");
}

std::string to_dot(const picture& p) {
  const auto names = names_of(p);
  std::string out = "digraph knowledge {\n  rankdir=LR;\n";
  for (const auto& n : p.nodes)
    out += "  " + names.at(n.id) + " [shape=" + std::string(shape_of(n.id)) + ", label=\"" +
           dot_text(labelled(n)) + "\"];\n";
  for (const auto& e : p.edges)
    out += "  " + names.at(e.from) + " -> " + names.at(e.to) + " [label=\"" +
           dot_text(edge_label(e)) + "\"];\n";
  return out + (p.cut ? "  // Not all facts are shown.\n}\n" : "}\n");
}

std::string to_text(const picture& p) {
  std::string out = "[Nodes]\n";
  for (const auto& n : p.nodes)
    out += plain(n.id) + (n.label == n.id ? std::string() : "  " + plain(n.label)) +
           (n.score > 0 ? "  " + score_text(n.score) : std::string()) + "\n";
  out += "\n[Edges]\n";
  for (const auto& e : p.edges)
    out += plain(e.from) + " -> " + plain(e.to) + "  " + edge_label(e) + "\n";
  if (p.cut)
    out += "\nNot all facts are shown.\n";
  return out;
}

} // namespace boyd::graph
