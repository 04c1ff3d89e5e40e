#include "boyd/core/limits.hpp"
#include "boyd/core/text.hpp"
#include "report_internal.hpp"

#include <charconv>
#include <expat.h>
#include <map>
#include <memory>
#include <type_traits>

/// Reports that are one document: SARIF, JUnit, ESLint.
namespace boyd::improve {

namespace {

using nlohmann::json;

const json nothing = json::object();

/// A member of any kind, or an empty object.
const json& part(const json& value, const char* key) {
  if (!value.is_object())
    return nothing;
  const auto it = value.find(key);
  return it == value.end() ? nothing : *it;
}

int number(const json& value, const char* key) {
  constexpr std::int64_t most = 1 << 30;
  const auto& n = part(value, key);
  if (!n.is_number_integer())
    return 0;
  const auto i = n.get<std::int64_t>();
  return i > 0 && i < most ? static_cast<int>(i) : 0;
}

/// A path of a URI: percent-encoded bytes as they are meant.
std::string path_of(std::string_view uri) {
  std::string path;
  for (std::size_t i = 0; i < uri.size(); ++i) {
    unsigned value = 0;
    const auto digits = uri.substr(i + 1, 2);
    const auto* end = digits.data() + digits.size();
    if (uri[i] == '%' && digits.size() == 2 &&
        std::from_chars(digits.data(), end, value, 16).ptr == end) {
      path += static_cast<char>(value);
      i += 2;
    } else {
      path += uri[i];
    }
  }
  return path;
}

/// The rule that a result names, by its id or by its place in the list of the tool's rules.
std::string rule_of(const json& r, const json& rules) {
  auto rule = member(r, "ruleId");
  if (rule.empty())
    rule = member(part(r, "rule"), "id");
  const auto& place = part(r, "ruleIndex");
  if (!rule.empty() || !place.is_number_unsigned() || !rules.is_array())
    return rule;
  const auto i = place.get<std::size_t>();
  return i < rules.size() ? member(rules[i], "id") : rule;
}

void read_result(const json& r, const json& rules, report_builder& into) {
  // SARIF 2.1.0 §3.27.9: what passed, is open for information or does not apply is no failure.
  const auto kind = member(r, "kind");
  if (!kind.empty() && kind != "fail" && kind != "open" && kind != "review")
    return;
  const auto& suppressions = part(r, "suppressions");
  if (suppressions.is_array() && !suppressions.empty())
    return;
  auto f = into.blank();
  f.rule = rule_of(r, rules);
  f.message = member(part(r, "message"), "text");
  const auto level = member(r, "level");
  f.is_warning = level != "error";
  const auto& places = part(r, "locations");
  if (places.is_array() && !places.empty()) {
    const auto& physical = part(places.front(), "physicalLocation");
    f.path = path_of(member(part(physical, "artifactLocation"), "uri"));
    f.line = number(part(physical, "region"), "startLine");
  }
  into.add(std::move(f));
}

/// One JUnit document while expat walks over it.
class junit_reader {
 public:
  explicit junit_reader(report_builder& into)
      : into_(into), parser_(XML_ParserCreate(nullptr), &XML_ParserFree) {}

  result<void> read(std::string_view report) {
    auto* p = parser_.get();
    if (p == nullptr)
      return fail(errc::limit_exceeded, "no memory for an XML parser");
    XML_SetUserData(p, this);
    XML_SetElementHandler(p, on_start, on_end);
    XML_SetCharacterDataHandler(p, on_text);
    // Neither a document type nor its entities belong to a JUnit report.
    XML_SetStartDoctypeDeclHandler(p, on_doctype);
    if (XML_Parse(p, report.data(), static_cast<int>(report.size()), 1) == XML_STATUS_ERROR)
      return fail(errc::parse_error,
                  refused_.empty() ? std::string("the XML cannot be read: ") +
                                         XML_ErrorString(XML_GetErrorCode(p))
                                   : refused_,
                  "line " + std::to_string(XML_GetCurrentLineNumber(p)),
                  "see whether the scanner wrote its report to the end");
    return {};
  }

 private:
  void stop(std::string why) {
    refused_ = std::move(why);
    XML_StopParser(parser_.get(), XML_FALSE);
  }

  static junit_reader& self(void* data) { return *static_cast<junit_reader*>(data); }

  static void XMLCALL on_doctype(void* data, const char*, const char*, const char*, int) {
    self(data).stop("the XML has a document type, which a report needs not");
  }

  static void XMLCALL on_start(void* data, const char* name, const char** attributes) {
    auto& r = self(data);
    if (++r.depth_ > limits::json_depth)
      return r.stop("the XML is nested too deep");
    std::map<std::string, std::string> given;
    for (auto a = attributes; *a != nullptr; a += 2)
      given[a[0]] = a[1];
    const std::string_view tag(name);
    if (tag == "testcase") {
      const auto group = given["classname"];
      r.test_ = (group.empty() || group == given["name"] ? "" : group + ".") + given["name"];
      r.file_ = given["file"];
      r.line_ = given["line"];
      r.bad_ = r.skipped_ = false;
      r.message_.clear();
    } else if (tag == "failure" || tag == "error") {
      r.bad_ = r.inside_ = true;
      r.message_ = given["message"];
    } else if (tag == "skipped") {
      r.skipped_ = true;
    }
  }

  static void XMLCALL on_end(void* data, const char* name) {
    auto& r = self(data);
    --r.depth_;
    const std::string_view tag(name);
    if (tag == "failure" || tag == "error")
      r.inside_ = false;
    if (tag == "testcase")
      r.end_test();
  }

  static void XMLCALL on_text(void* data, const char* text, int length) {
    auto& r = self(data);
    constexpr std::size_t most = 8192;
    if (r.inside_ && r.message_.size() < most)
      r.message_.append(text, static_cast<std::size_t>(length));
  }

  void end_test() {
    if (!bad_) {
      if (!skipped_)
        into_.passed(test_);
      return;
    }
    auto f = into_.blank();
    f.test = test_;
    f.path = file_;
    std::from_chars(line_.data(), line_.data() + line_.size(), f.line);
    f.message = message_;
    into_.add(std::move(f));
  }

  report_builder& into_;
  std::unique_ptr<std::remove_pointer_t<XML_Parser>, decltype(&XML_ParserFree)> parser_;
  std::string refused_;
  std::string test_, file_, line_, message_;
  std::size_t depth_ = 0;
  bool bad_ = false, skipped_ = false, inside_ = false;
};

} // namespace

result<void> read_junit(std::string_view report, report_builder& into) {
  return junit_reader(into).read(report);
}

result<void> read_sarif(std::string_view report, report_builder& into) {
  const auto whole = json_of_report(report);
  if (!whole)
    return fail(whole.error());
  const auto& runs = part(*whole, "runs");
  if (!runs.is_array())
    return fail(errc::parse_error, "this is no SARIF: `runs` is missing", {},
                "let the scanner write SARIF 2.1.0");
  for (const auto& run : runs) {
    const auto& rules = part(part(part(run, "tool"), "driver"), "rules");
    if (const auto& results = part(run, "results"); results.is_array())
      for (const auto& r : results)
        read_result(r, rules, into);
  }
  return {};
}

result<void> read_eslint(std::string_view report, report_builder& into) {
  const auto whole = json_of_report(report);
  if (!whole)
    return fail(whole.error());
  if (!whole->is_array())
    return fail(errc::parse_error, "this is no report of ESLint: it is no list", {},
                "run eslint with --format json");
  constexpr int severe = 2;
  for (const auto& file : *whole) {
    const auto& messages = part(file, "messages");
    if (!messages.is_array())
      continue;
    for (const auto& m : messages) {
      auto f = into.blank();
      f.path = member(file, "filePath");
      f.line = number(m, "line");
      f.rule = member(m, "ruleId");
      f.message = member(m, "message");
      f.is_warning = number(m, "severity") != severe;
      into.add(std::move(f));
    }
  }
  return {};
}

} // namespace boyd::improve
