#include "program.hpp"

#include "support/pch.hpp"
#include "support/wait.hpp"

#include <algorithm>
#include <array>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <fcntl.h>
#include <fstream>
#include <poll.h>
#include <spawn.h>
#include <sstream>
#include <stdexcept>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

namespace boyd::test {

namespace {

constexpr std::size_t chunk = 16u << 10;
/// Longer than `patience`: under sanitizers a whole node starts and stops in it.
constexpr std::chrono::seconds program_patience{90};
constexpr int look_ms = 200;

std::vector<char*> pointers(std::vector<std::string>& texts) {
  std::vector<char*> out;
  for (auto& t : texts)
    out.push_back(t.data());
  out.push_back(nullptr);
  return out;
}

void drain(int& fd, std::string& into) {
  std::array<char, chunk> bytes;
  const auto n = ::read(fd, bytes.data(), bytes.size());
  if (n > 0) {
    into.append(bytes.data(), static_cast<std::size_t>(n));
  } else {
    ::close(fd);
    fd = -1;
  }
}

} // namespace

program::program(const std::vector<std::string>& argv,
                 const std::map<std::string, std::string>& environment) {
  std::array<int, 2> out{};
  std::array<int, 2> err{};
  if (::pipe2(out.data(), O_CLOEXEC) != 0 || ::pipe2(err.data(), O_CLOEXEC) != 0)
    throw std::runtime_error("pipe2");
  std::map<std::string, std::string> all{
      {"PATH", "/usr/local/bin:/usr/bin:/bin"}, {"HOME", "/nonexistent"}, {"TERM", "dumb"}};
  for (const char* name : {"ASAN_OPTIONS", "UBSAN_OPTIONS", "LSAN_OPTIONS", "TMPDIR"})
    if (const char* value = std::getenv(name))
      all[name] = value;
  for (const auto& [name, value] : environment)
    all[name] = value;
  std::vector<std::string> pairs;
  for (const auto& [name, value] : all)
    pairs.push_back(name + "=" + value);
  auto words = argv;
  ::posix_spawn_file_actions_t actions;
  ::posix_spawn_file_actions_init(&actions);
  ::posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
  ::posix_spawn_file_actions_adddup2(&actions, out[1], STDOUT_FILENO);
  ::posix_spawn_file_actions_adddup2(&actions, err[1], STDERR_FILENO);
  const int failed = ::posix_spawn(&pid_, words.front().c_str(), &actions, nullptr,
                                   pointers(words).data(), pointers(pairs).data());
  ::posix_spawn_file_actions_destroy(&actions);
  ::close(out[1]);
  ::close(err[1]);
  out_fd_ = out[0];
  err_fd_ = err[0];
  if (failed != 0)
    throw std::runtime_error("cannot start " + argv.front());
}

program::~program() {
  if (pid_ > 0) {
    ::kill(pid_, SIGKILL);
    ::waitpid(pid_, nullptr, 0);
  }
  for (const int fd : {out_fd_, err_fd_})
    if (fd >= 0)
      ::close(fd);
}

bool program::read_some(int timeout_ms) {
  std::array<::pollfd, 2> waits{{{out_fd_, POLLIN, 0}, {err_fd_, POLLIN, 0}}};
  ::poll(waits.data(), waits.size(), timeout_ms);
  if (waits[0].revents != 0)
    drain(out_fd_, result_.out);
  if (waits[1].revents != 0)
    drain(err_fd_, result_.err);
  return out_fd_ >= 0 || err_fd_ >= 0;
}

bool program::read_until(const int& fd, const std::function<bool()>& enough) {
  const auto until = std::chrono::steady_clock::now() + program_patience;
  while (!enough()) {
    if (fd < 0 || std::chrono::steady_clock::now() >= until)
      return false;
    read_some(look_ms);
  }
  return true;
}

bool program::wait_for(const std::string& text, std::size_t from) {
  return read_until(err_fd_, [&] {
    const auto at = result_.err.find(text, from);
    if (at != std::string::npos)
      seen_ = at + text.size();
    return at != std::string::npos;
  });
}

bool program::wait_for_stdout(const std::string& text) {
  return read_until(out_fd_, [&] { return result_.out.find(text) != std::string::npos; });
}

bool program::wait_for_stderr(const std::string& text) {
  return wait_for(text, 0);
}

bool program::wait_for_new_stderr(const std::string& text) {
  return wait_for(text, seen_);
}

const std::string& program::stderr_now() {
  read_some(0);
  return result_.err;
}

void program::signal(int number) const {
  ::kill(pid_, number);
}

finished program::finish() {
  const auto until = std::chrono::steady_clock::now() + program_patience;
  while (read_some(look_ms))
    if (std::chrono::steady_clock::now() >= until) {
      ::kill(pid_, SIGKILL);
      result_.code = -2;
      return result_;
    }
  int status = 0;
  ::waitpid(pid_, &status, 0);
  pid_ = -1;
  result_.code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  return result_;
}

std::string boyd_binary() {
  const char* path = std::getenv("BOYD_BINARY");
  return path == nullptr ? "boyd" : path;
}

std::map<std::string, std::string> with_asan_options(const std::string& more) {
  const char* inherited = std::getenv("ASAN_OPTIONS");
  return {{"ASAN_OPTIONS",
           (inherited != nullptr ? std::string{inherited} + ":" : std::string{}) + more}};
}

finished boyd_run(const std::vector<std::string>& args,
                  const std::map<std::string, std::string>& environment) {
  std::vector<std::string> argv{boyd_binary()};
  argv.insert(argv.end(), args.begin(), args.end());
  auto all = environment;
  // Looking for leaks at its end takes a short command a seventh of its time; what leaks in a node
  // or a cycle is looked for.
  if (std::ranges::find(args, "cycle") == args.end())
    all.merge(with_asan_options("detect_leaks=0"));
  return program(argv, all).finish();
}

home_of_boyd::home_of_boyd(const std::string& yaml) {
  std::vector<std::string> args{"init", "--no-input"};
  if (!yaml.empty()) {
    write_file(directory_.file("from.yaml"), yaml);
    args.insert(args.end(), {"--from", directory_.file("from.yaml")});
  }
  const auto made = run(args);
  if (made.code != 0)
    throw std::runtime_error("boyd init: " + made.err);
}

void home_of_boyd::write_configuration(const std::string& yaml) const {
  write_file(file("boyd.yaml"), yaml);
}

finished home_of_boyd::run(std::vector<std::string> args) const {
  // Not with --home: hints repeat it.
  return boyd_run(args, {{"BOYD_HOME", path()}});
}

std::string get(const std::string& socket_path, const std::string& path) {
  return ask_socket(socket_path, "GET " + path);
}

std::string ask_socket(const std::string& socket_path, const std::string& what) {
  ::sockaddr_un at{};
  at.sun_family = AF_UNIX;
  socket_path.copy(at.sun_path, sizeof at.sun_path - 1);
  const int fd = ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  std::string answer;
  if (::connect(fd, reinterpret_cast<const ::sockaddr*>(&at), sizeof at) == 0) {
    const auto request =
        what + " HTTP/1.1\r\nHost: boyd\r\nContent-Length: 0\r\nConnection: close\r\n\r\n";
    std::array<char, 4096> part{};
    if (::send(fd, request.data(), request.size(), MSG_NOSIGNAL) > 0)
      for (ssize_t n = 0; (n = ::recv(fd, part.data(), part.size(), 0)) > 0;)
        answer.append(part.data(), static_cast<std::size_t>(n));
  }
  ::close(fd);
  return answer;
}

std::string git(const std::string& where, const std::string& arguments) {
  const auto line = "cd '" + where +
                    "' && GIT_CONFIG_NOSYSTEM=1 GIT_CONFIG_GLOBAL=/dev/null git -c user.name=p "
                    "-c user.email=p@example.org " +
                    arguments + " 2>&1";
  std::string out;
  auto* pipe = ::popen(line.c_str(), "r");
  REQUIRE(pipe != nullptr);
  char part[4096];
  for (std::size_t n = 0; (n = std::fread(part, 1, sizeof part, pipe)) > 0;)
    out.append(part, n);
  INFO(arguments << ": " << out);
  REQUIRE(::pclose(pipe) == 0);
  return out;
}

std::string read_file(const std::string& path) {
  std::ifstream file(path);
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

void write_file(const std::string& path, const std::string& text) {
  std::ofstream(path) << text;
}

} // namespace boyd::test
