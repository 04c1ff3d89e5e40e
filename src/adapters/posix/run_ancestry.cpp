#include "run_ancestry.hpp"

#include "boyd/core/text.hpp"
#include "proc_fs.hpp"
#include "process_wire.hpp"

#include <cerrno>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <string_view>
#include <system_error>

namespace boyd::adapters {

namespace {

/// A chain of parents that is longer is not walked to its end.
constexpr int most_generations = 256;

/// Another user's, where /proc shows only one's own (hidepid): what stands above it is not seen.
bool is_concealed(pid_t pid) {
  return ::kill(pid, 0) != 0 && errno == EPERM;
}

/// A program that was started by the link /proc/self/exe has the link's name, which says nothing.
std::string named_program(pid_t pid) {
  constexpr std::string_view gone = " (deleted)";
  auto name = program_name(pid);
  if (name != "exe")
    return name;
  std::error_code failed;
  const auto file = std::filesystem::read_symlink("/proc/" + std::to_string(pid) + "/exe", failed);
  if (failed)
    return name;
  name = file.filename().string();
  if (name.ends_with(gone))
    name.resize(name.size() - gone.size());
  return name;
}

/// Not from other directories of users: these may take long to answer.
std::string user_name(std::int64_t user) {
  if (user < 0)
    return "an unknown user";
  const auto id = std::to_string(user);
  std::ifstream users("/etc/passwd");
  for (std::string line; std::getline(users, line);) {
    const auto fields = split(line, ':');
    if (fields.size() > 2 && fields[2] == id && !fields[0].empty())
      return std::string(fields[0]);
  }
  return "user " + id;
}

} // namespace

std::string describe_process(pid_t pid) {
  const auto name = named_program(pid);
  return (name.empty() ? "a program" : name) + " (process " + std::to_string(pid) + ")";
}

std::string describe_caller(pid_t pid, std::int64_t user) {
  return user_name(user) + ", with " + describe_process(pid);
}

std::string why_not_a_person(pid_t pid, pid_t node, bool hidden) {
  if (pid <= 0)
    return "the calling process is unknown";
  if (parent_of(pid) < 0 && !(hidden && is_concealed(pid)))
    return "the calling process has ended: " + std::to_string(pid);
  if (!hidden && !may_look_into(pid))
    return "cannot tell whether the process belongs to a run: " + describe_process(pid);
  auto at = pid;
  for (int i = 0; i < most_generations; ++i) {
    if (at == node)
      return "the node started the process: " + describe_process(pid);
    if (is_process_host(at))
      return "a node's process host started the process: " + describe_process(pid);
    if (!environment_value(at, wire::run_variable).empty())
      return "the process belongs to an agent's run: " + describe_process(at);
    const auto parent = parent_of(at);
    if (parent < 0 && !is_concealed(at))
      return "one of its parent processes has just ended; try again";
    if (parent <= 0)
      return {};
    at = parent;
  }
  return "the process has too many parent processes";
}

} // namespace boyd::adapters
