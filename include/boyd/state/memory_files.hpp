#pragma once

#include "boyd/core/result.hpp"
#include "boyd/core/time.hpp"
#include "boyd/memory/document.hpp"
#include "boyd/memory/entry.hpp"
#include "boyd/ports/file_system.hpp"
#include "boyd/state/versioned_store.hpp"

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <unordered_set>
#include <vector>

namespace boyd::state {

struct memory_options {
  std::string kernel_id;
  memory::section_caps caps;
  std::function<std::string(std::string text)> filter; ///< what may stand in a file; empty: all
};

/// What an append or a compaction has done, or would do.
struct memory_edit {
  std::string file;
  std::string section;            ///< of an append, as the file has it
  bool changed = false;           ///< false: it stood there already, or nothing was over a cap
  std::size_t archived = 0;       ///< entries that left the file
  std::vector<std::string> notes; ///< long versions, below research/
};

struct memory_import {
  std::size_t imported = 0;
  std::size_t skipped = 0; ///< they are there already
};

/// The memory of one kernel in its home (docs/memory.md): SOUL.md, MEMORY.md, archive/, research/.
/// Nothing is ever deleted: what leaves a file is durable in the archive before, so that a crash in
/// between leaves it in both, and the next try changes nothing more. Blocking; one thread; both
/// references must outlive it.
class memory_files {
 public:
  memory_files(versioned_store& store, file_system& files, memory_options options);

  /// Adds an entry to a section; of `file` "SOUL.md" or "MEMORY.md", or empty: of the file that has
  /// the section, else of the one that it belongs to. What is then over a cap moves to the archive.
  /// An entry that stands in the section already is not added again. Durable when it answers.
  result<memory_edit> append(const std::string& file, const std::string& section,
                             std::string_view text, utc_time now);

  /// Brings a file under its caps; with `dry_run` nothing is written.
  result<memory_edit> compact(const std::string& file, bool dry_run, utc_time now);

  /// Moves daily notes (notes/YYYY-MM-DD.md) of days before the last `warm` ones to the archive,
  /// whole, a few at a time; durable there before they leave. Returns how many; with `dry_run` how
  /// many would be moved, and nothing is written.
  result<std::size_t> rotate_notes(int warm, bool dry_run, utc_time now);

  /// What a cycle's record moves: both files under their caps, and the notes before the last `warm`
  /// days. In a commit of its own (docs/memory.md), with what others have written in one before it,
  /// so that `git show` has the moves and nothing else. No commit when nothing is moved. Every step
  /// that fails leaves the others to be tried; the first error is returned.
  result<void> keep_caps(int warm, utc_time now);

  /// Adds entries to archive/YYYY-MM.jsonl, by the month of their times, but for those that are
  /// there already. Durable when it answers; after an error some of them may be there, and
  /// importing again adds the others.
  result<memory_import> add_imported(const std::vector<memory::memory_entry>& entries);

 private:
  using change_function = std::function<memory::memory_change(std::string_view current)>;

  result<memory_edit> edit(const std::string& file, const change_function& change, utc_time now);
  result<void> keep_leaving(const std::string& file, const memory::memory_change& change,
                            utc_time now);
  result<std::string> current(const std::string& file);
  result<std::string> file_of(const std::string& section);
  result<void> check_folder(const std::string& name);
  /// What a cycle's record moves, or would move.
  struct moves {
    std::size_t entries = 0;
    std::size_t notes = 0;  ///< daily ones, and long versions of entries
    result<void> outcome{}; ///< the first error
  };
  moves move_due(int warm, bool dry_run, utc_time now);
  result<void> move_note(const std::string& note, const std::string& target);
  result<void> learn_imported();
  std::string filtered(std::string_view text) const;

  versioned_store& store_;
  file_system& files_;
  memory_options options_;
  /// Ids of all imported entries, and the files that they were read from, as these were then.
  std::unordered_set<std::string> imported_;
  std::map<std::string, file_info> read_;
};

} // namespace boyd::state
