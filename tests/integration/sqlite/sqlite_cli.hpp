#pragma once

#include <cstdio>
#include <memory>
#include <string>

namespace boyd::test {

/// What the sqlite3 program says to `sql` of the database at `path`, without the last line's end.
inline std::string sqlite_cli(const std::string& path, const std::string& sql) {
  const auto command = "sqlite3 '" + path + "' \"" + sql + "\" 2>&1";
  std::unique_ptr<FILE, int (*)(FILE*)> pipe(::popen(command.c_str(), "r"), ::pclose);
  std::string out;
  char buffer[256];
  while (std::fgets(buffer, sizeof buffer, pipe.get()) != nullptr)
    out += buffer;
  while (!out.empty() && out.back() == '\n')
    out.pop_back();
  return out;
}

} // namespace boyd::test
