#include "boyd/core/outside_json.hpp"
#include "boyd/core/text.hpp"
#include "boyd/improve/patch.hpp"

#include <nlohmann/json.hpp>

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

/// Reads unified diffs of several files.
class diff_reader {
 public:
  result<std::vector<proposed_change>> read(std::string_view text) {
    const auto lines = split(text, '\n');
    for (std::size_t i = 0; i < lines.size(); ++i) {
      const auto line = lines[i];
      if (auto why = why_refused(line); !why.empty())
        return fail(errc::refused, std::move(why));
      if (line.starts_with("diff --git ")) {
        if (is_open_)
          break;
        is_open_ = true;
      }
      if (!line.starts_with("--- ") || i + 1 == lines.size() || !lines[i + 1].starts_with("+++ "))
        continue;
      const auto from = path_in(line);
      const auto to = path_in(lines[i + 1]);
      is_open_ = false;
      i = take_hunks(lines, i + 2, change_of(from, to));
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

  /// The index of the last line of the file's hunks.
  std::size_t take_hunks(const std::vector<std::string_view>& lines, std::size_t i,
                         proposed_change c) {
    for (; i < lines.size(); ++i) {
      const auto line = lines[i];
      const bool next_file =
          line.starts_with("diff --git ") ||
          (line.starts_with("--- ") && i + 1 < lines.size() && lines[i + 1].starts_with("+++ "));
      const bool in_hunk =
          !c.diff.empty() && (line.empty() || line.front() == ' ' || line.front() == '+' ||
                              line.front() == '-' || line.front() == '\\');
      if (next_file || (!begins_hunk(line) && !in_hunk))
        break;
      c.diff.append(line).append("\n");
    }
    changes_.push_back(std::move(c));
    return i - 1;
  }

  std::vector<proposed_change> changes_;
  bool is_open_ = false; ///< a header of git without its hunks
};

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
    auto changes = diff_reader().read(diff);
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

} // namespace

result<proposal> read_proposal(std::string_view answer) {
  if (answer.size() > answer_bytes)
    return fail(errc::limit_exceeded,
                "the answer is longer than " + std::to_string(answer_bytes) + " bytes");
  const auto found = find_json(answer);
  if (found) {
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
  auto changes = diff_reader().read(answer);
  if (!changes)
    return fail(std::move(changes.error()));
  proposal p;
  p.changes = std::move(*changes);
  return p;
}

} // namespace boyd::improve
