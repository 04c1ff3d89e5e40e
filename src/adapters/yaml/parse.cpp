#include "boyd/core/limits.hpp"
#include "boyd/core/text.hpp"
#include "yaml.hpp"

#include <yaml-cpp/eventhandler.h>
#include <yaml-cpp/exceptions.h>
#include <yaml-cpp/mark.h>
#include <yaml-cpp/parser.h>

#include <algorithm>
#include <map>
#include <sstream>
#include <utility>

namespace boyd::adapters {
namespace {

using config::finding;
using config::mark;
using config::tree;

/// YAML 1.2 §10: the tags of the core schema begin with this.
constexpr std::string_view standard_tag = "tag:yaml.org,2002:";

/// Ends the parse from inside an event; never leaves this file.
struct stop_parsing {};

mark to_mark(const YAML::Mark& m) {
  return {m.line + 1, m.column + 1};
}

/// What a finished node costs when it is repeated by an alias.
struct weight {
  std::size_t nodes = 1;
  std::size_t bytes = 0;
  std::size_t height = 1;
};

struct weighed {
  tree node;
  weight cost;
};

/// Builds the tree from the parser's events and applies the caps while the text is being read, so
/// that no bomb is ever held in memory.
class tree_builder final : public YAML::EventHandler {
 public:
  tree_builder(const std::string& path, std::vector<finding>& findings)
      : path_(path), findings_(findings) {}

  std::optional<tree> take() { return std::move(root_); }

  void OnDocumentStart(const YAML::Mark&) override {}
  void OnDocumentEnd() override {}

  void OnNull(const YAML::Mark& at, YAML::anchor_t anchor) override {
    // The mark of a missing value is wherever the next token begins: the key tells more.
    const bool after_key = !stack_.empty() && stack_.back().key;
    scalar(after_key ? stack_.back().key->at : to_mark(at), "", true, anchor);
  }

  void OnAlias(const YAML::Mark& at, YAML::anchor_t anchor) override {
    const auto where = to_mark(at);
    const auto found = anchors_.find(anchor);
    if (found == anchors_.end()) {
      stop(where, "an alias inside its own value", "a value without a cycle");
    }
    if (expects_key()) {
      stop(where, "an alias as a key", "a plain key");
    }
    // The cost is charged before the copy is made: a bomb must not be built to be refused.
    charge(where, found->second.cost);
    auto copy = found->second;
    copy.node.at = where;
    attach(std::move(copy), 0);
  }

  void OnScalar(const YAML::Mark& at, const std::string& tag, YAML::anchor_t anchor,
                const std::string& value) override {
    const auto where = to_mark(at);
    check_tag(where, tag);
    // "?" is no tag on a plain scalar, "!" none on a quoted one.
    const bool plain = tag != "!" && tag != std::string(standard_tag) + "str";
    scalar(where, value, plain, anchor);
  }

  void OnSequenceStart(const YAML::Mark& at, const std::string& tag, YAML::anchor_t anchor,
                       YAML::EmitterStyle::value) override {
    check_tag(to_mark(at), tag);
    open(to_mark(at), tree::kind_t::sequence, anchor);
  }
  void OnSequenceEnd() override { close(); }

  void OnMapStart(const YAML::Mark& at, const std::string& tag, YAML::anchor_t anchor,
                  YAML::EmitterStyle::value) override {
    check_tag(to_mark(at), tag);
    open(to_mark(at), tree::kind_t::map, anchor);
  }
  void OnMapEnd() override { close(); }

 private:
  struct frame {
    weighed value;
    YAML::anchor_t anchor = 0;
    std::optional<tree::key_t> key;                ///< of the map's next value
    bool drop = false;                             ///< the next value belongs to a duplicate key
    std::map<std::string, int, std::less<>> lines; ///< of the map's keys
  };

  void check_tag(mark at, std::string_view tag) {
    if (tag.empty() || tag == "?" || tag == "!") {
      return;
    }
    for (const auto* name : {"str", "int", "float", "bool", "null", "map", "seq"}) {
      if (tag == std::string(standard_tag) + name) {
        return;
      }
    }
    stop(at, "the tag " + shown(tag), "a value without a tag");
  }

  static std::string shown(std::string_view text) {
    return "\"" + sanitize_utf8(cut_characters(text, 40)) + "\"";
  }

  std::string key_path(std::string_view last) const {
    std::string out;
    const auto add = [&out](std::string_view key) {
      out.append(out.empty() ? "" : ".").append(key);
    };
    for (const auto& f : stack_) {
      if (f.value.node.kind == tree::kind_t::sequence) {
        out += "[" + std::to_string(f.value.node.items.size()) + "]";
      } else if (f.key) {
        add(f.key->text);
      }
    }
    if (!last.empty()) {
      add(last);
    }
    return out;
  }

  void report(mark at, std::string problem, std::string expected, std::string_view key = {}) {
    findings_.push_back(
        {path_, at.line, at.column, key_path(key), std::move(problem), std::move(expected), {}});
    if (findings_.size() >= yaml_findings) {
      throw stop_parsing{};
    }
  }

  [[noreturn]] void stop(mark at, std::string problem, std::string expected) {
    report(at, std::move(problem), std::move(expected));
    throw stop_parsing{};
  }

  bool expects_key() const {
    return !stack_.empty() && stack_.back().value.node.kind == tree::kind_t::map &&
           !stack_.back().key;
  }

  void charge(mark at, const weight& w) {
    nodes_ += w.nodes;
    bytes_ += w.bytes;
    if (nodes_ > yaml_nodes || bytes_ > yaml_expanded_bytes) {
      stop(at, "the document becomes too large here (aliases are counted in full)",
           "at most " + std::to_string(yaml_nodes) + " values");
    }
    if (stack_.size() + w.height > limits::json_depth) {
      stop(at, "nested too deeply", "at most " + std::to_string(limits::json_depth) + " levels");
    }
  }

  void scalar(mark at, const std::string& text, bool plain, YAML::anchor_t anchor) {
    if (sanitize_utf8(text) != text) {
      stop(at, "a NUL or a character that is not valid Unicode", "text in UTF-8");
    }
    if (expects_key()) {
      take_key(at, text);
      return;
    }
    const weight cost{1, text.size(), 1};
    charge(at, cost);
    tree node;
    node.text = text;
    node.plain = plain;
    node.at = at;
    attach({std::move(node), cost}, anchor);
  }

  void take_key(mark at, const std::string& text) {
    if (text.empty()) {
      stop(at, "a key is missing", "key: value");
    }
    if (text.size() > yaml_key_bytes) {
      stop(at, "the key " + shown(text) + " is too long",
           "at most " + std::to_string(yaml_key_bytes) + " bytes");
    }
    charge(at, {1, text.size(), 1});
    auto& f = stack_.back();
    const auto [entry, fresh] = f.lines.emplace(text, at.line);
    if (!fresh) {
      report(at, "duplicate key, first given on line " + std::to_string(entry->second),
             "each key once", text);
    }
    f.drop = !fresh;
    f.key = tree::key_t{text, at};
  }

  void open(mark at, tree::kind_t kind, YAML::anchor_t anchor) {
    if (expects_key()) {
      stop(at, "a list or map as a key", "a plain key");
    }
    charge(at, {});
    frame f;
    f.value.node.kind = kind;
    f.value.node.at = at;
    f.anchor = anchor;
    stack_.push_back(std::move(f));
  }

  void close() {
    auto f = std::move(stack_.back());
    stack_.pop_back();
    attach(std::move(f.value), f.anchor);
  }

  void attach(weighed value, YAML::anchor_t anchor) {
    if (anchor != 0) {
      // Anchors are charged like their values: they hold a copy until the end.
      charge(value.node.at, value.cost);
      anchors_[anchor] = value;
    }
    if (stack_.empty()) {
      root_ = std::move(value.node);
      return;
    }
    auto& f = stack_.back();
    auto& parent = f.value;
    if (parent.node.kind == tree::kind_t::map) {
      auto key = std::move(*f.key);
      f.key.reset();
      if (std::exchange(f.drop, false)) {
        return;
      }
      parent.cost.bytes += key.text.size();
      parent.node.keys.push_back(std::move(key));
    }
    parent.cost.nodes += value.cost.nodes;
    parent.cost.bytes += value.cost.bytes;
    parent.cost.height = std::max(parent.cost.height, value.cost.height + 1);
    parent.node.items.push_back(std::move(value.node));
  }

  const std::string& path_;
  std::vector<finding>& findings_;
  std::vector<frame> stack_;
  std::map<YAML::anchor_t, weighed> anchors_;
  std::size_t nodes_ = 0;
  std::size_t bytes_ = 0;
  std::optional<tree> root_;
};

/// Tells whether there is a second document: its first event ends the parse.
class second_document final : public YAML::EventHandler {
 public:
  void OnDocumentStart(const YAML::Mark& at) override {
    at_ = to_mark(at);
    throw stop_parsing{};
  }
  void OnDocumentEnd() override {}
  void OnNull(const YAML::Mark&, YAML::anchor_t) override {}
  void OnAlias(const YAML::Mark&, YAML::anchor_t) override {}
  void OnScalar(const YAML::Mark&, const std::string&, YAML::anchor_t,
                const std::string&) override {}
  void OnSequenceStart(const YAML::Mark&, const std::string&, YAML::anchor_t,
                       YAML::EmitterStyle::value) override {}
  void OnSequenceEnd() override {}
  void OnMapStart(const YAML::Mark&, const std::string&, YAML::anchor_t,
                  YAML::EmitterStyle::value) override {}
  void OnMapEnd() override {}

  mark at() const { return at_; }

 private:
  mark at_;
};

std::optional<finding> first_bad_line(const std::string& path, std::string_view text) {
  const auto bad = [&path](int line, std::size_t column, std::string problem,
                           std::string expected) {
    return finding{
        path, line, static_cast<int>(column) + 1, {}, std::move(problem), std::move(expected), {}};
  };
  int line = 1;
  for (std::size_t at = 0; at < text.size(); ++line) {
    const auto end = std::min(text.find('\n', at), text.size());
    const auto row = text.substr(at, end - at);
    if (const auto nul = row.find('\0'); nul != std::string_view::npos) {
      return bad(line, nul, "a NUL byte", "text in UTF-8");
    }
    if (row.size() > yaml_line_bytes) {
      return bad(line, yaml_line_bytes, "the line is too long",
                 "at most " + std::to_string(yaml_line_bytes) + " bytes per line");
    }
    if (const auto clean = sanitize_utf8(row); clean != row) {
      const auto where = std::mismatch(row.begin(), row.end(), clean.begin(), clean.end()).first;
      return bad(line, static_cast<std::size_t>(where - row.begin()), "bytes that are not UTF-8",
                 "text in UTF-8");
    }
    if (row.find("\xEF\xBB\xBF") != std::string_view::npos) {
      return bad(line, row.find("\xEF\xBB\xBF"), "a byte order mark", "UTF-8 without one");
    }
    if (row.starts_with('\t') && !trim(row).empty()) {
      return bad(line, 0, "a tab as indentation", "spaces");
    }
    at = end + 1;
  }
  return std::nullopt;
}

/// Where a list in brackets has a comment in the place of an item: "[a, #docs]".
std::optional<mark> comment_in_list(const std::vector<std::string_view>& lines, std::size_t last) {
  for (auto i = std::min(last + 1, lines.size()); i-- > 0;) {
    const auto open = lines[i].find_first_of("[{");
    const auto sign = open == std::string_view::npos ? open : lines[i].find('#', open);
    if (sign != std::string_view::npos && sign + 1 < lines[i].size() && lines[i][sign + 1] != ' ' &&
        std::string_view(" ,[").find(lines[i][sign - 1]) != std::string_view::npos &&
        lines[i].substr(open, sign - open).find_first_of("]}") == std::string_view::npos) {
      return mark{static_cast<int>(i) + 1, static_cast<int>(sign) + 1};
    }
  }
  return std::nullopt;
}

/// The value that begins there, up to what ends it; of a value that may be a secret only its sign.
std::string value_at(std::string_view line, std::size_t begin) {
  if (!trim(line).starts_with("context") && !trim(line).starts_with("- ")) {
    return std::string(line.substr(begin, 1)) + "…";
  }
  const auto end = std::min(line.find_first_of(" ,]}\t\r", begin), line.size());
  return std::string(line.substr(begin, end - begin));
}

/// The parser's complaint, in words of people where it is a common one.
finding in_words(const std::string& path, std::string_view text, const YAML::Exception& e) {
  const auto lines = split(text, '\n');
  const auto row = static_cast<std::size_t>(std::max(e.mark.line, 0));
  const auto column = static_cast<std::size_t>(std::max(e.mark.column, 0));
  const auto line = row < lines.size() ? lines[row] : std::string_view();
  const auto sign = column < line.size() ? line[column] : ' ';
  finding f{
      path, e.mark.line + 1, e.mark.column + 1, {}, "not valid YAML: " + sanitize_utf8(e.msg), {},
      {}};
  if (e.msg == YAML::ErrorMsg::UNKNOWN_TOKEN && (sign == '@' || sign == '`' || sign == '%')) {
    f.problem = "a value cannot begin with " + std::string(1, sign) + ": put it in quotes: \"" +
                value_at(line, column) + "\"";
  } else if (e.msg == YAML::ErrorMsg::END_OF_SEQ_FLOW || e.msg == YAML::ErrorMsg::END_OF_MAP_FLOW) {
    f.problem = "a bracket before this place is not closed";
    if (const auto at = comment_in_list(lines, row)) {
      f.line = at->line;
      f.column = at->column;
      f.problem = "# begins a comment, so the list does not end: put the value in quotes: \"" +
                  value_at(lines[static_cast<std::size_t>(at->line) - 1],
                           static_cast<std::size_t>(at->column) - 1) +
                  "\"";
    }
  } else if (e.msg == YAML::ErrorMsg::MAP_VALUE && sign == ':' && line.find(':') != column) {
    f.problem = "a value with \": \" in it must stand in quotes";
  } else if (((e.msg == YAML::ErrorMsg::END_OF_MAP || e.msg == YAML::ErrorMsg::END_OF_SEQ) &&
              line.find_first_not_of(' ') == column) ||
             (e.msg == YAML::ErrorMsg::MAP_VALUE && sign == ':')) {
    // A key further in than the one above it is read as a part of that one's value.
    f.problem =
        "line " + std::to_string(f.line) + " is indented differently from the lines around it";
  }
  return f;
}

void run_parser(const std::string& path, std::string_view text, config::parsed& out) {
  std::istringstream in{std::string(text)};
  YAML::Parser parser(in);
  tree_builder builder(path, out.findings);
  if (!parser.HandleNextDocument(builder)) {
    out.findings.push_back({path, 0, 0, {}, "the file is empty", "version: 1 and kernels:", {}});
    return;
  }
  second_document second;
  try {
    if (!parser.HandleNextDocument(second)) {
      out.value = builder.take();
      return;
    }
  } catch (const stop_parsing&) {
    // Reported below: the document's own findings are useless when it is not all.
  }
  out.findings.push_back({path,
                          second.at().line,
                          second.at().column,
                          {},
                          "text after the end of the document",
                          "one YAML document",
                          {}});
}

} // namespace

config::parsed parse_yaml(const std::string& path, std::string_view text) {
  config::parsed out;
  if (text.size() > limits::config_bytes) {
    out.findings.push_back({path,
                            0,
                            0,
                            {},
                            "the file has " + std::to_string(text.size()) + " bytes",
                            "at most " + std::to_string(limits::config_bytes) + " bytes",
                            {}});
    return out;
  }
  if (auto bad = first_bad_line(path, text)) {
    out.findings.push_back(std::move(*bad));
    return out;
  }
  try {
    run_parser(path, text, out);
  } catch (const stop_parsing&) {
    // Its finding is in the list already.
  } catch (const YAML::Exception& e) {
    out.findings.push_back(in_words(path, text, e));
  } catch (const std::exception& e) {
    out.findings.push_back(
        {path, 0, 0, {}, "not readable as YAML: " + sanitize_utf8(e.what()), "YAML", {}});
  }
  return out;
}

} // namespace boyd::adapters
