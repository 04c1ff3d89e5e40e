#include "boyd/core/sha256.hpp"
#include "boyd/core/text.hpp"
#include "boyd/memory/document.hpp"

#include <algorithm>
#include <array>
#include <utility>

namespace boyd::memory {

namespace {

constexpr std::string_view separator = " — ";
/// What may stand between the names of sections.
constexpr std::array<std::string_view, 5> dashes{" — ", " – ", " - ", " / ", " > "};
constexpr std::string_view pointer = "… → research/";

/// The names of a section and those around it, however they are joined.
std::vector<std::string> names_of(std::string_view section) {
  std::vector<std::string> names(1);
  for (std::size_t i = 0; i < section.size();) {
    const auto dash = std::ranges::find_if(
        dashes, [&](std::string_view d) { return section.substr(i).starts_with(d); });
    if (dash == dashes.end()) {
      names.back() += section[i++];
      continue;
    }
    names.emplace_back();
    i += dash->size();
  }
  return names;
}

/// "learned patterns/build": for comparing.
std::string plain_section(std::string_view section) {
  std::string plain;
  for (const auto& name : names_of(section)) {
    plain += plain.empty() ? "" : "/";
    for (const char c : name)
      plain += c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  }
  return plain;
}

/// Positions of the entries of one section.
std::vector<std::size_t> entries_of(const std::vector<piece>& pieces, const std::string& section) {
  std::vector<std::size_t> at;
  for (std::size_t i = 0; i < pieces.size(); ++i)
    if (pieces[i].entry && pieces[i].section == section)
      at.push_back(i);
  return at;
}

/// The same entries, the oldest first.
std::vector<std::size_t> by_age(const std::vector<piece>& pieces,
                                const std::vector<std::size_t>& entries) {
  std::vector<std::string_view> texts;
  for (const auto i : entries)
    texts.emplace_back(pieces[i].text);
  std::vector<std::size_t> order;
  for (const auto place : places_by_age(texts))
    order.push_back(entries[place]);
  return order;
}

std::string day_of(utc_time t) {
  constexpr std::size_t characters = 10;
  return format_rfc3339(t).substr(0, characters);
}

/// A name that depends on the text alone: written again it is the same file.
std::string research_name(std::string_view words) {
  constexpr std::size_t name_characters = 20;
  constexpr std::size_t hash_digits = 8;
  std::string name;
  for (const char c : words.substr(0, name_characters)) {
    const bool plain = (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9');
    const bool upper = c >= 'A' && c <= 'Z';
    if (plain || upper)
      name += upper ? static_cast<char>(c - 'A' + 'a') : c;
    else if (!name.empty() && name.back() != '-')
      name += '-';
  }
  return name + (name.empty() || name.ends_with('-') ? "" : "-") +
         sha256_hex(words).substr(0, hash_digits) + ".md";
}

/// An entry that is too long keeps its beginning and a pointer to the whole.
void shorten(piece& p, std::size_t characters, memory_change& change) {
  const auto words = words_of_entry(p.text);
  if (count_characters(words) <= characters || words.find(pointer) != words.npos)
    return;
  const auto name = research_name(words);
  const auto bullet = p.text.substr(0, p.text.find(words.substr(0, words.find('\n'))));
  const auto line = first_line(words);
  const auto room = characters - std::min(characters, count_characters(pointer) + name.size());
  change.notes.push_back({name, "# " + p.section + "\n\n" + words + "\n"});
  p.text =
      bullet + std::string(trim(cut_characters(line, room))) + std::string(pointer) + name + "\n";
}

memory_change keep(std::vector<piece> pieces, const section_caps& caps) {
  memory_change change;
  std::vector<std::string> sections;
  for (const auto& p : pieces)
    if (p.entry && std::ranges::find(sections, p.section) == sections.end())
      sections.push_back(p.section);
  for (const auto& section : sections) {
    const auto cap = cap_of(section, caps);
    if (!cap)
      continue;
    for (auto entries = entries_of(pieces, section); entries.size() > cap->entries;
         entries = entries_of(pieces, section)) {
      const auto leaving = by_age(pieces, entries).front();
      change.archived.push_back({section, pieces[leaving].text});
      pieces.erase(pieces.begin() + static_cast<std::ptrdiff_t>(leaving));
    }
    for (const auto i : entries_of(pieces, section))
      shorten(pieces[i], cap->characters, change);
  }
  change.file = join_memory(pieces);
  return change;
}

/// Behind the last piece of a section that is not blank.
std::size_t end_of_section(const std::vector<piece>& pieces, std::size_t heading) {
  auto end = heading + 1;
  for (auto i = heading + 1; i < pieces.size() && !pieces[i].heading; ++i)
    if (!trim(pieces[i].text).empty())
      end = i + 1;
  return end;
}

void end_line(std::string& text) {
  if (!text.empty() && !text.ends_with('\n'))
    text += '\n';
}

/// The text as a list item; lines after the first are indented, so that they belong to it.
std::string entry_of(std::string_view text) {
  std::string entry = "- ";
  for (const char c : trim(text))
    entry += c == '\n' ? "\n  " : std::string(1, c);
  return entry + "\n";
}

std::size_t level_of(const piece& heading) {
  const auto text = trim(heading.text);
  return std::min(text.find_first_not_of('#'), text.size());
}

/// Behind all that stands in a section and in those below it, but for blank lines; 0: it is not
/// there.
std::size_t end_of_all(const std::vector<piece>& pieces, const std::string& path) {
  std::size_t end = 0;
  const auto name = plain_section(path);
  for (std::size_t i = 0; i < pieces.size(); ++i)
    if (const auto own = plain_section(pieces[i].section);
        !trim(pieces[i].text).empty() && (own == name || own.starts_with(name + "/")))
      end = i + 1;
  return end;
}

/// Makes the section and those around it, each below the one that it belongs to.
void add_section(std::vector<piece>& pieces, const std::string& section) {
  std::string path;
  std::size_t level = 2;
  auto end = pieces.size();
  for (const auto& name : names_of(section)) {
    path += (path.empty() ? "" : std::string(separator)) + name;
    const auto there = std::ranges::find_if(pieces, [&](const piece& p) {
      return p.heading && plain_section(p.section) == plain_section(path);
    });
    if (there != pieces.end()) {
      path = there->section;
      level = level_of(*there) + 1;
      end = end_of_all(pieces, path);
      continue;
    }
    if (end > 0)
      end_line(pieces[end - 1].text);
    pieces.insert(
        pieces.begin() + static_cast<std::ptrdiff_t>(end),
        {(end == 0 ? "" : "\n") + std::string(level, '#') + " " + name + "\n", false, true, path});
    ++end;
    ++level;
  }
}

} // namespace

std::optional<section_cap> cap_of(const std::string& section, const section_caps& caps) {
  for (auto name = plain_section(section); !name.empty();) {
    for (const auto& [key, cap] : caps)
      if (plain_section(key) == name)
        return cap;
    const auto slash = name.rfind('/');
    name.resize(slash == std::string::npos ? 0 : slash);
  }
  return std::nullopt;
}

void set_cap(section_caps& caps, const std::string& section, section_cap cap) {
  std::erase_if(caps, [name = plain_section(section)](const auto& known) {
    return plain_section(known.first) == name;
  });
  caps[section] = cap;
}

const section_caps& default_caps() {
  static const section_caps caps{{"Learning Interests — Tech", {5, 150}},
                                 {"Learning Interests — Beyond Tech", {5, 150}},
                                 {"My Thoughts", {10, 200}},
                                 {"Competitors", {6, 100}},
                                 {"Insights", {8, 150}},
                                 {"Learned Patterns", {5, 80}},
                                 {"Important Facts", {5, 80}},
                                 {"Important Decisions", {5, 80}}};
  return caps;
}

bool has_section(std::string_view file, const std::string& section) {
  const auto name = plain_section(section);
  return std::ranges::any_of(split_memory(file), [&](const piece& p) {
    return p.heading && plain_section(p.section) == name;
  });
}

bool has_entry(std::string_view file, const std::string& section, std::string_view text) {
  const auto name = plain_section(section);
  const auto words = words_of_entry(entry_of(text));
  const auto pointed = std::string(pointer) + research_name(words);
  return std::ranges::any_of(split_memory(file), [&](const piece& p) {
    if (!p.entry || plain_section(p.section) != name)
      return false;
    const auto there = words_of_entry(p.text);
    return there == words || there.ends_with(pointed);
  });
}

memory_change keep_caps(std::string_view file, const section_caps& caps, utc_time) {
  return keep(split_memory(file), caps);
}

memory_change append_entry(std::string_view file, const std::string& section, std::string_view text,
                           const section_caps& caps, utc_time) {
  auto pieces = split_memory(file);
  const auto same = [&](const piece& p) {
    return p.heading && plain_section(p.section) == plain_section(section);
  };
  if (std::ranges::none_of(pieces, same))
    add_section(pieces, section);
  const auto heading =
      static_cast<std::size_t>(std::ranges::find_if(pieces, same) - pieces.begin());
  const auto entries = entries_of(pieces, pieces[heading].section);
  std::vector<std::string_view> texts;
  for (const auto i : entries)
    texts.emplace_back(pieces[i].text);
  const auto at = grows_at_top(texts) ? entries.front() : end_of_section(pieces, heading);
  if (at > 0)
    end_line(pieces[at - 1].text);
  pieces.insert(pieces.begin() + static_cast<std::ptrdiff_t>(at),
                {entry_of(text), true, false, pieces[heading].section});
  return keep(std::move(pieces), caps);
}

std::string add_to_archive(std::string_view archive, const std::string& file_name,
                           const std::vector<moved_entry>& moved, utc_time now) {
  std::string out(archive);
  if (out.empty())
    out = "# Archive " + day_of(now).substr(0, 7) + "\n"; // NOLINT(readability-magic-numbers)
  for (const auto& m : moved) {
    auto entry = m.text;
    end_line(entry);
    const auto place = file_name + (m.section.empty() ? "" : std::string(separator) + m.section);
    // Moved before a crash, and not yet gone from its file.
    const bool there = std::ranges::any_of(split_memory(out), [&](const piece& p) {
      return p.entry && p.text == entry && p.section.ends_with(" " + place);
    });
    if (there)
      continue;
    end_line(out);
    out += "\n## " + day_of(now) + " " + place + "\n" + entry;
  }
  return out;
}

} // namespace boyd::memory
