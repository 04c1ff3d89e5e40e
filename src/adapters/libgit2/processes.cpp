#include "processes_internal.hpp"

#include <cctype>
#include <filesystem>
#include <fstream>
#include <limits>
#include <sstream>
#include <string_view>
#include <sys/stat.h>
#include <unistd.h>

namespace boyd::adapters::git {

namespace {

namespace fs = std::filesystem;

constexpr std::size_t longest_mark = 256;

/// The first bytes of a small file; empty when it cannot be read.
std::string head_of(const std::string& path, std::size_t most) {
  std::ifstream in(path, std::ios::binary);
  std::string text(most, '\0');
  in.read(text.data(), static_cast<std::streamsize>(most));
  text.resize(static_cast<std::size_t>(in.gcount()));
  return text;
}

std::string boot_id() {
  std::string id = head_of("/proc/sys/kernel/random/boot_id", longest_mark);
  while (!id.empty() && std::isspace(static_cast<unsigned char>(id.back())) != 0)
    id.pop_back();
  return id.empty() ? "unknown" : id;
}

std::string pid_namespace() {
  struct stat info {};
  return ::stat("/proc/self/ns/pid", &info) == 0 ? std::to_string(info.st_ino) : "unknown";
}

/// Field 22 of /proc/<pid>/stat (proc(5)), the start time in clock ticks; empty when there is no
/// such process. The name in field 2 may hold blanks, so fields are counted from its last ')'.
std::string start_of(const std::string& pid) {
  constexpr std::size_t stat_bytes = 1024;
  constexpr int fields_after_name = 20;
  const std::string text = head_of("/proc/" + pid + "/stat", stat_bytes);
  const auto name_end = text.rfind(')');
  if (name_end == std::string::npos)
    return {};
  std::istringstream rest(text.substr(name_end + 1));
  std::string field;
  for (int i = 0; i < fields_after_name; ++i)
    rest >> field;
  return field;
}

enum class mark_state { none, dead, living, unknown };

mark_state judge(const std::string& path) {
  std::istringstream in(head_of(path, longest_mark));
  std::string word;
  std::string pid;
  std::string start;
  std::string boot;
  std::string space;
  if (!(in >> word >> pid >> start >> boot >> space) || word != "boyd")
    return mark_state::none;
  if (boot != boot_id())
    return mark_state::dead;
  if (space != pid_namespace())
    return mark_state::unknown;
  return start_of(pid) == start ? mark_state::living : mark_state::dead;
}

bool is_inside(const std::string& path, const std::string& root) {
  return path == root || path.rfind(root + "/", 0) == 0;
}

/// True when the process is git and may be working in `work_tree`.
bool is_git_in(const std::string& process, const std::string& work_tree) {
  constexpr std::size_t name_bytes = 16;
  if (head_of(process + "/comm", name_bytes).rfind("git", 0) != 0)
    return false;
  std::error_code ec;
  const fs::path cwd = fs::read_symlink(process + "/cwd", ec);
  if (!ec)
    return is_inside(cwd.string(), work_tree);
  struct stat info {};
  if (ec != std::errc::permission_denied || ::stat(process.c_str(), &info) != 0)
    return false;
  return info.st_uid == 0 || info.st_uid == ::geteuid();
}

void note_open_files(const std::string& process, process_survey& out) {
  std::error_code ec;
  for (fs::directory_iterator it(process + "/fd", ec), end; !ec && it != end; it.increment(ec)) {
    struct stat info {};
    if (::stat(it->path().c_str(), &info) == 0 && S_ISREG(info.st_mode))
      out.open.insert({info.st_dev, info.st_ino});
  }
}

} // namespace

std::string own_mark() {
  const std::string pid = std::to_string(::getpid());
  return "boyd " + pid + " " + start_of(pid) + " " + boot_id() + " " + pid_namespace() + "\n";
}

bool is_mark_of_dead(const std::string& path) {
  return judge(path) == mark_state::dead;
}

bool is_mark_of_living(const std::string& path) {
  return judge(path) == mark_state::living;
}

bool is_own_mark(const std::string& path) {
  return head_of(path, longest_mark) == own_mark();
}

std::time_t boot_time() {
  std::ifstream in("/proc/stat");
  for (std::string key; in >> key; in.ignore(std::numeric_limits<std::streamsize>::max(), '\n')) {
    std::time_t seconds = 0;
    if (key == "btime" && in >> seconds)
      return seconds;
  }
  return 0;
}

process_survey survey_processes(const std::string& work_tree) {
  process_survey out;
  const std::string self = std::to_string(::getpid());
  std::error_code ec;
  for (fs::directory_iterator it("/proc", ec), end; !ec && it != end; it.increment(ec)) {
    const std::string pid = it->path().filename().string();
    if (pid.empty() || std::isdigit(static_cast<unsigned char>(pid.front())) == 0)
      continue;
    note_open_files(it->path().string(), out);
    if (pid != self && is_git_in(it->path().string(), work_tree))
      out.git_at_work = true;
  }
  return out;
}

} // namespace boyd::adapters::git
