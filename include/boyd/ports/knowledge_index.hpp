#pragma once

#include "boyd/core/result.hpp"
#include "boyd/core/time.hpp"

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace boyd {

/// One entry of a kernel's memory, with its words found.
struct memory_row {
  std::string id;
  std::string file; ///< that holds it, relative to the kernel's home
  std::string key;
  std::string source;
  std::string author;
  std::string section;
  std::string text;
  std::string terms; ///< as memory::recall_document
  utc_time time{};
  /// The entry itself says its time; else it is a file's, and stays as it was first seen.
  bool has_time = false;
  std::int64_t cost = 0; ///< tokens, as a prompt shows it

  bool operator==(const memory_row&) const = default;
};

/// A file as it was when its entries were taken.
struct memory_file {
  std::string path; ///< relative to the kernel's home
  std::uint64_t size = 0;
  std::uint64_t inode = 0;
  utc_time modified{};
  utc_time read_at{};
  std::string hash;             ///< SHA-256 of its bytes
  std::uint64_t unreadable = 0; ///< lines of it that could not be read

  bool operator==(const memory_file&) const = default;
};

/// What the log of facts teaches, in parts with keys of their own.
enum class index_area : std::uint8_t {
  position,   ///< how far the log has been read
  items,      ///< of contexts, by id
  open_runs,  ///< what runs used whose outcome has not been told
  questions,  ///< that entries of memory have answered well
  skills,     ///< by id
  candidates, ///< for skills, by id
  held,       ///< facts of a decision whose others have not come yet, by its id
  promotions, ///< what a context became last, by its id
  uses,       ///< what the uses of a skill say of it, by its id
  // Lists: many keys with short values, which are counted.
  items_by_use,  ///< of contexts, the last used one first
  noisy_items,   ///< contexts that are given and not used, by id
  skill_faults,  ///< what is to be said of skills at any time
  skills_by_use, ///< the one first that has not been followed for the longest time
};

inline bool is_list(index_area area) noexcept {
  return area >= index_area::items_by_use;
}

/// One value of an area: set, or removed.
struct index_change {
  index_area area = index_area::position;
  std::string key;
  std::optional<std::string> value; ///< nothing: removed

  bool operator==(const index_change&) const = default;
};

/// Hands over one change after the other; null: there are none.
using index_changes = std::function<void(const std::function<void(const index_change& c)>& put)>;

/// One end of a fact: where its line is found by the node's id.
struct fact_link {
  std::uint64_t node = 0; ///< graph::node_hash of the id
  std::uint64_t line = 0; ///< of the whole log, from 1

  bool operator==(const fact_link&) const = default;
  auto operator<=>(const fact_link&) const = default;
};

/// Where a line of the log begins.
struct line_mark {
  std::uint64_t line = 0;
  std::uint32_t segment = 1;
  std::uint64_t offset = 0;
  bool begins_segment = false;

  bool operator==(const line_mark&) const = default;
};

/// Links are kept in blocks of so many lines of the log. A full block is packed.
inline constexpr std::uint64_t lines_of_block = std::uint64_t{1} << 16;

/// What a look at the log adds to its index.
struct link_changes {
  /// An earlier look may have left links and marks from this line on, and was cut off before it
  /// said how far it had come: they are removed first.
  std::optional<std::uint64_t> anew_from{};
  std::vector<line_mark> marks;
  std::vector<fact_link> fresh; ///< of the block that is not full
  /// Of the block that is full now, those that were fresh included; in order. They take the place
  /// of all fresh ones.
  std::optional<std::vector<fact_link>> full;
};

/// What somebody opens an index for.
enum class index_use : std::uint8_t {
  /// One that is missing, torn or of another version is replaced by an empty one.
  keep,
  /// To read what another one keeps. `store_unavailable`: it is missing, torn or of another
  /// version;
  /// nothing is created or removed.
  read,
};

/// The node's own index of what it knows (docs/memory.md, docs/knowledge.md): of what is
/// remembered, derived from the files of kernel homes, and of what the log of facts teaches. Made
/// again from them at any time, never shared. Blocking; one thread at a time.
class knowledge_index {
 public:
  virtual ~knowledge_index() = default;

  /// Opens it. Errors: `no_space`, `io_error`, `locked`, `store_unavailable`.
  virtual result<void> open(index_use use) = 0;

  /// The files whose entries it holds, by path.
  virtual result<std::vector<memory_file>> files(const std::string& kernel_id) = 0;

  /// All rows of a kernel but for their texts, in the order of files and of entries in them.
  virtual result<void> scan(const std::string& kernel_id,
                            const std::function<void(memory_row&)>& row) = 0;

  /// The rows with these ids, in their order; ids that are not there are left out. Of several files
  /// with the same entry the first.
  virtual result<std::vector<memory_row>> find(const std::string& kernel_id,
                                               const std::vector<std::string>& ids) = 0;

  /// In one transaction: the file's rows are no longer `gone` (ids), and `fresh` besides; the
  /// others stay. After an error nothing has changed; `corrupt`: open it again.
  virtual result<void> put_file(const std::string& kernel_id, const memory_file& file,
                                const std::vector<std::string>& gone,
                                const std::vector<memory_row>& fresh) = 0;

  /// Removes a file with its rows.
  virtual result<void> remove_file(const std::string& kernel_id, const std::string& path) = 0;

  // -- what the log of facts teaches

  virtual result<std::optional<std::string>> value(index_area area, const std::string& key) = 0;
  /// All values of an area, by key.
  virtual result<void>
  each(index_area area,
       const std::function<void(std::string_view key, std::string_view value)>& f) = 0;
  /// Keys and values of an area from this key on, in the order of keys, at most `most`.
  virtual result<std::vector<std::pair<std::string, std::string>>>
  some(index_area area, const std::string& from, std::size_t most) = 0;
  /// How many keys a list has. With `before` those before it alone, which takes longer the more
  /// there are.
  virtual result<std::uint64_t> count(index_area area,
                                      const std::optional<std::string>& before) = 0;
  /// In one transaction, in order. After an error nothing has changed.
  virtual result<void> change(const index_changes& changes, const link_changes& links) = 0;
  /// Links of the block that is not full, in their order.
  virtual result<std::vector<fact_link>> fresh_links() = 0;
  /// The lines below `before` that have this node, the newest first, at most `most`.
  virtual result<std::vector<std::uint64_t>> lines_of(std::uint64_t node, std::uint64_t before,
                                                      std::size_t most) = 0;
  /// The nearest mark at or before a line; nothing: there is none.
  virtual result<std::optional<line_mark>> mark_before(std::uint64_t line) = 0;
  /// The mark at which the line's segment begins.
  virtual result<std::optional<line_mark>> segment_of(std::uint64_t line) = 0;
  /// Removes all that the log teaches: it is read from its beginning again.
  virtual result<void> forget_log() = 0;
};

} // namespace boyd
