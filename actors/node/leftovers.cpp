#include "actors/node/leftovers.hpp"

#include "boyd/ports/file_system.hpp"

namespace boyd {

result<std::size_t> remove_leftover_prompts(file_system& files, const std::string& home) {
  const auto directory = home + "/run/prompts";
  const auto there = files.stat(directory);
  if (!there)
    return fail(there.error());
  if (there->kind != file_kind::directory)
    return std::size_t{0};
  auto names = files.list(directory);
  if (!names)
    return fail(std::move(names.error()));
  std::size_t removed = 0;
  for (const auto& name : *names) {
    if (removed == prompt_files_at_start)
      break;
    if (!name.ends_with(".txt"))
      continue;
    const auto path = directory + "/" + name;
    if (const auto info = files.stat(path); !info || info->kind != file_kind::regular)
      continue;
    if (auto gone = files.unlink(path); !gone)
      return fail(std::move(gone.error()));
    ++removed;
  }
  return removed;
}

} // namespace boyd
