#pragma once

#include "program.hpp"
#include "support/pch.hpp"

#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <string>
#include <sys/stat.h>
#include <vector>

namespace boyd::test {

/// A git repository with something to improve, and the real program that does it.
class repository_lab {
 public:
  /// `files` by name; what begins with "#!" may be executed. `improve`: the part of the
  /// configuration, which lies outside of the repository.
  repository_lab(const std::map<std::string, std::string>& files, const std::string& improve)
      : directory_(std::filesystem::temp_directory_path()) {
    std::filesystem::create_directories(root());
    for (const auto& [name, text] : files)
      put(name, text);
    put(".gitignore", "build/\n");
    git("init -q -b main .");
    commit("first");
    configure(improve);
  }

  std::string root() const { return directory_.file("repo"); }
  std::string outside(const std::string& name) const { return directory_.file(name); }
  std::string path(const std::string& name) const { return root() + "/" + name; }
  std::string state_path() const { return path("_outputs/agi_kernel/state.json"); }

  void put(const std::string& name, const std::string& text) const {
    const std::filesystem::path where(path(name));
    std::filesystem::create_directories(where.parent_path());
    write_file(where.string(), text);
    ::chmod(where.c_str(), text.starts_with("#!") ? 0755 : 0644);
  }
  std::string get(const std::string& name) const { return read_file(path(name)); }

  void configure(const std::string& improve) const {
    write_file(outside("improve.yaml"), "version: 1\nimprove:\n" + improve);
  }
  void answers(const std::vector<std::string>& list) const {
    nlohmann::json all = nlohmann::json::array();
    for (const auto& a : list)
      all.push_back({{"output", a}});
    write_file(outside("answers.yaml"), all.dump());
  }

  std::string git(const std::string& arguments) const { return test::git(root(), arguments); }
  void commit(const std::string& message) const {
    git("add -A");
    git("commit -q -m '" + message + "'");
  }

  std::vector<std::string> argv(const std::vector<std::string>& args) const {
    std::vector<std::string> all{boyd_binary(), "--config", outside("improve.yaml"),
                                 "improve",     "--repo",   root()};
    all.insert(all.end(), args.begin(), args.end());
    return all;
  }
  finished improve(const std::vector<std::string>& args) const {
    return program(argv(args)).finish();
  }

  nlohmann::json state() const { return nlohmann::json::parse(read_file(state_path())); }

  /// Everything that is somebody's: kind, mode, time, content or target.
  std::map<std::string, std::string> print() const {
    namespace fs = std::filesystem;
    std::map<std::string, std::string> all;
    for (auto it = fs::recursive_directory_iterator(root());
         it != fs::recursive_directory_iterator(); ++it) {
      const auto name = fs::relative(it->path(), root()).string();
      if (name == "_outputs" || name == "_logs" || name == ".git" || name == "build") {
        it.disable_recursion_pending();
        continue;
      }
      struct ::stat s {};
      ::lstat(it->path().c_str(), &s);
      auto text = std::to_string(s.st_mode);
      if (S_ISREG(s.st_mode))
        text += " " + std::to_string(s.st_mtim.tv_sec) + "." + std::to_string(s.st_mtim.tv_nsec) +
                " " + read_file(it->path().string());
      if (S_ISLNK(s.st_mode))
        text += " " + fs::read_symlink(it->path()).string();
      all[name] = text;
    }
    return all;
  }

 private:
  temp_dir directory_;
};

inline std::string patch_json(const std::string& path, const std::string& action,
                              const std::string& content) {
  return nlohmann::json{{"summary", "mends " + path},
                        {"files", {{{"path", path}, {"action", action}, {"content", content}}}}}
      .dump();
}

} // namespace boyd::test
