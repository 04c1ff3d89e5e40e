#include "program.hpp"
#include "support/pch.hpp"

#include <algorithm>
#include <csignal>
#include <filesystem>
#include <optional>
#include <poll.h>
#include <pty.h>
#include <sys/wait.h>
#include <unistd.h>

// What a person sees on a terminal of 80 columns.

namespace boyd::screen_test {

using namespace boyd::test;
using Catch::Matchers::Contains;

namespace {

constexpr unsigned short columns = 80;
constexpr unsigned short rows = 24;

/// The binary on a terminal of its own.
class on_terminal {
 public:
  explicit on_terminal(std::vector<std::string> args) {
    args.insert(args.begin(), boyd_binary());
    ::winsize size{rows, columns, 0, 0};
    pid_ = ::forkpty(&fd_, nullptr, nullptr, &size);
    REQUIRE(pid_ >= 0);
    if (pid_ != 0)
      return;
    std::vector<char*> argv;
    for (auto& a : args)
      argv.push_back(a.data());
    argv.push_back(nullptr);
    ::setenv("TERM", "xterm", 1);
    ::setenv("TZ", "America/Argentina/Buenos_Aires", 1);
    ::unsetenv("COLUMNS");
    ::execv(argv[0], argv.data());
    ::_exit(127);
  }
  ~on_terminal() {
    if (pid_ > 0) {
      ::kill(pid_, SIGKILL);
      ::waitpid(pid_, nullptr, 0);
    }
    ::close(fd_);
  }
  on_terminal(const on_terminal&) = delete;
  on_terminal& operator=(const on_terminal&) = delete;

  /// Reads until the new output has `text`; false when it ends without.
  bool wait_for(const std::string& text) {
    const auto from = seen_;
    while (text_.find(text, from) == std::string::npos)
      if (!read_some())
        return false;
    seen_ = text_.find(text, from) + text.size();
    return true;
  }

  void type(const std::string& keys) const {
    REQUIRE(::write(fd_, keys.data(), keys.size()) == static_cast<ssize_t>(keys.size()));
  }

  /// Reads to the end; the exit code.
  int finish() {
    while (read_some()) {
    }
    int status = 0;
    REQUIRE(::waitpid(pid_, &status, 0) == pid_);
    pid_ = -1;
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  }

  const std::string& text() const { return text_; }

 private:
  bool read_some() {
    constexpr int patience_ms = 60'000;
    ::pollfd p{fd_, POLLIN, 0};
    if (::poll(&p, 1, patience_ms) != 1)
      return false;
    char part[4096];
    const auto n = ::read(fd_, part, sizeof part);
    if (n <= 0)
      return false;
    text_.append(part, static_cast<std::size_t>(n));
    return true;
  }

  int fd_ = -1;
  pid_t pid_ = -1;
  std::string text_;
  std::size_t seen_ = 0;
};

/// What is shown of a line: without escape sequences, in characters.
std::size_t width_of(const std::string& line) {
  std::size_t width = 0;
  for (std::size_t i = 0; i < line.size(); ++i) {
    if (line[i] == '\x1b') {
      while (i < line.size() && std::isalpha(static_cast<unsigned char>(line[i])) == 0)
        ++i;
      continue;
    }
    width += (static_cast<unsigned char>(line[i]) & 0xC0U) != 0x80U && line[i] != '\r' ? 1U : 0U;
  }
  return width;
}

const char* long_words =
    "a summary that has so many words that no screen of eighty columns has room for all of them";

std::string team() {
  return "version: 1\nnode: {budget_day: {tokens: 1000000}}\nkernels:\n"
         "  - kernel_id: a-kernel-with-a-long-name\n    schedule: \"0 0 1 1 *\"\n    agents:\n"
         "      - agent_id: quarterly-report-of-the-warehouse\n        prompt: none\n"
         "        executor: {type: command, argv: [echo, \"" +
         std::string(long_words) +
         "\"]}\n"
         "      - agent_id: nightly-import-of-all-invoices\n        prompt: none\n"
         "        retry: {max_attempts: 1}\n"
         "        executor: {type: command, shell: \"echo " +
         std::string(long_words) +
         " >&2; exit 3\"}\n"
         "      - {agent_id: short, enabled: false, executor: {type: command, argv: [\"true\"]}}\n"
         "  - {kernel_id: another, schedule: \"0 0 1 1 *\"}\n";
}

/// No row is wider than the screen; the whole output.
std::string shown(const home_of_boyd& home, std::vector<std::string> args) {
  std::string words;
  for (const auto& a : args)
    words += a + " ";
  args.insert(args.begin(), {"--home", home.path()});
  on_terminal t(args);
  CHECK(t.finish() == 0);
  std::istringstream lines(t.text());
  for (std::string line; std::getline(lines, line);) {
    INFO(words << ": " << line);
    CHECK(width_of(line) <= columns);
  }
  return t.text();
}

} // namespace

TEST_CASE("no row of a table is wider than 80 columns", "[e2e][screen]") {
  const home_of_boyd home(team());
  REQUIRE(home.run({"cycle", "--kernel", "a-kernel-with-a-long-name"}).code == 3);
  const std::vector<std::vector<std::string>> verbs{{"dispatches", "ls"},
                                                    {"agents", "ls"},
                                                    {"status"},
                                                    {"status", "--parts"},
                                                    {"cost"},
                                                    {"approvals"},
                                                    {"next"},
                                                    {"skills", "ls"},
                                                    {"kg", "stats"},
                                                    {"memory", "status"},
                                                    {"context", "ls"},
                                                    {"plan"},
                                                    {"state", "log"},
                                                    {"tools", "ls"},
                                                    {"patches", "ls"},
                                                    {"chaos", "ls"},
                                                    {"actors", "ls"}};
  for (const auto& args : verbs)
    shown(home, args);
  for (const auto& args : std::vector<std::vector<std::string>>{{"dispatches"}, {"agents"}})
    CHECK_THAT(shown(home, args), Contains("a summary that has so"));
  const auto status = shown(home, {"status"});
  CHECK_THAT(status, !Contains("RESTARTS") && Contains("a-kernel-with"));
  CHECK_THAT(shown(home, {"status", "--parts"}), Contains("RESTARTS") && Contains("librarian"));
}

TEST_CASE("status --watch has the screen for itself, and q ends it", "[e2e][screen]") {
  const home_of_boyd home(team());
  std::optional<program> node(std::in_place, home.node());
  REQUIRE(node->wait_for_stderr("ready"));
  on_terminal watch({"--home", home.path(), "status", "--watch", "--parts"});
  REQUIRE(watch.wait_for("\x1b[?1049h"));
  REQUIRE(watch.wait_for("as process " + std::to_string(node->pid())));
  REQUIRE(watch.wait_for("more lines: boyd status"));
  node->signal(SIGTERM);
  CHECK(node->finish().code == 0);
  REQUIRE(watch.wait_for("waiting for the node"));
  node.emplace(home.node());
  REQUIRE(node->wait_for_stderr("ready"));
  REQUIRE(watch.wait_for("as process " + std::to_string(node->pid())));
  watch.type("q");
  CHECK(watch.finish() == 0);
  CHECK_THAT(watch.text(), Catch::Matchers::EndsWith("\x1b[?25h\x1b[?1049l"));
  // One page is no longer than the screen.
  const auto page = watch.text().substr(watch.text().rfind("\x1b[H"));
  CHECK(std::count(page.begin(), page.end(), '\n') == rows - 1);
  node->signal(SIGTERM);
  CHECK(node->finish().code == 0);
}

TEST_CASE("init asks again after a bad answer", "[e2e][screen]") {
  const temp_dir dir;
  on_terminal init({"--home", dir.file("home"), "init"});
  REQUIRE(init.wait_for("Name of the kernel"));
  init.type("mine\n");
  REQUIRE(init.wait_for("Schedule"));
  init.type("@hourl\n");
  REQUIRE(init.wait_for("Not a schedule"));
  REQUIRE(init.wait_for("Schedule"));
  init.type("@hourly\n");
  CHECK(init.finish() == 0);
  CHECK_THAT(read_file(dir.file("home/boyd.yaml")), Contains("schedule: \"@hourly\""));
}

TEST_CASE("agents add asks for what is not given", "[e2e][screen]") {
  const home_of_boyd home(team());
  on_terminal add({"--home", home.path(), "agents", "add"});
  REQUIRE(add.wait_for("Name of the agent"));
  add.type("short\n");
  REQUIRE(add.wait_for("This name is taken."));
  REQUIRE(add.wait_for("Name of the agent"));
  add.type("fresh\n");
  REQUIRE(add.wait_for("What runs it"));
  add.type("\n");
  REQUIRE(add.wait_for("Command:"));
  add.type("date -u\n");
  REQUIRE(add.wait_for("Prompt:"));
  add.type("tell the time\n");
  REQUIRE(add.wait_for("Schedule"));
  add.type("\n");
  CHECK(add.finish() == 0);
  CHECK_THAT(read_file(home.file("boyd.yaml")),
             Contains("      - agent_id: fresh\n        prompt: \"tell the time\"\n"
                      "        executor: {type: command, shell: \"date -u\"}\n"));
}

TEST_CASE("init copies a file without its secrets, and over an empty .git", "[e2e][screen]") {
  const temp_dir dir;
  write_file(dir.file("team.yaml"), "version: 1\nkernels:\n  - agents:\n"
                                    "      - agent_id: a\n        executor: {type: command, argv: "
                                    "[echo], env: {TOKEN: \"${NOT_SET_HERE}\"}}\n");
  std::filesystem::create_directories(dir.file("home/kernel/default/.git"));
  std::filesystem::permissions(dir.file("home"), std::filesystem::perms::owner_all);
  std::filesystem::create_directories(dir.file(".git"));
  const auto made =
      boyd_run({"--home", dir.file("home"), "init", "--no-input", "--from", dir.file("team.yaml")});
  INFO(made.err);
  CHECK(made.code == 0);
  CHECK_THAT(made.err, Contains("NOT_SET_HERE is not set here"));
  CHECK_THAT(read_file(dir.file("home/boyd.yaml")), Contains("${NOT_SET_HERE}"));
}

} // namespace boyd::screen_test
