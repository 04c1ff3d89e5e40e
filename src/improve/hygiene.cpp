#include "boyd/improve/hygiene.hpp"

#include "boyd/config/secret_shapes.hpp"
#include "boyd/core/sha256.hpp"
#include "boyd/core/text.hpp"
#include "boyd/tools/glob.hpp"

#include <algorithm>
#include <cctype>
#include <optional>
#include <tuple>
#include <utility>

namespace boyd::improve {

namespace {

constexpr std::size_t shown_characters = 200;
constexpr std::size_t text_beginning = 8192;

std::string_view name_in(std::string_view path) {
  const auto slash = path.rfind('/');
  return slash == path.npos ? path : path.substr(slash + 1);
}

std::string_view directory_of(std::string_view path) {
  const auto slash = path.rfind('/');
  return slash == path.npos ? std::string_view() : path.substr(0, slash);
}

bool is_script(std::string_view path) {
  if (path.ends_with(".sh") || path.ends_with(".bash"))
    return true;
  const auto directory = name_in(directory_of(path));
  return (directory == "scripts" || directory == "bin" || directory == "tools") &&
         name_in(path).find('.') == path.npos;
}

/// Files that people write: test data may well end without a newline.
bool is_source(std::string_view path) {
  static const std::set<std::string_view> endings{
      "adoc", "bash",  "c",   "cc",   "cmake", "cpp",  "cs",  "css",   "cxx",  "go",  "h",
      "hpp",  "html",  "ini", "java", "js",    "json", "jsx", "kt",    "lua",  "md",  "mk",
      "ml",   "php",   "pl",  "py",   "rb",    "rs",   "rst", "scala", "scss", "sh",  "sql",
      "svg",  "swift", "tex", "toml", "ts",    "tsx",  "txt", "xml",   "yaml", "yml", "zig"};
  const auto name = name_in(path);
  const auto dot = name.rfind('.');
  return dot == name.npos ? name == "Makefile" || name == "Dockerfile"
                          : endings.contains(name.substr(dot + 1));
}

bool is_document(std::string_view path) {
  return path.ends_with(".md") || path.ends_with(".markdown");
}

/// Percent-encoded bytes as they are meant.
std::string decoded(std::string_view text) {
  std::string out;
  const auto value = [](char c) {
    return std::isdigit(static_cast<unsigned char>(c)) != 0
               ? c - '0'
               : std::tolower(static_cast<unsigned char>(c)) - 'a' + 10;
  };
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '%' && i + 2 < text.size() &&
        std::isxdigit(static_cast<unsigned char>(text[i + 1])) != 0 &&
        std::isxdigit(static_cast<unsigned char>(text[i + 2])) != 0) {
      out += static_cast<char>(value(text[i + 1]) * 16 + value(text[i + 2]));
      i += 2;
    } else {
      out += text[i];
    }
  }
  return out;
}

/// `target` from `directory`, without "." and ".."; nothing when it leads out of the repository.
std::optional<std::string> joined(std::string_view directory, std::string_view target) {
  std::vector<std::string_view> parts;
  const auto add = [&](std::string_view path) {
    for (const auto part : split(path, '/')) {
      if (part.empty() || part == ".")
        continue;
      if (part != "..") {
        parts.push_back(part);
        continue;
      }
      if (parts.empty())
        return false;
      parts.pop_back();
    }
    return true;
  };
  if ((!target.starts_with('/') && !add(directory)) || !add(target))
    return std::nullopt;
  std::string all;
  for (const auto part : parts)
    all.append(all.empty() ? "" : "/").append(part);
  return all;
}

/// A line of a document without what stands in `code`.
std::string without_code(std::string_view line) {
  std::string out;
  for (std::size_t i = 0; i < line.size();) {
    if (line[i] != '`') {
      out += line[i++];
      continue;
    }
    auto run = i;
    while (run < line.size() && line[run] == '`')
      ++run;
    const auto fence = line.substr(i, run - i);
    const auto end = line.find(fence, run);
    if (end == line.npos) {
      out += line.substr(i, run - i);
      i = run;
    } else {
      i = end + fence.size();
    }
  }
  return out;
}

} // namespace

hygiene_scan::hygiene_scan(hygiene_settings settings, std::vector<listed_file> files)
    : settings_(std::move(settings)), files_(std::move(files)) {
  for (const auto& f : files_) {
    known_.insert(f.path);
    for (auto d = directory_of(f.path); !d.empty() && known_.emplace(d).second;)
      d = directory_of(d);
    if (is_script(f.path) && !is_ignored(f.path))
      scripts_.emplace(f.path, false);
    if (settings_.enabled && is_on("large-file") && f.size > settings_.large_file &&
        !is_ignored(f.path))
      add("large-file", f.path, 0, "a file of " + std::to_string(f.size) + " bytes", f.path,
          "whether it belongs into the repository is a decision for a person");
  }
}

bool hygiene_scan::is_ignored(const std::string& path) const {
  return std::ranges::any_of(settings_.ignore,
                             [&](const auto& p) { return tools::glob_matches(p, path); });
}

bool hygiene_scan::wants(const listed_file& file) const {
  return settings_.enabled && file.size <= settings_.large_file;
}

void hygiene_scan::add(const char* rule, const std::string& path, int line, std::string message,
                       std::string text, std::string unfixable) {
  finding f;
  f.from = finding_source::hygiene;
  f.scanner = "hygiene";
  f.rule = rule;
  f.path = path;
  f.line = line;
  f.message = std::move(message);
  f.text = std::move(text);
  f.unfixable = std::move(unfixable);
  found_.push_back(std::move(f));
}

void hygiene_scan::take(const std::string& path, std::string_view text) {
  if (text.empty() || text.substr(0, text_beginning).find('\0') != text.npos)
    return;
  look_for_names(path, text);
  if (is_ignored(path))
    return;
  if (is_on("final-newline") && is_source(path) && text.back() != '\n') {
    const auto lines = 1 + std::ranges::count(text, '\n');
    add("final-newline", path, static_cast<int>(lines), "the last line does not end with a newline",
        path);
  }
  if (is_on("conflict-marker"))
    look_for_conflicts(path, text);
  if (is_on("secret"))
    look_for_secrets(path, text);
  if (is_on("broken-link") && is_document(path))
    look_for_links(path, text);
}

void hygiene_scan::look_for_conflicts(const std::string& path, std::string_view text) {
  if (text.find("<<<<<<< ") == text.npos)
    return;
  int number = 0;
  int begin = 0;
  bool divided = false;
  for (const auto line : split(text, '\n')) {
    ++number;
    if (line.starts_with("<<<<<<< ")) {
      begin = number;
      divided = false;
    } else if (begin > 0 && line.starts_with("=======")) {
      divided = true;
    } else if (begin > 0 && divided && line.starts_with(">>>>>>> ")) {
      add("conflict-marker", path, begin, "a conflict of a merge is left in the file", path);
      begin = 0;
    }
  }
}

void hygiene_scan::look_for_secrets(const std::string& path, std::string_view text) {
  std::vector<std::string> taken;
  config::redact_shapes(std::string(text), config::cut_at::nowhere, &taken);
  for (const auto& secret : taken) {
    const auto at = text.find(secret);
    const auto lines =
        at == text.npos
            ? 0
            : 1 + std::count(text.begin(), text.begin() + static_cast<std::ptrdiff_t>(at), '\n');
    add("secret", path, static_cast<int>(lines), "something that looks like a secret",
        sha256_hex(secret).substr(0, 12),
        "a person has to revoke it; taking it out of the file does not take it out of the history");
  }
}

void hygiene_scan::look_for_links(const std::string& path, std::string_view text) {
  int number = 0;
  std::string fence;
  for (const auto line : split(text, '\n')) {
    ++number;
    const auto begun = trim(line);
    if (begun.starts_with("```") || begun.starts_with("~~~")) {
      if (fence.empty())
        fence = std::string(begun.substr(0, 3));
      else if (begun.starts_with(fence))
        fence.clear();
      continue;
    }
    if (!fence.empty() || line.find('[') == line.npos)
      continue;
    const auto plain = without_code(line);
    for (auto at = plain.find("]("); at != plain.npos; at = plain.find("](", at + 2)) {
      const auto end = plain.find(')', at);
      if (end == plain.npos)
        break;
      check_link(path, number, std::string_view(plain).substr(at + 2, end - at - 2));
    }
    const auto definition = plain.find("]: ");
    if (plain.starts_with('[') && !plain.starts_with("[^") && definition != plain.npos)
      check_link(path, number, std::string_view(plain).substr(definition + 3));
  }
}

void hygiene_scan::check_link(const std::string& path, int line, std::string_view target) {
  target = trim(target);
  target = target.substr(0, target.find_first_of(" \t"));
  if (target.starts_with('<') && target.ends_with('>'))
    target = target.substr(1, target.size() - 2);
  const auto plain = decoded(target.substr(0, target.find_first_of("#?")));
  if (plain.empty() || plain.starts_with("//") || plain.find_first_of("{}$*") != plain.npos ||
      plain.substr(0, plain.find('/')).find(':') != plain.npos)
    return;
  const auto where = joined(directory_of(path), plain);
  // What leads out of the repository may well be there.
  if (!where || where->empty() || known_.contains(*where))
    return;
  add("broken-link", path, line,
      "the link leads to " + std::string(cut_characters(plain, shown_characters)) +
          ", which is not there",
      plain);
}

void hygiene_scan::look_for_names(const std::string& path, std::string_view text) {
  for (auto& [script, named] : scripts_)
    if (!named && script != path && text.find(name_in(script)) != text.npos)
      named = true;
}

std::vector<finding> hygiene_scan::findings() {
  if (settings_.enabled && is_on("unreferenced-script"))
    for (const auto& [script, named] : scripts_)
      if (!named)
        add("unreferenced-script", script, 0, "no other file names this script", script,
            "whether it is still used is a decision for a person");
  std::ranges::stable_sort(found_, [](const finding& a, const finding& b) {
    return std::tie(a.path, a.line) < std::tie(b.path, b.line);
  });
  return std::move(found_);
}

} // namespace boyd::improve
