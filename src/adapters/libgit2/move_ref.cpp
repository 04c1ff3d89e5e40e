#include "git_internal.hpp"
#include "locks_internal.hpp"

#include <cerrno>
#include <chrono>
#include <cstdint>
#include <cstring>
#include <fcntl.h>
#include <filesystem>
#include <map>
#include <mutex>
#include <unistd.h>

namespace boyd::adapters::git {

namespace {

namespace fs = std::filesystem;

constexpr mode_t private_file = 0600;

/// What failure() reports of a system call.
int note_failure(const char* doing, const std::string& path, int code) {
  const std::string text = std::string(doing) + " " + path + ": " + std::strerror(code);
  git_error_set_str(GIT_ERROR_OS, text.c_str());
  return GIT_ERROR;
}

struct doubtful_ref {
  std::string name;
  std::uint64_t number = 0; ///< a newer doubt must not be settled with an older one
};

/// Of each repository the one that moved last.
struct doubtful_refs {
  std::mutex mutex;
  std::map<std::string, doubtful_ref> by_repository;
  std::uint64_t told = 0;
};

doubtful_refs& doubts() {
  static doubtful_refs all;
  return all;
}

/// Adds a line to a reflog that is there; one that a person has removed stays away. A line that
/// does not get through is not missed, but a part of one must not be read together with the next
/// one: as a commit that does not exist. A file with a second name may be somebody's from
/// elsewhere.
void add_to_reflog(const std::string& path, const std::string& line) {
  const int fd = ::open(path.c_str(), O_RDWR | O_APPEND | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
  if (fd < 0)
    return;
  struct stat info {};
  char last = '\n';
  if (::fstat(fd, &info) == 0 && S_ISREG(info.st_mode) && info.st_nlink == 1 &&
      (info.st_size == 0 || ::pread(fd, &last, 1, info.st_size - 1) == 1)) {
    const std::string bytes = (last == '\n' ? "" : "\n") + line;
    if (::write(fd, bytes.data(), bytes.size()) != static_cast<ssize_t>(bytes.size()))
        [[maybe_unused]]
      const int cut = ::ftruncate(fd, info.st_size);
  }
  ::close(fd);
}

} // namespace

ref_move::ref_move(const session& s, std::string name)
    : s_(s), name_(std::move(name)), path_(s.at->git_dir + "/" + name_), lock_(path_ + ".lock") {}

ref_move::~ref_move() {
  if (held_)
    ::unlink(lock_.c_str());
}

int ref_move::create() const {
  return ::open(lock_.c_str(), O_CREAT | O_EXCL | O_WRONLY | O_CLOEXEC, private_file);
}

int ref_move::take() {
  file_.reset(create());
  if (!file_ && errno == ENOENT) {
    // A person's `git pack-refs` removes directories that have become empty.
    std::error_code ignored;
    fs::create_directories(fs::path(path_).parent_path(), ignored);
    file_.reset(create());
  }
  if (!file_ && errno == EEXIST) {
    git_error_set_str(GIT_ERROR_OS, "the branch is locked");
    return GIT_ELOCKED;
  }
  held_ = static_cast<bool>(file_);
  return held_ ? 0 : note_failure("cannot create", lock_, errno);
}

int ref_move::prepare(const git_oid& from, const git_oid& to) {
  if (const int rc = take(); rc != 0)
    return rc;
  git_oid now{};
  if (const int rc = git_reference_name_to_id(&now, s_.repo.get(), name_.c_str()); rc != 0)
    return rc;
  if (git_oid_equal(&now, &from) == 0) {
    git_error_set_str(GIT_ERROR_REFERENCE, "the branch has moved");
    return GIT_EMODIFIED;
  }
  from_ = from;
  to_ = to;
  return write_lock();
}

int ref_move::write_lock() {
  const std::string bytes = hex(to_) + "\n";
  errno = 0;
  if (::write(file_.get(), bytes.data(), bytes.size()) != static_cast<ssize_t>(bytes.size()))
    return note_failure("cannot write", lock_, errno != 0 ? errno : ENOSPC);
  return 0;
}

int ref_move::finish(const std::string& note) {
  const auto at = std::chrono::system_clock::to_time_t(std::chrono::system_clock::now());
  const auto& who = s_.at->who;
  const std::string line = hex(from_) + " " + hex(to_) + " " + who.name + " <" + who.email + "> " +
                           std::to_string(at) + " +0000\t" + note + "\n";
  const std::string logs = s_.at->git_dir + "/logs/";
  add_to_reflog(logs + name_, line);
  if (name_ != "HEAD")
    add_to_reflog(logs + "HEAD", line);
  return put_in_place();
}

int ref_move::put_in_place() {
  if (::rename(lock_.c_str(), path_.c_str()) != 0)
    return note_failure("cannot rename", lock_, errno);
  held_ = false;
  const auto directory = fs::path(path_).parent_path().string();
  std::string failed;
  const int code = sync_directories({directory}, failed);
  return code == 0 ? 0 : note_failure("cannot sync", failed, code);
}

int ref_move::write_again() {
  if (const int rc = take(); rc != 0)
    return rc;
  // Somebody may have moved it on since: then what they made of it is written.
  if (const int rc = git_reference_name_to_id(&to_, s_.repo.get(), name_.c_str()); rc != 0)
    return rc;
  if (const int rc = write_lock(); rc != 0)
    return rc;
  if (::fsync(file_.get()) != 0)
    return note_failure("cannot sync", lock_, errno);
  return put_in_place();
}

void doubt_ref(const session& s, const std::string& name) {
  const std::lock_guard lock(doubts().mutex);
  doubts().by_repository[s.at->git_dir] = {name, ++doubts().told};
}

result<void> settle_doubt(const session& s) {
  doubtful_ref doubt;
  {
    const std::lock_guard lock(doubts().mutex);
    const auto found = doubts().by_repository.find(s.at->git_dir);
    if (found == doubts().by_repository.end())
      return {};
    doubt = found->second;
  }
  const auto& name = doubt.name;
  reference_ptr ref;
  int rc = fill(ref, [&](git_reference** out) {
    return git_reference_lookup(out, s.repo.get(), name.c_str());
  });
  // A branch that a person has removed since, or a HEAD that is on a branch again, needs nothing.
  const bool gone =
      rc == GIT_ENOTFOUND || (rc == 0 && git_reference_type(ref.get()) != GIT_REFERENCE_DIRECT);
  if (!gone && rc == 0)
    rc = ref_move(s, name).write_again();
  if (!gone && rc != 0) {
    auto why = failure(rc, "cannot sync to disk", name, errc::io_error);
    if (rc == GIT_ELOCKED)
      recover_locks(s.at->work_tree, s.at->git_dir);
    return fail(std::move(why));
  }
  const std::lock_guard lock(doubts().mutex);
  std::erase_if(doubts().by_repository, [&](const auto& each) {
    return each.first == s.at->git_dir && each.second.number == doubt.number;
  });
  return {};
}

} // namespace boyd::adapters::git
