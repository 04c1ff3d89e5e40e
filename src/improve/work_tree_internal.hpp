#pragma once

#include "boyd/improve/performer.hpp"
#include "boyd/improve/undo.hpp"

#include <map>
#include <set>
#include <string>
#include <vector>

namespace boyd::improve {

/// What differs from HEAD, but for Boyd's own.
struct tree_changes {
  std::set<std::string> tracked; ///< files that git knows
  /// Files that it does not know, which are in nobody's way: check_known() lets no patch replace
  /// them. With what tells whether they are still the same.
  std::map<std::string, std::string> untracked;
};

/// A few of these paths, for people.
std::string names_of(const std::set<std::string>& paths);
/// That these differ from HEAD, and what to do.
std::string not_committed(const std::set<std::string>& paths);
/// What changed between two looks; empty: nothing. Nobody can tell a person's edit from an
/// executor's.
std::string disturbance(const tree_changes& before, const result<tree_changes>& now);

/// The repository that a cycle works on, compared with the commit that the cycle began from (its
/// base). It writes commits alone; the references that it is made with outlive it.
class work_tree {
 public:
  work_tree(const improve_order& order, const improve_ports& ports)
      : order_(order), ports_(ports) {}

  result<tree_changes> changes(repository& r) const;
  /// `conflict`: somebody has committed since the cycle began, so that it works on another base.
  result<void> check_base(const std::string& base) const;
  /// Where the tree stands when an executor is asked: on the base, with nothing changed in it.
  result<tree_changes> look(const std::string& base) const;
  /// Files that git knows, differ from HEAD and are none of the patch's.
  result<std::set<std::string>> changed_besides(const std::vector<planned_change>& patch) const;
  /// Why what was verified is not what the patch alone makes of the base; empty: it is. What a
  /// patch does when it runs may change files that the patch does not name.
  std::string why_not_alone(const std::vector<planned_change>& patch) const;
  /// Files that git knows; without a repository none.
  std::set<std::string> known_files() const;
  /// What is changed or removed must stand in HEAD: of any other file there is no second copy once
  /// the cycle has ended. What is new must be something that git can see.
  result<void> check_known(const accepted_patch& patch) const;
  /// Whether somebody committed the patch as a whole.
  bool is_in_head(const accepted_patch& patch, const std::string& base) const;
  /// The hash of the patch's commit, which a crash may have left already. What was verified is what
  /// is committed: `undo` says whether the patch stands, and nothing else may differ from HEAD.
  result<std::string> commit(const effect::commit& what, const cycle_state& state,
                             undo_log& undo) const;

 private:
  result<void> check_base(repository& r, const std::string& base) const;
  result<std::optional<std::string>> made_before(repository& r, const cycle_state& state) const;
  result<void> check_verified(repository& r, const effect::commit& what, const cycle_state& state,
                              undo_log& undo) const;

  const improve_order& order_;
  const improve_ports& ports_;
};

} // namespace boyd::improve
