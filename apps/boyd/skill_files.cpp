#include "skill_files.hpp"

#include "adapters/yaml/yaml.hpp"
#include "given_file.hpp"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <system_error>

namespace boyd::app {

namespace {

namespace fs = std::filesystem;

constexpr const char* skill_file = "SKILL.md";
/// Collections have their skills a few folders below.
constexpr int most_depth = 8;

/// A file that stands alone may have any folder around it.
std::string folder_of(const std::string& path) {
  const auto absolute = fs::absolute(path).lexically_normal();
  return absolute.filename() == skill_file ? absolute.parent_path().filename().string()
                                           : std::string();
}

} // namespace

result<std::vector<std::string>> skill_files(const std::string& path) {
  std::error_code trouble;
  if (!fs::is_directory(path, trouble))
    return std::vector{path};
  if (const auto own = fs::path(path) / skill_file; fs::exists(own, trouble))
    return std::vector{own.string()};
  std::vector<std::string> all;
  std::error_code over;
  fs::recursive_directory_iterator entry(path, fs::directory_options::skip_permission_denied, over);
  for (; !over && entry != fs::recursive_directory_iterator(); entry.increment(over)) {
    if (!entry->is_directory(trouble))
      continue;
    if (entry.depth() + 1 >= most_depth || entry->path().filename() == ".git")
      entry.disable_recursion_pending();
    if (const auto file = entry->path() / skill_file; fs::exists(file, trouble))
      all.push_back(file.string());
  }
  if (over)
    return fail(errc::io_error, "cannot read the folder: " + over.message(), path,
                "check its permissions");
  std::ranges::sort(all);
  if (all.empty())
    return fail(errc::not_found, "no SKILL.md found", path, "use the folder of a skill");
  return all;
}

result<std::string> read_skill_text(const std::string& path) {
  return read_given_file(path, skills::most_document_bytes,
                         "shorten it; move details into separate files in the folder");
}

result<std::vector<skills::finding>> validate_file(const std::string& path) {
  const auto text = read_skill_text(path);
  if (!text)
    return fail(text.error());
  return skills::parse_document(*text, adapters::parse_yaml, folder_of(path)).findings;
}

result<std::vector<skills::finding>> scan_file(const std::string& path) {
  const auto text = read_skill_text(path);
  if (!text)
    return fail(text.error());
  return skills::scan_document(*text, {});
}

result<std::string> write_skill(const std::string& dir, const std::string& name,
                                const std::string& text) {
  const auto folder = (dir.empty() ? fs::path(".") : fs::path(dir)) / name;
  const auto path = folder / skill_file;
  std::error_code trouble;
  if (fs::exists(path, trouble))
    return fail(errc::conflict, "it already exists", path.string(),
                "remove it, or use another --dir");
  fs::create_directories(folder, trouble);
  std::ofstream file(path, std::ios::binary);
  file << text;
  file.close();
  if (!file)
    return fail(errc::io_error, "cannot write it", path.string(),
                "check the disk and the permissions of the folder");
  return path.string();
}

} // namespace boyd::app
