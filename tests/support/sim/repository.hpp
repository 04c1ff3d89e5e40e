#pragma once

#include "boyd/ports/file_system.hpp"
#include "boyd/ports/repository.hpp"

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace boyd::sim {

/// What a repository is asked to do; a fault hook chooses by it.
enum class git_op : std::uint8_t {
  init,
  open,
  changes,
  stage,
  commit,       ///< before anything is done
  commit_moved, ///< after HEAD has moved: as EIO on the last fsync (FAULTS 43)
  read,         ///< history, diff, read_at, commit_at, head, tracked_files
  pack,
};

/// One commit of a simulated repository, for invariants.
struct sim_commit {
  commit_info info;
  std::string message;
  std::map<std::string, std::shared_ptr<const std::string>> tree; ///< path → content
};

/// Git repositories in memory, keyed by path, over the work tree of a file_system (usually
/// sim_disk). A commit is atomic and durable once it returned: a crash of the node or disk leaves
/// the commits as they are. Work tree files follow the file_system's own rules. Ignored are `.git`,
/// temporary files of atomic writes and `*.bak`, as the real adapter's exclude file says; there is
/// no .gitignore. Deterministic; for one thread.
class sim_repositories final : public repository_provider {
 public:
  /// `files` must outlive the provider and its repositories.
  explicit sim_repositories(file_system& files);
  ~sim_repositories() override;

  result<std::unique_ptr<repository>> init(const std::string& path,
                                           const git_identity& who) override;
  result<std::unique_ptr<repository>> open(const std::string& path,
                                           const git_identity& who) override;

  /// Takes the repository of `path` away (every call on it answers `repository_unavailable`) or
  /// gives it back.
  void set_available(const std::string& path, bool available);
  /// How many calls have met one that was taken away.
  std::uint64_t refused() const;

  /// Asked before each step; an error makes that step fail with it. Empty: no faults. An error at
  /// `commit_moved` is hidden by the adapter, as the port demands: the commit is reported.
  using fault_hook = std::function<std::optional<error>(git_op op, const std::string& path)>;
  void set_fault_hook(fault_hook hook);

  /// The node dies: repositories handed out so far answer `repository_unavailable`; nothing that
  /// was committed is lost.
  void crash();

  /// A person's `git reset HEAD~n` there: the newest `n` commits are in no branch any more, the
  /// files stay.
  void take_back(const std::string& path, std::size_t n);

  /// All commits of `path`, oldest first; empty when there is no such repository.
  const std::vector<sim_commit>& commits(const std::string& path) const;

  struct world;

 private:
  std::shared_ptr<world> world_; ///< shared with repositories that were handed out
};

} // namespace boyd::sim
