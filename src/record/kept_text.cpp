#include "boyd/core/sha256.hpp"
#include "boyd/core/text.hpp"
#include "boyd/record/execution.hpp"

#include <utility>

namespace boyd::record {

namespace {

/// A frame up to this size stands in the record itself: most programs are told little, and a file
/// for each of their prompts would cost more than the record.
constexpr std::size_t short_frame = std::size_t{8} << 10;
/// Shorter contents stay in the frame.
constexpr std::size_t shortest_content = 64;

} // namespace

kept_text take_apart(std::string_view text, const std::vector<kept_content>& contents,
                     std::vector<std::string>& to_keep) {
  kept_text kept;
  kept.hash = sha256_hex(text);
  kept.bytes = static_cast<std::int64_t>(text.size());
  std::string frame;
  std::size_t from = 0;
  for (const auto& c : contents) {
    const auto at = c.content.size() < shortest_content ? text.npos : text.find(c.content, from);
    if (at == text.npos)
      continue;
    frame.append(text.substr(from, at - from));
    kept.places.push_back({frame.size(), c.hash});
    from = at + c.content.size();
  }
  frame.append(text.substr(from));
  // Bytes that are no UTF-8 would not come back from JSON as they are.
  if (frame.size() <= short_frame && sanitize_utf8(frame) == frame) {
    kept.text = std::move(frame);
  } else {
    kept.frame = sha256_hex(frame);
    to_keep.push_back(std::move(frame));
  }
  return kept;
}

} // namespace boyd::record
