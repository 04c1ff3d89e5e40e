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

} // namespace

std::string to_text(const patch_heading& h) {
  return std::string(repository_line) + h.repository + "\n" + std::string(base_line) + h.base +
         "\n" + std::string(branch_line) + h.branch + "\n" + std::string(change_line) + "files " +
         std::to_string(h.files) + " +" + std::to_string(h.added) + " -" +
         std::to_string(h.removed) + "\n\n";
}

result<patch_heading> read_patch_heading(std::string_view patch) {
  patch_heading h;
  std::string change;
  bool good = take_line(patch, repository_line, h.repository) &&
              take_line(patch, base_line, h.base) && take_line(patch, branch_line, h.branch) &&
              take_line(patch, change_line, change);
  std::string_view rest = change;
  good = good && take_number(rest, "files ", h.files) && take_number(rest, " +", h.added) &&
         take_number(rest, " -", h.removed);
  if (!good)
    return fail(errc::invalid_argument, "the patch does not name its base commit");
  return h;
}

} // namespace boyd
