#include "boyd/core/text.hpp"
#include "git_internal.hpp"
#include "names_internal.hpp"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <dirent.h>
#include <fcntl.h>
#include <memory>
#include <unistd.h>

namespace boyd::adapters::git {

namespace {

/// So many directories are looked at for one that cannot be read.
constexpr std::size_t most_directories = 100'000;
/// So many in every look for names that libgit2 passes over in silence.
constexpr std::size_t most_directories_each_time = 2'000;
/// Longest path that libgit2 works with, bytes with the final zero.
constexpr std::size_t longest_path = 4096;
/// Of a path that is shown.
constexpr std::size_t shown_characters = 200;

struct close_directory {
  void operator()(DIR* d) const noexcept { ::closedir(d); }
};
using directory = std::unique_ptr<DIR, close_directory>;

/// A rule of .gitignore for exactly this path.
std::string rule_for(const std::string& path) {
  std::string rule = "/";
  for (const char c : path) {
    if (c == '\n' || c == '\r') {
      rule += '?'; // a rule is a line
      continue;
    }
    if (std::strchr("*?[\\ !#", c) != nullptr)
      rule += '\\';
    rule += c;
  }
  return rule + "\n";
}

/// libgit2 does not go into repositories below.
bool has_git(const std::string& place) {
  struct stat info {};
  return ::lstat((place + "/.git").c_str(), &info) == 0;
}

bool is_ignored(const session& s, const std::string& path) {
  int ignored = 0;
  git_ignore_path_is_ignored(&ignored, s.repo.get(), path.c_str());
  git_error_clear();
  return ignored == 1;
}

class unreadable_search {
 public:
  unreadable_search(const session& s, git_index* index) : s_(s), index_(index) {}

  bool run() {
    look_at_entries();
    look_below_work_tree();
    for (const auto& [path, why] : found_)
      take(path, why);
    return !found_.empty();
  }

 private:
  using finding = std::pair<std::string, std::string>;

  void note(const std::string& path, int code) {
    if (code != ENOENT && code != ENOTDIR)
      found_.emplace_back(path, std::string("cannot be read (") + std::strerror(code) + ")");
  }

  void look_at_entries() {
    for (std::size_t i = 0; i < git_index_entrycount(index_); ++i) {
      const std::string path = git_index_get_byindex(index_, i)->path;
      const std::string full = s_.at->work_tree + "/" + path;
      struct stat info {};
      if (::lstat(full.c_str(), &info) != 0)
        note(path, errno);
      else if (S_ISREG(info.st_mode) && ::faccessat(AT_FDCWD, full.c_str(), R_OK, AT_EACCESS) != 0)
        note(path, errno);
    }
  }

  void look_below_work_tree() {
    std::vector<std::string> open{{}};
    for (std::size_t seen = 0; !open.empty() && seen < most_directories; ++seen) {
      const std::string below = std::move(open.back());
      open.pop_back();
      look_into(below, open);
    }
  }

  void look_into(const std::string& below, std::vector<std::string>& open) {
    const std::string full = s_.at->work_tree + "/" + below;
    const directory d(::opendir(full.c_str()));
    if (!d) {
      note(below.substr(0, below.size() - std::min<std::size_t>(below.size(), 1)), errno);
      return;
    }
    while (const dirent* e = ::readdir(d.get())) {
      const std::string name = e->d_name;
      if (name == "." || name == ".." || name == ".git")
        continue;
      struct stat info {};
      if (full.size() + name.size() + 2 >= longest_path)
        note(below + name, ENAMETOOLONG);
      else if (::fstatat(::dirfd(d.get()), name.c_str(), &info, AT_SYMLINK_NOFOLLOW) != 0)
        note(below + name, errno);
      else if (S_ISDIR(info.st_mode) && !has_git(full + name))
        open.push_back(below + name + "/");
      else if (S_ISREG(info.st_mode) &&
               ::faccessat(::dirfd(d.get()), name.c_str(), R_OK, AT_EACCESS) != 0)
        note(below + name, errno);
    }
  }

  void take(const std::string& path, const std::string& why) {
    git_index_remove(index_, path.c_str(), 0);
    git_index_remove_directory(index_, path.c_str(), 0);
    git_ignore_add_rule(s_.repo.get(), rule_for(path).c_str());
    git_error_clear();
    s_.notes->add(path,
                  why + ", so the history keeps its last version: make it readable, or remove it");
  }

  const session& s_;
  git_index* index_;
  std::vector<finding> found_;
};

} // namespace

void tell_of_unseen(const session& s) {
  std::vector<std::string> open{{}};
  for (std::size_t seen = 0; !open.empty() && seen < most_directories_each_time; ++seen) {
    const std::string below = std::move(open.back());
    open.pop_back();
    const directory d(::opendir((s.at->work_tree + "/" + below).c_str()));
    while (const dirent* e = d ? ::readdir(d.get()) : nullptr) {
      const std::string name = e->d_name;
      if (name == "." || name == ".." || name == ".git")
        continue;
      const bool special = e->d_type == DT_FIFO || e->d_type == DT_SOCK || e->d_type == DT_CHR ||
                           e->d_type == DT_BLK;
      if (s.at->work_tree.size() + below.size() + name.size() + 2 >= longest_path)
        s.notes->add(below + name,
                     "has a path that is too long and is not versioned: shorten the path");
      else if (is_refused_path(name, false))
        s.notes->add(below + name, refused_name_remark);
      else if (special && !is_ignored(s, below + name))
        s.notes->add(below + name, special_file_remark);
      else if (e->d_type == DT_DIR && !has_git(s.at->work_tree + "/" + below + name))
        open.push_back(below + name + "/");
    }
  }
}

bool set_aside_unreadable(const session& s, git_index* index) {
  return unreadable_search(s, index).run();
}

std::vector<std::string> remarks::texts() const {
  std::vector<std::string> out;
  for (const auto& [path, why] : by_path_) {
    std::string shown = sanitize_utf8(path);
    std::replace_if(
        shown.begin(), shown.end(),
        [](char c) { return static_cast<unsigned char>(c) < ' ' || c == '\x7f'; }, '?');
    if (count_characters(shown) > shown_characters)
      shown = std::string(cut_characters(shown, shown_characters)) + "…";
    out.push_back("\"" + shown + "\" " + why);
  }
  if (more_ > 0)
    out.push_back(std::to_string(more_) + " more files are not in the history");
  return out;
}

} // namespace boyd::adapters::git
