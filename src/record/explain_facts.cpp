#include "boyd/core/text.hpp"
#include "explain_internal.hpp"

#include <algorithm>
#include <utility>
#include <vector>

/// What the log of facts has of the run, as lists and as a picture.
namespace boyd::record::words {

namespace {

bool is_promotion(const stage_change& c) {
  return c.to == "skill_candidate" || c.to == "skill";
}

constexpr std::string_view candidate_prefix = "candidate_";

/// A candidate whose change of stage is told.
bool is_told(const execution& e, const evidence_line& promoted) {
  return promoted.to.starts_with(candidate_prefix) &&
         std::ranges::any_of(e.stage_changes, [&](const stage_change& c) {
           return c.id == promoted.from && is_promotion(c);
         });
}

/// The items that a prompt showed, those that were cited or used first.
std::vector<const context::snapshot_item*> shown_items(const execution& e) {
  auto all = items_by_use(e);
  std::erase_if(all, [](const auto* i) { return i->key.empty(); });
  return all;
}

std::string path_of(const execution& e, const std::string& id) {
  for (const auto* i : shown_items(e))
    if (i->id == id)
      return i->path;
  return id;
}

/// A label of Mermaid's in which no character means anything: letters, digits, blanks and what is
/// harmless stay, all else becomes the number of its code point. Never empty, which it does not
/// take.
std::string label(std::string_view text) {
  constexpr std::string_view harmless = " ._/,+=@-";
  std::string out = text.empty() ? " " : "";
  for (std::size_t i = 0; i < text.size();) {
    const auto lead = static_cast<unsigned char>(text[i]);
    constexpr unsigned one_byte = 0x80;
    if (lead < one_byte) {
      const char c = text[i++];
      const bool plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
                         (c >= '0' && c <= '9') || harmless.find(c) != harmless.npos;
      out += plain        ? std::string(1, c)
             : lead < ' ' ? std::string(" ")
                          : "#" + std::to_string(static_cast<unsigned>(lead)) + ";";
      continue;
    }
    // The text is sound UTF-8 by now.
    const std::size_t more = lead >= 0xF0U ? 3 : lead >= 0xE0U ? 2 : 1;
    std::uint32_t point = lead & (more == 3 ? 0x07U : more == 2 ? 0x0FU : 0x1FU);
    for (std::size_t k = 1; k <= more && i + k < text.size(); ++k)
      point = (point << 6U) | (static_cast<unsigned char>(text[i + k]) & 0x3FU);
    i += more + 1;
    out += "#" + std::to_string(point) + ";";
  }
  return out;
}

std::string node(const std::string& id, const std::string& open, std::string_view text,
                 const std::string& close) {
  return "  " + id + open + "\"" + label(sanitize_utf8(text)) + "\"" + close + "\n";
}

std::string picture(const execution& e) {
  std::string text = "```mermaid\ngraph TD\n";
  text += node("run", "[[", "run of " + e.agent_id, "]]");
  text += node("outcome", "([", std::string(name_of(fate_of(e))), "])");
  text += "  run -.->|resulted_in| outcome\n";
  int number = 0;
  for (const auto* i : shown_items(e)) {
    const auto id = "c" + std::to_string(++number);
    text += node(id, "[", i->key + " " + i->path, "]") + "  " + id + " -.->|used_in, " +
            use_of(e, i->id) + "| run\n";
  }
  number = 0;
  for (const auto& s : e.skills) {
    const auto id = "s" + std::to_string(++number);
    text += node(id, "(", s.name, ")") + "  run -.->|" +
            (s.state == "validated" ? "validated_by" : "named") + "| " + id + "\n";
  }
  number = 0;
  for (const auto& c : e.stage_changes)
    if (is_promotion(c)) {
      const auto id = "p" + std::to_string(++number);
      text += node(id, "{{", c.path + " as a skill", "}}") + "  run -.->|promoted_to| " + id + "\n";
    }
  return text + "```\n\n";
}

} // namespace

std::string place_of(const execution& e, const std::string& from, const std::string& type) {
  const auto it = std::ranges::find_if(e.evidence, [&](const evidence_line& l) {
    return l.from == from && l.type == type && !l.line.empty();
  });
  return it == e.evidence.end() ? std::string() : " (" + code(it->line) + ")";
}

std::string provenance(const execution& e, bool with_graph) {
  std::string text = "## Evidence & Provenance\n\nBoyd writes what it learns into an append-only "
                     "log of facts. The facts of this run have the id\n" +
                     code("exec_" + e.dispatch_id) + "; `boyd kg trace " + e.dispatch_id +
                     "` shows them with their lines.";
  const auto given = shown_items(e);
  text += given.empty() ? "\n\n"
                        : " *Contexts Used* lists the\ntexts that it was given; 'used' and 'cited' "
                          "say what became of them.\n\n";
  const auto list = [&](const char* what, const std::string& lines) {
    text += "**" + std::string(what) + ":**\n\n" + (lines.empty() ? "- (none)\n" : lines) + "\n";
  };
  std::string used;
  for (const auto* i : given)
    used += "- " + with_key(*i) + ", " + use_of(e, i->id) + ": " + code(i->id) +
            place_of(e, i->id, "used_in") + "\n";
  list("Contexts Used", used);
  std::string validated;
  for (const auto& s : e.skills)
    if (s.state == "validated")
      validated +=
          "- " + code(s.name) + place_of(e, "exec_" + e.dispatch_id, "validated_by") + "\n";
  list("Skills Validated", validated);
  std::string promoted;
  for (const auto& c : e.stage_changes)
    if (is_promotion(c))
      promoted += "- " + code(c.path) + ": " + c.from + " → " + c.to +
                  place_of(e, c.id, "promoted_to") + "\n";
  for (const auto& f : e.evidence)
    if (f.type == "promoted_to" && !is_told(e, f))
      promoted += "- " + code(path_of(e, f.from)) + ": made " +
                  (f.to.starts_with(candidate_prefix) ? "a candidate" : "the skill " + code(f.to)) +
                  " (" + code(f.line) + ")\n";
  list("Context → Skill Promotions", promoted);
  return text + (with_graph ? picture(e) : std::string());
}

} // namespace boyd::record::words
