#include "boyd/tools/file_prints.hpp"

#include "boyd/core/sha256.hpp"

#include <algorithm>
#include <utility>

namespace boyd::tools {

namespace {

constexpr std::string_view hash_prefix = "sha256:";
constexpr std::string_view is_missing = "missing";
/// Not below the workspace, not the agents' to read, or no path at all.
constexpr std::string_view is_closed = "closed";

result<std::string> state_of(confined_files& inside, const std::string& workspace,
                             const std::string& path, std::uint64_t& left) {
  const auto place = inside.find(workspace, path);
  if (!place)
    return std::string(place.error().code == errc::not_found ? is_missing : is_closed);
  if (place->kind != file_kind::regular)
    return std::string("other");
  if (place->size > std::min(print_bytes, left))
    return "size:" + std::to_string(place->size);
  left -= place->size;
  const auto content = inside.read(workspace, path, 0, static_cast<std::size_t>(place->size) + 1);
  if (!content && content.error().code == errc::not_found)
    return std::string(is_missing);
  if (!content && content.error().code == errc::refused)
    return std::string(is_closed);
  if (!content)
    return fail(content.error());
  return std::string(hash_prefix) + sha256_hex(content->text);
}

} // namespace

result<std::vector<file_print>> look_at_files(confined_files& inside, const std::string& workspace,
                                              const std::vector<std::string>& paths) {
  if (paths.size() > most_prints)
    return fail(errc::limit_exceeded, "more than " + std::to_string(most_prints) + " paths", {},
                "use smaller steps");
  std::vector<file_print> prints;
  auto left = all_print_bytes;
  for (const auto& path : paths) {
    auto state = state_of(inside, workspace, path, left);
    if (!state)
      return fail(std::move(state.error()));
    prints.push_back({path, std::move(*state)});
  }
  return prints;
}

std::string hash_of(const std::vector<file_print>& prints) {
  if (prints.empty())
    return {};
  std::string lines;
  for (const auto& p : prints)
    lines.append(p.path).append(1, '\0').append(p.state).append("\n");
  return sha256_hex(lines);
}

std::string content_hash(const file_print& print) {
  if (print.state == is_missing)
    return {};
  return print.state.starts_with(hash_prefix) ? print.state.substr(hash_prefix.size())
                                              : print.state;
}

} // namespace boyd::tools
