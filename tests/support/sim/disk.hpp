#pragma once

#include "boyd/ports/clock.hpp"
#include "boyd/ports/entropy.hpp"
#include "boyd/ports/file_system.hpp"

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace boyd::sim {

/// What a file system call does; a fault plan chooses by it.
enum class disk_op : std::uint8_t {
  read,
  stat,
  open,
  write,
  sync,
  truncate,
  rewrite,
  size,
  rename,
  unlink,
  sync_directory,
  make_directories,
  list,
};

std::string_view name_of(disk_op op) noexcept;

/// What goes wrong with one call.
enum class disk_fault : std::uint8_t {
  none,
  io_error,    ///< EIO: nothing is done (a failed sync also forgets that the data was dirty)
  no_space,    ///< ENOSPC: nothing is done
  short_write, ///< only half of the bytes are written, the count says so (other calls: EIO)
};
inline constexpr std::size_t disk_fault_kinds = 4;

/// One call, as the fault plan sees it. `number` counts all calls since the disk was made, from 0.
struct disk_call {
  disk_op op = disk_op::read;
  std::string path;
  std::uint64_t number = 0;
};

/// Decides about each call before it is carried out. Must be deterministic.
using disk_fault_plan = std::function<disk_fault(const disk_call&)>;

/// A file system in memory that forgets like a real one. Content is durable after `sync` of its
/// handle, a name (creation, rename, removal) after `sync_directory` of its directory. Whatever is
/// not durable at `crash` survives wholly, partly or not at all, as the given entropy decides.
/// Directories made by `make_directories` are durable at once. The root "/" exists.
/// Deterministic; for one thread.
class sim_disk final : public file_system {
 public:
  /// `clock` stamps modification times and may be null (then the epoch); it must outlive the disk.
  explicit sim_disk(const clock_port* clock = nullptr);
  ~sim_disk() override;
  sim_disk(const sim_disk&) = delete;
  sim_disk& operator=(const sim_disk&) = delete;

  result<std::string> read(const std::string& path, std::size_t max_bytes) override;
  result<std::string> read_below(const std::string& root, const std::string& file,
                                 std::size_t max_bytes) override {
    return read(root + "/" + file, max_bytes); // there are no links
  }
  result<std::string> read_part(const std::string& path, std::uint64_t offset,
                                std::size_t max_bytes) override;
  result<file_info> stat(const std::string& path) override;
  result<std::unique_ptr<open_file>> open(const std::string& path, open_mode mode) override;
  result<void> rename(const std::string& from, const std::string& to) override;
  result<void> unlink(const std::string& path) override;
  result<void> sync_directory(const std::string& path) override;
  result<void> make_directories(const std::string& path) override;
  result<std::vector<std::string>> list(const std::string& path) override;

  /// Consulted at every call until replaced; an empty function means no faults.
  void set_fault_plan(disk_fault_plan plan);

  /// The next `count` calls of kind `op` whose path contains `path_part` (empty: all) fail with
  /// `fault`. Added to the fault plan; several may be pending, the first that fits is used.
  void fail_next(disk_op op, disk_fault fault, std::uint64_t count = 1, std::string path_part = {});

  /// A rule of `fail_next` waits for its call.
  bool fails() const noexcept;

  /// Drops all pending `fail_next` rules and the fault plan.
  void clear_faults();

  /// Bytes the disk can hold; beyond it writes come up short, then fail with `no_space`.
  void set_capacity(std::optional<std::uint64_t> bytes);

  /// The power goes off and comes back: open handles become stale (every call on them fails), and
  /// what was not synced survives at random: of a file's unsynced bytes any prefix, perhaps with a
  /// zeroed or torn end, and of a directory's unsynced changes any subset that keeps rename atomic.
  void crash(entropy& random);

  /// The process dies but the machine lives: handles become stale, nothing is lost.
  void kill_process();

  /// How many calls a rule of `fail_next` has struck so far: of those that look, of the others.
  std::uint64_t struck_looking() const noexcept;
  std::uint64_t struck_changing() const noexcept;

  /// Number of calls so far, refused ones included: the sweep "fail at call k" counts with it.
  std::uint64_t calls() const noexcept;

  /// Puts durable content in place, making directories; for arranging a test, past all faults.
  void put(const std::string& path, std::string_view content);

  /// Flips bits of one durable byte: bit rot. False when there is no such file or byte.
  bool corrupt(const std::string& path, std::uint64_t offset, unsigned char mask = 0x01);

  /// Makes `path` a symbolic link, for tests of refusal; the disk does not resolve it.
  void put_symlink(const std::string& path);

  /// A file as it is now, past all faults and without counting as a call: for invariants. `inode`
  /// grows with every new file, so that of two versions put in place by renaming the newer one is
  /// known. Null: no such file. Valid until the next change.
  struct seen_file {
    const std::string* content = nullptr;
    std::uint64_t inode = 0;
  };
  seen_file look(const std::string& path) const;

  /// All regular files and their present content, for comparing two runs.
  std::map<std::string, std::string> snapshot() const;

 private:
  struct impl;
  std::shared_ptr<impl> impl_; ///< shared with open handles, which may outlive the disk
};

} // namespace boyd::sim
