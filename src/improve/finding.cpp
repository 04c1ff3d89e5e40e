#include "boyd/improve/finding.hpp"

#include "boyd/config/redact.hpp"
#include "boyd/core/outside_json.hpp"
#include "boyd/core/sha256.hpp"
#include "boyd/core/text.hpp"
#include "boyd/improve/task_prompt.hpp"
#include "report_internal.hpp"

#include <algorithm>
#include <cctype>
#include <map>
#include <numeric>

namespace boyd::improve {

namespace {

constexpr std::size_t message_characters = 2000;
constexpr const char* cut_mark = " … (cut)";
/// Of the hash; a repository has some thousand findings at most.
constexpr std::size_t id_characters = 12;

/// Numbers say where and how many, not what.
std::string without_numbers(std::string_view text) {
  std::string out;
  for (const char c : text) {
    if (std::isdigit(static_cast<unsigned char>(c)) == 0)
      out += c;
    else if (out.empty() || out.back() != '#')
      out += '#';
  }
  return out;
}

std::string what_it_is(const finding& f) {
  const std::string divider(1, '\0');
  std::string all = std::string(name_of(f.from)) + divider + f.scanner + divider + f.rule + divider;
  if (f.from == finding_source::test && !f.test.empty())
    return all + f.test;
  return all + f.path + divider + (f.text.empty() ? without_numbers(f.message) : f.text);
}

} // namespace

std::string_view name_of(finding_source s) noexcept {
  switch (s) {
  case finding_source::lint:
    return "lint";
  case finding_source::test:
    return "test";
  case finding_source::hygiene:
    break;
  }
  return "hygiene";
}

std::vector<std::string> ids_of(const std::vector<finding>& findings) {
  std::vector<std::size_t> order(findings.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::ranges::stable_sort(
      order, [&](std::size_t a, std::size_t b) { return findings[a].line < findings[b].line; });
  std::map<std::string, int> alike;
  std::vector<std::string> ids(findings.size());
  for (const auto i : order) {
    const auto what = what_it_is(findings[i]);
    const int before = alike[what]++;
    ids[i] = std::string(name_of(findings[i].from)) + "-" +
             sha256_hex(what).substr(0, id_characters) +
             (before == 0 ? "" : "-" + std::to_string(before + 1));
  }
  return ids;
}

finding report_builder::blank() const {
  finding f;
  f.from = from_;
  f.scanner = scanner_;
  return f;
}

void report_builder::add(finding f) {
  if (report_.findings.size() == most_findings) {
    ++report_.more;
    return;
  }
  const auto message = clean(trim(f.message));
  f.message = std::string(cut_characters(message, message_characters));
  if (f.message.size() < message.size())
    f.message += cut_mark;
  f.path = sanitize_utf8(relative(std::move(f.path)));
  f.rule = clean(f.rule);
  f.test = clean(f.test);
  report_.findings.push_back(std::move(f));
}

void report_builder::failed(std::string test, std::string message) {
  auto f = blank();
  f.test = std::move(test);
  f.message = std::move(message);
  add(std::move(f));
}

void report_builder::broken(std::string group, std::string message) {
  auto f = blank();
  f.test = std::move(group);
  f.is_group = true;
  for (const auto& place : places_in(message)) {
    auto path = relative(place.path);
    if (!f.path.empty() || path.starts_with('/') || path.starts_with("../") ||
        path.find('.') == path.npos)
      continue;
    f.path = std::move(path);
    f.line = place.line;
  }
  f.message = std::move(message);
  add(std::move(f));
}

void report_builder::passed(std::string test) {
  report_.passed.push_back(clean(test));
}

std::string report_builder::clean(std::string_view text) const {
  return config::redact_text(sanitize_utf8(text), secrets_);
}

std::string report_builder::relative(std::string path) const {
  constexpr std::string_view scheme = "file://";
  if (path.starts_with(scheme))
    path.erase(0, scheme.size());
  if (!root_.empty() && path.starts_with(root_ + "/"))
    path.erase(0, root_.size() + 1);
  while (path.starts_with("./"))
    path.erase(0, 2);
  return path;
}

result<nlohmann::json> json_of_report(std::string_view text) {
  auto mended = mend_json(text);
  if (!mended)
    return fail(std::move(mended.error()));
  return nlohmann::json::parse(mended->text, nullptr, false);
}

std::string member(const nlohmann::json& object, const char* key) {
  if (!object.is_object())
    return {};
  const auto it = object.find(key);
  return it != object.end() && it->is_string() ? it->get<std::string>() : std::string();
}

result<scan_report> read_report(report_format form, finding_source from, const std::string& scanner,
                                const std::string& root, std::string_view report,
                                const std::vector<std::string>& secrets) {
  if (report.size() > report_bytes)
    return fail(errc::limit_exceeded,
                "the report of " + scanner + " is longer than " + std::to_string(report_bytes) +
                    " bytes",
                {}, "let the scanner look at less at a time");
  report_builder into(from, scanner, root, secrets);
  result<void> done;
  switch (form) {
  case report_format::sarif:
    done = read_sarif(report, into);
    break;
  case report_format::junit:
    done = read_junit(report, into);
    break;
  case report_format::eslint:
    done = read_eslint(report, into);
    break;
  case report_format::lines:
    read_lines(report, into);
    break;
  case report_format::ctest:
    read_ctest(report, into);
    break;
  case report_format::pytest:
    read_pytest(report, into);
    break;
  case report_format::tap:
    read_tap(report, into);
    break;
  case report_format::go_test:
    read_go_test(report, into);
    break;
  case report_format::cargo:
    read_cargo(report, into);
    break;
  case report_format::exit:
    break;
  }
  if (!done)
    return fail(std::move(done.error()));
  return into.take();
}

} // namespace boyd::improve
