#include "boyd/core/text.hpp"
#include "inside_internal.hpp"
#include "lost_internal.hpp"

#include <spdlog/spdlog.h>

#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <set>
#include <string_view>
#include <utility>

namespace boyd::adapters::git {

namespace {

namespace fs = std::filesystem;

/// The end of a reflog that is looked at.
constexpr std::size_t reflog_bytes = 64U << 10;
/// Objects that are looked at to see whether an unborn branch had commits.
constexpr std::size_t objects_for_doubt = 10'000;
/// Objects that are looked at to find the newest commit of a lost branch.
constexpr std::size_t objects_for_advice = 1'000'000;
/// Reflogs that are looked at for branches that are gone.
constexpr std::size_t most_reflogs = 1'000;

/// What a reflog tells, however old it is.
struct reflog {
  std::size_t lines = 0; ///< in its last bytes
  git_oid newest{};      ///< zero: none
};

bool is_id(std::string_view text, git_oid& id) {
  const bool read = git_oid_fromstrn(&id, text.data(), text.size()) == 0;
  git_error_clear();
  return read;
}

reflog reflog_of(const session& s, const std::string& ref) {
  reflog out;
  const auto text = end_of_file(s.at->git_dir + "/logs/" + ref, reflog_bytes);
  if (!text)
    return out;
  for (const auto line : split(*text, '\n')) {
    git_oid from{};
    git_oid to{};
    if (line.size() <= 2 * GIT_OID_HEXSZ + 1 || !is_id(line.substr(0, GIT_OID_HEXSZ), from) ||
        !is_id(line.substr(GIT_OID_HEXSZ + 1, GIT_OID_HEXSZ), to))
      continue;
    ++out.lines;
    if (git_oid_is_zero(&to) == 0)
      out.newest = to;
    else if (git_oid_is_zero(&from) == 0)
      out.newest = from; // the branch was deleted there
  }
  return out;
}

bool has_commit(const session& s, const git_oid& id) {
  commit_ptr commit;
  const bool found =
      git_oid_is_zero(&id) == 0 && fill(commit, [&](git_commit** out) {
                                     return git_commit_lookup(out, s.repo.get(), &id);
                                   }) == 0;
  git_error_clear();
  return found;
}

struct id_order {
  bool operator()(const git_oid& a, const git_oid& b) const { return git_oid_cmp(&a, &b) < 0; }
};

/// Commits among the objects, whatever leads to them.
struct commits_seen {
  const session& s;
  std::size_t most = 0;
  std::size_t seen = 0;
  bool deep = false; ///< one of them has a grandparent
  std::map<git_oid, git_time_t, id_order> times{};
  std::set<git_oid, id_order> parents{};

  /// The newest one that no other goes on from; zero: none.
  git_oid newest() const {
    git_oid found{};
    std::optional<git_time_t> time;
    for (const auto& [id, when] : times)
      if (!parents.contains(id) && (!time || when > *time)) {
        found = id;
        time = when;
      }
    return found;
  }
};

bool has_grandparent(const git_commit* c) {
  commit_ptr parent;
  const bool has =
      git_commit_parentcount(c) > 0 &&
      fill(parent, [&](git_commit** out) { return git_commit_parent(out, c, 0); }) == 0 &&
      git_commit_parentcount(parent.get()) > 0;
  git_error_clear();
  return has;
}

int look_at_object(const git_oid* id, void* payload) {
  auto& all = *static_cast<commits_seen*>(payload);
  if (++all.seen > all.most)
    return GIT_EUSER;
  std::size_t size = 0;
  git_object_t type = GIT_OBJECT_INVALID;
  odb_ptr odb;
  commit_ptr commit;
  if (fill(odb, [&](git_odb** out) { return git_repository_odb(out, all.s.repo.get()); }) != 0 ||
      git_odb_read_header(&size, &type, odb.get(), id) != 0 || type != GIT_OBJECT_COMMIT ||
      fill(commit,
           [&](git_commit** out) { return git_commit_lookup(out, all.s.repo.get(), id); }) != 0) {
    git_error_clear();
    return 0;
  }
  all.deep = all.deep || has_grandparent(commit.get());
  all.times[*id] = git_commit_time(commit.get());
  for (unsigned i = 0; i < git_commit_parentcount(commit.get()); ++i)
    all.parents.insert(*git_commit_parent_id(commit.get(), i));
  return 0;
}

commits_seen commits_among_objects(const session& s, std::size_t most) {
  commits_seen all{s, most};
  odb_ptr objects; // without the batch of this opening, which cannot be listed
  const auto path = s.at->git_dir + "/objects";
  if (fill(objects, [&](git_odb** out) { return git_odb_open(out, path.c_str()); }) == 0)
    (void)git_odb_foreach(objects.get(), look_at_object, &all);
  git_error_clear();
  return all;
}

/// Full names of all refs.
result<std::vector<std::string>> all_refs(const session& s) {
  git_strarray names{};
  if (const int rc = git_reference_list(&names, s.repo.get()); rc != 0) {
    auto why = failure(rc, "cannot read the branches", s.at->git_dir + "/packed-refs");
    why.next = "restore packed-refs from a backup, or repair it: git fsck shows the errors";
    return fail(std::move(why));
  }
  std::vector<std::string> out(names.strings, names.strings + names.count);
  git_strarray_dispose(&names);
  return out;
}

enum class absence { unborn, interrupted, lost };

struct finding {
  absence kind = absence::unborn;
  git_oid newest{}; ///< of what is lost: the commit to go back to; zero: not known
};

finding lost(const session& s, const reflog& own, const reflog& head) {
  for (const auto& id : {own.newest, head.newest})
    if (has_commit(s, id))
      return {absence::lost, id};
  return {absence::lost, commits_among_objects(s, objects_for_advice).newest()};
}

result<finding> look_for(const session& s, const std::string& branch) {
  const auto refs = all_refs(s);
  if (!refs)
    return fail(refs.error());
  const auto own = reflog_of(s, branch);
  const auto head = reflog_of(s, "HEAD");
  if (own.lines == 0 && head.lines == 0 && refs->empty())
    return commits_among_objects(s, objects_for_doubt).deep ? lost(s, own, head) : finding{};
  if (own.lines == 1 && head.lines <= 1 && refs->empty() && has_commit(s, own.newest))
    return finding{absence::interrupted, own.newest};
  if (own.lines == 0 && !refs->empty() && has_commit(s, head.newest)) {
    const auto kept = is_kept(s, hex(head.newest));
    if (kept && *kept)
      return finding{};
  }
  return lost(s, own, head);
}

std::string short_name(const std::string& branch) {
  constexpr std::string_view heads = "refs/heads/";
  return branch.starts_with(heads) ? branch.substr(heads.size()) : branch;
}

error told_as_lost(const session& s, const std::string& branch, const finding& what) {
  const std::string begin_new = "to start a new history, move .git away and run: boyd init";
  error why{errc::repository_unavailable,
            "the branch " + short_name(branch) +
                " is missing (its file, or packed-refs), although the repository has commits",
            s.at->git_dir,
            {}};
  why.next = git_oid_is_zero(&what.newest) != 0
                 ? "restore .git from a backup; " + begin_new
                 : "restore it at the newest commit found: git -C " + s.at->work_tree +
                       " update-ref " + branch + " " + hex(what.newest) + "; " + begin_new;
  return why;
}

/// The branch that HEAD names and that is not there; empty: it is there, or HEAD is detached.
result<std::string> missing_branch(const session& s) {
  reference_ptr head;
  reference_ptr ref;
  int rc = fill(
      head, [&](git_reference** out) { return git_reference_lookup(out, s.repo.get(), "HEAD"); });
  if (rc != 0)
    return fail(cannot_open(failure(rc, "cannot read HEAD", s.at->git_dir), *s.at));
  if (git_reference_type(head.get()) == GIT_REFERENCE_DIRECT)
    return std::string{};
  std::string branch = git_reference_symbolic_target(head.get());
  rc = fill(ref, [&](git_reference** out) {
    return git_reference_lookup(out, s.repo.get(), branch.c_str());
  });
  if (rc == GIT_ENOTFOUND) {
    git_error_clear();
    return branch;
  }
  if (rc != 0)
    return fail(failure(rc, "cannot read the branch", branch));
  return std::string{};
}

result<void> make_interrupted(const session& s, const std::string& branch, const git_oid& id) {
  reference_ptr made;
  const int rc = fill(made, [&](git_reference** out) {
    return git_reference_create(out, s.repo.get(), branch.c_str(), &id, 0, "commit (initial)");
  });
  if (rc != 0 && rc != GIT_EEXISTS)
    return fail(failure(rc, "cannot create the branch", branch));
  spdlog::warn("{}: the branch {} was missing, but had one commit in its reflog; it is now {}",
               s.at->work_tree, short_name(branch), hex(id));
  return {};
}

void tell_of_lost_branches(const session& s) {
  const fs::path logs = s.at->git_dir + "/logs";
  std::error_code ec;
  std::size_t seen = 0;
  for (fs::recursive_directory_iterator it(logs / "refs/heads", ec), end;
       !ec && it != end && seen < most_reflogs; it.increment(ec), ++seen) {
    std::error_code ignored;
    if (!it->is_regular_file(ignored))
      continue;
    const auto ref = it->path().lexically_relative(logs).string();
    git_oid id{};
    const int rc = git_reference_name_to_id(&id, s.repo.get(), ref.c_str());
    git_error_clear();
    const auto log = rc == GIT_ENOTFOUND ? reflog_of(s, ref) : reflog{};
    if (has_commit(s, log.newest))
      s.notes->add(".git/" + ref, "is missing, but has a reflog: `git update-ref " + ref + " " +
                                      hex(log.newest) + "` restores the branch, `rm .git/logs/" +
                                      ref + "` accepts its loss");
  }
}

} // namespace

result<void> check_unborn(const session& s, const std::string& branch) {
  const auto found = look_for(s, branch);
  if (!found)
    return fail(found.error());
  if (found->kind == absence::unborn)
    return {};
  return fail(told_as_lost(s, branch, *found));
}

result<void> settle_branch(const session& s) {
  const auto branch = missing_branch(s);
  if (!branch)
    return fail(branch.error());
  if (!branch->empty()) {
    const auto found = look_for(s, *branch);
    if (!found)
      return fail(found.error());
    if (found->kind == absence::lost)
      return fail(told_as_lost(s, *branch, *found));
    if (found->kind == absence::interrupted)
      return make_interrupted(s, *branch, found->newest);
    return {};
  }
  const auto commit = head_commit(s);
  return commit ? result<void>{} : fail(commit.error());
}

void tell_of_branches(const session& s) {
  const auto refs = all_refs(s);
  if (!refs)
    s.notes->add(".git/packed-refs", "is damaged: " + refs.error().what + "; " + refs.error().next);
  const auto branch = missing_branch(s);
  if (git_repository_head_detached(s.repo.get()) == 1)
    s.notes->add(".git/HEAD",
                 "is detached: commits are on no branch, and `git gc` may remove them after the "
                 "next checkout; `git switch -c NAME` creates a branch for them");
  else if (branch && !branch->empty() && refs && !refs->empty())
    s.notes->add(".git/HEAD",
                 "is on the new branch " + short_name(*branch) +
                     ", which has no commits: the next commit starts a separate history");
  git_error_clear();
  tell_of_lost_branches(s);
}

error cannot_open(error why, const location& at) {
  constexpr std::size_t head_bytes = 1024;
  const auto file = at.git_dir + "/HEAD";
  const auto text = end_of_file(file, head_bytes);
  git_oid id{};
  const auto line = text ? trim(std::string_view(*text)) : std::string_view{};
  const bool sound = line.starts_with("ref:") || (line.size() == GIT_OID_HEXSZ && is_id(line, id));
  if (sound)
    return why;
  why.what = std::string(text ? "HEAD is damaged" : "HEAD is missing") + " (" + why.what + ")";
  why.where = file;
  why.next = "echo 'ref: refs/heads/main' > " + file +
             " (or its former branch); Boyd then opens the repository again by itself";
  return why;
}

} // namespace boyd::adapters::git
