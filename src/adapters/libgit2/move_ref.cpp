#include "git_internal.hpp"

#include <cerrno>
#include <chrono>
#include <cstring>
#include <fcntl.h>
#include <filesystem>
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

/// `path` with ".lock", held; removed at the end of the scope unless it has become `path`.
class ref_lock {
 public:
  explicit ref_lock(const std::string& path) : path_(path), lock_(path + ".lock") {}
  ref_lock(const ref_lock&) = delete;
  ref_lock& operator=(const ref_lock&) = delete;
  ~ref_lock() {
    if (fd_ >= 0)
      ::close(fd_);
    if (held_)
      ::unlink(lock_.c_str());
  }

  int take() {
    fd_ = create();
    if (fd_ < 0 && errno == ENOENT) {
      // A person's `git pack-refs` removes directories that have become empty.
      std::error_code ignored;
      fs::create_directories(fs::path(path_).parent_path(), ignored);
      fd_ = create();
    }
    if (fd_ < 0 && errno == EEXIST) {
      git_error_set_str(GIT_ERROR_OS, "the branch is locked");
      return GIT_ELOCKED;
    }
    held_ = fd_ >= 0;
    return held_ ? 0 : note_failure("cannot make", lock_, errno);
  }

  int replace(const std::string& bytes) {
    if (::write(fd_, bytes.data(), bytes.size()) != static_cast<ssize_t>(bytes.size()))
      return note_failure("cannot write", lock_, errno != 0 ? errno : ENOSPC);
    if (::fsync(fd_) != 0)
      return note_failure("cannot sync", lock_, errno);
    if (::rename(lock_.c_str(), path_.c_str()) != 0)
      return note_failure("cannot rename", lock_, errno);
    held_ = false;
    return sync_directory();
  }

 private:
  int create() const {
    return ::open(lock_.c_str(), O_CREAT | O_EXCL | O_WRONLY | O_CLOEXEC, private_file);
  }

  int sync_directory() const {
    const std::string directory = fs::path(path_).parent_path().string();
    const int fd = ::open(directory.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0)
      return note_failure("cannot open", directory, errno);
    const int rc = ::fsync(fd) == 0 ? 0 : note_failure("cannot sync", directory, errno);
    ::close(fd);
    return rc;
  }

  std::string path_;
  std::string lock_;
  int fd_ = -1;
  bool held_ = false;
};

/// Adds a line to a reflog that is there; one that a person has removed stays away. A line that
/// does not get through is not missed, but a part of one must not be read together with the next
/// one: as a commit that does not exist.
void add_to_reflog(const std::string& path, const std::string& line) {
  const int fd = ::open(path.c_str(), O_RDWR | O_APPEND | O_CLOEXEC | O_NOFOLLOW);
  if (fd < 0)
    return;
  struct stat info {};
  char last = '\n';
  if (::fstat(fd, &info) == 0 &&
      (info.st_size == 0 || ::pread(fd, &last, 1, info.st_size - 1) == 1)) {
    const std::string bytes = (last == '\n' ? "" : "\n") + line;
    if (::write(fd, bytes.data(), bytes.size()) != static_cast<ssize_t>(bytes.size()))
        [[maybe_unused]]
      const int cut = ::ftruncate(fd, info.st_size);
  }
  ::close(fd);
}

bool is_stored(const session& s, const git_oid& id) {
  odb_ptr odb;
  return fill(odb, [&](git_odb** out) { return git_repository_odb(out, s.repo.get()); }) == 0 &&
         git_odb_exists(odb.get(), &id) == 1;
}

} // namespace

int move_ref(const session& s, const std::string& name, const git_oid& from, const git_oid& to,
             const std::string& note) {
  // libgit2 1.5 takes no notice when the last bytes of an object find no room.
  if (!is_stored(s, to)) {
    git_error_set_str(GIT_ERROR_REFERENCE, "the new commit is not in the repository");
    return GIT_ERROR;
  }
  ref_lock lock(s.at->git_dir + "/" + name);
  if (const int rc = lock.take(); rc != 0)
    return rc;
  git_oid now{};
  if (const int rc = git_reference_name_to_id(&now, s.repo.get(), name.c_str()); rc != 0)
    return rc;
  if (git_oid_equal(&now, &from) == 0) {
    git_error_set_str(GIT_ERROR_REFERENCE, "the branch has moved");
    return GIT_EMODIFIED;
  }
  const auto at = std::chrono::system_clock::to_time_t(std::chrono::system_clock::now());
  const std::string line = hex(from) + " " + hex(to) + " " + s.at->who.name + " <" +
                           s.at->who.email + "> " + std::to_string(at) + " +0000\t" + note + "\n";
  const std::string logs = s.at->git_dir + "/logs/";
  add_to_reflog(logs + name, line);
  if (name != "HEAD")
    add_to_reflog(logs + "HEAD", line);
  return lock.replace(hex(to) + "\n");
}

} // namespace boyd::adapters::git
