#pragma once

#include "boyd/ports/confined_files.hpp"

#include <cstdint>
#include <memory>
#include <string>

namespace boyd::sim {

/// Workspaces on a file system, which may be a simulated disk: a write obeys its faults and crashes
/// (a new file beside the old one, synced, renamed over it, its directory synced). The disk has no
/// links that are followed and no permissions; rules of names are the port's own. No workspace may
/// lie below a node's home. Threads: as the file system's.
class disk_workspaces final : public confined_files {
 public:
  explicit disk_workspaces(std::shared_ptr<file_system> files);

  result<text_part> read(const std::string& root, const std::string& path, std::uint64_t offset,
                         std::size_t max_bytes) override;
  result<void> write(const std::string& root, const std::string& path,
                     std::string_view content) override;
  result<void> write_over(const std::string& root, const std::string& path,
                          std::string_view content, const may_replace& may) override;
  result<listing> list(const std::string& root, const std::string& path, std::size_t most) override;
  result<place> find(const std::string& root, const std::string& path) override;
  result<walk_end> walk(const std::string& root, const std::string& path, const walk_limits& limits,
                        const wanted_file& wanted, const visit_file& visit) override;

 private:
  result<place> look(const std::string& root, const std::string& path);
  result<void> replace(const std::string& root, const std::string& path, std::string_view content,
                       const may_replace* may);
  result<void> fill(const std::string& path, std::string_view content);

  std::shared_ptr<file_system> files_;
  std::uint64_t temporaries_ = 0; ///< made so far
};

} // namespace boyd::sim
