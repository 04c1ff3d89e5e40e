#include "boyd/core/outside_json.hpp"
#include "boyd/core/text.hpp"
#include "boyd/improve/patch.hpp"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <charconv>
#include <optional>
#include <utility>

namespace boyd::improve {

namespace {

using nlohmann::json;
using action_t = planned_change::action_t;

constexpr const char* form =
    "answer with {\"summary\": …, \"files\": [{\"path\": …, \"action\": \"modify\", \"content\": "
    "…}]}, or with a unified diff";

std::string member(const json& object, const char* key) {
  const auto it = object.find(key);
  return it != object.end() && it->is_string() ? it->get<std::string>() : std::string();
}

/// The path behind "--- " or "+++ ", without "a/" or "b/" and a time.
std::string path_in(std::string_view header) {
  auto path = header.substr(4);
  path = trim(path.substr(0, path.find('\t')));
  if (path.starts_with("a/") || path.starts_with("b/"))
    path.remove_prefix(2);
  return std::string(path);
}

/// Why a line of git's extended header is refused; empty: it is not.
std::string why_refused(std::string_view line) {
  for (const auto* begin : {"rename from", "rename to", "copy from", "copy to"})
    if (line.starts_with(begin))
      return "renames and copies are not taken: delete one file and create the other";
  if (line.starts_with("old mode") || line.starts_with("new mode"))
    return "changes of a file's mode are not taken";
  if (line.starts_with("new file mode ") && trim(line.substr(14)) != "100644")
    return "only plain files (mode 100644) can be made, not " + std::string(trim(line.substr(14)));
  if (line.starts_with("deleted file mode 12") || line.starts_with("deleted file mode 16"))
    return "symbolic links and submodules are not touched";
  if (line.starts_with("GIT binary patch") || line.starts_with("Binary files "))
    return "binary patches are not taken";
  return {};
}

bool begins_hunk(std::string_view line) {
  return line.starts_with("@@ -");
}

/// Lines that a hunk has of the old and of the new file.
struct hunk_size {
  std::size_t before = 0;
  std::size_t after = 0;

  bool operator==(const hunk_size&) const = default;
  bool exceeds(const hunk_size& other) const {
    return before > other.before || after > other.after;
  }
  void count(char sign) {
    before += sign != '+' && sign != '\\' ? 1 : 0;
    after += sign != '-' && sign != '\\' ? 1 : 0;
  }
};

struct hunk_head {
  std::string begin; ///< "@@ -12" and "+14", between which the sizes stand
  std::string second;
  hunk_size size;
};

/// "@@ -12,3 +14,5 @@ words"
hunk_head head_of(std::string_view line) {
  hunk_head h;
  const auto number = [&line](std::string_view before) {
    if (!line.starts_with(before))
      return std::size_t{1};
    line.remove_prefix(before.size());
    std::size_t n = 0;
    const auto done = std::from_chars(line.data(), line.data() + line.size(), n);
    line.remove_prefix(static_cast<std::size_t>(done.ptr - line.data()));
    return n;
  };
  h.begin = "@@ -" + std::to_string(number("@@ -"));
  h.size.before = number(",");
  h.second = " +" + std::to_string(number(" +"));
  h.size.after = number(",");
  return h;
}

bool is_blank(std::string_view line) {
  return trim(line).empty();
}

/// Reads unified diffs of several files.
class diff_reader {
 public:
  /// `ends_here`: the text was handed over as a diff, so its end is the end of the last hunk.
  explicit diff_reader(bool ends_here) : ends_here_(ends_here) {}

  result<std::vector<proposed_change>> read(std::string_view text) {
    lines_ = split(text, '\n');
    for (std::size_t i = 0; i < lines_.size(); ++i) {
      const auto line = lines_[i];
      if (auto why = why_refused(line); !why.empty())
        return fail(errc::refused, std::move(why));
      if (line.starts_with("diff --git ")) {
        if (is_open_)
          break;
        is_open_ = true;
      }
      if (!begins_file(i) || line.starts_with("diff --git "))
        continue;
      changes_.push_back(change_of(path_in(line), path_in(lines_[i + 1])));
      is_open_ = false;
      const auto last = take_hunks(i + 2, changes_.back().diff);
      if (!last)
        return fail(last.error().code, last.error().what, changes_.back().path, last.error().next);
      i = *last;
    }
    if (is_open_)
      return fail(errc::refused, "a file of the diff has no lines that change", {},
                  "give an empty file as {\"path\", \"action\", \"content\": \"\"}");
    if (changes_.empty())
      return fail(errc::parse_error, "there is no unified diff in the answer", {}, form);
    return std::move(changes_);
  }

 private:
  static proposed_change change_of(const std::string& from, const std::string& to) {
    proposed_change c;
    c.path = to == "/dev/null" ? from : to;
    if (from == "/dev/null")
      c.action = action_t::create;
    if (to == "/dev/null")
      c.action = action_t::remove;
    return c;
  }

  bool begins_file(std::size_t i) const {
    return lines_[i].starts_with("diff --git ") ||
           (lines_[i].starts_with("--- ") && i + 1 < lines_.size() &&
            lines_[i + 1].starts_with("+++ "));
  }

  static bool may_stand_in_hunk(std::string_view line) {
    return line.empty() || std::string_view(" +-\\").find(line.front()) != line.npos;
  }

  /// The index of the last line of the file's hunks.
  result<std::size_t> take_hunks(std::size_t i, std::string& diff) {
    while (i < lines_.size() && begins_hunk(lines_[i])) {
      const auto end = take_hunk(i, diff);
      if (!end)
        return end;
      i = *end;
    }
    return i - 1;
  }

  /// Takes the hunk whose head is line `at`; the index behind it. Its numbers say how long it is.
  /// Where they are wrong it counts as far as it goes, if it is certain how far that is.
  result<std::size_t> take_hunk(std::size_t at, std::string& diff) {
    const auto head = head_of(lines_[at]);
    hunk_size found;
    auto end = at + 1;
    while (end < lines_.size() && found != head.size && !found.exceeds(head.size) &&
           may_stand_in_hunk(lines_[end])) {
      found.count(lines_[end].empty() ? ' ' : lines_[end].front());
      ++end;
    }
    while (end < lines_.size() && lines_[end].starts_with("\\"))
      ++end;
    auto rest = end;
    while (rest < lines_.size() && is_blank(lines_[rest]))
      ++rest;
    const bool is_signature = rest < lines_.size() && lines_[rest] == "-- ";
    const bool goes_on = rest < lines_.size() && !is_signature && !begins_file(rest) &&
                         may_stand_in_hunk(lines_[rest]);
    if (found == head.size && !goes_on) {
      keep(head, found, at + 1, end, diff);
      return rest;
    }
    return take_miscounted(head, at, diff);
  }

  result<std::size_t> take_miscounted(const hunk_head& head, std::size_t at, std::string& diff) {
    auto end = at + 1;
    while (end < lines_.size() && !begins_file(end) && may_stand_in_hunk(lines_[end]))
      ++end;
    const bool is_certain = end == lines_.size() ? ends_here_
                                                 : begins_file(end) || begins_hunk(lines_[end]) ||
                                                       lines_[end].starts_with("```");
    auto last = end;
    while (last > at + 1 && is_blank(lines_[last - 1]))
      --last;
    hunk_size found;
    for (auto i = at + 1; i < last; ++i)
      found.count(lines_[i].empty() ? ' ' : lines_[i].front());
    if (!is_certain)
      return fail(errc::parse_error,
                  "the hunk " + std::string(lines_[at]) + " has " + std::to_string(found.before) +
                      " old and " + std::to_string(found.after) +
                      " new lines, which is not what its numbers say",
                  {}, "count again, or give the whole content");
    keep(head, found, at + 1, last, diff);
    return end;
  }

  void keep(const hunk_head& head, const hunk_size& size, std::size_t from, std::size_t to,
            std::string& diff) const {
    diff += head.begin + "," + std::to_string(size.before) + head.second + "," +
            std::to_string(size.after) + " @@\n";
    for (auto i = from; i < to; ++i)
      diff.append(lines_[i]).append("\n");
  }

  bool ends_here_;
  std::vector<std::string_view> lines_;
  std::vector<proposed_change> changes_;
  bool is_open_ = false; ///< a header of git without its hunks
};

/// Where a unified diff begins in an answer; npos: nowhere.
std::size_t begin_of_diff(std::string_view answer) {
  for (std::size_t at = 0; at < answer.size();) {
    const auto end = std::min(answer.find('\n', at), answer.size());
    const auto line = answer.substr(at, end - at);
    if (line.starts_with("diff --git ") ||
        (line.starts_with("--- ") && answer.substr(end).starts_with("\n+++ ")))
      return at;
    at = end + 1;
  }
  return answer.npos;
}

result<proposed_change> change_of(const json& file) {
  if (!file.is_object())
    return fail(errc::parse_error, "`files` must hold objects", {}, form);
  proposed_change c;
  c.path = member(file, "path");
  const auto action = member(file, "action");
  if (action == "create")
    c.action = action_t::create;
  else if (action == "delete")
    c.action = action_t::remove;
  else if (action != "modify")
    return fail(errc::refused, "the action \"" + action + "\" is not one of create, modify, delete",
                c.path);
  for (const auto& [key, value] : file.items())
    if (key != "path" && key != "action" && key != "content" && key != "diff")
      return fail(errc::refused, "the key \"" + key + "\" of a file is not known", c.path,
                  "a file has path, action, and content or diff");
  c.has_content = file.contains("content") && file["content"].is_string();
  c.content = member(file, "content");
  c.diff = member(file, "diff");
  if (c.action != action_t::remove && !c.has_content && c.diff.empty())
    return fail(errc::parse_error, "neither content nor diff is given", c.path, form);
  if (c.has_content && !c.diff.empty())
    return fail(errc::parse_error, "content and diff are both given", c.path, "give one of them");
  return c;
}

result<proposal> proposal_of(const json& object) {
  proposal p;
  p.summary = member(object, "summary");
  if (const auto diff = member(object, "diff"); !diff.empty()) {
    auto changes = diff_reader(true).read(diff);
    if (!changes)
      return fail(std::move(changes.error()));
    p.changes = std::move(*changes);
    return p;
  }
  const auto files = object.find("files");
  if (files == object.end() || !files->is_array())
    return fail(errc::parse_error, "the answer has no list `files`", {}, form);
  for (const auto& file : *files) {
    auto c = change_of(file);
    if (!c)
      return fail(std::move(c.error()));
    p.changes.push_back(std::move(*c));
  }
  return p;
}

result<proposal> diff_alone(std::string_view diff, bool ends_here) {
  auto changes = diff_reader(ends_here).read(diff);
  if (!changes)
    return fail(std::move(changes.error()));
  proposal p;
  p.changes = std::move(*changes);
  return p;
}

} // namespace

result<proposal> read_proposal(std::string_view answer) {
  if (answer.size() > answer_bytes)
    return fail(errc::limit_exceeded,
                "the answer is longer than " + std::to_string(answer_bytes) + " bytes");
  const auto found = find_json(answer);
  // What stands in a diff is its content, also where it looks like an answer.
  if (found && found->begin < begin_of_diff(answer)) {
    const auto object = json::parse(found->text, nullptr, false);
    if (object.is_object() && (object.contains("files") || object.contains("diff")))
      return proposal_of(object);
  }
  const bool has_diff = answer.find("\n+++ ") != answer.npos || answer.starts_with("+++ ");
  if (!has_diff && answer.find("GIT binary patch") == answer.npos &&
      answer.find("\nrename from") == answer.npos && answer.find("\nold mode") == answer.npos)
    return fail(errc::parse_error,
                found ? std::string("the answer has no patch")
                      : "the answer has no patch: " + found.error().what,
                {}, form);
  return diff_alone(answer, false);
}

result<proposal> read_diff(std::string_view diff) {
  if (diff.size() > answer_bytes)
    return fail(errc::limit_exceeded,
                "the diff is longer than " + std::to_string(answer_bytes) + " bytes");
  return diff_alone(diff, true);
}

} // namespace boyd::improve
