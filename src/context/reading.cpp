#include "boyd/context/reading.hpp"

#include "boyd/core/sha256.hpp"
#include "boyd/core/text.hpp"
#include "boyd/core/workspace_path.hpp"
#include "directory_internal.hpp"

#include <algorithm>
#include <map>
#include <utility>

namespace boyd::context {

namespace {

constexpr std::string_view read_tool = "read_file";
constexpr std::string_view list_tool = "list_dir";

std::string say(const error& e) {
  if (e.code == errc::not_found)
    return "no such file or directory";
  return e.next.empty() ? e.what : e.what + " (" + e.next + ")";
}

tl::unexpected<error> unreadable(std::string what, std::string next = {}) {
  return fail(errc::invalid_argument, std::move(what), {}, std::move(next));
}

/// Lines `first` to `last` of a text, from 1; 0 as the last: up to the end.
result<std::string> lines_of(std::string_view text, int first, int last) {
  std::size_t begin = 0;
  int line = 1;
  for (; line < first; ++line) {
    const auto end = text.find('\n', begin);
    if (end == text.npos || end + 1 == text.size())
      return unreadable("the file has only " + std::to_string(line) +
                        (line == 1 ? " line" : " lines"));
    begin = end + 1;
  }
  auto end = begin;
  for (; line <= last && end < text.size(); ++line) {
    const auto next = text.find('\n', end);
    end = next == text.npos ? text.size() : next + 1;
  }
  return std::string(text.substr(begin, last == 0 ? text.npos : end - begin));
}

/// What was read of a file.
struct file_text {
  std::string text;
  std::string absolute;
};

class reader {
 public:
  reader(const reading_order& order, confined_files& files)
      : order_(order), files_(files), scope_(order.scope.empty() ? found_scope() : order.scope) {}

  std::vector<offered_item> all() {
    for (const auto& w : order_.references)
      take(w);
    if (beyond_.path.empty())
      return std::move(items_);
    beyond_.failure = "a run reads at most " + std::to_string(order_.limits.items) + " items";
    items_.push_back(std::move(beyond_));
    return std::move(items_);
  }

  /// Why the reference cannot be read; empty: it can.
  std::optional<error> trouble_of(const reference& r) {
    if (r.kind == reference_kind::command) {
      const auto words = words_of_command(r.target);
      return words ? std::nullopt : std::optional(words.error());
    }
    const auto place = find(r);
    return place ? std::nullopt : std::optional(place.error());
  }

 private:
  std::string found_scope() {
    const auto root = files_.find(order_.root, ".");
    const auto real = root ? root->absolute : order_.root;
    const auto project = order_.project_of ? order_.project_of(real) : std::nullopt;
    if (!project)
      return scope_of(real);
    inside_ = project->inside.empty() ? std::string() : project->inside + "/";
    return scope_of(*project);
  }

  void take(const wanted& w) {
    switch (w.what.kind) {
    case reference_kind::command:
      return take_command(w);
    case reference_kind::directory:
      return take_directory(w);
    case reference_kind::file:
      break;
    }
    take_file(w);
  }

  /// Where a path leads, if it is of the kind that the reference's sign says, and may be read.
  result<confined_files::place> find(const reference& r) {
    const bool wants_directory = r.kind == reference_kind::directory;
    auto place = files_.find(order_.root, r.target);
    if (!place)
      return place;
    const bool is_directory = place->kind == file_kind::directory;
    if (is_directory && !wants_directory)
      return unreadable("this is a directory", "use #" + r.target);
    if (!is_directory && wants_directory)
      return unreadable("this is not a directory", "use @" + r.target);
    if (place->kind == file_kind::other)
      return unreadable("this is not a file or directory");
    const auto tool = std::string(wants_directory ? list_tool : read_tool);
    if (auto why = forbidden(tool, r.target, place->where))
      return fail(errc::refused, std::move(*why));
    return place;
  }

  std::optional<std::string> forbidden(const std::string& tool, const std::string& named,
                                       const std::string& where) const {
    if (!order_.forbids)
      return std::nullopt;
    if (auto why = order_.forbids(tool, where))
      return why;
    const auto plain = workspace_path(order_.root, named);
    return plain && *plain != where ? order_.forbids(tool, *plain) : std::nullopt;
  }

  /// The text of a file that may be read.
  result<file_text> read(const std::string& path, std::size_t most) {
    auto part = files_.read(order_.root, path, 0, most + 1);
    if (!part)
      return fail(std::move(part.error()));
    if (part->size > most || part->text.size() > most)
      return fail(errc::limit_exceeded,
                  "too large: " + std::to_string(part->size) + " bytes, at most " +
                      std::to_string(most),
                  {}, "use a smaller file, or a command that prints the relevant part");
    if (part->text.find('\0') != std::string::npos)
      return unreadable("this is a binary file");
    if (auto why = forbidden(std::string(read_tool), path, part->where))
      return fail(errc::refused, std::move(*why));
    return file_text{std::move(part->text), {}};
  }

  std::string shown(std::string text) const {
    text = sanitize_utf8(text);
    return order_.hide ? order_.hide(std::move(text)) : text;
  }

  utc_time changed(const std::string& absolute) const {
    return order_.changed && !absolute.empty() ? order_.changed(absolute) : utc_time{};
  }

  /// Below the repository; the root itself has its own name, whatever it is called by.
  std::string id_path(const std::string& path) const {
    const auto full = inside_ + path;
    return full.ends_with("/.") ? full.substr(0, full.size() - 2) : full;
  }

  /// Null: its id stands there already, or there are too many.
  offered_item* begin(const wanted& w, item_type type, const std::string& path) {
    auto id = item_id(scope_, type, id_path(path));
    if (const auto known = by_id_.find(id); known != by_id_.end()) {
      items_[known->second].required |= w.required;
      return nullptr;
    }
    if (items_.size() == order_.limits.items) {
      beyond_.required |= w.required;
      beyond_.path = path + " and more";
      return nullptr;
    }
    by_id_.emplace(id, items_.size());
    auto& item = items_.emplace_back();
    item.id = std::move(id);
    item.path = path;
    item.type = type;
    item.from = w.from;
    item.required = w.required;
    item.frozen = type == item_type::runtime || is_frozen_name(path);
    item.about = semantic_of(path, {});
    item.scope = scope_;
    return &item;
  }

  /// Lines of a file, as they are when the whole of it has been looked through for secrets: one
  /// that spans several lines is known by its first and last.
  result<std::string> part_of(const std::string& text, int first, int last) {
    const auto whole = shown(text);
    if (std::ranges::count(whole, '\n') != std::ranges::count(text, '\n'))
      return unreadable("the file contains a secret that spans lines", "use the whole file");
    return lines_of(whole, first, last);
  }

  void fill(offered_item& item, std::string text, const std::string& name, utc_time time) {
    const auto plain_text = sanitize_utf8(text);
    item.content = shown(std::move(text));
    // Whatever looks like a secret is never banked or promoted by rules.
    item.frozen = item.frozen || item.content != plain_text;
    item.content_hash = sha256_hex(item.content);
    item.about =
        item.type == item_type::directory ? semantic::other : semantic_of(name, item.content);
    item.time = time;
  }

  std::string plain(const std::string& path) const {
    auto relative = workspace_path(order_.root, path);
    return relative ? *relative : path;
  }

  void take_file(const wanted& w) {
    const auto name = plain(w.what.target);
    const auto place = find(w.what);
    // A word that names nothing, or something of another kind, is a word.
    if (!place && w.if_it_exists)
      return;
    auto lines = w.what;
    lines.target.clear();
    auto* item = begin(w, item_type::file, name + to_text(lines).substr(1));
    if (item == nullptr)
      return;
    auto text = place ? read(w.what.target, order_.limits.file_bytes) : fail(place.error());
    auto part = text && w.what.first_line > 0
                    ? part_of(text->text, w.what.first_line, w.what.last_line)
                : text ? result<std::string>(std::move(text->text))
                       : fail(text.error());
    if (part)
      fill(*item, std::move(*part), name, changed(place->absolute));
    else
      item->failure = say(part.error());
  }

  void take_directory(const wanted& w) {
    const auto name = plain(w.what.target);
    const auto place = find(w.what);
    if (!place && w.if_it_exists)
      return;
    auto* item = begin(w, item_type::directory, name);
    if (item == nullptr)
      return;
    if (!place) {
      item->failure = say(place.error());
      return;
    }
    const auto index = items_.size() - 1; // `item` moves with the list
    const directory_rules rules{
        order_.root, order_.limits,
        [this](const std::string& path, std::size_t most) { return text_of(path, most); },
        [this](const std::string& path) { return forbidden(std::string(list_tool), path, path); }};
    auto found = look_into(rules, place->where, files_);
    utc_time newest{};
    for (auto& file : found.files) {
      const auto where = files_.find(order_.root, file.path);
      const auto time = where ? changed(where->absolute) : utc_time{};
      newest = std::max(newest, time);
      auto of_directory = w;
      of_directory.required = false;
      if (auto* one = begin(of_directory, item_type::file, file.path))
        fill(*one, std::move(file.text), file.path, time);
    }
    fill(items_[index], std::move(found.listing), name, newest);
  }

  result<std::string> text_of(const std::string& path, std::size_t most) {
    auto text = read(path, most);
    if (!text)
      return fail(std::move(text.error()));
    return std::move(text->text);
  }

  void take_command(const wanted& w) {
    auto* item = begin(w, item_type::runtime, w.what.target);
    if (item == nullptr)
      return;
    item->about = semantic::other;
    if (const auto words = words_of_command(w.what.target); !words)
      item->failure = say(words.error());
  }

  const reading_order& order_;
  confined_files& files_;
  std::string inside_; ///< of the root, below its repository
  std::string scope_;
  std::vector<offered_item> items_;
  std::map<std::string, std::size_t> by_id_;
  offered_item beyond_; ///< what there is no place for; without a path there is nothing
};

} // namespace

std::string scope_of(const std::string& real_path) {
  constexpr std::size_t digits = 16;
  return "dir:" + sha256_hex(real_path).substr(0, digits);
}

std::string scope_of(const git_project& project) {
  return "repo:" + project.root_commit;
}

std::string scope_of_kernel(const std::string& kernel_id) {
  return "kernel:" + kernel_id;
}

std::vector<offered_item> read_references(const reading_order& order, confined_files& files) {
  return reader(order, files).all();
}

void take_output(offered_item& item, std::string output, utc_time now) {
  item.content = sanitize_utf8(output);
  item.content_hash = sha256_hex(item.content);
  item.time = now;
}

std::vector<candidate_fate> judge_candidates(std::string_view text, const reading_order& order,
                                             confined_files& files) {
  reader look(order, files);
  std::vector<candidate_fate> all;
  for (auto& c : find_candidates(text)) {
    candidate_fate fate{std::move(c), false, {}};
    if (fate.found.verdict == reference_verdict::text) {
      fate.why = fate.found.reason;
    } else {
      const auto trouble = look.trouble_of(fate.found.what);
      const bool is_word = fate.found.verdict == reference_verdict::if_it_exists;
      fate.counts = !trouble || !is_word;
      if (trouble)
        fate.why = fate.counts ? say(*trouble) : "an ordinary word: no such file or directory";
    }
    all.push_back(std::move(fate));
  }
  return all;
}

} // namespace boyd::context
