#pragma once

#include "boyd/queue/due_work.hpp"

#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace boyd::adapters::postgres {

/// What the other nodes of a database are told of by NOTIFY.
struct wakeup {
  /// New work, each agent once; who hears of it need not ask the store.
  std::vector<store::due_agents::row> rows;
  /// Kernels of which more has changed than that: the store has to be asked.
  std::set<std::string> kernels;

  bool empty() const { return rows.empty() && kernels.empty(); }
  void add(wakeup other);
};

/// The payloads that tell it, one for each kernel: who speaks, a space, the kernel; then, when all
/// is told, for each agent a tab, its id, a tab, the priority, a tab, the count. Earlier versions
/// read the first word alone.
std::vector<std::string> payloads_of(const wakeup& w, std::string_view spoken_by);

/// The rows of a payload; nothing when the store has to be asked, also when it cannot be read:
/// anybody who may connect can send one.
std::optional<std::vector<store::due_agents::row>> rows_of(std::string_view payload);

} // namespace boyd::adapters::postgres
