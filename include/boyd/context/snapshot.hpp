#pragma once

#include "boyd/context/block.hpp"

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

/// What a turn could read, as it goes on record (docs/context.md). Pure.
namespace boyd::context {

/// One item of a snapshot.
struct snapshot_item {
  std::string key; ///< "C2"; empty: it was not shown
  std::string id;
  std::string path;
  item_type type = item_type::file;
  std::string hash; ///< of its content, which stands under it in context/objects; may be empty
  std::int64_t tokens = 0;      ///< as it was shown
  shown_as as = shown_as::full; ///< `failed` is written as left_out, with the reason
  section where = section::low;
  double score = 0;
  origin from = origin::declared;
  std::string reason;  ///< why it is not shown in full
  std::string shown{}; ///< of a summary: the hash of its text, which stands in context/objects, too
  std::string shortened_by{}; ///< of a summary: rules or model; empty: not known
  std::int64_t whole = 0;     ///< tokens of a content that is not shown in full; 0: not known

  bool operator==(const snapshot_item&) const = default;
};

/// An immutable list of items.
struct snapshot {
  std::string id; ///< SHA-256 of the items' canonical JSON, hexadecimal
  std::vector<snapshot_item> items;

  bool operator==(const snapshot&) const = default;
};

/// Of what a prompt shows. `block` was made of `items`.
snapshot snapshot_of(const std::vector<offered_item>& items, const context_block& block);

/// The snapshot of the next turn: with the result of a tool, in the place of an earlier one of the
/// same id. `call`: the tool and its arguments.
snapshot with_result(const snapshot& before, const std::string& scope, const std::string& call,
                     const std::string& hash, std::int64_t tokens);

/// {"id", "items"}; read_snapshot(to_json(s)) == s, but for `failed`, which comes back as left out.
/// Members in the order of their names, without blanks.
std::string to_json(const snapshot& s);
/// What is malformed is empty.
snapshot read_snapshot(std::string_view json);

/// Paths that came, went, or have another content.
struct snapshot_diff {
  std::vector<std::string> added;
  std::vector<std::string> removed;
  std::vector<std::string> changed;

  bool operator==(const snapshot_diff&) const = default;
};

/// By path, in the order of paths. What was left out counts as there.
snapshot_diff diff_of(const snapshot& before, const snapshot& after);

} // namespace boyd::context
