#pragma once

#include "boyd/config/configuration.hpp"
#include "boyd/context/wanted.hpp"
#include "boyd/core/cycle.hpp"
#include "boyd/memory/entry.hpp"
#include "boyd/state/memory_files.hpp"
#include "boyd/state/reducer.hpp"
#include "messages/message.hpp"

#include <map>
#include <memory>
#include <string>
#include <variant>
#include <vector>

namespace boyd {

/// Makes the kernel's home and repository when missing and seeds STATE.md (never overwrites).
struct init_kernel_home {
  std::string kernel_id;
  /// This node has ended cycles of it: a home that is missing is a loss, which a new, empty one
  /// would hide; it is refused.
  bool has_run = false;
};

/// STATE.md as it stands; seeds it when it is missing in an existing kernel home.
struct read_state {
  std::string kernel_id;
};

/// The named files of the kernel home; missing ones are left out of the reply, and one that cannot
/// be read (too large, no regular file, no permission) does not keep the others from being read.
struct read_kernel_files {
  std::string kernel_id;
  std::vector<std::string> names;
};

/// Renders the runtime block from rows into STATE.md.
struct write_runtime_block {
  std::string kernel_id;
  utc_time updated_at{};
  std::vector<cycle_record> history; ///< newest first; the first is the latest; all are rendered
};

/// The same, and merges outcomes into `## recent_actions` (the state reducer), in one write. The
/// cycle's commits must follow at once: the file's name is durable with them (docs/adr/0012).
struct render_cycle {
  write_runtime_block block;
  std::vector<state::action_line> outcomes;
  std::size_t keep = limits::recent_actions; ///< the reducer's lines that stay
};

/// Writes whole files of the kernel home (INIT.md, SYSTEM_PROMPT.md).
struct write_kernel_files {
  std::string kernel_id;
  std::map<std::string, std::string> files;
};

/// Writes whole files that are derived from what the node knows (the bank) and that the cycle's
/// commits, which must follow, take with them: no snapshot goes first. Equal ones are left alone.
struct write_derived_files {
  std::string kernel_id;
  std::map<std::string, std::string> files;
};

/// Writes the SKILL.md of a skill that a person is about to approve, and commits it (with whatever
/// else differs from HEAD): each version is found in the history. One that is there already is
/// committed.
struct write_skill {
  std::string kernel_id;
  std::string file; ///< below the kernel's home
  std::string text;
  std::string subject; ///< of the commit
};

/// Adds an entry to a section of the kernel's memory (state::memory_files::append).
struct append_memory {
  std::string kernel_id;
  std::string file; ///< "SOUL.md", "MEMORY.md", or empty: the section's
  std::string section;
  std::string text;
};

/// Adds dated entries to the kernel's archive, but for those that are there already.
struct import_memory {
  std::string kernel_id;
  std::vector<memory::memory_entry> entries;
};

/// Brings SOUL.md and MEMORY.md under their caps, or says what would move.
struct compact_memory {
  std::string kernel_id;
  bool dry_run = false;
};

/// Changes the kernel's buffer of references (context/buffer.json) in one step; what is refused
/// changes nothing (context::change).
struct change_buffer {
  std::string kernel_id;
  context::buffer_change what;
};

struct state_request : message {
  std::variant<init_kernel_home, read_state, read_kernel_files, render_cycle, write_runtime_block,
               write_kernel_files, write_derived_files, write_skill, append_memory, import_memory,
               compact_memory, change_buffer>
      what;
  request_end until = request_end::max();
};

/// `text` for read_state, `files` for read_kernel_files.
struct state_reply {
  std::string text;
  std::map<std::string, std::string> files;
  std::map<std::string, error> unreadable{}; ///< of read_kernel_files, by name
  std::vector<state::memory_edit> edits{};   ///< of append_memory and compact_memory
  state::memory_import imported{};           ///< of import_memory
  context::buffer_outcome buffer{};          ///< of change_buffer
};

} // namespace boyd
