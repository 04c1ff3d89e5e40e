#pragma once

#include "boyd/core/result.hpp"
#include "boyd/core/time.hpp"

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
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
  position,  ///< how far the log has been read
  items,     ///< of contexts, by id
  open_runs, ///< what runs used whose outcome has not been told
  questions, ///< that entries of memory have answered well
  skills,     ///< by id
  candidates, ///< for skills, by id
};

/// One value of an area: set, or removed.
struct index_change {
  index_area area = index_area::position;
  std::string key;
  std::optional<std::string> value; ///< nothing: removed

  bool operator==(const index_change&) const = default;
};

/// The node's own index of what it knows (SPEC §12, §15): of what is remembered, derived from the
/// files of kernel homes, and of what the log of facts teaches. Made again from them at any time,
/// never shared. Blocking; one thread at a time.
class knowledge_index {
 public:
  virtual ~knowledge_index() = default;

  /// Opens it. One that is missing, torn or of another version is replaced by an empty one. Errors:
  /// `no_space`, `io_error`, `locked`, `store_unavailable`.
  virtual result<void> open() = 0;

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
  /// In one transaction, in order. After an error nothing has changed.
  virtual result<void> change(const std::vector<index_change>& changes) = 0;
  /// Removes all that the log teaches: it is read from its beginning again.
  virtual result<void> forget_log() = 0;
};

} // namespace boyd
