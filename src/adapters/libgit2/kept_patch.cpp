#include "kept_patch.hpp"

#include "boyd/core/sha256.hpp"
#include "git_internal.hpp"

#include <utility>

namespace boyd::adapters {

namespace {

using namespace git;

struct opened {
  repository_ptr repo;
  tree_ptr base;
  diff_ptr patch;
};

result<opened> open_all(const std::string& path, const std::string& base, std::string_view patch) {
  start_library();
  opened o;
  int rc = fill(o.repo, [&](auto** out) {
    return git::open_repository(out, path, GIT_REPOSITORY_OPEN_NO_SEARCH);
  });
  if (rc == GIT_ENOTFOUND)
    return fail(errc::not_found, "no git repository", path);
  if (rc != 0)
    return fail(failure(rc, "cannot open the git repository", path));
  git_oid id{};
  commit_ptr commit;
  rc = git_oid_fromstr(&id, base.c_str());
  if (rc == 0)
    rc = fill(commit, [&](auto** out) { return git_commit_lookup(out, o.repo.get(), &id); });
  if (rc == 0)
    rc = fill(o.base, [&](auto** out) { return git_commit_tree(out, commit.get()); });
  if (rc != 0)
    return fail(errc::not_found, "the repository no longer has the base commit of the patch", base);
  rc = fill(o.patch,
            [&](auto** out) { return git_diff_from_buffer(out, patch.data(), patch.size()); });
  if (rc != 0)
    return fail(failure(rc, "cannot read the patch", path, errc::invalid_argument));
  return o;
}

result<std::string> content_of(git_repository* repo, const git_oid& id) {
  blob_ptr blob;
  if (const int rc = fill(blob, [&](auto** out) { return git_blob_lookup(out, repo, &id); });
      rc != 0)
    return fail(failure(rc, "cannot read a file of the repository", hex(id)));
  const auto* begin = static_cast<const char*>(git_blob_rawcontent(blob.get()));
  return std::string(begin, static_cast<std::size_t>(git_blob_rawsize(blob.get())));
}

/// Submodules have no content here.
bool has_content(unsigned mode) {
  return mode != 0 && mode != GIT_FILEMODE_COMMIT;
}

result<patched_file> read_file(const opened& o, git_index* after, const std::string& path) {
  patched_file f;
  f.path = path;
  entry_ptr entry;
  if (fill(entry, [&](auto** out) {
        return git_tree_entry_bypath(out, o.base.get(), path.c_str());
      }) == 0) {
    f.mode_before = static_cast<unsigned>(git_tree_entry_filemode(entry.get()));
    if (has_content(f.mode_before)) {
      auto text = content_of(o.repo.get(), *git_tree_entry_id(entry.get()));
      if (!text)
        return fail(std::move(text.error()));
      f.before = std::move(*text);
    }
  }
  if (const auto* now = git_index_get_bypath(after, path.c_str(), 0)) {
    f.mode_after = now->mode;
    if (has_content(f.mode_after)) {
      auto text = content_of(o.repo.get(), now->id);
      if (!text)
        return fail(std::move(text.error()));
      f.after = std::move(*text);
    }
  }
  return f;
}

} // namespace

bool is_whole_patch(const patch_heading& h, std::string_view patch) {
  const auto heading = to_text(h);
  return !h.hash.empty() && patch.size() == heading.size() + h.bytes &&
         sha256_hex(patch.substr(heading.size())) == h.hash;
}

result<std::vector<patched_file>> read_patched_files(const std::string& repo,
                                                     const std::string& base,
                                                     std::string_view patch, std::size_t files) {
  auto o = open_all(repo, base, patch);
  if (!o)
    return fail(std::move(o.error()));
  const auto count = git_diff_num_deltas(o->patch.get());
  if (count != files)
    return fail(errc::invalid_argument, "the patch has " + std::to_string(count) + " of " +
                                            std::to_string(files) + " files: it is incomplete");
  index_ptr after;
  if (const int rc = fill(after,
                          [&](auto** out) {
                            return git_apply_to_tree(out, o->repo.get(), o->base.get(),
                                                     o->patch.get(), nullptr);
                          });
      rc != 0)
    return fail(failure(rc, "the patch does not apply to its base commit", base, errc::conflict));
  std::vector<patched_file> out;
  for (std::size_t i = 0; i < count; ++i) {
    const auto* delta = git_diff_get_delta(o->patch.get(), i);
    const bool gone = delta->status == GIT_DELTA_DELETED;
    auto file = read_file(*o, after.get(), gone ? delta->old_file.path : delta->new_file.path);
    if (!file)
      return fail(std::move(file.error()));
    out.push_back(std::move(*file));
  }
  return out;
}

std::optional<std::string> merge_contents(std::string_view before, std::string_view ours,
                                          std::string_view theirs) {
  start_library();
  for (const auto text : {before, ours, theirs})
    if (text.find('\0') != std::string_view::npos)
      return std::nullopt;
  const auto input = [](std::string_view text) {
    git_merge_file_input in = GIT_MERGE_FILE_INPUT_INIT;
    in.ptr = text.data();
    in.size = text.size();
    return in;
  };
  const auto a = input(before);
  const auto b = input(ours);
  const auto c = input(theirs);
  git_merge_file_result merged{};
  if (git_merge_file(&merged, &a, &b, &c, nullptr) != 0)
    return std::nullopt;
  std::optional<std::string> out;
  if (merged.automergeable != 0)
    out.emplace(merged.ptr, merged.len);
  git_merge_file_result_free(&merged);
  return out;
}

} // namespace boyd::adapters
