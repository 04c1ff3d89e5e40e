#include "support/postgres/server.hpp"

#include "support/telling.hpp"
#include "support/temp_dir.hpp"
#include "support/wait.hpp"

#include <arpa/inet.h>
#include <array>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <fcntl.h>
#include <filesystem>
#include <fstream>
#include <netinet/in.h>
#include <pwd.h>
#include <sstream>
#include <stdexcept>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

namespace boyd::test {

namespace {

namespace fs = std::filesystem;

constexpr int exec_failed = 127;
/// A start after a crash replays the log: slow beside other users of the machine.
constexpr auto start_patience = 6 * patience;

std::string read_file(const std::string& path) {
  std::ifstream in(path);
  std::ostringstream out;
  out << in.rdbuf();
  return out.str();
}

/// The directory of initdb and postgres; the newest version when there are several.
std::string find_binaries() {
  std::string best;
  std::error_code ignored;
  for (const auto& version : fs::directory_iterator("/usr/lib/postgresql", ignored)) {
    const auto bin = version.path() / "bin";
    if (fs::exists(bin / "postgres") && fs::exists(bin / "initdb"))
      best = std::max(best, bin.string());
  }
  if (best.empty() && fs::exists("/usr/bin/postgres"))
    best = "/usr/bin";
  if (best.empty())
    throw std::runtime_error("PostgreSQL's server is not installed (apt-get install postgresql); "
                             "set BOYD_SKIP_POSTGRES=1 to leave its tests out");
  return best;
}

/// Whom the server runs as; nothing when we are no root and stay who we are.
struct server_user {
  bool change = false;
  uid_t uid = 0;
  gid_t gid = 0;
};

server_user find_user() {
  if (::geteuid() != 0)
    return {};
  for (const char* name : {"postgres", "nobody"})
    if (const auto* entry = ::getpwnam(name))
      return {true, entry->pw_uid, entry->pw_gid};
  throw std::runtime_error("neither user postgres nor nobody exists to run the server as");
}

int free_port() {
  const int fd = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof address;
  auto* raw = reinterpret_cast<sockaddr*>(&address);
  const bool good = fd >= 0 && ::bind(fd, raw, size) == 0 && ::getsockname(fd, raw, &size) == 0;
  if (fd >= 0)
    ::close(fd);
  if (!good)
    throw std::runtime_error("no free loopback port");
  return ntohs(address.sin_port);
}

/// Starts a program with its output appended to `log`, as `user`, ended with its parent.
pid_t spawn(const std::vector<std::string>& argv, const std::string& log, const server_user& user) {
  std::vector<char*> raw;
  for (const auto& a : argv)
    raw.push_back(const_cast<char*>(a.c_str()));
  raw.push_back(nullptr);
  const pid_t parent = ::getpid();
  const pid_t pid = ::fork();
  if (pid != 0)
    return pid;
  ::prctl(PR_SET_PDEATHSIG, SIGQUIT);
  const int out = ::open(log.c_str(), O_WRONLY | O_CREAT | O_APPEND, 0644);
  const int in = ::open("/dev/null", O_RDONLY);
  ::dup2(in, 0);
  ::dup2(out, 1);
  ::dup2(out, 2);
  if (user.change && (::setgid(user.gid) != 0 || ::setuid(user.uid) != 0))
    ::_exit(exec_failed);
  // Changing the user clears the death signal.
  ::prctl(PR_SET_PDEATHSIG, SIGQUIT);
  if (::getppid() != parent)
    ::_exit(exec_failed);
  ::setenv("LC_ALL", "C", 1);
  if (::chdir("/") == 0)
    ::execv(raw[0], raw.data());
  ::_exit(exec_failed);
}

int wait_for(pid_t pid) {
  int status = 0;
  while (::waitpid(pid, &status, 0) < 0 && errno == EINTR)
    continue;
  return status;
}

} // namespace

struct postgres_server::impl {
  temp_dir directory;
  std::string binaries = find_binaries();
  server_user user = find_user();
  int port = 0;
  pid_t pid = -1;
  pid_t pooler_pid = -1;
  int databases = 0;

  std::string data() const { return directory.file("data"); }
  std::string log() const { return directory.file("server.log"); }

  void run(const std::vector<std::string>& argv) const {
    if (wait_for(spawn(argv, log(), user)) != 0)
      throw std::runtime_error(argv[0] + " failed:\n" + read_file(log()));
  }

  void initialize() {
    if (user.change && ::chown(directory.path().c_str(), user.uid, user.gid) != 0)
      throw std::runtime_error("the server's directory cannot be given to its user");
    run({binaries + "/initdb", "-D", data(), "-U", "boyd", "-A", "trust", "-E", "UTF8",
         "--locale=C", "-N"});
    std::ofstream conf(data() + "/postgresql.conf", std::ios::app);
    // What is killed here is the server, never the machine: the kernel keeps what was written, and
    // no test waits for what others write to the same disk. Whether a commit waits for the server's
    // own log (synchronous_commit) stays as in production.
    conf << "fsync = off\n";
    conf << "listen_addresses = '127.0.0.1'\nunix_socket_directories = '" << directory.path()
         << "'\nshared_buffers = 32MB\nmax_connections = 40\nsynchronous_commit = on\n"
            "max_wal_size = 256MB\nautovacuum = on\nlog_min_messages = warning\n"
            "deadlock_timeout = 200ms\nmax_prepared_transactions = 2\n";
  }

  void end_pooler() {
    if (pooler_pid <= 0)
      return;
    ::kill(pooler_pid, SIGKILL);
    wait_for(pooler_pid);
    pooler_pid = -1;
  }

  void end(int signal) {
    if (pid <= 0)
      return;
    ::kill(pid, signal);
    wait_for(pid);
    pid = -1;
  }
};

postgres_server::postgres_server() : impl_(std::make_unique<impl>()) {
  impl_->initialize();
  start();
}

postgres_server::~postgres_server() {
  impl_->end_pooler();
  impl_->end(SIGQUIT);
}

void postgres_server::start() {
  if (impl_->port == 0)
    impl_->port = free_port();
  impl_->pid =
      spawn({impl_->binaries + "/postgres", "-D", impl_->data(), "-p", std::to_string(impl_->port)},
            impl_->log(), impl_->user);
  const bool ready = wait_until(
      [&] {
        int status = 0;
        if (::waitpid(impl_->pid, &status, WNOHANG) == impl_->pid) {
          impl_->pid = -1;
          return true;
        }
        return read_file(impl_->data() + "/postmaster.pid").find("ready") != std::string::npos;
      },
      start_patience);
  if (!ready || impl_->pid < 0)
    throw std::runtime_error("the PostgreSQL server did not start:\n" + read_file(impl_->log()));
}

void postgres_server::stop() {
  impl_->end(SIGINT);
}

void postgres_server::stop_immediately() {
  impl_->end(SIGQUIT);
}

bool postgres_server::running() const {
  return impl_->pid > 0;
}

std::string postgres_server::uri(const std::string& database) const {
  return "postgres://boyd@127.0.0.1:" + std::to_string(impl_->port) + "/" + database;
}

std::string postgres_server::make_database() {
  return make_database({});
}

std::string postgres_server::make_database(const std::string& options) {
  const auto name = "test" + std::to_string(++impl_->databases);
  query(uri("postgres"), "CREATE DATABASE " + name + " " + options);
  return uri(name);
}

std::string postgres_server::start_pooler(const std::string& database, const std::string& mode) {
  constexpr const char* program = "/usr/sbin/pgbouncer";
  if (!fs::exists(program))
    return {};
  impl_->end_pooler();
  const auto port = std::to_string(free_port());
  const auto settings = impl_->directory.file("pgbouncer.ini");
  std::ofstream(settings) << "[databases]\n* = host=127.0.0.1 port=" << impl_->port
                          << " user=boyd\n[pgbouncer]\nlisten_addr = 127.0.0.1\nlisten_port = "
                          << port << "\nunix_socket_dir =\nauth_type = any\npool_mode = " << mode
                          << "\n";
  impl_->pooler_pid = spawn({program, "-q", settings}, impl_->log(), impl_->user);
  auto through = "postgres://boyd@127.0.0.1:" + port + "/" + database;
  std::string last;
  const bool up = wait_until([&] {
    try {
      query(through, "SELECT 1");
      return true;
    } catch (const std::runtime_error& e) {
      last = e.what();
      return false;
    }
  });
  if (!up)
    throw std::runtime_error("PgBouncer does not answer: " + last + read_file(impl_->log()));
  return through;
}

std::string postgres_server::query(const std::string& where, const std::string& sql) const {
  temp_dir scratch;
  const auto out = scratch.file("out");
  const auto status = wait_for(spawn(
      {impl_->binaries + "/psql", "-X", "-At", "-v", "ON_ERROR_STOP=1", "-d", where, "-c", sql},
      out, {}));
  auto text = read_file(out);
  if (status != 0)
    throw std::runtime_error("psql failed: " + text);
  while (!text.empty() && text.back() == '\n')
    text.pop_back();
  return text;
}

postgres_server* shared_postgres() {
  const char* skip = std::getenv("BOYD_SKIP_POSTGRES");
  if (skip != nullptr && std::string{skip} == "1") {
    [[maybe_unused]] static const bool told =
        (tell_skipped("everything on PostgreSQL", "BOYD_SKIP_POSTGRES=1"), true);
    return nullptr;
  }
  static postgres_server server;
  return &server;
}

} // namespace boyd::test
