#pragma once

#include "git_internal.hpp"

#include <string>

namespace boyd::adapters::git {

/// Whether `branch` (a full name), which HEAD points at and which is not there, never had a commit:
/// then a first one may be made. `repository_unavailable`, with what to do, when the repository has
/// commits and the branch was lost (its file, or packed-refs): a new first commit in its place
/// would hide that. A new branch of a person's (`git checkout --orphan`) is in order while another
/// branch has the commits.
result<void> check_unborn(const session& s, const std::string& branch);

/// For an opening: HEAD, its branch and its commit can be read. A branch whose very first commit is
/// in the reflog, and whose creation a crash interrupted after that, is made.
result<void> settle_branch(const session& s);

/// Remarks: a detached HEAD, a branch without a commit, branches that are gone though their reflogs
/// stand.
void tell_of_branches(const session& s);

/// The error of an opening, with what is known of HEAD.
error cannot_open(error why, const location& at);

} // namespace boyd::adapters::git
