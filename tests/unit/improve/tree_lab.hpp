#pragma once

#include "boyd/core/sha256.hpp"
#include "boyd/improve/patch.hpp"
#include "boyd/improve/undo.hpp"
#include "src/adapters/posix/confined_files.hpp"
#include "src/adapters/posix/file_system.hpp"
#include "src/adapters/posix/work_tree.hpp"
#include "support/temp_dir.hpp"

#include <nlohmann/json.hpp>

#include <filesystem>
#include <fstream>
#include <map>
#include <memory>
#include <string>
#include <sys/stat.h>
#include <unistd.h>

namespace boyd::test {

/// A patch of one file, as an executor answers it.
inline std::string patch_of(const std::string& path, const std::string& action,
                            const std::string& content = {}) {
  return nlohmann::json{{"summary", "changes " + path},
                        {"files", {{{"path", path}, {"action", action}, {"content", content}}}}}
      .dump();
}

/// A directory of real files in the place of a repository.
class tree_lab {
 public:
  std::string root() const { return directory_.file("repo"); }
  std::string path(const std::string& name) const { return root() + "/" + name; }

  tree_lab() { std::filesystem::create_directories(root()); }

  void put(const std::string& name, const std::string& text, unsigned mode = 0644) const {
    std::filesystem::create_directories(std::filesystem::path(path(name)).parent_path());
    std::ofstream(path(name), std::ios::binary) << text;
    ::chmod(path(name).c_str(), mode);
  }
  std::string get(const std::string& name) const {
    std::ifstream in(path(name), std::ios::binary);
    return {std::istreambuf_iterator<char>(in), {}};
  }

  /// Every name below the repository but Boyd's own: kind, mode, inode, time of files, content or
  /// target.
  std::map<std::string, std::string> print() const {
    namespace fs = std::filesystem;
    std::map<std::string, std::string> all;
    for (auto it = fs::recursive_directory_iterator(root());
         it != fs::recursive_directory_iterator(); ++it) {
      const auto name = fs::relative(it->path(), root()).string();
      if (name == "_outputs") {
        it.disable_recursion_pending();
        continue;
      }
      struct ::stat s {};
      ::lstat(it->path().c_str(), &s);
      auto text = std::to_string(s.st_mode) + " " + std::to_string(s.st_ino);
      if (S_ISREG(s.st_mode))
        text += " " + std::to_string(s.st_mtim.tv_sec) + "." + std::to_string(s.st_mtim.tv_nsec) +
                " " + std::to_string(s.st_nlink) + " " + sha256_hex(get(name));
      if (S_ISLNK(s.st_mode))
        text += " " + fs::read_symlink(it->path()).string();
      all[name] = text;
    }
    return all;
  }

  improve::gate_rules rules() const { return {root(), {"_outputs/agi_kernel"}, {{"secure/**"}}}; }
  result<improve::accepted_patch> judge(const std::string& answer) {
    const auto p = improve::read_proposal(answer);
    if (!p)
      return fail(p.error());
    return improve::judge_patch(*p, rules(), *tree, *inside);
  }
  improve::undo_log undo() { return {root(), root() + "/_outputs/agi_kernel", *files, *tree}; }

  std::shared_ptr<file_system> files = adapters::make_posix_file_system();
  std::shared_ptr<work_tree> tree = adapters::make_work_tree();
  std::shared_ptr<confined_files> inside = adapters::make_confined_files({});

 private:
  temp_dir directory_{std::filesystem::exists("/dev/shm") ? "/dev/shm"
                                                          : std::filesystem::temp_directory_path()};
};

} // namespace boyd::test
