#pragma once

#include "boyd/core/result.hpp"
#include "boyd/core/time.hpp"

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

/// What a kernel remembers, entry by entry: as it is imported, and as its files hold it
/// (docs/memory.md). Pure.
namespace boyd::memory {

/// Bytes of one entry's text, at most.
inline constexpr std::size_t most_entry_bytes = std::size_t{64} << 10;
/// Bytes of its key, source, author or section.
inline constexpr std::size_t most_name_bytes = 512;

/// One thing to remember.
struct memory_entry {
  std::string key; ///< given by whoever made it; empty: it is known by time, source and text
  std::string source;
  std::string author;
  std::string section;
  std::string text;
  utc_time time{};
  bool has_time = true; ///< `time` is the entry's own, not that of the file it stands in

  bool operator==(const memory_entry&) const = default;
};

/// Reads a line of an import file: a JSON object with `time` (RFC 3339) and `text`, and perhaps
/// `key`, `source`, `author` and `section`. Generous with bytes, as mend_json; other members are
/// passed over. Errors say what is wrong with the line, and what to do.
result<memory_entry> read_import_line(std::string_view line);

/// A line that read_import_line reads back, without a line break.
std::string write_import_line(const memory_entry& entry);

/// The id of an imported entry: of its key, else of time, source and text.
std::string id_of_import(const std::string& kernel_id, const memory_entry& entry);

/// An entry of a file, with its id.
struct filed_entry {
  std::string id;
  memory_entry entry;
};

/// Whether recall reads the file, named as seen from the kernel's home: MEMORY.md, SOUL.md,
/// archive/*.md, archive/*.jsonl, research/*.md, notes/*.md.
bool is_memory_file(std::string_view path);

/// Where a daily note (notes/2026-02-13.md) goes when it is no longer warm; nothing for any other
/// file. Its entries keep their ids there.
std::optional<std::string> archived_name(std::string_view note);

/// The entries of such a file. Entries that moved from a memory file to the archive keep their ids
/// and sources. `file_time` is the time of those that nothing dates. Lines that cannot be read are
/// passed over, and counted.
struct file_entries {
  std::vector<filed_entry> entries;
  std::size_t unreadable = 0;
};
file_entries entries_of_file(const std::string& kernel_id, const std::string& path,
                             std::string_view bytes, utc_time file_time);

} // namespace boyd::memory
