#include "proc_fs.hpp"

#include "../unique_fd.hpp"
#include "process_host.hpp"

#include <algorithm>
#include <charconv>
#include <dirent.h>
#include <fcntl.h>

namespace boyd::adapters {

namespace {

/// No file of /proc that is read here is larger in practice; a hostile one is cut.
constexpr std::size_t max_proc_bytes = 4u << 20;
constexpr std::size_t read_chunk = 4096;

bool read_all(const std::string& path, std::string& into) {
  const unique_fd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!fd)
    return false;
  char chunk[read_chunk];
  while (into.size() < max_proc_bytes) {
    const auto n = ::read(fd.get(), chunk, sizeof chunk);
    if (n < 0)
      return false;
    if (n == 0)
      break;
    into.append(chunk, static_cast<std::size_t>(n));
  }
  return true;
}

std::vector<pid_t> parse_numbers(std::string_view text) {
  std::vector<pid_t> found;
  const char* at = text.data();
  const char* const end = at + text.size();
  while (at < end) {
    pid_t pid = 0;
    const auto [next, failed] = std::from_chars(at, end, pid);
    if (failed == std::errc{})
      found.push_back(pid);
    at = next == at ? at + 1 : next;
  }
  return found;
}

} // namespace

/// The fourth field of /proc/<pid>/stat; the second may hold spaces and parentheses.
pid_t parent_of(pid_t pid) {
  std::string text;
  if (!read_all("/proc/" + std::to_string(pid) + "/stat", text))
    return -1;
  const auto name_end = text.rfind(')');
  constexpr std::size_t to_parent = 4; // ") S "
  if (name_end == std::string::npos || name_end + to_parent >= text.size())
    return -1;
  const auto numbers = parse_numbers(std::string_view(text).substr(name_end + to_parent));
  return numbers.empty() ? -1 : numbers.front();
}

std::string program_name(pid_t pid) {
  std::string text;
  if (!read_all("/proc/" + std::to_string(pid) + "/comm", text))
    return {};
  while (!text.empty() && text.back() == '\n')
    text.pop_back();
  return text;
}

bool may_look_into(pid_t pid) {
  std::string text;
  return read_all("/proc/" + std::to_string(pid) + "/environ", text);
}

bool is_process_host(pid_t pid) {
  std::string text;
  if (!read_all("/proc/" + std::to_string(pid) + "/cmdline", text))
    return false;
  const auto first = text.find('\0');
  if (first == std::string::npos)
    return false;
  const auto second = std::string_view(text).substr(first + 1);
  return second.substr(0, second.find('\0')) == process_host_argument;
}

bool is_in_exec(pid_t pid) {
  std::string text;
  return read_all("/proc/" + std::to_string(pid) + "/cmdline", text) && text.empty();
}

std::vector<pid_t> all_processes() {
  std::vector<pid_t> found;
  DIR* dir = ::opendir("/proc");
  if (dir == nullptr)
    return found;
  while (const dirent* entry = ::readdir(dir)) {
    const std::string_view name(entry->d_name);
    pid_t pid = 0;
    const auto [end, failed] = std::from_chars(name.data(), name.data() + name.size(), pid);
    if (failed == std::errc{} && end == name.data() + name.size())
      found.push_back(pid);
  }
  ::closedir(dir);
  return found;
}

std::vector<pid_t> children_of(pid_t pid) {
  const std::string id = std::to_string(pid);
  std::string text;
  if (read_all("/proc/" + id + "/task/" + id + "/children", text))
    return parse_numbers(text);
  std::vector<pid_t> found;
  for (const pid_t candidate : all_processes())
    if (parent_of(candidate) == pid)
      found.push_back(candidate);
  return found;
}

std::vector<pid_t> descendants_of(pid_t pid) {
  std::vector<pid_t> found = children_of(pid);
  for (std::size_t i = 0; i < found.size() && found.size() < max_descendants; ++i) {
    const auto below = children_of(found[i]);
    found.insert(found.end(), below.begin(), below.end());
  }
  return found;
}

std::string environment_value(pid_t pid, std::string_view name) {
  std::string text;
  if (!read_all("/proc/" + std::to_string(pid) + "/environ", text))
    return {};
  std::string_view rest(text);
  while (!rest.empty()) {
    const auto end = std::min(rest.find('\0'), rest.size());
    const auto variable = rest.substr(0, end);
    if (variable.size() > name.size() && variable.starts_with(name) && variable[name.size()] == '=')
      return std::string(variable.substr(name.size() + 1));
    rest.remove_prefix(std::min(end + 1, rest.size()));
  }
  return {};
}

} // namespace boyd::adapters
