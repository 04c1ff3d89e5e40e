#include "boyd/core/limits.hpp"
#include "git_internal.hpp"

#include <functional>
#include <string_view>
#include <utility>

namespace boyd::adapters::git {

namespace {

utc_time time_of(const git_commit* c) {
  return utc_time{seconds{git_commit_time(c)}};
}

commit_info describe(git_commit* c) {
  commit_info info;
  info.hash = hex(*git_commit_id(c));
  info.time = time_of(c);
  if (const char* subject = git_commit_summary(c))
    info.subject = subject;
  git_message_trailer_array trailers{};
  if (git_message_trailers(&trailers, git_commit_message(c)) == 0) {
    for (std::size_t i = 0; i < trailers.count; ++i)
      info.trailers.emplace_back(trailers.trailers[i].key, trailers.trailers[i].value);
    git_message_trailer_array_free(&trailers);
  }
  return info;
}

/// The id of `path` in a commit's tree; zero when it is not there.
git_oid entry_id(const git_commit* c, const std::string& path) {
  git_oid id{};
  tree_ptr tree;
  entry_ptr entry;
  if (fill(tree, [&](git_tree** out) { return git_commit_tree(out, c); }) == 0 &&
      fill(entry, [&](git_tree_entry** out) {
        return git_tree_entry_bypath(out, tree.get(), path.c_str());
      }) == 0)
    id = *git_tree_entry_id(entry.get());
  return id;
}

/// As `git log -- path` decides: it differs from every parent's version.
bool touches(const git_commit* c, const std::string& path) {
  const git_oid own = entry_id(c, path);
  const unsigned parents = git_commit_parentcount(c);
  if (parents == 0)
    return git_oid_is_zero(&own) == 0;
  for (unsigned i = 0; i < parents; ++i) {
    commit_ptr parent;
    if (fill(parent, [&](git_commit** out) { return git_commit_parent(out, c, i); }) != 0)
      continue;
    const git_oid theirs = entry_id(parent.get(), path);
    if (git_oid_equal(&own, &theirs) != 0)
      return false;
  }
  return true;
}

/// Visits commits from HEAD, newest first, until `visit` answers false or limits::history_search is
/// reached. Without a sorting mode libgit2 walks lazily, by commit time.
result<void> walk(const session& s, const std::function<bool(git_commit*)>& visit) {
  auto head = head_commit(s);
  if (!head)
    return fail(std::move(head.error()));
  if (!*head)
    return {};
  walk_ptr walker;
  int rc = fill(walker, [&](git_revwalk** out) { return git_revwalk_new(out, s.repo.get()); });
  if (rc == 0)
    rc = git_revwalk_push(walker.get(), git_commit_id(head->get()));
  for (std::size_t seen = 0; rc == 0 && seen < limits::history_search; ++seen) {
    git_oid id{};
    rc = git_revwalk_next(&id, walker.get());
    if (rc != 0)
      break;
    commit_ptr commit;
    rc = fill(commit, [&](git_commit** out) { return git_commit_lookup(out, s.repo.get(), &id); });
    if (rc == 0 && !visit(commit.get()))
      return {};
  }
  if (rc != 0 && rc != GIT_ITEROVER)
    return fail(failure(rc, "cannot read the history", s.at->git_dir));
  return {};
}

result<tree_ptr> tree_of(const session& s, const std::string& revision) {
  object_ptr object;
  int rc = fill(object, [&](git_object** out) {
    return git_revparse_single(out, s.repo.get(), revision.c_str());
  });
  object_ptr peeled;
  if (rc == 0)
    rc = fill(peeled, [&](git_object** out) {
      return git_object_peel(out, object.get(), GIT_OBJECT_TREE);
    });
  if (rc != 0)
    return fail(failure(rc, "no such revision", revision,
                        rc == GIT_ENOTFOUND ? errc::not_found : errc::invalid_argument));
  return tree_ptr(reinterpret_cast<git_tree*>(peeled.release()));
}

struct printed {
  std::string text;
  bool too_long = false;
};

int print_line(const git_diff_delta*, const git_diff_hunk*, const git_diff_line* line,
               void* payload) {
  auto& out = *static_cast<printed*>(payload);
  if (out.text.size() + line->content_len + 1 > limits::revision_bytes) {
    out.too_long = true;
    return GIT_EUSER;
  }
  if (line->origin == GIT_DIFF_LINE_CONTEXT || line->origin == GIT_DIFF_LINE_ADDITION ||
      line->origin == GIT_DIFF_LINE_DELETION)
    out.text += line->origin;
  out.text.append(line->content, line->content_len);
  return 0;
}

} // namespace

result<std::vector<commit_info>> history(const session& s, const std::string& path, std::size_t n) {
  std::vector<commit_info> out;
  if (n == 0)
    return out;
  auto walked = walk(s, [&](git_commit* c) {
    if (path.empty() || touches(c, path))
      out.push_back(describe(c));
    return out.size() < n;
  });
  if (!walked)
    return fail(std::move(walked.error()));
  return out;
}

result<std::string> commit_at(const session& s, utc_time t) {
  std::string found;
  auto walked = walk(s, [&](git_commit* c) {
    if (time_of(c) <= t)
      found = hex(*git_commit_id(c));
    return found.empty();
  });
  if (!walked)
    return fail(std::move(walked.error()));
  if (found.empty())
    return fail(errc::not_found, "no commit is as old as " + format_rfc3339(t), s.at->work_tree);
  return found;
}

namespace {

bool keeps_commits(std::string_view ref) {
  return ref.starts_with("refs/heads/") || ref.starts_with("refs/remotes/") ||
         ref.starts_with("refs/tags/");
}

/// What HEAD, branches and tags point at; one that points at no commit is left out.
std::vector<git_oid> tips(const session& s) {
  std::vector<git_oid> all;
  const auto add = [&](const char* name) {
    object_ptr commit;
    reference_ptr ref;
    const bool found = fill(ref,
                            [&](git_reference** out) {
                              return git_reference_lookup(out, s.repo.get(), name);
                            }) == 0 &&
                       fill(commit, [&](git_object** out) {
                         return git_reference_peel(out, ref.get(), GIT_OBJECT_COMMIT);
                       }) == 0;
    if (found)
      all.push_back(*git_object_id(commit.get()));
  };
  add("HEAD");
  git_strarray names{};
  if (git_reference_list(&names, s.repo.get()) == 0)
    for (std::size_t i = 0; i < names.count; ++i)
      if (keeps_commits(names.strings[i]))
        add(names.strings[i]);
  git_strarray_dispose(&names);
  git_error_clear();
  return all;
}

} // namespace

result<bool> is_kept(const session& s, const std::string& hash) {
  git_oid id{};
  commit_ptr commit;
  if (git_oid_fromstr(&id, hash.c_str()) != 0)
    return fail(errc::invalid_argument, "not a commit's hash: " + hash, s.at->work_tree);
  int rc =
      fill(commit, [&](git_commit** out) { return git_commit_lookup(out, s.repo.get(), &id); });
  if (rc == GIT_ENOTFOUND)
    return false;
  const auto all = tips(s);
  if (rc == 0)
    rc = git_graph_reachable_from_any(s.repo.get(), &id, all.data(), all.size());
  if (rc < 0)
    return fail(failure(rc, "cannot search the branches for a commit", hash));
  return rc == 1;
}

namespace {

/// From a tree to the files as they are. `again`: without what cannot be read.
result<diff_ptr> diff_to_files(const session& s, git_tree* from, git_diff_options options,
                               bool again) {
  options.flags |= GIT_DIFF_INCLUDE_UNTRACKED | GIT_DIFF_RECURSE_UNTRACKED_DIRS |
                   GIT_DIFF_SHOW_UNTRACKED_CONTENT;
  bool rebuilt = false;
  auto index = read_index(s, s.at->git_dir + "/index", &rebuilt);
  if (!index)
    return fail(std::move(index.error()));
  diff_ptr made;
  int rc = fill(made, [&](git_diff** out) {
    return git_diff_tree_to_index(out, s.repo.get(), from, index->get(), &options);
  });
  if (rc != 0)
    return fail(failure(rc, "cannot compare with the index", s.at->git_dir));
  if (again)
    set_aside_unreadable(s, index->get());
  auto files = compare_files(s, index->get(), options);
  if (!files)
    return files;
  rc = git_diff_merge(made.get(), files->get());
  if (rc != 0)
    return fail(failure(rc, "cannot compare with the files", s.at->work_tree));
  return made;
}

result<diff_ptr> diff_to_revision(const session& s, git_tree* from, const std::string& b,
                                  const git_diff_options& options) {
  auto to = tree_of(s, b);
  if (!to)
    return fail(std::move(to.error()));
  diff_ptr made;
  const int rc = fill(made, [&](git_diff** out) {
    return git_diff_tree_to_tree(out, s.repo.get(), from, to->get(), &options);
  });
  if (rc != 0)
    return fail(failure(rc, "cannot compare", b));
  return made;
}

} // namespace

result<std::string> diff(const session& s, const std::string& a, const std::string& b) {
  auto from = tree_of(s, a);
  if (!from)
    return fail(std::move(from.error()));
  git_diff_options options = GIT_DIFF_OPTIONS_INIT;
  options.flags = GIT_DIFF_IGNORE_SUBMODULES;
  for (const bool again : {false, true}) {
    auto made = b.empty() ? diff_to_files(s, from->get(), options, again)
                          : diff_to_revision(s, from->get(), b, options);
    if (!made)
      return fail(std::move(made.error()));
    printed out;
    const int rc = git_diff_print(made->get(), GIT_DIFF_FORMAT_PATCH, print_line, &out);
    if (out.too_long)
      return fail(errc::limit_exceeded, "the difference is too long to show", a + ".." + b,
                  "compare points that are closer together, or use git diff");
    if (rc == 0)
      return std::move(out.text);
    if (again || !b.empty())
      return fail(failure(rc, "cannot compare", a + ".." + b));
    git_error_clear();
  }
  return std::string{};
}

result<std::string> read_at(const session& s, const std::string& revision,
                            const std::string& path) {
  auto tree = tree_of(s, revision);
  if (!tree)
    return fail(std::move(tree.error()));
  const std::string where = revision + ":" + path;
  entry_ptr entry;
  int rc = fill(entry, [&](git_tree_entry** out) {
    return git_tree_entry_bypath(out, tree->get(), path.c_str());
  });
  if (rc != 0 || git_tree_entry_type(entry.get()) != GIT_OBJECT_BLOB)
    return fail(errc::not_found, "no such file in that commit", where);
  blob_ptr blob;
  rc = fill(blob, [&](git_blob** out) {
    return git_blob_lookup(out, s.repo.get(), git_tree_entry_id(entry.get()));
  });
  if (rc != 0)
    return fail(failure(rc, "cannot read the file's version", where));
  const auto size = static_cast<std::size_t>(git_blob_rawsize(blob.get()));
  if (size > limits::revision_bytes)
    return fail(errc::limit_exceeded, "the file's version is too large", where);
  return std::string(static_cast<const char*>(git_blob_rawcontent(blob.get())), size);
}

} // namespace boyd::adapters::git
