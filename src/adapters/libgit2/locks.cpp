#include "boyd/core/limits.hpp"
#include "locks_internal.hpp"
#include "processes_internal.hpp"

#include <spdlog/spdlog.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <ctime>
#include <fcntl.h>
#include <filesystem>
#include <map>
#include <mutex>
#include <optional>
#include <set>
#include <string_view>
#include <sys/stat.h>
#include <thread>
#include <unistd.h>
#include <utility>
#include <vector>

namespace boyd::adapters::git {

namespace {

namespace fs = std::filesystem;

constexpr milliseconds longest_pause{50};
/// A repository with more refs than this is not one of ours; the rest is left alone.
constexpr std::size_t most_files_searched = 100'000;
constexpr int deepest_ref = 16;

struct leftover {
  std::string path;
  struct stat info {};
};

std::optional<leftover> look(const std::string& path) {
  leftover l{path, {}};
  if (::lstat(path.c_str(), &l.info) != 0 || !S_ISREG(l.info.st_mode))
    return std::nullopt;
  return l;
}

bool earlier(const timespec& a, const timespec& b) {
  return a.tv_sec != b.tv_sec ? a.tv_sec < b.tv_sec : a.tv_nsec < b.tv_nsec;
}

/// Rule 2 of repository.hpp, without the look at the processes.
bool is_old(const struct stat& info) {
  timespec now{};
  ::clock_gettime(CLOCK_REALTIME, &now);
  const auto age = seconds{now.tv_sec - info.st_mtim.tv_sec};
  return age > limits::stale_lock_age || info.st_mtim.tv_sec < boot_time();
}

bool ends_with(std::string_view text, std::string_view tail) {
  return text.size() >= tail.size() && text.substr(text.size() - tail.size()) == tail;
}

/// Regular files below `root` whose name passes `wanted`; bounded.
template <class F>
void collect(const std::string& root, F wanted, std::vector<leftover>& out) {
  std::error_code ec;
  std::size_t seen = 0;
  fs::recursive_directory_iterator it(root, ec);
  const fs::recursive_directory_iterator end;
  while (!ec && it != end && seen++ < most_files_searched) {
    if (it.depth() >= deepest_ref)
      it.disable_recursion_pending();
    if (wanted(it->path().filename().string()))
      if (auto l = look(it->path().string()))
        out.push_back(std::move(*l));
    it.increment(ec);
  }
}

/// Removes it unless it has been exchanged since it was judged; false when it stays.
bool remove_leftover(const leftover& l, std::string_view why) {
  const auto now = look(l.path);
  if (!now || now->info.st_ino != l.info.st_ino || now->info.st_dev != l.info.st_dev)
    return true;
  if (::unlink(l.path.c_str()) == 0) {
    spdlog::warn("removed a leftover git file: {} ({})", l.path, why);
    return true;
  }
  if (errno == ENOENT)
    return true;
  spdlog::warn("cannot remove the leftover git file {}: {}", l.path, std::strerror(errno));
  return false;
}

std::vector<leftover> ref_locks(const std::string& git_dir) {
  std::vector<leftover> out;
  for (const char* name : {"/HEAD.lock", "/packed-refs.lock", "/config.lock"})
    if (auto l = look(git_dir + name))
      out.push_back(std::move(*l));
  collect(
      git_dir + "/refs", [](const std::string& name) { return ends_with(name, ".lock"); }, out);
  return out;
}

bool is_temporary_object(const std::string& name) {
  for (const char* start : {"tmp_obj", "tmp_pack_", "tmp_idx_", "pack_git2_"})
    if (name.rfind(start, 0) == 0)
      return true;
  return false;
}

/// A spare lock file whose process has ended, or one of ours that we do not know: its directory was
/// away when it was to be dropped.
bool is_abandoned(const leftover& l) {
  return is_mark_of_dead(l.path) ||
         (is_own_mark(l.path) && !spares().knows({l.info.st_dev, l.info.st_ino}));
}

/// Temporary objects and packs, and pack indexes whose pack was removed before them.
std::vector<leftover> temporary_files(const std::string& git_dir) {
  std::vector<leftover> out;
  collect(git_dir + "/objects", is_temporary_object, out);
  std::vector<leftover> indexes;
  collect(
      git_dir + "/objects/pack", [](const std::string& name) { return ends_with(name, ".idx"); },
      indexes);
  for (auto& l : indexes)
    if (!look(l.path.substr(0, l.path.size() - std::strlen("idx")) + "pack"))
      out.push_back(std::move(l));
  std::error_code ec;
  for (fs::directory_iterator it(git_dir, ec), end; !ec && it != end; it.increment(ec))
    if (it->path().filename().string().rfind("boyd-", 0) == 0)
      if (auto l = look(it->path().string());
          l && (!is_mark_of_living(l->path) || is_abandoned(*l)))
        out.push_back(std::move(*l));
  return out;
}

/// The locks that this process holds, all its threads together: a lock with our mark that is not
/// among them was given up, because its directory was away when it was to be released.
class held_locks {
 public:
  void add(const lock_id& id) {
    const std::lock_guard guard(mutex_);
    ids_.insert(id);
  }

  void remove(const lock_id& id) {
    const std::lock_guard guard(mutex_);
    ids_.erase(id);
  }

  /// A lock is added before it gets its name and removed after it lost it, so one that has its name
  /// and is not here is nobody's.
  bool has_given_up(const std::string& path) {
    const std::lock_guard guard(mutex_);
    const auto l = look(path);
    return l && ids_.count({l->info.st_dev, l->info.st_ino}) == 0 && is_own_mark(path);
  }

 private:
  std::mutex mutex_;
  std::set<lock_id> ids_;
};

held_locks& held() {
  static held_locks all;
  return all;
}

/// Makes `path` a second name of a file with the holder's name in it, in one step; an errno value
/// or 0. `file` is held then.
int make_lock(const std::string& git_dir, const std::string& path, spare_lock& file) {
  if (const int code = spares().take(git_dir, file); code != 0)
    return code;
  held().add(file.id);
  if (::link(file.path.c_str(), path.c_str()) == 0)
    return 0;
  const int code = errno;
  held().remove(file.id);
  if (code == EEXIST)
    spares().give_back(git_dir, std::move(file));
  else
    spares().drop(file);
  return code;
}

/// Of every repository whose locks this process has waited for.
struct patience_by_repository {
  std::mutex mutex;
  std::map<std::string, lock_patience> of;
};

patience_by_repository& all_patience() {
  static patience_by_repository all;
  return all;
}

lock_clock::time_point patience_until(const std::string& git_dir, lock_clock::time_point now) {
  auto& all = all_patience();
  const std::lock_guard guard(all.mutex);
  const lock_patience fresh(limits::repository_lock_wait, limits::stale_lock_age);
  return all.of.try_emplace(git_dir, fresh).first->second.until(now);
}

} // namespace

lock_clock::time_point lock_patience::until(lock_clock::time_point now) {
  if (!until_ || now >= *until_ + rest_)
    until_ = now + most_;
  return *until_;
}

void renew_patience(const std::string& git_dir) {
  auto& all = all_patience();
  const std::lock_guard guard(all.mutex);
  all.of.erase(git_dir);
}

bool lock_wait::again() {
  const auto now = lock_clock::now();
  if (!deadline_)
    deadline_ = std::min(now + most_, patience_until(git_dir_, now));
  if (now >= *deadline_)
    return false;
  std::this_thread::sleep_for(pause_);
  pause_ = std::min(pause_ * 2, longest_pause);
  return true;
}

result<index_lock> index_lock::acquire(const std::string& work_tree, const std::string& git_dir,
                                       milliseconds most) {
  const std::string path = git_dir + "/index.lock";
  lock_wait wait(git_dir, most);
  for (bool recovered = false;;) {
    spare_lock file;
    const int code = make_lock(git_dir, path, file);
    if (code == 0)
      return index_lock(git_dir, std::move(file));
    if (code != EEXIST)
      return fail(code == ENOSPC || code == EDQUOT ? errc::no_space : errc::repository_unavailable,
                  std::string("cannot lock the git index: ") + std::strerror(code), path);
    if (!recovered) {
      recover_locks(work_tree, git_dir);
      recovered = true;
      continue;
    }
    if (!wait.again()) {
      recover_locks(work_tree, git_dir);
      return fail(errc::locked, "another process has locked the git index", path,
                  "wait for it to end; a leftover lock is removed after one minute");
    }
  }
}

index_lock::~index_lock() {
  if (git_dir_.empty())
    return;
  // Another repository may stand in the place of the one that was locked.
  const std::string path = git_dir_ + "/index.lock";
  const auto l = look(path);
  const bool released =
      l && lock_id{l->info.st_dev, l->info.st_ino} == file_.id && ::unlink(path.c_str()) == 0;
  held().remove(file_.id);
  if (released)
    spares().give_back(git_dir_, std::move(file_));
  else
    spares().drop(file_);
}

void recover_locks(const std::string& work_tree, const std::string& git_dir) {
  // One thread at a time: what one judges must not be taken anew by another one meanwhile.
  static std::mutex one_at_a_time;
  const std::lock_guard guard(one_at_a_time);
  const auto index = look(git_dir + "/index.lock");
  const bool given_up = index && held().has_given_up(index->path);
  const bool own_dead = given_up || (index && is_mark_of_dead(index->path));
  const std::string_view why = given_up ? "this node has abandoned it" : "its process has ended";
  auto refs = ref_locks(git_dir);
  auto temporary = temporary_files(git_dir);
  if (!index && refs.empty() && temporary.empty())
    return;
  std::optional<process_survey> survey;
  const auto unused = [&](const leftover& l) {
    if (!survey)
      survey = survey_processes(work_tree);
    return !survey->git_at_work && !survey->holds(l.info.st_dev, l.info.st_ino);
  };
  bool own_are_gone = true;
  for (const auto& l : refs) {
    const bool of_own = own_dead && !earlier(l.info.st_mtim, index->info.st_mtim);
    if ((of_own || is_old(l.info)) && unused(l))
      own_are_gone = remove_leftover(l, of_own ? why : "no process holds it") && own_are_gone;
  }
  for (const auto& l : temporary)
    if (is_abandoned(l))
      ::unlink(l.path.c_str());
    else if (is_old(l.info) && unused(l))
      remove_leftover(l, "no process holds it");
  // It is what tells whose the others are: it stays as long as one of them does.
  if (own_dead && own_are_gone)
    remove_leftover(*index, why);
  else if (index && !own_dead && !is_mark_of_living(index->path) && is_old(index->info) &&
           unused(*index))
    remove_leftover(*index, "no process holds it");
}

} // namespace boyd::adapters::git
