#include "boyd/config/redact.hpp"
#include "boyd/config/secret_shapes.hpp"
#include "boyd/core/sha256.hpp"
#include "boyd/core/text.hpp"
#include "boyd/core/workspace_path.hpp"
#include "boyd/improve/patch.hpp"
#include "boyd/improve/settings.hpp"

#include <algorithm>
#include <array>
#include <cctype>
#include <map>
#include <set>
#include <utility>

/// The patch gate: nothing that a model proposes is applied before all of this holds.
namespace boyd::improve {

namespace {

using action_t = planned_change::action_t;

constexpr unsigned special_bits = 07000; ///< set-user-id, set-group-id, sticky
constexpr unsigned new_file_mode = 0644;
constexpr std::size_t directory_entries = 100'000;
/// The first line of a commit's message.
constexpr std::size_t summary_characters = 200;

tl::unexpected<error> refuse(const std::string& path, std::string why) {
  return fail(errc::refused, std::move(why), sanitize_utf8(path));
}

bool lies_in(std::string_view path, std::string_view place) {
  return path == place || (path.starts_with(place) && path[place.size()] == '/');
}

/// What the names alone say.
result<void> check_name(const std::string& path, const gate_rules& rules) {
  if (path.empty())
    return refuse(path, "a file has no path");
  if (path.front() == '/' || path.find('\\') != path.npos)
    return refuse(path, "the path must be relative to the repository, with /");
  if (sanitize_utf8(path) != path)
    return refuse(path, "the path is not UTF-8");
  const auto clean = workspace_path(rules.root, path);
  if (!clean)
    return refuse(path, clean.error().what);
  if (*clean != path)
    return refuse(path, "the path must be plain: without \"..\", \".\" and empty parts");
  if (const auto why = why_unwritable(path))
    return refuse(path, *why);
  for (const auto part : split(path, '/'))
    if (part.ends_with(' ') || part.ends_with('.') || part.find(':') != part.npos)
      return refuse(path, "some file systems take the name for another one");
  if (folded_name(path) == settings_file)
    return refuse(path, "it says which programs a cycle runs");
  for (const auto& place : rules.closed)
    if (lies_in(path, place) || lies_in(place, path))
      return refuse(path, place + " is Boyd's own");
  if (auto why = why_protected(path, rules.protected_paths); !why.empty())
    return refuse(path, std::move(why));
  if (auto why = why_kept(path, rules.task, rules.protected_paths); !why.empty())
    return refuse(path, std::move(why));
  return {};
}

/// A name in a directory that a less careful file system takes for another one.
result<void> check_twins(const std::string& path, const gate_rules& rules, confined_files& files) {
  std::string directory = ".";
  for (const auto part : split(path, '/')) {
    const auto listing = files.list(rules.root, directory, directory_entries);
    if (!listing && listing.error().code == errc::not_found)
      return {};
    if (!listing)
      return refuse(path, listing.error().what);
    const auto folded = folded_name(part);
    for (const auto& e : listing->entries)
      if (e.name != part && folded_name(e.name) == folded)
        return refuse(path, "it differs from " + sanitize_utf8(e.name) +
                                " only in ways that some file systems ignore");
    directory = directory == "." ? std::string(part) : directory + "/" + std::string(part);
  }
  return {};
}

std::string folded_path(std::string_view path) {
  std::string all;
  for (const auto part : split(path, '/'))
    all += folded_name(part) + "/";
  return all;
}

result<void> check_together(const proposal& p) {
  if (p.changes.empty())
    return fail(errc::parse_error, "the patch changes no file");
  if (p.changes.size() > most_patch_files)
    return fail(errc::limit_exceeded, "the patch changes " + std::to_string(p.changes.size()) +
                                          " files, " + std::to_string(most_patch_files) +
                                          " are the most");
  std::set<std::string> folded;
  for (const auto& c : p.changes)
    if (!folded.insert(folded_path(c.path)).second)
      return refuse(c.path, "the patch names it twice, or another file whose name differs only in "
                            "ways that some file systems ignore");
  for (const auto& a : folded)
    for (const auto& b : folded)
      if (a != b && b.starts_with(a))
        return refuse(a, "the patch makes it a file and a directory");
  return {};
}

/// What stands there fits what is to be done.
result<void> check_place(const proposed_change& c, const tree_entry& there) {
  if (there.kind == file_kind::symlink)
    return refuse(c.path, "it is a symbolic link");
  if (there.kind == file_kind::directory)
    return refuse(c.path, "it is a directory");
  if (there.kind == file_kind::other)
    return refuse(c.path, "it is no regular file");
  const bool is_there = there.kind == file_kind::regular;
  if (c.action == action_t::create && is_there)
    return refuse(c.path, "it exists already; the action is modify");
  if (c.action != action_t::create && !is_there)
    return refuse(c.path, "it does not exist; the action is create");
  if (there.links > 1)
    return refuse(c.path, "it is a hard link: the same file has another name");
  if ((there.mode & special_bits) != 0)
    return refuse(c.path, "it has special permissions (set-user-id, set-group-id, sticky)");
  return {};
}

/// Secrets in `after` that `before` does not have.
bool adds_secret(const std::string& before, const std::string& after) {
  std::vector<std::string> taken;
  config::redact_shapes(after, config::cut_at::nowhere, &taken);
  return std::ranges::any_of(taken, [&](const auto& s) { return before.find(s) == before.npos; });
}

/// Rules that ask whether a file belongs into the repository at all.
bool is_about_existence(const finding& task) {
  return task.from == finding_source::hygiene &&
         (task.rule == "large-file" || task.rule == "unreferenced-script");
}

/// A finding is not mended by taking away what it stands in: nothing is found in no file.
result<void> check_presence(const proposed_change& c, const std::string& after,
                            const finding& task) {
  if (c.path != task.path || is_about_existence(task) ||
      (c.action != action_t::remove && !trim(after).empty()))
    return {};
  return refuse(c.path,
                "the finding stands in this file: what is deleted or emptied is not mended");
}

std::size_t count_of(std::string_view word, std::string_view text) {
  std::size_t n = 0;
  for (auto at = text.find(word); at != text.npos; at = text.find(word, at + word.size()))
    ++n;
  return n;
}

bool is_word(char c) {
  return std::isalnum(static_cast<unsigned char>(c)) != 0;
}

/// In small letters, with one blank between two words and none anywhere else.
std::string squeezed(std::string_view text) {
  std::string small;
  bool is_apart = false;
  for (const char c : text) {
    const bool is_blank = c == ' ' || c == '\t';
    if (!is_blank) {
      if (is_apart && is_word(c) && !small.empty() && is_word(small.back()))
        small += ' ';
      small += c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
    }
    is_apart = is_blank;
  }
  return small;
}

/// What tells a linter to look away, squeezed.
constexpr auto silencers = std::to_array<std::string_view>(
    {// C and C++
     "nolint", "diagnostic ignored", "pragma warning", "cppcheck-suppress", "coverity[",
     "clang-format off",
     // Python
     "noqa", "pylint:dis", "pylint:skip-file", "ruff:no", "type:ignore",
     "mypy:", "pyright:", "pyre-ignore", "pyre-fixme", "#nosec", "pragma:no cover", "fmt:off",
     "fmt:skip", "isort:skip", "flake8:",
     // JavaScript and TypeScript
     "eslint-disable", "/*eslint", "ts-ignore", "ts-nocheck", "ts-expect-error", "biome-ignore",
     "tslint:disable", "jshint ignore", "deno-lint-ignore", "oxlint-disable", "prettier-ignore",
     "stylelint-disable", "istanbul ignore",
     // Rust and Go
     "#[allow(", "#![allow(", "#[expect(", "#![expect(", "#[cfg_attr(", "#![cfg_attr(",
     "lint:ignore", "lint:file-ignore",
     // Java, Kotlin, Swift, Ruby, PHP, Lua, Perl, Elixir
     "suppresswarnings", "suppressfbwarnings", "@suppress(", "nosonar", "checkstyle:off",
     "noinspection", "swiftlint:disable", "rubocop:disable", "rubocop:todo", "phpcs:ignore",
     "phpcs:disable", "phpstan-ignore", "psalm-suppress", "luacheck:", "##no critic",
     "credo:disable",
     // Shells and documents
     "shellcheck disable", "hadolint ignore", "yamllint disable", "markdownlint-disable",
     "codespell:ignore", "tfsec:ignore", "checkov:skip"});

std::size_t count_silencers(std::string_view text) {
  const auto small = squeezed(text);
  std::size_t n = 0;
  for (const auto word : silencers)
    n += count_of(word, small);
  return n;
}

result<void> check_silence(const proposed_change& c, const std::string& before,
                           const std::string& after, const finding& task) {
  if (task.from != finding_source::lint || count_silencers(after) <= count_silencers(before))
    return {};
  return refuse(c.path, "it tells a linter to look away: what is not looked at is not mended");
}

/// Whoever was shown "[redacted]" wrote it in the place of a secret.
bool loses_secret(const std::string& before, const std::string& after,
                  const std::vector<std::string>& secrets) {
  constexpr std::string_view mark = "[redacted]";
  return count_of(mark, after) > count_of(mark, before) &&
         config::redact_text(before, secrets) != before;
}

/// What a person who reads the patch would not see.
result<void> check_visible(const proposed_change& c, const std::string& before,
                           const std::string& after) {
  const auto had = hidden_in(before);
  for (const auto& [code, n] : hidden_in(after)) {
    const auto it = had.find(code);
    if (n > (it == had.end() ? 0 : it->second))
      return refuse(c.path, "the new content has a character that nobody sees (" +
                                name_of_character(code) +
                                ", a control character or a mark of direction)");
  }
  return {};
}

result<std::string> content_of(const proposed_change& c, const tree_entry& there,
                               const gate_rules& rules) {
  if (c.action == action_t::remove)
    return std::string();
  auto after = c.has_content ? result<std::string>(c.content) : apply_diff(there.content, c.diff);
  if (!after) {
    after.error().where = c.path;
    return after;
  }
  if (after->size() > rules.largest_file && after->size() > there.content.size())
    return fail(errc::limit_exceeded,
                "the new content is longer than " + std::to_string(rules.largest_file) + " bytes",
                c.path);
  if (sanitize_utf8(*after) != *after)
    return refuse(c.path, "the new content is binary, or not UTF-8");
  if (c.action == action_t::modify && *after == there.content)
    return fail(errc::invalid_argument, "the patch changes nothing in it", c.path);
  if (auto done = check_visible(c, there.content, *after); !done)
    return fail(std::move(done.error()));
  if (adds_secret(there.content, *after))
    return refuse(c.path, "the new content has something that looks like a secret");
  if (loses_secret(there.content, *after, rules.secrets))
    return refuse(c.path, "the new content has [redacted] in the place of a secret that you were "
                          "not shown: give a diff that leaves this line alone");
  return after;
}

result<void> check_size(std::size_t lines, std::size_t bytes) {
  if (lines > most_diff_lines)
    return fail(errc::limit_exceeded,
                "the patch changes " + std::to_string(lines) + " lines or more, " +
                    std::to_string(most_diff_lines) + " are the most",
                {}, "make a smaller change");
  if (bytes > most_diff_bytes)
    return fail(errc::limit_exceeded,
                "the changed lines have " + std::to_string(bytes) + " bytes, " +
                    std::to_string(most_diff_bytes) + " are the most",
                {}, "make a smaller change");
  return {};
}

} // namespace

std::string digest_of(const std::vector<planned_change>& changes) {
  std::string all;
  for (const auto& c : changes)
    all += std::string(name_of(c.action)) + '\0' + c.path + '\0' + c.before_hash + '\0' +
           std::to_string(c.mode) + '\0' + sha256_hex(c.after) + '\n';
  return sha256_hex(all);
}

result<accepted_patch> judge_patch(const proposal& p, const gate_rules& rules, work_tree& tree,
                                   confined_files& files) {
  if (auto done = check_together(p); !done)
    return fail(std::move(done.error()));
  accepted_patch patch;
  std::size_t bytes = 0;
  patch.summary = config::redact_shapes(
      std::string(cut_characters(first_line(sanitize_utf8(p.summary)), summary_characters)));
  for (const auto& c : p.changes) {
    if (auto done = check_name(c.path, rules); !done)
      return fail(std::move(done.error()));
    if (auto done = check_twins(c.path, rules, files); !done)
      return fail(std::move(done.error()));
    const auto there = tree.look(rules.root, c.path, patched_file_bytes);
    if (!there)
      return fail(there.error().code == errc::limit_exceeded ? errc::limit_exceeded : errc::refused,
                  "a part of the path is a symbolic link, or it cannot be read: " +
                      there.error().what,
                  c.path);
    if (auto done = check_place(c, *there); !done)
      return fail(std::move(done.error()));
    auto after = content_of(c, *there, rules);
    if (!after)
      return fail(std::move(after.error()));
    if (auto done = check_presence(c, *after, rules.task); !done)
      return fail(std::move(done.error()));
    if (auto done = check_silence(c, there->content, *after, rules.task); !done)
      return fail(std::move(done.error()));
    const auto size = measure_diff(there->content, *after, most_diff_lines);
    patch.diff_lines += size.lines;
    bytes += size.bytes;
    const bool is_new = c.action == action_t::create;
    patch.changes.push_back({c.path, c.action, is_new ? std::string() : sha256_hex(there->content),
                             is_new ? new_file_mode : there->mode, std::move(*after)});
  }
  if (auto done = check_size(patch.diff_lines, bytes); !done)
    return fail(std::move(done.error()));
  patch.digest = digest_of(patch.changes);
  return patch;
}

} // namespace boyd::improve
