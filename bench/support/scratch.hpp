#pragma once

#include "boyd/core/result.hpp"

#include <memory>
#include <string>

namespace boyd::bench {

/// A fresh directory (0700), removed with everything in it.
class scratch_directory {
 public:
  /// `parent` must lie on the disk that is to be measured.
  static result<std::unique_ptr<scratch_directory>> make(const std::string& parent);

  ~scratch_directory();
  scratch_directory(const scratch_directory&) = delete;
  scratch_directory& operator=(const scratch_directory&) = delete;

  /// Absolute, without a trailing '/'.
  const std::string& path() const { return path_; }

 private:
  explicit scratch_directory(std::string path) : path_(std::move(path)) {}

  std::string path_;
};

/// A fresh database on a PostgreSQL server, made and dropped with psql: nothing that stands there
/// already is touched.
class scratch_database {
 public:
  /// `server`: postgres://user@host:port/database of one who may create databases.
  static result<std::unique_ptr<scratch_database>> make(const std::string& server);

  ~scratch_database();
  scratch_database(const scratch_database&) = delete;
  scratch_database& operator=(const scratch_database&) = delete;

  /// The URI of the new database.
  const std::string& uri() const { return uri_; }

 private:
  scratch_database(std::string server, std::string name, std::string uri)
      : server_(std::move(server)), name_(std::move(name)), uri_(std::move(uri)) {}

  std::string server_;
  std::string name_;
  std::string uri_;
};

} // namespace boyd::bench
