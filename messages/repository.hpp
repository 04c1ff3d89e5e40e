#pragma once

#include "boyd/ports/repository.hpp"
#include "messages/message.hpp"

#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

namespace boyd {

/// A cycle's boundary: commits whatever differs from HEAD. When nothing does, the commit is empty,
/// so that every recorded cycle has its own (docs/adr/0012). Idempotent: one with this message and
/// cycle that stands already is the answer.
struct commit_boundary {
  std::string kernel_id;
  std::string message;
  std::vector<std::pair<std::string, std::string>> trailers;
  bool restarted = false; ///< an earlier life of the kernel may have made it: look further back
};

/// Both commits of a cycle whose STATE.md is rendered, in one step: `earlier` with the runtime
/// block that HEAD has, then `message`. One of them that stands already is not made again.
struct commit_cycle {
  commit_boundary later;
  std::string earlier; ///< the message of the first one; the trailers are the same
};

struct query_history {
  std::string kernel_id;
  std::string path; ///< empty: all
  std::size_t limit = 20;
};

/// A file at a cycle id, an RFC 3339 time or a commit.
struct query_file_at {
  std::string kernel_id;
  std::string path;
  std::string at;
};

/// Two points as in query_file_at; an empty `to` is the work tree.
struct query_diff {
  std::string kernel_id;
  std::string from;
  std::string to;
};

struct repository_request : message {
  std::variant<commit_boundary, commit_cycle, query_history, query_file_at, query_diff> what;
  request_end until = request_end::max();
};

/// `commit` for commit_boundary and commit_cycle (the later one), `commits` for query_history,
/// `text` for the others. `lost` for commit_cycle: commits of earlier cycles, oldest first, that
/// stand in no branch any more; then none is made, for those come first.
struct repository_reply {
  std::optional<std::string> commit;
  std::vector<commit_info> lost;
  std::vector<commit_info> commits;
  std::string text;
};

} // namespace boyd
