#include "boyd/context/ignore.hpp"
#include "boyd/core/workspace_path.hpp"
#include "scanning_internal.hpp"

#include <algorithm>
#include <iterator>
#include <set>
#include <string_view>
#include <utility>

namespace boyd::improve {

namespace {

constexpr std::size_t most_files = 200'000;
constexpr std::size_t most_depth = 64;
constexpr std::size_t directory_entries = 100'000;
constexpr std::size_t ignore_file_bytes = std::size_t{256} << 10;

bool lies_in(const std::string& path, const std::vector<std::string>& places) {
  return std::ranges::any_of(places, [&](const std::string& place) {
    return path == place || path.starts_with(place + "/");
  });
}

class lister {
 public:
  lister(confined_files& inside, const std::string& root, const std::vector<std::string>& skip)
      : inside_(inside), root_(root), skip_(skip) {}

  result<std::vector<listed_file>> all() {
    if (auto done = walk(".", 0); !done)
      return fail(std::move(done.error()));
    std::ranges::sort(files_, {}, &listed_file::path);
    return std::move(files_);
  }

 private:
  result<void> walk(const std::string& directory, std::size_t depth) {
    const auto entries = inside_.list(root_, directory, directory_entries);
    if (!entries)
      return directory == "." ? fail(entries.error()) : result<void>();
    if (entries->total > entries->entries.size() || depth == most_depth)
      return fail(errc::limit_exceeded, "the directory is too large or too deep to be looked at",
                  directory, "name it in a .gitignore file");
    const auto prefix = directory == "." ? std::string() : directory + "/";
    if (const auto rules = inside_.read(root_, prefix + ".gitignore", 0, ignore_file_bytes))
      ignore_.add(directory == "." ? "" : directory, rules->text);
    for (const auto& e : entries->entries) {
      const auto path = prefix + e.name;
      const bool is_directory = e.kind == file_kind::directory;
      if (is_git_directory(e.name) || ignore_.ignores(path, is_directory) ||
          std::ranges::find(skip_, path) != skip_.end())
        continue;
      if (is_directory) {
        if (auto done = walk(path, depth + 1); !done)
          return done;
      } else if (e.kind == file_kind::regular) {
        files_.push_back({path, e.size});
      }
    }
    if (files_.size() > most_files)
      return fail(errc::limit_exceeded,
                  "the repository has more than " + std::to_string(most_files) + " files", root_,
                  "name what is no source in a .gitignore file");
    return {};
  }

  confined_files& inside_;
  const std::string& root_;
  const std::vector<std::string>& skip_;
  context::ignore_rules ignore_;
  std::vector<listed_file> files_;
};

} // namespace

result<std::vector<listed_file>> list_files(const improve_ports& ports, const std::string& root,
                                            const std::vector<std::string>& skip) {
  auto files = lister(ports.inside, root, skip).all();
  if (!files)
    return files;
  // What git knows counts, whatever a .gitignore file says. Without a repository nothing is known.
  auto repository = ports.repositories.open(root, {});
  const auto tracked = repository ? (*repository)->tracked_paths()
                                  : result<std::vector<std::string>>(std::vector<std::string>{});
  if (!tracked)
    return fail(tracked.error());
  const std::set<std::string_view> listed = [&] {
    std::set<std::string_view> names;
    for (const auto& f : *files)
      names.insert(f.path);
    return names;
  }();
  std::vector<listed_file> more;
  for (const auto& path : *tracked) {
    if (listed.contains(path) || lies_in(path, skip))
      continue;
    const auto place = ports.inside.find(root, path);
    if (place && place->kind == file_kind::regular && place->where == path)
      more.push_back({path, place->size});
  }
  if (more.empty())
    return files;
  std::ranges::move(more, std::back_inserter(*files));
  std::ranges::sort(*files, {}, &listed_file::path);
  return files;
}

} // namespace boyd::improve
