#pragma once

#include "boyd/core/dispatch.hpp"
#include "boyd/core/result.hpp"
#include "boyd/queue/dispatch_json.hpp"

#include <cstddef>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace boyd {
class file_system;
}

namespace boyd::queue {

/// Settlements that could not reach the database, kept in HOME/run/spool.jsonl until it is back
/// (docs/queue.md). Appends are fsynced before they return, so an acknowledged result survives the
/// node. Blocking: workers only. Not thread-safe.
class settlement_spool {
 public:
  /// `path` is absolute; its directory exists. Nothing is opened yet.
  settlement_spool(std::shared_ptr<file_system> files, std::string path);
  ~settlement_spool();
  settlement_spool(settlement_spool&&) noexcept;
  settlement_spool& operator=(settlement_spool&&) noexcept;

  /// Opens (a torn tail is cut and set aside) and reads what is kept, oldest first. Each line has a
  /// CRC-32: one that does not parse or has another sum is skipped and counted in `skipped`, and
  /// goes to `<path>.damaged` before `rewrite` takes its file away.
  struct content {
    std::vector<node_settlement> items;
    std::size_t skipped = 0;
  };
  result<content> load();

  /// Appends all items with one fsync. On an error the caller still owns them.
  result<void> append(const std::string& node_id, const std::vector<settlement>& items);

  /// Appends a result that the database does not take to `<path>.refused`, whole, with `reason`
  /// under "refused"; fsynced before this returns. Said twice, it stands there twice.
  result<void> keep_refused(const node_settlement& refused, std::string_view reason);

  /// What `<path>.refused` holds. Lines that do not parse are counted only.
  struct refused_results {
    std::vector<node_settlement> newest; ///< at most `most`, oldest first
    std::size_t count = 0;
  };
  result<refused_results> load_refused(std::size_t most) const;
  /// False only when that file is certainly not there: a person has moved it away.
  bool has_refused() const;

  /// Replaces the content atomically by `items`; an empty list removes the file.
  result<void> rewrite(const std::vector<node_settlement>& items);

 private:
  struct impl;
  std::unique_ptr<impl> impl_;
};

} // namespace boyd::queue
