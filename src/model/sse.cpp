#include "boyd/model/sse.hpp"

#include <algorithm>
#include <charconv>
#include <cstdint>
#include <string>

namespace boyd::model {
namespace {

constexpr std::string_view byte_order_mark = "\xEF\xBB\xBF";
/// Of an id; what is longer could not be sent back in a header.
constexpr std::size_t id_bytes = 4096;

} // namespace

result<void> sse_reader::feed(std::string_view bytes,
                              const std::function<void(const sse_event&)>& take) {
  while (!bytes.empty() && !given_up_) {
    if (after_cr_) {
      after_cr_ = false;
      if (bytes.front() == '\n') {
        bytes.remove_prefix(1);
        continue;
      }
    }
    const auto end = bytes.find_first_of("\r\n");
    const auto part = bytes.substr(0, end);
    if (part.size() > sse_event_bytes - std::min(pending(), sse_event_bytes)) {
      given_up_ = true;
      break;
    }
    line_.append(part);
    if (end == std::string_view::npos)
      return {};
    after_cr_ = bytes[end] == '\r';
    bytes.remove_prefix(end + 1);
    const bool ends_event = line_.empty() || (at_start_ && line_ == byte_order_mark);
    read_line();
    if (ends_event)
      end_event(take);
  }
  if (!given_up_)
    return {};
  line_.clear();
  event_ = {};
  return fail(errc::limit_exceeded,
              "an event is larger than " + std::to_string(sse_event_bytes) + " bytes");
}

void sse_reader::finish(const std::function<void(const sse_event&)>& take) {
  if (given_up_)
    return;
  if (!line_.empty())
    read_line();
  end_event(take);
}

std::string sse_reader::pending_data() const {
  auto copy = *this;
  if (!copy.line_.empty())
    copy.read_line();
  return copy.event_.data;
}

void sse_reader::end_event(const std::function<void(const sse_event&)>& take) {
  if (!id_.empty())
    last_id_ = id_;
  if (has_data_)
    take(event_);
  event_ = {};
  has_data_ = false;
}

void sse_reader::read_line() {
  std::string_view line = line_;
  if (at_start_ && line.substr(0, byte_order_mark.size()) == byte_order_mark)
    line.remove_prefix(byte_order_mark.size());
  at_start_ = false;
  const auto colon = line.find(':');
  const auto field = line.substr(0, colon);
  auto value = colon == std::string_view::npos ? std::string_view{} : line.substr(colon + 1);
  if (!value.empty() && value.front() == ' ')
    value.remove_prefix(1);
  if (field == "data") {
    if (has_data_)
      event_.data += '\n';
    event_.data += value;
    has_data_ = true;
  } else if (field == "event") {
    event_.type = value;
  } else if (field == "id" && value.find('\0') == std::string_view::npos) {
    id_ = value.substr(0, id_bytes);
  } else if (field == "retry") {
    std::int64_t ms = 0;
    const auto* stop = value.data() + value.size();
    const auto read = std::from_chars(value.data(), stop, ms);
    if (!value.empty() && read.ec == std::errc{} && read.ptr == stop && ms >= 0)
      retry_ = milliseconds{ms};
  }
  line_.clear();
}

} // namespace boyd::model
