#pragma once

#include "boyd/core/result.hpp"
#include "boyd/core/time.hpp"
#include "boyd/ports/repository.hpp"

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace boyd {
class clock_port;
class file_system;
} // namespace boyd

namespace boyd::state {

/// A boundary is looked for among so many of the newest commits before it is made: between a
/// worker's death in a commit and the repetition lie moments; between a node's death and its next
/// start lies whatever people committed meanwhile.
inline constexpr std::size_t boundary_search_repeated = 16;
inline constexpr std::size_t boundary_search_restarted = 512;
/// The subject of a commit of what others wrote, made before the node writes.
inline constexpr std::string_view snapshot_subject = "auto: pre-write snapshot";
/// The commits of so many cycles are watched: whether HEAD's history still has them.
inline constexpr std::size_t watched_cycles = 16;

/// What a versioned store is made of.
struct versioned_store_options {
  std::string path;        ///< absolute; the work tree, with `.git` in it
  git_identity who;        ///< author and committer
  bool auto_commit = true; ///< commit a dirty tree before each write (docs/state-and-history.md)
  bool backup = true;      ///< keep `<file>.bak` beside each written file, never versioned
  content_filter filter{}; ///< what the history keeps of a file (repository::filter_contents)
};

/// Whether a store keeps history at the moment, for status and metrics.
struct store_health {
  bool degraded = false;            ///< true: files are written, but nothing is versioned
  std::string reason;               ///< why it is degraded; empty when it is not
  std::optional<utc_time> since;    ///< start of the present degradation
  std::uint64_t degradations = 0;   ///< how often it became degraded, since construction
  std::uint64_t failed_commits = 0; ///< commits and snapshots that failed, since construction
  std::string last_error;           ///< of the newest failed commit; cleared by a good one
  /// As repository::left_out, of the newest commit, boundary or has_changes.
  std::vector<std::string> left_out{};
  /// As repository::filtered, of the newest commit.
  std::vector<std::string> filtered{};
  /// As repository::remarks, of the newest commit, boundary or has_changes.
  std::vector<std::string> remarks{};
};

/// What one commit of a cycle carries as trailers; empty members are left out.
struct commit_trailers {
  std::string cycle;      ///< `Boyd-Cycle`
  std::string node;       ///< `Boyd-Node`
  std::string graph_head; ///< `Boyd-Graph-Head`
  /// `Boyd-Late`: when the cycle ended, RFC 3339, of a commit that was made up for later: its files
  /// are those of the moment of the commit.
  std::string late{};
};

/// `subject`, an empty line, and the trailers: the text of a commit. Line breaks in values become
/// spaces, so that a value can never forge another trailer.
std::string commit_message(std::string_view subject, const commit_trailers& trailers);

/// `refused` when a commit of `changes` would delete more than limits::mass_deletion_share of the
/// tracked files. `path`: the work tree, for the message.
result<void> check_deletions(repository& repo, const std::vector<path_change>& changes,
                             const std::string& path);

/// A directory of files with history (docs/state-and-history.md). Writes are atomic whether or not
/// the repository works: when it cannot be opened, the store is degraded, `health()` says so, and
/// every later call tries again (at most once per backoff: 100 ms doubling to 30 s on the steady
/// clock).
///
/// Files are named relative to the directory with '/', without "..", "." or ".git" components
/// (`invalid_argument`). The directory is made by `init` alone: one that is missing later is an
/// `io_error`, never a new empty directory.
///
/// Blocking: call from workers only. Not thread-safe: one object per worker. The ports must outlive
/// the store.
class versioned_store {
 public:
  /// Nothing is touched before the first call.
  versioned_store(file_system& files, repository_provider& repositories, clock_port& clock,
                  versioned_store_options options);
  ~versioned_store();
  versioned_store(const versioned_store&) = delete;
  versioned_store& operator=(const versioned_store&) = delete;

  /// Makes the directory and the repository when missing; idempotent. A repository that cannot be
  /// made or opened leaves the store degraded and is not an error here, except `refused`: a
  /// directory inside another work tree or of another owner needs a person.
  result<void> init();

  /// The content of `file`; `not_found` when it does not exist, `refused` when it is a symbolic
  /// link or lies behind one in the directory: agents write here, and links lead out.
  result<std::string> read(const std::string& file);

  /// Snapshot of a dirty tree when `auto_commit` (message `auto: pre-write snapshot`), then an
  /// atomic durable replacement, then staging. Only the replacement decides about success: a
  /// snapshot or staging that fails is counted in `health()`; the first of a row is logged.
  result<void> write(const std::string& file, std::string_view bytes);

  /// Changes the text that a function receives.
  using edit_function = std::function<result<std::string>(std::string_view current)>;

  /// As `write`, with what `edit` makes of the current content (empty when the file is missing).
  /// The file is read again right before the replacement: when a person or agent changed it
  /// meanwhile, `edit` runs again on the new content, at most `limits::update_attempts` times, then
  /// `conflict`. Nothing is written, and no snapshot taken, when `edit` fails (its error is
  /// returned) or changes nothing.
  ///
  /// `snapshot_first::no` is for an edit that keeps every byte that is not its own and is followed
  /// by a commit at once: that commit is then the snapshot.
  ///
  /// `staging::with_commit` is for an edit that is followed by a commit at once, which stages the
  /// file itself and makes that durable together with its own objects; without that commit the file
  /// is modified and not staged, as after an agent's write, and goes into the next one.
  enum class snapshot_first : bool { no, yes };
  enum class staging : bool { with_commit, at_once };
  result<void> update(const std::string& file, const edit_function& edit,
                      snapshot_first first = snapshot_first::yes,
                      staging staged = staging::at_once);

  /// As update(), for an edit that commit_cycle follows at once: that one stages the file and makes
  /// its name durable, so that until then a crash may bring the old content back. A snapshot goes
  /// first only when `overwrites` says that the edit keeps something of `current` neither in the
  /// file nor in the history.
  using overwrites_function = std::function<bool(std::string_view current)>;
  result<void> update_before_commit(const std::string& file, const edit_function& edit,
                                    const overwrites_function& overwrites);

  /// Writes `file` when it does not exist; true when it was written. Never overwrites.
  result<bool> seed(const std::string& file, std::string_view bytes);

  /// Commits everything that differs from HEAD (ignored files not); the commit's hash, or nothing
  /// when there was nothing to commit. `refused` when more than limits::mass_deletion_share of the
  /// tracked files would be deleted; `repository_unavailable` while degraded.
  result<std::optional<std::string>> commit_all(std::string_view subject,
                                                const commit_trailers& trailers = {});

  /// A cycle's boundary (docs/adr/0012): as commit_all, but when nothing differs from HEAD the
  /// commit is empty; its hash. When a commit with this subject and cycle stands among the newest
  /// ones, that one is the answer and none is made; `restarted`: an earlier life of the node may
  /// have made it, so it is looked for further back, and when it stands, what was written since (by
  /// the same record, made again) is committed as before a write.
  result<std::string> commit_boundary(std::string_view subject, const commit_trailers& trailers,
                                      bool restarted);

  /// Both commits of a cycle in one step, as two calls of commit_boundary: all that differs from
  /// HEAD is in either, but for `version` of the earlier one (repository::commit_two). Of those
  /// that stand already none is made again. The later one's hash.
  result<std::string> commit_cycle(std::string_view earlier, std::string_view later,
                                   const commit_trailers& trailers, const earlier_version& version,
                                   bool restarted);

  /// Of the newest watched_cycles cycles whose boundary this store has made or found, those whose
  /// commit is lost: no branch has it, and HEAD's history has no copy either, as a rebase makes
  /// them. So ends a `git rebase --abort` that puts a branch back to where it was before the
  /// commit. Oldest first; each is told once.
  result<std::vector<commit_info>> lost_cycles();

  /// The newest `n` commits that touch `file` (empty: all), newest first.
  result<std::vector<commit_info>> history(const std::string& file, std::size_t n);

  /// Unified diff between two points (see `resolve`); an empty `b` means the files as they are.
  result<std::string> diff(const std::string& a, const std::string& b);

  /// True when something differs from HEAD.
  result<bool> has_changes();

  /// The revision that `at` means: the newest commit not later than an RFC 3339 time; the newest
  /// commit of a cycle (its `Boyd-Cycle` trailer, among the newest limits::history_search), named
  /// in full or by 8 or more of its first characters; or `at` itself, when git understands it.
  /// `invalid_argument` when several cycles begin so, `not_found` otherwise.
  result<std::string> resolve(const std::string& at);

  /// The content of `file` at that point: `boyd state show --at`.
  result<std::string> read_at(const std::string& at, const std::string& file);

  /// Packs when at least limits::pack_loose_objects loose objects exist; returns how many went
  /// into the pack. For the background, between cycles.
  result<std::size_t> maintain();

  /// The state after the latest call; touches nothing.
  const store_health& health() const noexcept { return health_; }

  /// The absolute path of `file`, for readers that fall back to its backup
  /// (files::read_checked).
  std::string path_of(const std::string& file) const { return options_.path + "/" + file; }

  /// The directory.
  const std::string& path() const noexcept { return options_.path; }

 private:
  result<void> check(const std::string& file);
  result<repository*> repository_now();
  error out_of_service() const;
  void degrade(const error& why);
  void notice(const error& why);
  void note_failed_commit(const error& why);
  void note_left_out(std::vector<std::string> paths);
  void note_remarks(std::vector<std::string> remarks);
  void note_filtered(std::vector<std::string> paths);
  void take_repository(std::unique_ptr<repository> opened);
  template <class F>
  auto with_repository(F&& call) -> decltype(call(std::declval<repository&>()));
  result<void> replace(const std::string& file, std::string_view bytes,
                       const std::optional<std::string>* expected, bool sync_name = true);
  result<void> edit_file(const std::string& file, const edit_function& edit,
                         const overwrites_function& overwrites, bool sync_name);
  result<void> make_seen_durable(const std::string& file);
  result<std::optional<std::string>> commit_now(std::string_view subject,
                                                const commit_trailers& trailers, bool even_empty);
  result<std::vector<commit_info>> newest_commits(std::size_t n);
  result<std::optional<std::string>> find_boundary(std::string_view subject,
                                                   const std::string& cycle, std::size_t newest);
  result<commit_pair> commit_two_now(const std::string& earlier, const std::string& later,
                                     const earlier_version& version);
  void note_commits(const commit_pair& made, std::string_view earlier, std::string_view later,
                    const std::string& cycle);
  commit_info boundary_of(const std::string& hash, std::string_view subject,
                          const std::string& cycle) const;
  void watch(commit_info boundary);
  result<bool> stands(repository& repo, commit_info& boundary);
  void snapshot();
  void stage(const std::string& file);
  result<std::string> find_cycle(const std::string& cycle);

  file_system& files_;
  repository_provider& repositories_;
  clock_port& clock_;
  versioned_store_options options_;
  std::unique_ptr<repository> repository_;
  /// The newest commits, as long as HEAD is the first of them: a boundary need not be looked for on
  /// the disk each time.
  std::vector<commit_info> newest_;
  std::vector<commit_info> watched_; ///< the last boundary of each cycle, oldest first
  /// A HEAD that had all of watched_ behind it. A commit of one's own on top of it has them, too;
  /// one that a person's step back slipped under has not.
  std::optional<std::string> sound_head_;
  store_health health_;
  error why_; ///< why it is degraded
  bool snapshot_failing_ = false;
  bool staging_failing_ = false;
  std::set<std::string> sure_; ///< files whose last replacement is known to be durable
  steady_time retry_at_{};
  milliseconds backoff_{0};
};

} // namespace boyd::state
