#pragma once

#include "program.hpp"
#include "support/pch.hpp"

#include <filesystem>
#include <string>
#include <vector>

/// A kernel whose agent is given one document, cites it, and so makes a skill of it.
namespace boyd::test::skills_lab {

using nlohmann::json;
namespace fs = std::filesystem;

inline std::string yaml_of(const std::string& repo, const std::string& kernel = {},
                           const std::string& agent = {}) {
  return "version: 1\n"
         "kernels:\n"
         "  - kernel_id: default\n"
         "    schedule: \"0 0 1 1 *\"\n" +
         kernel +
         "    agents:\n"
         "      - agent_id: keeper\n"
         "        prompt: Release the lighthouse, and say how.\n"
         "        retry: {max_attempts: 1}\n"
         "        context: [\"@docs/release.md\"]\n" +
         agent + "        executor:\n          type: command\n          cwd: " + repo +
         "\n"
         "          shell: \"cat > prompt.txt; cat answer.txt; sh more.sh; exit $(cat code.txt)\"\n"
         "          exit_classes: {1: deterministic}\n";
}

struct learning_home {
  temp_dir repo;
  home_of_boyd home;

  explicit learning_home(const std::string& kernel = {}, const std::string& agent = {})
      : home(yaml_of(repo.path(), kernel, agent)) {
    fs::create_directories(repo.file("docs"));
    write_file(repo.file("docs/release.md"), "# Release the lighthouse\n\n1. Trim the lamp.\n");
    say("[C1]");
    code(0);
    more("true");
  }

  void say(const std::string& answer) const { write_file(repo.file("answer.txt"), answer + "\n"); }
  void code(int c) const { write_file(repo.file("code.txt"), std::to_string(c)); }
  /// What the agent does besides.
  void more(const std::string& script) const { write_file(repo.file("more.sh"), script); }

  void cycles(int n) const {
    for (int i = 0; i < n; ++i) {
      const auto ran = home.run({"cycle"});
      INFO(ran.out << ran.err);
      REQUIRE((ran.code == 0 || ran.code == 1));
    }
  }
  std::string prompt() const { return read_file(repo.file("prompt.txt")); }
  std::string file(const std::string& name) const { return home.file("kernel/default/" + name); }

  json call(std::vector<std::string> args) const {
    args.insert(args.begin(), "skills");
    args.emplace_back("--json");
    const auto ran = home.run(args);
    INFO(ran.out << ran.err);
    REQUIRE(ran.code == 0);
    return ran.json();
  }
  std::string refused(std::vector<std::string> args) const {
    args.insert(args.begin(), "skills");
    const auto ran = home.run(args);
    INFO(ran.out);
    REQUIRE(ran.code != 0);
    return ran.err;
  }
  json skill(const std::string& name) const {
    const auto all = call({"ls"});
    for (const auto& s : all["skills"])
      if (s["name"] == name)
        return s;
    return {};
  }
  /// Facts of the log of this type.
  std::vector<json> facts(const std::string& type) const {
    std::vector<json> all;
    std::istringstream in(read_file(home.file("knowledge/graph.jsonl")));
    for (std::string line; std::getline(in, line);)
      if (auto fact = json::parse(line, nullptr, false); fact["type"] == type)
        all.push_back(std::move(fact));
    return all;
  }
  /// The one candidate, after the cycles that make it.
  std::string candidate() const {
    cycles(5);
    const auto waiting = call({"review"})["candidates"];
    INFO(waiting.dump(1));
    REQUIRE(waiting.size() == 1);
    return waiting[0]["id"];
  }
};

} // namespace boyd::test::skills_lab
