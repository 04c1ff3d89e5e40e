#include "bench/support/place.hpp"

#include <utility>

namespace boyd::bench {

result<place> make_place(const std::string& directory, const std::string& store) {
  place made;
  auto home = scratch_directory::make(directory);
  if (!home)
    return fail(std::move(home.error()));
  made.home = std::move(*home);
  made.store = store;
  if (store == "sqlite")
    return made;
  auto database = scratch_database::make(store);
  if (!database)
    return fail(std::move(database.error()));
  made.database = std::move(*database);
  made.store = made.database->uri();
  return made;
}

} // namespace boyd::bench
