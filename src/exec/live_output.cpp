#include "boyd/exec/live_output.hpp"

#include "boyd/config/redact.hpp"
#include "boyd/core/text.hpp"

#include <algorithm>
#include <utility>

namespace boyd::exec {

namespace {

/// Of one stream, that wait to be shown.
constexpr std::size_t most_waiting = 256u << 10;
/// RFC 7468 §2
constexpr std::string_view key_begin = "-----BEGIN ";
constexpr std::string_view key_end = "-----END ";

} // namespace

std::size_t showable(std::string_view written) {
  const auto end = written.rfind('\n') + 1;
  const auto begin = written.substr(0, end).rfind(key_begin);
  if (begin == std::string_view::npos ||
      written.find(key_end, begin) < std::min(end, written.size()))
    return end;
  return begin == 0 ? 0 : written.rfind('\n', begin - 1) + 1;
}

bool live_output::add(output_stream stream, std::string_view bytes) {
  const std::lock_guard lock(mutex_);
  auto& to = channels_[static_cast<std::size_t>(stream)];
  // Once something is left out, so is all that follows it, up to the next `take`.
  const auto room = to.left_out > 0 ? 0 : most_waiting - std::min(most_waiting, to.waiting.size());
  const auto kept = std::min(room, bytes.size());
  to.waiting.append(bytes.substr(0, kept));
  to.left_out += bytes.size() - kept;
  return !std::exchange(told_, true);
}

std::string live_output::ready(channel& from, bool at_end) {
  const bool is_full = from.left_out > 0;
  const auto end = at_end || is_full ? from.waiting.size() : showable(from.waiting);
  auto text = from.waiting.substr(0, end);
  from.waiting.erase(0, end);
  return text;
}

std::vector<live_output::piece> live_output::take(bool at_end) {
  const std::lock_guard lock(mutex_);
  std::vector<piece> all;
  for (const auto stream : {output_stream::out, output_stream::err}) {
    auto& from = channels_[static_cast<std::size_t>(stream)];
    auto text = ready(from, at_end);
    const auto left_out = std::exchange(from.left_out, 0);
    if (text.empty() && left_out == 0)
      continue;
    text = sanitize_utf8(config::redact_cut_end(std::move(text), secrets_));
    if (left_out > 0)
      text += "\n[" + std::to_string(left_out) +
              " bytes of output skipped because they came too fast; see: boyd dispatches show]\n";
    all.push_back({stream, std::move(text)});
  }
  told_ = !all.empty();
  return all;
}

} // namespace boyd::exec
