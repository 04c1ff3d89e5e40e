#pragma once

#include "boyd/context/reference.hpp"
#include "boyd/core/time.hpp"

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

/// What a run is to read, before anything was read (docs/context.md). Pure.
namespace boyd::context {

/// How an item came to be offered, in the order of docs/context.md.
enum class origin : std::uint8_t {
  declared,  ///< the agent's `context:` list
  reference, ///< the template or the message
  buffer,    ///< boyd context add
  bank,
  memory,
  tool, ///< the result of a tool, an item of the turns behind it
};

std::string_view name_of(origin o) noexcept;

/// A reference of a run.
struct wanted {
  reference what;
  origin from = origin::declared;
  bool required = false; ///< without it the run fails before a model is called
  /// A plain word of a text: it is no reference when nothing has this name.
  bool if_it_exists = false;
  /// It stands in the configuration: a command of it runs unless the policy forbids that. A command
  /// of anybody else runs only when a rule of the policy allows it.
  bool configured = false;

  bool operator==(const wanted&) const = default;
};

/// The references of a prompt template (`configured`) or of a message, in order.
std::vector<wanted> references_in(std::string_view text, bool configured);

/// JSON of references, for a dispatch's metadata; read_wanted(to_json(w)) == w. What is malformed
/// there is left out.
std::string to_json(const std::vector<wanted>& all);
std::vector<wanted> read_wanted(std::string_view json);

/// Where a kernel's buffer stands below its home.
inline constexpr const char* buffer_file = "context/buffer.json";

/// References that a kernel keeps for all of its agents, in the order in which they came.
struct buffer {
  struct entry {
    reference what;
    utc_time added{};

    bool operator==(const entry&) const = default;
  };
  static constexpr std::size_t most_entries = 200;
  std::vector<entry> entries;

  bool operator==(const buffer&) const = default;
};

/// An empty text is an empty buffer; `corrupt` for what is none.
result<buffer> read_buffer(std::string_view json);
std::string to_json(const buffer& b);

/// What is done to a buffer, as one step: `clear`, then `remove`, then `add`.
struct buffer_change {
  std::vector<std::string> add;    ///< references as in a `context:` list
  std::vector<std::string> remove; ///< the same
  bool clear = false;
};

/// What became of a change.
struct buffer_outcome {
  buffer after;
  std::vector<std::string> added;
  std::vector<std::string> removed;
  std::vector<std::string> known; ///< were to be added and stand there already
};

/// `invalid_argument` for what is no reference, `not_found` for one that is to go and is not there,
/// `limit_exceeded` for too many: then nothing changes.
result<buffer_outcome> change(const buffer& before, const buffer_change& what, utc_time now);

/// The buffer's references for a run.
std::vector<wanted> references_of(const buffer& b);

} // namespace boyd::context
