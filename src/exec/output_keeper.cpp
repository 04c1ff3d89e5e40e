#include "boyd/exec/output_keeper.hpp"

#include "boyd/core/text.hpp"
#include "words.hpp"

#include <algorithm>

namespace boyd::exec {

namespace {

/// A UTF-8 sequence has at most this many continuation bytes.
constexpr std::size_t max_continuation = 3;

bool is_continuation(char c) {
  return (static_cast<unsigned char>(c) & 0xC0u) == 0x80u;
}

/// Around the number of bytes that are left out.
constexpr std::string_view cut_opening = "\n… ";
constexpr std::string_view cut_closing = " bytes not stored …\n";

/// Without a sequence that the cut at the end may have split.
std::string_view cut_back(std::string_view text) {
  for (std::size_t back = 1; back <= max_continuation + 1 && back <= text.size(); ++back) {
    const char c = text[text.size() - back];
    if (is_continuation(c))
      continue;
    const auto lead = static_cast<unsigned char>(c);
    const std::size_t length = lead >= 0xF0u ? 4 : lead >= 0xE0u ? 3 : lead >= 0xC0u ? 2 : 1;
    return length > back ? text.substr(0, text.size() - back) : text;
  }
  return text;
}

/// Without the end of a sequence whose beginning was cut off.
std::string_view cut_front(std::string_view text) {
  std::size_t skip = 0;
  while (skip < max_continuation && skip < text.size() && is_continuation(text[skip]))
    ++skip;
  return text.substr(skip);
}

} // namespace

output_keeper::output_keeper(std::size_t cap) : half_(std::max<std::size_t>(cap / 2, 1)) {}

void output_keeper::append(std::string_view bytes) {
  total_ += bytes.size();
  if (const auto room = half_ - head_.size(); room > 0) {
    const auto n = std::min(room, bytes.size());
    head_.append(bytes.substr(0, n));
    bytes.remove_prefix(n);
  }
  if (bytes.size() >= half_) {
    tail_.assign(bytes.substr(bytes.size() - half_));
    return;
  }
  if (tail_.size() + bytes.size() > 2 * half_)
    tail_.erase(0, tail_.size() - half_);
  tail_.append(bytes);
}

output_keeper::view output_keeper::render(std::size_t limit) const {
  const std::size_t shown = std::min(limit, 2 * half_);
  std::string_view tail = tail_;
  if (total_ <= shown)
    return {sanitize_utf8(head_ + tail_), 0};
  const std::string_view head = cut_back(std::string_view(head_).substr(0, shown / 2));
  const std::size_t from_tail = shown - shown / 2;
  // The tail may be shorter than its share when little was cut: the head has the bytes before it.
  std::string joined;
  if (tail.size() < from_tail) {
    joined = head_ + tail_;
    tail = joined;
  }
  tail = cut_front(tail.substr(tail.size() - std::min(from_tail, tail.size())));
  view v;
  v.cut = total_ - head.size() - tail.size();
  v.text = sanitize_utf8(head);
  v.text += cut_opening;
  v.text += std::to_string(v.cut);
  v.text += cut_closing;
  v.text += sanitize_utf8(tail);
  return v;
}

output_keeper::piece output_keeper::since(std::uint64_t offset, std::size_t limit) const {
  const auto tail_begin = total_ - tail_.size();
  const auto of_tail = [&](std::uint64_t from, std::size_t most) {
    return tail_.substr(static_cast<std::size_t>(from - tail_begin), most);
  };
  if (offset >= head_.size()) {
    const auto begin = std::min(std::max<std::uint64_t>(offset, tail_begin), total_);
    return {begin, of_tail(begin, limit), false};
  }
  piece p{offset, head_.substr(static_cast<std::size_t>(offset), limit), false};
  const auto end = offset + p.bytes.size();
  if (end == head_.size() && tail_begin == end)
    p.bytes += of_tail(end, limit - p.bytes.size());
  else if (end == head_.size())
    p.is_cut_behind = end < total_;
  return p;
}

output_keeper::cut_mark output_keeper::find_cut(std::string_view text) noexcept {
  for (auto at = text.find(cut_opening); at != std::string_view::npos;
       at = text.find(cut_opening, at + 1)) {
    const auto number = text.substr(at + cut_opening.size());
    const auto digits = std::min(number.find_first_not_of("0123456789"), number.size());
    if (number.substr(digits).starts_with(cut_closing))
      return {at, cut_opening.size() + digits + cut_closing.size()};
  }
  return {};
}

void line_watch::append(std::string_view bytes) {
  while (!bytes.empty()) {
    const auto end = bytes.find('\n');
    const auto part = bytes.substr(0, end);
    if (line_.size() < line_bytes)
      line_.append(part.substr(0, line_bytes - line_.size()));
    if (end == std::string_view::npos)
      return;
    take_line();
    bytes.remove_prefix(end + 1);
  }
}

void line_watch::finish() {
  take_line();
}

void line_watch::take_line() {
  const std::string_view text = trim(line_);
  if (!text.empty()) {
    if (text.starts_with(summary_prefix)) {
      declared_ = trim(text.substr(summary_prefix.size()));
    } else if (text.starts_with(remember_prefix)) {
      if (remembered_.size() < most_remembered && line_.size() < line_bytes)
        remembered_.emplace_back(trim(text.substr(remember_prefix.size())));
      else
        ++not_remembered_;
    } else {
      if (first_.empty())
        first_ = text;
      last_ = text;
      if (!is_decoration(text))
        last_words_ = text;
    }
  }
  line_.clear();
}

} // namespace boyd::exec
