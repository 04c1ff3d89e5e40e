#include "unit/house/source_tree.hpp"

#include <array>
#include <cctype>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <utility>

namespace house {
namespace {

namespace fs = std::filesystem;

bool is_word(char c) {
  return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_';
}

/// Copies text to blanks, one construct at a time.
class blanker {
 public:
  explicit blanker(std::string_view text) : text_(text) { out_.reserve(text.size()); }

  std::string run() {
    while (at_ < text_.size()) {
      if (starts("//"))
        blank_until("\n", 0);
      else if (starts("/*"))
        blank_until("*/", 2);
      else if (starts("R\"") && !after_word())
        blank_raw_string();
      else if (text_[at_] == '"')
        blank_quoted('"');
      else if (text_[at_] == '\'' && !after_word())
        blank_quoted('\'');
      else
        out_.push_back(text_[at_++]);
    }
    return std::move(out_);
  }

 private:
  bool starts(std::string_view token) const { return text_.substr(at_).starts_with(token); }

  /// Then a quote is a digit separator, and an R belongs to a name.
  bool after_word() const { return at_ > 0 && is_word(text_[at_ - 1]); }

  void blank() {
    out_.push_back(text_[at_] == '\n' ? '\n' : ' ');
    ++at_;
  }

  void blank_to(std::size_t end) {
    while (at_ < end && at_ < text_.size())
      blank();
  }

  /// `swallowed`: how much of the token itself is blanked too.
  void blank_until(std::string_view token, std::size_t swallowed) {
    const auto end = text_.find(token, at_ + swallowed);
    blank_to(end == std::string_view::npos ? text_.size() : end + swallowed);
  }

  void blank_raw_string() {
    const auto open = text_.find('(', at_);
    if (open == std::string_view::npos)
      return blank_to(text_.size());
    const auto delimiter = text_.substr(at_ + 2, open - at_ - 2);
    const auto closing = ")" + std::string(delimiter) + "\"";
    const auto end = text_.find(closing, open);
    blank_to(end == std::string_view::npos ? text_.size() : end + closing.size());
  }

  void blank_quoted(char quote) {
    blank();
    while (at_ < text_.size() && text_[at_] != quote && text_[at_] != '\n') {
      if (text_[at_] == '\\')
        blank();
      if (at_ < text_.size())
        blank();
    }
    if (at_ < text_.size() && text_[at_] == quote)
      blank();
  }

  std::string_view text_;
  std::size_t at_ = 0;
  std::string out_;
};

std::string_view trimmed(std::string_view s) {
  while (!s.empty() && (s.front() == ' ' || s.front() == '\t'))
    s.remove_prefix(1);
  return s;
}

std::vector<inclusion> inclusions_of(std::string_view text) {
  std::vector<inclusion> found;
  std::istringstream lines{std::string(text)};
  std::string raw;
  for (int number = 1; std::getline(lines, raw); ++number) {
    auto line = trimmed(raw);
    if (!line.starts_with('#'))
      continue;
    line = trimmed(line.substr(1));
    if (!line.starts_with("include"))
      continue;
    line = trimmed(line.substr(std::string_view("include").size()));
    if (line.empty() || (line.front() != '<' && line.front() != '"'))
      continue;
    const bool angled = line.front() == '<';
    const auto end = line.find(angled ? '>' : '"', 1);
    if (end != std::string_view::npos)
      found.push_back({std::string(line.substr(1, end - 1)), angled, number});
  }
  return found;
}

bool is_ours(const fs::path& path) {
  static constexpr std::array<std::string_view, 12> endings{
      ".cpp", ".hpp", ".md", ".sh", ".yaml", ".yml", ".txt", ".cmake", ".json", ".sql", ".py", ""};
  const auto ending = path.extension().string();
  for (const auto known : endings)
    if (ending == known)
      return true;
  return false;
}

} // namespace

std::string without_comments_and_literals(std::string_view text) {
  return blanker(text).run();
}

source make_source(std::string path, std::string text) {
  source s{std::move(path), std::move(text), {}, {}};
  if (s.is_cpp()) {
    s.code = without_comments_and_literals(s.text);
    s.inclusions = inclusions_of(s.text);
  }
  return s;
}

source_tree make_tree(const std::vector<std::pair<std::string, std::string>>& files) {
  source_tree tree;
  for (const auto& [path, text] : files)
    tree.emplace(path, make_source(path, text));
  return tree;
}

source_tree read_tree(const std::string& top) {
  static constexpr std::array<std::string_view, 15> folders{
      "include", "src",  "messages", "actors", "apps", "tests", "bench",    "cmake",
      "config",  "docs", "scripts",  "web",    ".ci",  "tools", "packaging"};
  source_tree tree;
  const auto add = [&](const fs::path& file) {
    std::ostringstream text;
    text << std::ifstream(file, std::ios::binary).rdbuf();
    auto path = fs::relative(file, top).generic_string();
    tree.emplace(path, make_source(path, text.str()));
  };
  for (const auto& entry : fs::directory_iterator(top))
    if (entry.is_regular_file() && is_ours(entry.path()))
      add(entry.path());
  for (const auto folder : folders) {
    if (!fs::is_directory(fs::path(top) / folder))
      continue;
    for (const auto& entry : fs::recursive_directory_iterator(fs::path(top) / folder))
      if (entry.is_regular_file() && is_ours(entry.path()))
        add(entry.path());
  }
  return tree;
}

} // namespace house
