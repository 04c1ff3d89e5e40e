#pragma once

#include "boyd/core/result.hpp"
#include "boyd/ports/file_system.hpp"

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace boyd::files {

/// Default bounds of a journal; bytes.
inline constexpr std::size_t journal_file_bytes = std::size_t{1} << 30;
inline constexpr std::size_t journal_batch_bytes = std::size_t{4} << 20;

struct journal_options {
  /// Larger files are refused at open (`no_space`), and no file grows beyond it.
  std::size_t max_file_bytes = journal_file_bytes;
  /// Larger batches are refused. An unacknowledged tail is never longer than one batch, so open
  /// refuses (`corrupt`) to cut more than this: then the file is not what the caller thinks it is.
  std::size_t max_batch_bytes = journal_batch_bytes;
  /// Whether a complete line (without its newline) is well formed; empty: any non-empty line.
  std::function<bool(std::string_view line)> parses;
};

/// An append-only file of lines (JSONL) with group commit. What `append` acknowledged is there,
/// once and in order, after any crash; what it did not acknowledge is there wholly, in part (then
/// cut at the next open and kept in `<path>.torn`) or not at all. Blocking; one thread at a time;
/// one journal object per file. `fs` must outlive it.
class journal {
 public:
  /// Opens or makes the file. Cuts the tail after the last line that ends in a newline and parses;
  /// the cut bytes are first kept durably at the end of `<path>.torn`. Lines in the middle that do
  /// not parse are left alone: the reader skips and reports them. What is then there counts as
  /// acknowledged and is durable, also when an earlier process died after an fsync that failed.
  /// Idempotent after a crash or fault inside it.
  static result<journal> open(file_system& fs, std::string path, journal_options options = {});

  journal(journal&&) noexcept = default;
  journal& operator=(journal&&) noexcept = default;

  /// Appends the lines (without newlines) as one batch with one fsync. Returns the acknowledged end
  /// of the file in bytes; nothing is acknowledged otherwise. After a short or failed write the
  /// file is cut back to the last acknowledged end, and so it is when what is then read back is
  /// something else. After a failed fsync, or when the cutting back
  /// failed, the handle is never used again: the next call opens the file anew, verifies the
  /// acknowledged part and goes on; so a caller just repeats the batch. `conflict`: another program
  /// changed or replaced the file; open a new journal. `invalid_argument`: a line is empty, holds a
  /// line break or does not parse. `limit_exceeded`: the batch is too large.
  /// `no_space`: the disk is full, or the file has reached `max_file_bytes`.
  result<std::uint64_t> append(const std::vector<std::string>& lines);

  /// The acknowledged end in bytes.
  std::uint64_t end() const noexcept { return end_; }

  /// The last line, acknowledged or found at open; empty in an empty file.
  const std::string& last_line() const noexcept { return last_line_; }

  /// What the opening has cut off. A batch that was not finished leaves such; whole lines in it may
  /// have been acknowledged, and a bit has flipped since: whoever opens the journal tells of them.
  const std::string& torn() const noexcept { return torn_; }

 private:
  journal(file_system& fs, std::string path, journal_options options);

  result<void> recover();
  /// The end of the file as it is: its bytes from `begin` on.
  struct file_end {
    std::uint64_t begin = 0;
    std::string bytes;
  };

  result<file_end> read_end(open_file& file, std::size_t wanted) const;
  result<void> make_durable(open_file& file, std::uint64_t begin, std::string_view found) const;
  result<void> reopen_and_verify();
  result<void> check_identity() const;
  result<void> remember_identity();
  result<void> compare(std::string_view bytes) const;
  result<void> write_and_compare(std::string_view bytes);
  result<void> write_batch(std::string_view bytes);
  void distrust_handle() noexcept { handle_.reset(); }

  file_system* fs_;
  std::string path_;
  journal_options options_;
  std::unique_ptr<open_file> handle_; ///< null: to be opened again before the next write
  std::uint64_t end_ = 0;
  std::uint64_t attempted_ = 0; ///< bytes of the latest batch: at most so many are behind the end
  std::uint64_t inode_ = 0;
  std::uint64_t device_ = 0;
  std::string last_line_;
  std::string torn_;
};

} // namespace boyd::files
