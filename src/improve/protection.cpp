#include "boyd/improve/protection.hpp"

#include "boyd/core/text.hpp"
#include "boyd/core/workspace_path.hpp"
#include "boyd/improve/settings.hpp"
#include "boyd/tools/glob.hpp"

#include <algorithm>
#include <array>
#include <cctype>
#include <set>
#include <string_view>

namespace boyd::improve {

namespace {

/// Of whole paths in small letters. What stands here decides about a patch, or runs by itself.
constexpr std::array<std::string_view, 163> by_default{
    // Continuous integration.
    "**/.github/**", "**/.gitlab-ci.y*ml", "**/.gitlab/**", "**/.ci/**", "**/.circleci/**",
    "**/.buildkite/**", "**/.travis.y*ml", "**/appveyor.y*ml", "**/.appveyor.y*ml",
    "**/azure-pipelines*.y*ml", "**/bitbucket-pipelines.y*ml", "**/.drone.y*ml",
    "**/.woodpecker.y*ml", "**/.woodpecker/**", "**/.cirrus.y*ml", "**/.teamcity/**",
    "**/.gitea/**", "**/.forgejo/**", "**/.builds/**", "**/.build.y*ml", "**/.semaphore/**",
    "**/.tekton/**", "**/jenkinsfile",
    // Hooks of git.
    "**/.husky/**", "**/.githooks/**", "**/.pre-commit-*.yaml", "**/lefthook.y*ml",
    "**/.lefthook.y*ml", "**/.overcommit.y*ml",
    // Shells, editors and agents, which run or obey what they find.
    "**/.envrc", "**/mise.toml", "**/.mise.toml", "**/.vscode/**", "**/.idea/**", "**/.zed/**",
    "**/.devcontainer/**", "**/.exrc", "**/.nvim.lua", "**/.vimrc", "**/.dir-locals.el",
    "**/.mcp.json", "**/.claude/**", "**/.codex/**", "**/.cursor/**", "**/.gemini/**",
    "**/.goose/**", "**/.opencode/**", "**/opencode.json*", "**/.cursorrules", "**/.windsurf*",
    "**/agents.md", "**/claude.md", "**/gemini.md",
    // What says which tests run, and how.
    "**/conftest.py", "**/pytest.ini", "**/.pytest.ini", "**/tox.ini", "**/noxfile.py",
    "**/setup.cfg", "**/pyproject.toml", "**/sitecustomize.py", "**/usercustomize.py",
    "**/.coveragerc", "**/package.json", "**/.npmrc", "**/.yarnrc*", "**/jest.config.*",
    "**/vitest.config.*", "**/vite.config.*", "**/karma.conf.*", "**/.mocharc*",
    "**/playwright.config.*", "**/cypress.config.*", "**/cmakelists.txt", "**/*.cmake",
    "**/makefile", "**/gnumakefile", "**/*.mk", "**/meson.build", "**/justfile", "**/rakefile",
    "**/.rspec", "**/phpunit.xml*", "**/pom.xml", "**/*.gradle*", "**/cargo.toml", "**/build.rs",
    "**/.cargo/**", "**/go.work",
    // What says what linters look at.
    "**/.*ignore", "**/.eslintrc*", "**/eslint.config.*", "**/ruff.toml", "**/.ruff.toml",
    "**/.flake8", "**/.pylintrc", "**/pylintrc", "**/.mypy.ini", "**/mypy.ini", "**/.pep8",
    "**/.pycodestyle", "**/.pydocstyle", "**/.pydocstyle.ini", "**/.bandit", "**/.isort.cfg",
    "**/.pyre_configuration", "**/pyrightconfig.json", "**/.clang-tidy", "**/.clang-format",
    "**/.cppcheck*", "**/*.cppcheck", "**/cppcheck*suppress*", "**/.shellcheckrc",
    "**/shellcheckrc", "**/.golangci*", "**/staticcheck.conf", "**/revive.toml", "**/clippy.toml",
    "**/.clippy.toml", "**/rustfmt.toml", "**/.rustfmt.toml", "**/deny.toml", "**/.rubocop*.y*ml",
    "**/.standard.yml", "**/.reek.yml", "**/biome.json*", "**/.biome.json*", "**/tsconfig*.json",
    "**/jsconfig*.json", "**/tslint.json", "**/.jshintrc", "**/deno.json*", "**/.oxlintrc.json",
    "**/.stylelintrc*", "**/stylelint.config.*", "**/.prettierrc*", "**/prettier.config.*",
    "**/.markdownlint*", "**/.yamllint*", "**/.hadolint.y*ml", "**/.ansible-lint*",
    "**/.tflint.hcl", "**/.swiftlint.y*ml", "**/.editorconfig", "**/detekt*.y*ml",
    "**/checkstyle*.xml", "**/pmd*.xml", "**/spotbugs*.xml", "**/phpcs.xml*", "**/.phpcs.xml*",
    "**/phpstan.neon*", "**/psalm.xml*", "**/.php-cs-fixer*", "**/.luacheckrc", "**/.perlcriticrc",
    "**/.sqlfluff", "**/.credo.exs", "**/.semgrep*", "**/.codespellrc", "**/.vale.ini",
    "**/_typos.toml", "**/.typos.toml", "**/typos.toml"};

std::string folded(std::string_view path) {
  std::string all;
  for (const auto part : split(path, '/'))
    all += (all.empty() ? "" : "/") + folded_name(part);
  return all;
}

std::string_view name_in(std::string_view path) {
  const auto slash = path.rfind('/');
  return slash == path.npos ? path : path.substr(slash + 1);
}

bool is_interpreter(std::string_view program) {
  static const std::set<std::string_view> names{"ash",  "bash", "bun", "dash", "deno", "ksh", "lua",
                                                "node", "perl", "php", "ruby", "sh",   "zsh"};
  const auto name = name_in(program);
  return names.contains(name) || name.starts_with("python");
}

/// What runs the program that stands behind it.
bool is_wrapper(std::string_view program) {
  static const std::set<std::string_view> names{
      "chrt",    "doas",  "env",     "exec",    "flock",  "ionice",
      "nice",    "nohup", "setsid",  "sudo",    "stdbuf", "systemd-run",
      "taskset", "time",  "timeout", "unshare", "xargs",  "xvfb-run"};
  return names.contains(name_in(program));
}

/// What a shell's script is made of, as far as file names go.
std::vector<std::string> words_of(std::string_view script) {
  std::vector<std::string> words(1);
  for (const char c : script)
    if (std::string_view(" \t\n;|&()<>{}\"'`$=,:").find(c) == std::string_view::npos)
      words.back() += c;
    else if (!words.back().empty())
      words.emplace_back();
  return words;
}

/// Words of commands as files of a repository.
class command_reader {
 public:
  command_reader(const std::string& root, const std::set<std::string>& known)
      : root_(root), known_(known) {}

  /// `judges` false: what stands behind the program is what it looks at.
  void take(const std::vector<std::string>& argv, bool judges) {
    if (argv.empty())
      return;
    take_program(argv);
    for (std::size_t i = 0; i < argv.size(); ++i) {
      const bool is_passed_over = i > 0 && (argv[i].starts_with('-') || is_number(argv[i]));
      add_known(argv[i]);
      if (!judges && !is_passed_over && !is_wrapper(argv[i]) && !is_interpreter(argv[i]) &&
          argv[i].find('=') == std::string::npos)
        return;
    }
  }

  std::vector<std::string> files;

 private:
  static bool is_number(std::string_view word) {
    return !word.empty() && std::isdigit(static_cast<unsigned char>(word.front())) != 0;
  }

  void add(const std::string& path) {
    if (std::ranges::find(files, path) == files.end())
      files.push_back(path);
  }

  /// The program and its script, also where git does not know them.
  void take_program(const std::vector<std::string>& argv) {
    if (argv.front().find('/') != std::string::npos)
      add_file(argv.front());
    if (!is_interpreter(argv.front()))
      return;
    const auto script = std::find_if(argv.begin() + 1, argv.end(),
                                     [](const std::string& a) { return !a.starts_with('-'); });
    if (script != argv.end() && script->find(' ') == std::string::npos) // else it is code
      add_file(*script);
  }

  /// "./a/../b.sh", or the same behind the repository's own path, as "b.sh".
  void add_file(const std::string& word) {
    if (const auto clean = workspace_path(root_, word); clean && *clean != ".")
      add(*clean);
  }

  void add_known(const std::string& word) {
    auto words = words_of(word);
    words.push_back(word);
    for (const auto& each : words)
      if (const auto clean = workspace_path(root_, each); clean && known_.contains(*clean))
        add(*clean);
  }

  const std::string& root_;
  const std::set<std::string>& known_;
};

bool any_matches(const std::vector<std::string>& patterns, const std::string& path) {
  return std::ranges::any_of(patterns, [&](const auto& p) { return tools::glob_matches(p, path); });
}

bool is_test_word(std::string_view word) {
  return word == "test" || word == "tests" || word == "spec" || word == "specs";
}

/// "test_a.py", "a.spec.ts", "run-tests".
bool has_test_word(std::string_view name) {
  while (!name.empty()) {
    const auto end = std::min(name.find_first_of("_-."), name.size());
    if (is_test_word(name.substr(0, end)))
      return true;
    name.remove_prefix(std::min(end + 1, name.size()));
  }
  return false;
}

/// "TestShop.java", "ShopTests.cs".
bool has_test_hump(std::string_view name) {
  const auto stem = name.substr(0, name.find('.'));
  return (stem.starts_with("Test") && stem.size() > 4 &&
          std::isupper(static_cast<unsigned char>(stem[4])) != 0) ||
         stem.ends_with("Test") || stem.ends_with("Tests") || stem.ends_with("Spec");
}

} // namespace

std::vector<std::string> files_run(const improve_settings& s, const std::string& root,
                                   const std::set<std::string>& known) {
  command_reader commands(root, known);
  for (const auto& scanner : s.scanners) {
    const bool judges = scanner.source == finding_source::test;
    commands.take(scanner.build, true);
    commands.take(scanner.argv, judges);
    commands.take(scanner.proof, judges);
  }
  for (const auto& argv : s.gate)
    commands.take(argv, true);
  commands.take(s.executor.argv, true);
  if (s.executor.file.starts_with(root + "/"))
    commands.take({s.executor.file}, true);
  return std::move(commands.files);
}

bool holds_tests(std::string_view path) {
  const auto parts = split(path, '/');
  for (std::size_t i = 0; i + 1 < parts.size(); ++i)
    if (const auto part = folded_name(parts[i]); is_test_word(part) || part == "__tests__")
      return true;
  return has_test_word(folded_name(parts.back())) || has_test_hump(parts.back());
}

std::string why_protected(const std::string& path, const protection& p) {
  for (const auto& pattern : p.protect)
    if (tools::glob_matches(pattern, path))
      return "it is protected by the pattern " + pattern;
  if (any_matches(p.may_change, path))
    return {};
  if (std::ranges::find(p.judges, path) != p.judges.end())
    return "a cycle runs it, so no patch may change it (improve.may_change opens it)";
  const auto small = folded(path);
  for (const auto pattern : by_default)
    if (tools::glob_matches(pattern, small))
      return "it is protected by default (" + std::string(pattern) +
             "), since it starts programs or says what is checked (improve.may_change opens it)";
  return {};
}

std::string why_kept(const std::string& path, const finding& task, const protection& p) {
  const bool is_failing_test = task.from == finding_source::test;
  // What stands in a file of tests is mended there, but for a test that fails.
  const bool is_closed = path == task.path ? is_failing_test : holds_tests(path);
  if (!is_closed || p.may_change_tests || any_matches(p.may_change, path))
    return {};
  return is_failing_test ? "it holds tests, and a failing test is mended in what it tests "
                           "(improve.may_change_tests opens it)"
                         : "it holds tests, which say whether a patch is good "
                           "(improve.may_change_tests opens it)";
}

} // namespace boyd::improve
