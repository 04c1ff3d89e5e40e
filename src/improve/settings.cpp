#include "boyd/improve/settings.hpp"

#include "boyd/core/outside_json.hpp"
#include "boyd/core/text.hpp"
#include "boyd/core/workspace_path.hpp"
#include "proof_command.hpp"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <array>
#include <charconv>
#include <set>
#include <utility>

namespace boyd::improve {

namespace {

using config::tree;

const tree no_tree{};

const tree& get(const tree& t, std::string_view key) {
  const auto* found = t.find(key);
  return found == nullptr ? no_tree : *found;
}

std::string text(const tree& t, std::string_view key) {
  return get(t, key).text;
}

std::vector<std::string> texts(const tree& list) {
  std::vector<std::string> out;
  for (const auto& item : list.items)
    out.push_back(item.text);
  return out;
}

milliseconds duration(const tree& t, std::string_view key, milliseconds otherwise) {
  return parse_duration(text(t, key)).value_or(otherwise);
}

/// "64KiB", validated already.
std::uint64_t size_of(std::string_view text, std::uint64_t otherwise) {
  std::uint64_t n = 0;
  const auto done = std::from_chars(text.data(), text.data() + text.size(), n);
  if (done.ec != std::errc{})
    return otherwise;
  const std::string_view unit(done.ptr,
                              static_cast<std::size_t>(text.data() + text.size() - done.ptr));
  if (unit == "KiB")
    return n << 10;
  if (unit == "MiB")
    return n << 20;
  return unit == "GiB" ? n << 30 : n;
}

tl::unexpected<error> wrong(const std::string& file, const tree& at, std::string what,
                            std::string next) {
  return fail(errc::invalid_configuration, std::move(what),
              file + ":" + std::to_string(at.at.line) + ":" + std::to_string(at.at.column),
              std::move(next));
}

constexpr std::array<std::pair<std::string_view, report_format>, 10> formats{
    {{"sarif", report_format::sarif},
     {"lines", report_format::lines},
     {"junit", report_format::junit},
     {"ctest", report_format::ctest},
     {"pytest", report_format::pytest},
     {"tap", report_format::tap},
     {"go_test", report_format::go_test},
     {"eslint", report_format::eslint},
     {"cargo", report_format::cargo},
     {"exit", report_format::exit}}};

/// A path below the repository, as written in the configuration.
result<std::string> below(const tree& t, std::string_view key, const std::string& file) {
  const auto path = text(t, key);
  auto clean = workspace_path("/", path);
  if (path.starts_with('/') || !clean || *clean == ".")
    return wrong(file, get(t, key), std::string(key) + " must lie below the repository",
                 "write a relative path such as _outputs/improve");
  if (const auto why = why_unwritable(*clean))
    return wrong(file, get(t, key), std::string(key) + ": " + *why, "choose another directory");
  return clean;
}

scanner_settings scanner_of(const tree& t) {
  scanner_settings s;
  s.name = text(t, "name");
  s.source = text(t, "source") == "lint" ? finding_source::lint : finding_source::test;
  const auto parser = text(t, "parser");
  for (const auto& [name, format] : formats)
    if (name == parser)
      s.parser = format;
  s.argv = texts(get(t, "argv"));
  s.report = text(t, "report");
  s.proof = texts(get(t, "proof"));
  s.timeout = duration(t, "timeout", s.timeout);
  s.build = texts(get(t, "build"));
  return s;
}

result<executor_settings> executor_of(const tree& t, const std::string& file) {
  executor_settings e;
  const bool is_script = text(t, "type") == "script";
  e.kind = is_script ? executor_settings::kind_t::script : executor_settings::kind_t::command;
  e.argv = texts(get(t, "argv"));
  e.file = text(t, "file");
  e.timeout = duration(t, "timeout", e.timeout);
  if (is_script == e.file.empty() || is_script == !e.argv.empty())
    return wrong(file, t, "an executor of this type has another key",
                 is_script ? "give a script its `file`, and nothing else"
                           : "give a command its `argv`, and no `file`");
  if (!e.file.empty() && !e.file.starts_with('/'))
    e.file = file.substr(0, file.rfind('/') + 1) + e.file;
  return e;
}

result<void> read_scanners(const tree& list, const std::string& file, improve_settings& into) {
  std::set<std::string> names;
  for (const auto& t : list.items) {
    auto s = scanner_of(t);
    if (s.name == "hygiene" || !names.insert(s.name).second)
      return wrong(file, t, "the name " + s.name + " is taken", "give each scanner its own name");
    if (const auto code = proof_command::code_word(s.proof); !code.empty())
      return wrong(file, get(t, "proof"),
                   "a name of a test must not become a part of a program in " + code,
                   "read it there from the environment: BOYD_TEST, BOYD_PATH, BOYD_RULE");
    if (!s.report.empty()) {
      auto clean = below(t, "report", file);
      if (!clean)
        return fail(std::move(clean.error()));
      s.report = std::move(*clean);
    }
    into.scanners.push_back(std::move(s));
  }
  return {};
}

result<void> read_executors(const tree& list, const std::string& file, improve_settings& into) {
  for (const auto& t : list.items) {
    proposer p{text(t, "agent_id"), text(get(t, "executor"), "type") == "agent_cli"};
    if (std::ranges::any_of(into.executors, [&](const auto& e) { return e.name == p.name; }))
      return wrong(file, t, "the name " + p.name + " is taken", "give each executor its own name");
    if (text(get(t, "executor"), "type") == "improve")
      return wrong(file, get(t, "executor"), "a cycle cannot answer a task of a cycle",
                   "a chat, an agent CLI, a command or a script");
    into.executors.push_back(std::move(p));
  }
  if (!into.executors.empty() && into.executor.kind != executor_settings::kind_t::none)
    return wrong(file, list, "executor is given, too", "one of executor and executors");
  return {};
}

} // namespace

result<improve_settings> read_settings(const config::tree& improve, const std::string& path) {
  improve_settings s;
  s.file = path;
  auto outputs = below(improve, "outputs", path);
  if (!outputs)
    return fail(std::move(outputs.error()));
  auto logs = below(improve, "logs", path);
  if (!logs)
    return fail(std::move(logs.error()));
  s.outputs = std::move(*outputs);
  s.logs = std::move(*logs);
  if (auto done = read_scanners(get(improve, "scanners"), path, s); !done)
    return fail(std::move(done.error()));
  const auto& hygiene = get(improve, "hygiene");
  s.hygiene.enabled = text(hygiene, "enabled") != "false";
  s.hygiene.large_file = size_of(text(hygiene, "large_file"), s.hygiene.large_file);
  s.hygiene.ignore = texts(get(hygiene, "ignore"));
  for (auto& rule : texts(get(hygiene, "rules_off")))
    s.hygiene.rules_off.insert(std::move(rule));
  for (const auto& command : get(improve, "gate").items)
    s.gate.push_back(texts(command));
  s.gate_timeout = duration(improve, "gate_timeout", s.gate_timeout);
  s.protect = texts(get(improve, "protect"));
  s.may_change = texts(get(improve, "may_change"));
  s.may_change_tests = text(improve, "may_change_tests") == "true";
  if (const auto* t = improve.find("executor")) {
    auto e = executor_of(*t, path);
    if (!e)
      return fail(std::move(e.error()));
    s.executor = std::move(*e);
  }
  if (auto done = read_executors(get(improve, "executors"), path, s); !done)
    return fail(std::move(done.error()));
  return s;
}

namespace {

scanner_settings found(std::string name, report_format parser, std::vector<std::string> argv,
                       std::vector<std::string> proof = {}) {
  scanner_settings s;
  s.name = std::move(name);
  s.parser = parser;
  s.argv = std::move(argv);
  s.proof = std::move(proof);
  s.is_detected = true;
  return s;
}

bool has_python_tests(const std::vector<listed_file>& files) {
  return std::ranges::any_of(files, [](const listed_file& f) {
    const auto name = f.path.substr(f.path.rfind('/') + 1);
    return (name.starts_with("test_") && name.ends_with(".py")) || name.ends_with("_test.py");
  });
}

bool has_npm_test(const std::string& package) {
  const auto mended = mend_json(package);
  if (!mended)
    return false;
  const auto json = nlohmann::json::parse(mended->text, nullptr, false);
  const auto scripts =
      json.is_object() ? json.value("scripts", nlohmann::json::object()) : nlohmann::json::object();
  const auto test = scripts.is_object() ? scripts.value("test", std::string()) : std::string();
  return !test.empty() && test.find("no test specified") == test.npos;
}

} // namespace

detection detect_scanners(const std::function<bool(const std::string& path)>& has,
                          const std::function<std::string(const std::string& path)>& text_of,
                          const std::vector<listed_file>& files,
                          const std::vector<std::string>& build_directories) {
  detection d;
  const bool pytest = has("pytest.ini") || has("conftest.py") || has("tests/conftest.py") ||
                      text_of("pyproject.toml").find("[tool.pytest") != std::string::npos ||
                      text_of("setup.cfg").find("[tool:pytest") != std::string::npos ||
                      text_of("tox.ini").find("[pytest]") != std::string::npos;
  const bool other = has("CMakeLists.txt") || has("go.mod") || has("Cargo.toml");
  if (pytest || (!other && has_python_tests(files))) {
    // A module that cannot be imported must not hide the tests of all others.
    std::vector<std::string> argv{
        "python3", "-m", "pytest",           "-rA",
        "-q",      "-p", "no:cacheprovider", "--continue-on-collection-errors"};
    auto proof = argv;
    proof.emplace_back("{test}");
    d.scanners.push_back(found("pytest", report_format::pytest, std::move(argv), std::move(proof)));
  }
  if (has("go.mod"))
    d.scanners.push_back(found("go", report_format::go_test, {"go", "test", "-json", "./..."}));
  if (has("Cargo.toml"))
    d.scanners.push_back(found("cargo", report_format::cargo, {"cargo", "test", "--no-fail-fast"}));
  if (has("package.json") && has_npm_test(text_of("package.json")))
    d.scanners.push_back(found("npm", report_format::exit, {"npm", "test", "--silent"}));
  for (const auto& build : build_directories)
    if (has(build + "/CTestTestfile.cmake")) {
      d.scanners.push_back(
          found("ctest", report_format::ctest, {"ctest", "--test-dir", build},
                {"ctest", "--test-dir", build, "--output-on-failure", "-R", "^{test}$"}));
      if (has(build + "/CMakeCache.txt"))
        d.scanners.back().build = {"cmake", "--build", build};
      break;
    }
  const bool has_ctest =
      std::ranges::any_of(d.scanners, [](const auto& s) { return s.name == "ctest"; });
  if (has("CMakeLists.txt") && !has_ctest)
    d.advice.emplace_back("CMakeLists.txt is there, but no build directory with tests: build it "
                          "with `cmake -B build && cmake --build build`");
  if (d.scanners.empty())
    d.advice.emplace_back(
        "no tests were found (pytest, ctest, npm test, go test, cargo test); write a scanner into "
        "boyd-improve.yaml: `version: 1`, then `improve: {scanners: [{name: tests, source: test, "
        "parser: exit, argv: [make, test]}]}`");
  return d;
}

} // namespace boyd::improve
