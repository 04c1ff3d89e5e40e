#include "boyd/context/ignore.hpp"
#include "boyd/core/workspace_path.hpp"
#include "scanning_internal.hpp"

#include <algorithm>
#include <utility>

namespace boyd::improve {

namespace {

constexpr std::size_t most_files = 200'000;
constexpr std::size_t most_depth = 64;
constexpr std::size_t directory_entries = 100'000;
constexpr std::size_t ignore_file_bytes = std::size_t{256} << 10;

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

result<std::vector<listed_file>> list_files(confined_files& inside, const std::string& root,
                                            const std::vector<std::string>& skip) {
  return lister(inside, root, skip).all();
}

} // namespace boyd::improve
