#include "../exit_codes.hpp"
#include "../terminal.hpp"
#include "adapters/postgres/store.hpp"
#include "adapters/sqlite/store.hpp"
#include "boyd_version.hpp"
#include "commands.hpp"

#include <nlohmann/json.hpp>

namespace boyd::app {

int run_version(const arguments& args) {
  if (args.json)
    print(nlohmann::json{{"schema", "boyd.version/1"},
                         {"version", program_version},
                         {"store_schemas",
                          {{"sqlite", adapters::sqlite_schema_version()},
                           {"postgres", adapters::postgres_schema_version()}}},
                         {"compiler", __VERSION__}}
              .dump() +
          "\n");
  else
    print(std::string("boyd ") + program_version + "\n");
  return exit_code::ok;
}

} // namespace boyd::app
