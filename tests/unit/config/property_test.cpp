#include "loading.hpp"
#include "support/pch.hpp"

#include <rapidcheck.h>

namespace boyd::property_test {

using namespace boyd::config;
using namespace boyd::config::testing;

namespace {

constexpr int depth_limit = 4;

rc::Gen<std::string> any_text() {
  return rc::gen::map(rc::gen::arbitrary<std::string>(), [](std::string s) {
    // YAML folds and forbids some control characters; what it carries is text.
    std::erase_if(s, [](char c) { return c < ' ' && c != '\n' && c != '\t'; });
    std::erase(s, '\x7f');
    return s;
  });
}

tree make_tree(int depth) {
  tree t;
  const int kind = depth == 0 ? 0 : *rc::gen::inRange(0, 4);
  if (kind <= 1) {
    t.plain = false;
    t.text = *rc::gen::oneOf(any_text(), rc::gen::element<std::string>(
                                             "true", "12", "0x1f", "~", "a: b", "- x", "yes", "30s",
                                             " lead", "trail ", "two\nlines\n", "#", "1e5", "\t"));
    return t;
  }
  t.kind = kind == 2 ? tree::kind_t::sequence : tree::kind_t::map;
  const int size = *rc::gen::inRange(0, 4);
  for (int i = 0; i < size; ++i) {
    if (kind == 3) {
      t.keys.push_back(
          {"k" + std::to_string(i) + *rc::gen::element<std::string>("", " x", ":", "\n"), {}});
    }
    t.items.push_back(make_tree(depth - 1));
  }
  return t;
}

bool same(const tree& a, const tree& b) {
  if (a.kind != b.kind || a.text != b.text || a.items.size() != b.items.size()) {
    return false;
  }
  for (std::size_t i = 0; i < a.items.size(); ++i) {
    const bool keys = a.kind != tree::kind_t::map || a.keys[i].text == b.keys[i].text;
    if (!keys || !same(a.items[i], b.items[i])) {
      return false;
    }
  }
  return true;
}

/// Texts stay texts: nothing that was quoted comes back as a number or null.
bool stays_text(const tree& t) {
  static const auto typed = [](const std::string& s) {
    return s.empty() || s == "~" || s == "true" || s == "12" || s == "0x1f" || s == "1e5" ||
           s == "yes";
  };
  if (t.kind == tree::kind_t::scalar) {
    return !t.plain || !typed(t.text);
  }
  return std::all_of(t.items.begin(), t.items.end(), stays_text);
}

void either_value_or_findings(const load_result& r) {
  RC_ASSERT(r.value.has_value() == r.findings.empty());
  for (const auto& f : r.findings) {
    RC_ASSERT(!f.problem.empty());
    RC_ASSERT(!f.text().empty());
    RC_ASSERT(f.line >= 0);
  }
}

} // namespace

TEST_CASE("load: any bytes give a value or findings", "[config][property]") {
  REQUIRE(rc::check("arbitrary bytes",
                    [](const std::string& bytes) { either_value_or_findings(load_text(bytes)); }));
  REQUIRE(rc::check("YAML's own signs", [] {
    const auto text = *rc::gen::container<std::string>(
        rc::gen::elementOf(std::string("[]{}:,-?&*!|>'\"%@`# \n\t~a1<=$\\.")));
    either_value_or_findings(load_text(text));
  }));
}

TEST_CASE("load: mutated valid configurations give a value or findings", "[config][property]") {
  const auto valid = default_yaml();
  REQUIRE(load_text(valid).value.has_value());
  REQUIRE(rc::check("bytes changed, cut and doubled", [&] {
    auto text = valid;
    const int changes = *rc::gen::inRange(1, 6);
    for (int i = 0; i < changes; ++i) {
      const auto at = *rc::gen::inRange<std::size_t>(0, text.size());
      const auto length =
          std::min<std::size_t>(*rc::gen::inRange<std::size_t>(0, 12), text.size() - at);
      switch (*rc::gen::inRange(0, 4)) {
      case 0:
        text[at] = *rc::gen::arbitrary<char>();
        break;
      case 1:
        text.erase(at, length);
        break;
      case 2:
        text.insert(at, text.substr(at, length));
        break;
      default:
        text.insert(at, *rc::gen::element<std::string>("${X}", "*a", "&a ", "- ", ": ", "\n", "[",
                                                       "}", "'", "99999999999999999999", "!!int "));
      }
    }
    either_value_or_findings(load_text(text, {{"X", "1"}}));
  }));
}

TEST_CASE("yaml: what is written is read back", "[yaml][property]") {
  REQUIRE(rc::check("emit, then parse", [] {
    auto t = make_tree(depth_limit);
    // A document that is one empty text is written as such, but a file is never one.
    tree root;
    root.kind = tree::kind_t::map;
    root.keys.push_back({"root", {}});
    root.items.push_back(std::move(t));
    const auto text = boyd::adapters::emit_yaml(root);
    const auto back = boyd::adapters::parse_yaml("f", text);
    if (boyd::adapters::parse_yaml("f", text).findings.empty()) {
      RC_ASSERT(back.value.has_value());
      RC_ASSERT(same(root, *back.value));
      RC_ASSERT(stays_text(*back.value));
    } else {
      RC_LOG() << text << back.findings.front().text();
      RC_FAIL("not readable");
    }
  }));
}

} // namespace boyd::property_test
