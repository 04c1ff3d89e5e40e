#include "boyd/state/files_of_kernel.hpp"

#include <algorithm>
#include <cstddef>
#include <string_view>

namespace boyd::state {

namespace {

constexpr std::string_view written_at = "- written_at: ";
constexpr std::size_t shortest_fence = 3;

/// `content` as fenced code; the fence is longer than any run of backticks inside.
std::string fenced(std::string_view content, std::string_view language) {
  std::size_t longest = 0;
  std::size_t run = 0;
  for (const char c : content) {
    run = c == '`' ? run + 1 : 0;
    longest = std::max(longest, run);
  }
  const std::string fence(std::max(shortest_fence, longest + 1), '`');
  std::string text = fence + std::string(language) + "\n" + std::string(content);
  if (!text.ends_with('\n')) {
    text += '\n';
  }
  return text + fence + "\n";
}

std::string bullet(std::string_view key, std::string_view value) {
  return "- " + std::string(key) + ": " + std::string(value) + "\n";
}

std::string without_time(std::string_view text) {
  const auto begin = text.find(written_at);
  const auto end = text.find('\n', begin == std::string_view::npos ? 0 : begin);
  if (begin == std::string_view::npos || end == std::string_view::npos) {
    return std::string(text);
  }
  return std::string(text.substr(0, begin)) + std::string(text.substr(end));
}

} // namespace

std::string render_init(const init_snapshot& snapshot) {
  return "# Initial configuration\n\nThe effective configuration at the start of the node; secrets "
         "are redacted.\n\n" +
         std::string(written_at) + format_rfc3339(snapshot.at) + "\n" +
         bullet("kernel_id", snapshot.kernel_id) + bullet("node_id", snapshot.node_id) +
         bullet("version", snapshot.version) + "\n" + fenced(snapshot.configuration_yaml, "yaml");
}

std::string render_system_prompt(const system_prompt_snapshot& snapshot) {
  return "# System prompt\n\nThe system prompt in force.\n\n" + std::string(written_at) +
         format_rfc3339(snapshot.at) + "\n" + bullet("kernel_id", snapshot.kernel_id) +
         bullet("version", snapshot.version) + "\n" + fenced(snapshot.prompt, "markdown");
}

bool same_snapshot(const std::string& a, const std::string& b) {
  return without_time(a) == without_time(b);
}

} // namespace boyd::state
