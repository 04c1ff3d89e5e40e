#pragma once

#include "boyd/core/result.hpp"
#include "boyd/improve/cycle_state.hpp"
#include "boyd/ports/file_system.hpp"
#include "boyd/ports/work_tree.hpp"

#include <string>
#include <string_view>
#include <vector>

namespace boyd::improve {

/// How one change of a file is taken back. `staged` has the new content until the change is made,
/// and from then on the file that was there before.
struct undo_step {
  planned_change::action_t action = planned_change::action_t::modify;
  std::string path;
  std::string staged; ///< name in the journal's directory
  std::string before_hash;
  std::string after_hash;
  unsigned mode = 0; ///< of the new content
};

struct undo_journal {
  std::string cycle_id;
  std::vector<undo_step> steps;
  std::vector<std::string> directories; ///< that the patch makes, the outer ones first
};

std::string journal_json(const undo_journal& j);
result<undo_journal> read_journal(std::string_view json);

/// Applies the patch of one cycle, and takes it back. Everything lies in OUTPUTS/undo/CYCLE/, with
/// the journal written before the first file of the repository changes and removed after the last
/// one is settled: a crash at any moment leaves a journal by which all of it can be taken back.
/// Blocking, as the ports are; one at a time.
class undo_log {
 public:
  undo_log(std::string root, std::string outputs, file_system& files, work_tree& tree);

  /// All of the patch, or nothing of it: after an error everything is as before. `conflict`: a file
  /// is not what the patch was made for.
  result<void> apply(const std::string& cycle_id, const accepted_patch& patch);

  /// Whether every change of the cycle stands in the tree as it was made. False without a journal.
  result<bool> stands(const std::string& cycle_id);

  /// Takes back what the cycle changed; nothing without a journal. May be repeated.
  result<undo_end> roll_back(const std::string& cycle_id);

  /// The changes are to stay.
  result<void> forget(const std::string& cycle_id);

  /// Cycles with an open journal.
  result<std::vector<std::string>> open_cycles();

 private:
  std::string directory_of(const std::string& cycle_id) const;
  std::string journal_of(const std::string& cycle_id) const;
  std::string staged(const std::string& cycle_id, const undo_step& s) const;
  result<undo_journal> plan(const std::string& cycle_id, const accepted_patch& patch);
  result<void> make_changes(const undo_journal& j);
  result<void> make_change(const undo_journal& j, const undo_step& s);
  result<bool> take_back(const undo_journal& j, const undo_step& s);
  result<bool> take_back_modified(const undo_journal& j, const undo_step& s);
  result<bool> take_back_created(const undo_journal& j, const undo_step& s);
  result<bool> take_back_removed(const undo_journal& j, const undo_step& s);
  std::string about_kept(const undo_journal& j, const std::vector<std::string>& kept) const;
  result<void> sync(const undo_journal& j);
  result<void> clean(const std::string& cycle_id);
  result<undo_journal> load(const std::string& cycle_id);

  std::string root_;
  std::string outputs_; ///< absolute
  file_system& files_;
  work_tree& tree_;
};

} // namespace boyd::improve
