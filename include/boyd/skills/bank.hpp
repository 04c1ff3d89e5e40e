#pragma once

#include "boyd/context/item.hpp"
#include "boyd/context/reference.hpp"
#include "boyd/core/result.hpp"
#include "boyd/core/time.hpp"
#include "boyd/graph/learned.hpp"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

/// Items that outlive the run (docs/skills.md): their files below a kernel's home. Pure.
namespace boyd::skills {

inline constexpr const char* bank_index_file = "context/bank/index.json";
std::string bank_file(std::string_view id);

struct bank_item {
  std::string id;
  std::string path;
  context::item_type type = context::item_type::file;
  std::string source; ///< project, global or external
  std::string scope;
  std::string content_hash;
  std::string summary;
  std::vector<std::string> tags;
  utc_time first_seen{};
  bool frozen = false;
  bool deprecated = false;

  bool operator==(const bank_item&) const = default;
};

struct bank_entry {
  std::string id;
  std::string path;
  context::item_type type = context::item_type::file;
  double confidence = 0;
  std::int64_t use_count = 0;
  std::optional<utc_time> last_used;
  std::vector<std::string> tags;

  bool operator==(const bank_entry&) const = default;
};

/// Of an item's content, which need not be there.
bank_item bank_item_of(std::string_view id, const graph::learned_item& item,
                       std::string_view content);
bank_entry bank_entry_of(std::string_view id, const graph::learned_item& item);

/// Readable; read_bank_item(to_json(i)) == i. `corrupt` for what is none.
std::string to_json(const bank_item& i);
result<bank_item> read_bank_item(std::string_view json);
/// By id; read_bank_index(to_json(all)) == all.
std::string to_json(std::vector<bank_entry> all);
result<std::vector<bank_entry>> read_bank_index(std::string_view json);

/// The reference that reads the item again, below the root of its scope; nothing for what is
/// neither a file nor a directory.
std::optional<context::reference> reference_of(const graph::learned_item& item);

/// What an item is about, in words: its kind, and the parts of its path.
std::vector<std::string> tags_of(std::string_view path);

} // namespace boyd::skills
