#include "boyd/context/ignore.hpp"
#include "boyd/core/text.hpp"
#include "boyd/core/workspace_path.hpp"
#include "directory_internal.hpp"

#include <algorithm>
#include <utility>

namespace boyd::context {

namespace {

constexpr std::size_t ignore_file_bytes = std::size_t{64} << 10;
constexpr std::string_view ignore_file = ".gitignore";

std::string joined(const std::string& directory, std::string_view name) {
  return directory == "." ? std::string(name) : directory + "/" + std::string(name);
}

class lister {
 public:
  lister(const directory_rules& rules, std::string top, confined_files& files)
      : rules_(rules), top_(std::move(top)), files_(files) {}

  directory_content all() {
    read_ignore_files_above();
    walk(top_, 0);
    if (unlisted_ > 0)
      line("[" + std::to_string(unlisted_) + " more entries are not listed]");
    if (ignored_ > 0)
      line("[" + std::to_string(ignored_) + " entries ignored by .gitignore]");
    if (content_.listing.empty())
      line("[the directory is empty]");
    return std::move(content_);
  }

 private:
  void line(const std::string& text) { content_.listing += text + "\n"; }

  void read_ignore_file(const std::string& directory) {
    const auto part =
        files_.read(rules_.root, joined(directory, ignore_file), 0, ignore_file_bytes);
    if (part)
      ignore_.add(directory == "." ? "" : directory, part->text);
  }

  /// Of the root and the directories between it and the first one.
  void read_ignore_files_above() {
    if (top_ == ".")
      return;
    read_ignore_file(".");
    for (auto slash = top_.find('/'); slash != top_.npos; slash = top_.find('/', slash + 1))
      read_ignore_file(top_.substr(0, slash));
  }

  void walk(const std::string& directory, std::size_t depth) {
    const auto entries = files_.list(rules_.root, directory, rules_.limits.listed_entries + 1);
    if (!entries) {
      line(below(directory) + "/  not read: " + entries.error().what);
      return;
    }
    read_ignore_file(directory);
    for (const auto& e : entries->entries)
      take(directory, e, depth);
    unlisted_ += entries->total - entries->entries.size();
  }

  /// A path from the directory that was asked for.
  std::string below(const std::string& path) const {
    if (top_ == "." || path == top_)
      return path;
    return path.substr(top_.size() + 1);
  }

  void take(const std::string& directory, const confined_files::entry& e, std::size_t depth) {
    const auto path = joined(directory, e.name);
    const bool is_directory = e.kind == file_kind::directory;
    if (is_directory && is_git_directory(e.name))
      return;
    if (ignore_.ignores(path, is_directory)) {
      ++ignored_;
      return;
    }
    if (listed_ == rules_.limits.listed_entries) {
      ++unlisted_;
      return;
    }
    ++listed_;
    auto shown = below(path);
    std::ranges::replace_if(
        shown, [](char c) { return c >= 0 && c < ' '; }, '?');
    if (is_directory)
      return take_directory(path, shown, depth);
    if (e.kind == file_kind::regular)
      return line(shown + "  " + std::to_string(e.size) + " bytes" + read_file(path, e.size));
    line(shown + (e.kind == file_kind::symlink ? "  a symbolic link, not followed"
                                               : "  not a file or directory"));
  }

  void take_directory(const std::string& path, const std::string& shown, std::size_t depth) {
    if (depth + 1 == rules_.limits.directory_depth)
      return line(shown + "/  not read: more than " +
                  std::to_string(rules_.limits.directory_depth) + " directory levels");
    if (const auto why = rules_.closed(path))
      return line(shown + "/  not read: " + *why);
    line(shown + "/");
    walk(path, depth + 1);
  }

  /// Empty, or why the file is not read.
  std::string read_file(const std::string& path, std::uint64_t size) {
    const auto& most = rules_.limits;
    if (content_.files.size() == most.directory_files)
      return ", not read: " + std::to_string(most.directory_files) + " files at most";
    if (size > most.directory_bytes - bytes_)
      return ", not read: " + std::to_string(most.directory_bytes) +
             " bytes of text per directory at most";
    auto text = rules_.text_of(path, most.directory_bytes - bytes_);
    if (!text)
      return ", not read: " + text.error().what;
    bytes_ += text->size();
    content_.files.push_back({path, std::move(*text)});
    return {};
  }

  const directory_rules& rules_;
  std::string top_;
  confined_files& files_;
  ignore_rules ignore_;
  directory_content content_;
  std::size_t bytes_ = 0;
  std::size_t listed_ = 0;
  std::size_t unlisted_ = 0;
  std::size_t ignored_ = 0;
};

} // namespace

directory_content look_into(const directory_rules& rules, const std::string& directory,
                            confined_files& files) {
  return lister(rules, directory, files).all();
}

} // namespace boyd::context
