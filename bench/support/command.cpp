#include "bench/support/command.hpp"

#include <array>
#include <cerrno>
#include <fcntl.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

namespace boyd::bench {

namespace {

std::vector<std::string>
environment_with(const std::vector<std::pair<std::string, std::string>>& set) {
  std::vector<std::string> all;
  // The first of two equal names counts.
  for (const auto& [name, value] : set)
    all.push_back(name + "=" + value);
  for (char** entry = ::environ; *entry != nullptr; ++entry)
    all.emplace_back(*entry);
  return all;
}

std::vector<char*> pointers_to(std::vector<std::string>& texts) {
  std::vector<char*> all;
  for (auto& t : texts)
    all.push_back(t.data());
  all.push_back(nullptr);
  return all;
}

std::string read_all(int descriptor) {
  std::string text;
  std::array<char, 4096> buffer{};
  for (;;) {
    const auto n = ::read(descriptor, buffer.data(), buffer.size());
    if (n > 0)
      text.append(buffer.data(), static_cast<std::size_t>(n));
    else if (n == 0 || errno != EINTR)
      return text;
  }
}

} // namespace

result<std::string> run_command(const std::vector<std::string>& argv,
                                const std::vector<std::pair<std::string, std::string>>& set) {
  std::array<int, 2> pipe{};
  if (::pipe2(pipe.data(), O_CLOEXEC) != 0)
    return fail(errc::io_error, "no pipe");
  auto words = argv;
  auto variables = environment_with(set);
  auto raw_words = pointers_to(words);
  auto raw_variables = pointers_to(variables);
  posix_spawn_file_actions_t actions;
  ::posix_spawn_file_actions_init(&actions);
  ::posix_spawn_file_actions_adddup2(&actions, pipe[1], STDOUT_FILENO);
  pid_t pid = -1;
  const int failed =
      ::posix_spawnp(&pid, raw_words[0], &actions, nullptr, raw_words.data(), raw_variables.data());
  ::posix_spawn_file_actions_destroy(&actions);
  ::close(pipe[1]);
  auto text = failed == 0 ? read_all(pipe[0]) : std::string{};
  ::close(pipe[0]);
  if (failed != 0)
    return fail(errc::io_error, "cannot start " + argv.front());
  int status = 0;
  while (::waitpid(pid, &status, 0) < 0 && errno == EINTR)
    continue;
  if (!WIFEXITED(status) || WEXITSTATUS(status) != 0)
    return fail(errc::io_error, argv.front() + " failed", argv.size() > 1 ? argv[1] : "");
  return text;
}

} // namespace boyd::bench
