#include "lost_database.hpp"

#include "boyd/core/limits.hpp"
#include "boyd/state/runtime_block.hpp"
#include "store_identity.hpp"

namespace boyd::app {

result<void> check_database_is_there(const place& where, const config::configuration& settings,
                                     file_system& files) {
  if (settings.node_settings.store != "sqlite")
    return {};
  const auto info = files.stat(where.layout().database());
  // One without a byte has lost its content.
  if (!info || (info->kind != file_kind::missing && info->size > 0))
    return {};
  // Where another kind of store was in use, none was ever here.
  const auto known = read_known_store(files, where.layout().known_store());
  if (known && *known && (*known)->name != embedded_store)
    return fail(
        another_store(**known, embedded_store, "a missing database", where.layout().database()));
  for (const auto& k : settings.kernels) {
    const auto path = where.layout().kernel(k.kernel_id) + "/STATE.md";
    const auto text = files.read(path, limits::revision_bytes);
    const auto block = text ? state::parse_runtime_block(*text) : std::nullopt;
    if (block && !block->history.empty())
      return fail(errc::refused,
                  std::string("the database is ") +
                      (info->kind == file_kind::missing ? "missing" : "empty") + ", although " +
                      path + " lists its cycles",
                  where.layout().database(),
                  "restore the file and its -wal, or accept a new database: boyd --home " +
                      where.home +
                      (where.has_own_config() ? " --config " + where.config_path : "") + " init");
  }
  return {};
}

} // namespace boyd::app
