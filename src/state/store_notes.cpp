#include "boyd/state/versioned_store.hpp"

#include <spdlog/spdlog.h>

#include <utility>

/// What a store tells people of its files: each thing once in the log, and in its health for as
/// long as it is so.
namespace boyd::state {

void versioned_store::note_left_out(std::vector<std::string> paths) {
  if (paths == health_.left_out)
    return;
  for (const auto& path : paths)
    spdlog::warn("{}/{} is a separate git repository and is not versioned", options_.path, path);
  health_.left_out = std::move(paths);
}

void versioned_store::note_remarks(std::vector<std::string> remarks) {
  if (remarks == health_.remarks)
    return;
  for (const auto& remark : remarks)
    spdlog::warn("{}: {}", options_.path, remark);
  health_.remarks = std::move(remarks);
}

void versioned_store::note_filtered(std::vector<std::string> paths) {
  if (paths == health_.filtered)
    return;
  for (const auto& path : paths)
    spdlog::warn("{}/{} seems to contain a secret, which is redacted in the history", options_.path,
                 path);
  health_.filtered = std::move(paths);
}

} // namespace boyd::state
