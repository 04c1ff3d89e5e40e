#pragma once

#include <memory>
#include <string>
#include <vector>

namespace boyd::test {

/// A private PostgreSQL server in a temporary directory, on loopback and a Unix socket, made small.
/// PostgreSQL refuses to run as root: then it runs as the user `postgres`, else `nobody`. Throws
/// std::runtime_error with the server's log when something fails. Removed with everything in it by
/// the destructor; ended by the kernel when the test process dies.
class postgres_server {
 public:
  postgres_server();
  ~postgres_server();
  postgres_server(const postgres_server&) = delete;
  postgres_server& operator=(const postgres_server&) = delete;

  void start();
  /// Fast shutdown: sessions are ended, everything is written.
  void stop();
  /// As if the machine had crashed; the next start recovers.
  void stop_immediately();
  bool running() const;

  /// A new empty database; returns its URI (TCP on loopback).
  std::string make_database();
  /// The same with options of CREATE DATABASE behind its name.
  std::string make_database(const std::string& options);
  /// postgres://… of `database` over TCP.
  std::string uri(const std::string& database) const;

  /// The URI of `database` through a PgBouncer of this mode (session, transaction, statement),
  /// which ends with the server's object; empty where PgBouncer is not installed. One at a time.
  std::string start_pooler(const std::string& database, const std::string& mode);

  /// What `psql -At` prints for `sql` in `uri`'s database; throws when psql fails.
  std::string query(const std::string& uri, const std::string& sql) const;

 private:
  struct impl;
  std::unique_ptr<impl> impl_;
};

/// The process's server, started at first use; null, and told once, when BOYD_SKIP_POSTGRES=1.
/// Without an installed PostgreSQL it throws: a missing server is never silently skipped.
postgres_server* shared_postgres();

} // namespace boyd::test
