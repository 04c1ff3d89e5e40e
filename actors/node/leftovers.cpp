#include "actors/node/leftovers.hpp"

#include "boyd/core/home_layout.hpp"
#include "boyd/ports/file_system.hpp"
#include "boyd/ports/process_runner.hpp"

#include <utility>
#include <vector>

namespace boyd {

namespace {

/// What is in a directory; nothing when it is none.
result<std::vector<std::string>> names_in(file_system& files, const std::string& directory) {
  const auto there = files.stat(directory);
  if (!there)
    return fail(there.error());
  if (there->kind != file_kind::directory)
    return std::vector<std::string>{};
  return files.list(directory);
}

} // namespace

result<std::size_t> remove_leftover_prompts(file_system& files, const std::string& home) {
  const auto directory = home_layout(home).prompts();
  auto names = names_in(files, directory);
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

result<std::size_t> remove_leftover_scratch(file_system& files, process_runner& processes,
                                            const std::string& home) {
  const auto directory = home_layout(home).scratch();
  auto names = names_in(files, directory);
  if (!names)
    return fail(std::move(names.error()));
  process_spec rm;
  rm.argv = {"/bin/rm", "-rf", "--"};
  rm.cwd = "/";
  const auto before = rm.argv.size();
  for (const auto& name : *names)
    if (rm.argv.size() - before < prompt_files_at_start)
      rm.argv.push_back(directory + "/" + name);
  const auto removed = rm.argv.size() - before;
  if (removed == 0)
    return removed;
  if (auto started = processes.start(std::move(rm), {}); !started)
    return fail(std::move(started.error()));
  return removed;
}

} // namespace boyd
