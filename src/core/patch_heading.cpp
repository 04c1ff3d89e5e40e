#include "boyd/core/text.hpp"
#include "boyd/ports/worktrees.hpp"

#include <charconv>
#include <utility>

namespace boyd {

namespace {

constexpr std::string_view repository_line = "Boyd-Repository: ";
constexpr std::string_view base_line = "Boyd-Base: ";
constexpr std::string_view branch_line = "Boyd-Branch: ";
constexpr std::string_view change_line = "Boyd-Change: ";
constexpr std::string_view patch_line = "Boyd-Patch: ";
constexpr std::string_view hash_mark = ", sha256 ";
constexpr std::string_view cut_mark = ", cut";
constexpr std::string_view branch_mark = ", cut, all of it is on the branch";

/// Takes the next line of `rest`, which begins with `name`.
bool take_line(std::string_view& rest, std::string_view name, std::string& value) {
  const auto end = rest.find('\n');
  if (end == std::string_view::npos || !rest.starts_with(name))
    return false;
  value = rest.substr(name.size(), end - name.size());
  rest.remove_prefix(end + 1);
  return !value.empty();
}

bool take_number(std::string_view& rest, std::string_view before, std::size_t& value) {
  if (!rest.starts_with(before))
    return false;
  rest.remove_prefix(before.size());
  const auto [end, code] = std::from_chars(rest.data(), rest.data() + rest.size(), value);
  rest.remove_prefix(static_cast<std::size_t>(end - rest.data()));
  return code == std::errc{};
}

/// "1234 bytes, sha256 …", "1234 bytes, cut"
bool read_size(std::string_view text, patch_heading& h) {
  std::size_t bytes = 0;
  if (!take_number(text, "", bytes) || !text.starts_with(" bytes"))
    return false;
  text.remove_prefix(std::string_view(" bytes").size());
  h.bytes = bytes;
  h.on_branch = text == branch_mark;
  if (text.starts_with(hash_mark))
    h.hash = text.substr(hash_mark.size());
  return !h.hash.empty() || h.on_branch || text == cut_mark;
}

} // namespace

std::string to_text(const patch_heading& h) {
  return std::string(repository_line) + h.repository + "\n" + std::string(base_line) + h.base +
         "\n" + std::string(branch_line) + h.branch + "\n" + std::string(change_line) + "files " +
         std::to_string(h.files) + " +" + std::to_string(h.added) + " -" +
         std::to_string(h.removed) + "\n" + std::string(patch_line) + std::to_string(h.bytes) +
         " bytes" +
         (h.hash.empty() ? std::string(h.on_branch ? branch_mark : cut_mark)
                         : std::string(hash_mark) + h.hash) +
         "\n\n";
}

result<patch_heading> read_patch_heading(std::string_view patch) {
  patch_heading h;
  std::string change;
  std::string size;
  bool good = take_line(patch, repository_line, h.repository) &&
              take_line(patch, base_line, h.base) && take_line(patch, branch_line, h.branch) &&
              take_line(patch, change_line, change) && take_line(patch, patch_line, size);
  std::string_view rest = change;
  good = good && take_number(rest, "files ", h.files) && take_number(rest, " +", h.added) &&
         take_number(rest, " -", h.removed) && read_size(size, h);
  if (!good)
    return fail(errc::invalid_argument, "the patch does not name its base commit");
  return h;
}

} // namespace boyd
