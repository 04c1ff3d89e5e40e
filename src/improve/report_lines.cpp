#include "boyd/core/outside_json.hpp"
#include "boyd/core/text.hpp"
#include "report_internal.hpp"

#include <algorithm>
#include <cctype>
#include <charconv>
#include <map>
#include <set>
#include <vector>

/// Reports that are lines: compilers, CTest, pytest, TAP, Go, Cargo.
namespace boyd::improve {

namespace {

constexpr std::size_t longest_line = 16384;
/// Lines of a failure's text that are kept.
constexpr std::size_t told_bytes = 4096;

bool is_digit(char c) {
  return c >= '0' && c <= '9';
}

/// The lines, without colours, carriage returns and what is beyond a sane length.
std::vector<std::string> lines_of(std::string_view report) {
  std::vector<std::string> lines;
  const auto plain = without_escapes(report);
  for (auto line : split(plain, '\n')) {
    if (line.ends_with('\r'))
      line.remove_suffix(1);
    lines.emplace_back(line.substr(0, longest_line));
  }
  return lines;
}

/// Takes ":123" from the beginning of `text`.
int take_number(std::string_view& text) {
  if (text.size() < 2 || text.front() != ':' || !is_digit(text[1]))
    return 0;
  int n = 0;
  const auto done = std::from_chars(text.data() + 1, text.data() + text.size(), n);
  if (done.ec != std::errc{})
    return 0;
  text.remove_prefix(static_cast<std::size_t>(done.ptr - text.data()));
  return n;
}

bool take_word(std::string_view& text, std::string_view word) {
  if (!text.starts_with(word))
    return false;
  text = trim(text.substr(word.size()));
  return true;
}

/// The rule that stands in brackets at the end, or before the first blank ("E501 line too long").
std::string rule_in(std::string_view message) {
  if (message.ends_with(']')) {
    const auto open = message.rfind('[');
    if (open != message.npos && message.find(' ', open) == message.npos)
      return std::string(message.substr(open + 1, message.size() - open - 2));
  }
  const auto word = message.substr(0, message.find_first_of(" :"));
  const bool is_code = word.size() >= 3 && word.size() <= 12 &&
                       std::isupper(static_cast<unsigned char>(word[0])) && is_digit(word.back()) &&
                       std::ranges::all_of(word, [](char c) {
                         return std::isalnum(static_cast<unsigned char>(c)) != 0;
                       });
  return is_code ? std::string(word) : std::string();
}

/// A file name can stand here: no blanks at its ends, nothing of a URL or a time.
bool is_file_name(std::string_view name) {
  return !name.empty() && trim(name) == name && name.find("://") == name.npos &&
         !std::ranges::all_of(name, is_digit) && name.find_first_of("<>|\"'\t") == name.npos;
}

void read_line(std::string_view line, report_builder& into) {
  for (auto colon = line.find(':'); colon != line.npos; colon = line.find(':', colon + 1)) {
    auto rest = line.substr(colon);
    const int number = take_number(rest);
    if (number == 0)
      continue;
    take_number(rest);
    if (!rest.starts_with(':') || !is_file_name(line.substr(0, colon)))
      return;
    rest = trim(rest.substr(1));
    auto f = into.blank();
    if (take_word(rest, "note:") || take_word(rest, "remark:") || take_word(rest, "help:"))
      return;
    f.is_warning = take_word(rest, "warning:") || take_word(rest, "Warning:") ||
                   take_word(rest, "style:") || take_word(rest, "info:");
    if (!take_word(rest, "fatal error:"))
      take_word(rest, "error:");
    if (rest.empty())
      return;
    f.path = std::string(line.substr(0, colon));
    f.line = number;
    f.rule = rule_in(rest);
    f.message = std::string(rest);
    return into.add(std::move(f));
  }
}

/// Where the name of a test ends in "name - why": parameters in brackets may hold blanks and
/// dashes.
std::size_t end_of_name(std::string_view text) {
  const auto parameters = text.find('[', std::min(text.find("::"), text.size()));
  for (auto dash = text.find(" - "); dash != text.npos; dash = text.find(" - ", dash + 1))
    if (dash < parameters || text[dash - 1] == ']')
      return dash;
  return text.size();
}

/// The lines of pytest's summary; all lines where it has none.
std::vector<std::string> summary_of(std::string_view report) {
  auto lines = lines_of(report);
  const auto head = std::find_if(lines.rbegin(), lines.rend(), [](const std::string& l) {
    return l.starts_with("===") && l.find(" short test summary info ") != l.npos;
  });
  if (head != lines.rend())
    lines.erase(lines.begin(), head.base());
  return lines;
}

void read_pytest_line(std::string_view line, report_builder& into) {
  const auto file_of = [](std::string_view test) {
    return std::string(test.substr(0, test.find("::")));
  };
  if (line.starts_with("PASSED ")) {
    const auto test = trim(line.substr(7));
    into.ran(file_of(test));
    return into.passed(std::string(test));
  }
  const bool is_error = line.starts_with("ERROR ");
  if (!is_error && !line.starts_with("FAILED "))
    return;
  line = trim(line.substr(is_error ? 6 : 7));
  // Before pytest 7.3: "ERROR collecting tests/test_a.py".
  take_word(line, "collecting ");
  const auto end = end_of_name(line);
  const auto name = line.substr(0, end);
  if (name.find(".py") == name.npos && name.find("::") == name.npos)
    return;
  auto f = into.blank();
  f.test = std::string(name);
  f.path = file_of(name);
  f.message = end == line.size() ? "the test failed" : std::string(line.substr(end + 3));
  // A module that cannot be imported: none of its tests ran.
  f.is_group = name.find("::") == name.npos;
  if (!f.is_group)
    into.ran(f.path);
  into.add(std::move(f));
}

/// What Go tells of packages and tests, one event a line, and of builds, before 1.24 as text.
class go_reader {
 public:
  explicit go_reader(report_builder& into) : into_(into) {}

  void take(const std::string& line) {
    const auto event = line.starts_with('{') ? json_of_report(line) : nlohmann::json();
    if (event && event->is_object())
      return take_event(*event);
    if (line.starts_with("# "))
      built_ = line.substr(2, line.find(' ', 2) - 2);
    else if (!built_.empty())
      add(built_, line + "\n");
  }

 private:
  void add(const std::string& name, const std::string& text) {
    if (told_[name].size() < told_bytes)
      told_[name] += text;
  }

  void take_event(const nlohmann::json& event) {
    const auto action = member(event, "Action");
    if (action == "build-output") {
      const auto built = member(event, "ImportPath");
      return add(built.substr(0, built.find(' ')), member(event, "Output"));
    }
    const auto package = member(event, "Package");
    const auto test = member(event, "Test");
    const auto name = test.empty() ? package : package + "." + test;
    if (action == "output")
      add(name, member(event, "Output"));
    if (action == "pass" || (action == "fail" && !test.empty()))
      into_.ran(package);
    if (action == "pass" && !test.empty())
      into_.passed(name);
    if (action == "fail")
      take_failure(package, test, name);
  }

  void take_failure(const std::string& package, const std::string& test, const std::string& name) {
    if (test.empty() && broken_.contains(package))
      return;
    broken_.insert(package);
    const auto& told = told_[name];
    if (test.empty())
      into_.broken(package, told.empty() ? "the package failed" : told);
    else
      into_.failed(name, told.empty() ? "the test failed" : told);
  }

  report_builder& into_;
  std::string built_; ///< package of the lines of text
  std::map<std::string, std::string> told_;
  std::set<std::string> broken_; ///< packages with a failed test
};

/// A name of a test of Cargo: where a documentation test stands may change.
std::string name_in_cargo(std::string_view name) {
  std::string all(name);
  const auto line = all.find(" (line ");
  const auto end = all.find(')', line == all.npos ? all.size() : line);
  if (line != all.npos && end != all.npos)
    all.erase(line, end + 1 - line);
  return all;
}

/// What failed tests printed, by their names: "---- name stdout ----".
std::map<std::string, std::string> outputs_in_cargo(const std::vector<std::string>& lines) {
  std::map<std::string, std::string> all;
  std::string* told = nullptr;
  for (const auto& line : lines) {
    constexpr std::string_view end = " stdout ----";
    if (line.starts_with("---- ") && line.ends_with(end))
      told = &all[name_in_cargo(line.substr(5, line.size() - 5 - end.size()))];
    else if (line == "failures:" || line.starts_with("test result:"))
      told = nullptr;
    else if (told != nullptr && told->size() < told_bytes)
      *told += line + "\n";
  }
  return all;
}

/// The lines from the first error on.
std::string errors_in_cargo(const std::vector<std::string>& lines) {
  std::string all;
  for (const auto& line : lines)
    if ((!all.empty() || line.starts_with("error")) && all.size() < told_bytes)
      all += line + "\n";
  return all;
}

/// "12/34 Test #12: name ......***Failed  0.01 sec"
void read_ctest_line(std::string_view line, report_builder& into) {
  const auto mark = line.find(" Test ");
  const auto hash = line.find('#', mark == line.npos ? line.size() : mark);
  if (hash == line.npos)
    return;
  const auto colon = line.find(": ", hash);
  const auto dots = colon == line.npos ? colon : line.find(" ..", colon + 2);
  if (dots == line.npos)
    return;
  const std::string name(trim(line.substr(colon + 2, dots - colon - 2)));
  const auto end = line.substr(dots);
  if (end.find("***Not Run") != end.npos) {
    auto f = into.blank();
    f.test = name;
    f.message = "the test could not be run";
    f.unfixable = "its program is not built; build it, then scan again";
    into.add(std::move(f));
  } else if (const auto stars = end.find("***"); stars != end.npos) {
    const auto what = end.substr(stars + 3);
    if (!what.starts_with("Skipped") && !what.starts_with("Disabled"))
      into.failed(name, std::string(trim(what)));
  } else if (end.find(" Passed ") != end.npos) {
    into.passed(name);
  }
}

/// "not ok 3 - adds numbers # SKIP not here"
void read_tap_line(std::string_view line, const std::string& more, report_builder& into) {
  const bool is_bad = line.starts_with("not ok");
  if (!is_bad && !line.starts_with("ok"))
    return;
  line.remove_prefix(is_bad ? 6 : 2);
  if (!line.empty() && line.front() != ' ')
    return;
  line = trim(line);
  std::size_t digits = 0;
  while (digits < line.size() && is_digit(line[digits]))
    ++digits;
  std::string name(trim(line.substr(digits)));
  std::string directive;
  if (const auto hash = name.rfind(" # "); hash != name.npos || name.starts_with("# ")) {
    const auto at = hash == name.npos ? 0 : hash + 1;
    directive = name.substr(at + 2);
    name.erase(hash == name.npos ? 0 : hash);
  }
  if (name.starts_with("- "))
    name.erase(0, 2);
  if (name.empty())
    name = "test " + std::string(line.substr(0, digits));
  std::ranges::transform(directive, directive.begin(),
                         [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  if (directive.starts_with("skip") || directive.starts_with("todo"))
    return;
  into.ran(bail_out);
  if (is_bad)
    into.failed(name, more.empty() ? "the test failed" : more);
  else
    into.passed(name);
}

} // namespace

void read_lines(std::string_view report, report_builder& into) {
  for (const auto& line : lines_of(report))
    read_line(line, into);
}

void read_ctest(std::string_view report, report_builder& into) {
  for (const auto& line : lines_of(report))
    read_ctest_line(line, into);
}

void read_pytest(std::string_view report, report_builder& into) {
  for (const auto& line : summary_of(report))
    read_pytest_line(line, into);
}

void read_tap(std::string_view report, report_builder& into) {
  const auto lines = lines_of(report);
  for (std::size_t i = 0; i < lines.size(); ++i) {
    if (lines[i].starts_with("Bail out!")) {
      into.broken(bail_out, lines[i]);
      continue;
    }
    std::string more;
    for (auto next = i + 1; next < lines.size() && more.size() < told_bytes &&
                            (lines[next].starts_with("#") || lines[next].starts_with("  "));
         ++next)
      more += lines[next] + "\n";
    read_tap_line(lines[i], more, into);
  }
}

void read_go_test(std::string_view report, report_builder& into) {
  go_reader reader(into);
  for (const auto& line : lines_of(report))
    reader.take(line);
}

void read_cargo(std::string_view report, report_builder& into) {
  const auto lines = lines_of(report);
  const auto outputs = outputs_in_cargo(lines);
  bool is_broken = false;
  for (const auto& line : lines) {
    const std::string_view text(line);
    // A crate that does not compile runs no test, a program that crashes not all of them.
    is_broken = is_broken || text.starts_with("error: could not compile") ||
                text.find("process didn't exit successfully") != text.npos;
    if (text.starts_with("test result:"))
      into.ran(build_group);
    const auto dots = text.rfind(" ... ");
    if (!text.starts_with("test ") || dots == text.npos)
      continue;
    const auto name = name_in_cargo(text.substr(5, dots - 5));
    const auto end = text.substr(dots + 5);
    if (end.starts_with("FAILED")) {
      const auto told = outputs.find(name);
      into.failed(name, told == outputs.end() ? "the test failed" : told->second);
    } else if (end.starts_with("ok")) {
      into.passed(name);
    }
  }
  if (is_broken)
    into.broken(build_group, errors_in_cargo(lines));
}

} // namespace boyd::improve
