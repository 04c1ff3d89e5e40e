#pragma once

#include "boyd/core/time.hpp"

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

/// SOUL.md and MEMORY.md as Boyd reads and keeps them (docs/memory.md). Pure.
namespace boyd::memory {

/// A piece of a memory file: an entry, or what stands between entries.
struct piece {
  std::string text;   ///< with its line breaks; all pieces together are the file, byte for byte
  bool entry = false; ///< a list item with its continuation lines
  bool heading = false;
  std::string section; ///< headings below the title, "Learned Patterns — Build"; empty: none

  bool operator==(const piece&) const = default;
};

/// Splits a file into pieces. Any text can be split; list items in code fences are no entries.
std::vector<piece> split_memory(std::string_view file);
std::string join_memory(const std::vector<piece>& pieces);

/// An entry without its bullet and line breaks at the end.
std::string words_of_entry(std::string_view entry);

/// The date that an entry begins with, "2026-02-13".
std::optional<std::string> date_of_entry(std::string_view entry);

/// The entries of one section have dates that fall from the first to the last.
bool grows_at_top(const std::vector<std::string_view>& entries);

/// The places of the entries of one section, the oldest first: by their dates where all have one,
/// else the older the further they stand from the end at which the section grows.
std::vector<std::size_t> places_by_age(const std::vector<std::string_view>& entries);

/// How much a section may hold.
struct section_cap {
  std::size_t entries = 0;
  std::size_t characters = 0; ///< of one entry

  bool operator==(const section_cap&) const = default;
};

/// By section; one without a cap of its own has that of the section around it. Letters' case and
/// the kind of dash do not matter.
using section_caps = std::map<std::string, section_cap>;

/// The cap of a section; nothing: it has none.
std::optional<section_cap> cap_of(const std::string& section, const section_caps& caps);

/// Puts a cap in the place of the one that the section has.
void set_cap(section_caps& caps, const std::string& section, section_cap cap);

/// docs/memory.md's.
const section_caps& default_caps();

/// What leaves a memory file. To be written before the file itself, so that a crash in between
/// leaves it in both; writing it again changes nothing.
struct moved_entry {
  std::string section;
  std::string text; ///< the entry, whole
};

/// The long version of an entry.
struct research_note {
  std::string name; ///< below research/; depends on the text alone
  std::string text;
};

struct memory_change {
  std::string file; ///< the file as it is to be
  std::vector<moved_entry> archived;
  std::vector<research_note> notes;
};

/// Whether the file has this section; letters' case and the kind of dash do not matter.
bool has_section(std::string_view file, const std::string& section);

/// Whether the section has this entry, word for word, or the short form that points to its whole
/// text.
bool has_entry(std::string_view file, const std::string& section, std::string_view text);

/// Adds an entry to a section, which is made when it is not there: at the top of a section whose
/// dates fall, else at the end. Then as `keep_caps`.
memory_change append_entry(std::string_view file, const std::string& section, std::string_view text,
                           const section_caps& caps, utc_time now);

/// Brings every section under its cap: the oldest entries leave it, an entry that is too long keeps
/// a short form that points to its whole text. Entries with dates are as old as these say; others
/// are the older the further they stand from the end at which their section grows.
memory_change keep_caps(std::string_view file, const section_caps& caps, utc_time now);

/// An archive file with these entries added, each once.
std::string add_to_archive(std::string_view archive, const std::string& file_name,
                           const std::vector<moved_entry>& moved, utc_time now);

/// An entry as a program asks for it.
struct remembered_line {
  std::string section;
  std::string text;

  bool operator==(const remembered_line&) const = default;
};

/// Reads "[Section] text"; nothing when it is none.
std::optional<remembered_line> read_remembered(std::string_view line);

/// The text of {MEMORY}: of each file the sections of the core identity, always, then the newest
/// entries of each section in turn as far as the budget goes; one line says what was left out.
std::string memory_for_prompt(const std::vector<std::string>& files, std::int64_t budget_tokens);

} // namespace boyd::memory
