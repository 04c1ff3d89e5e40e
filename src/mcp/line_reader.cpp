#include "boyd/mcp/line_reader.hpp"

namespace boyd::mcp {

result<void> line_reader::feed(std::string_view bytes,
                               const std::function<void(std::string_view)>& take) {
  const auto too_long = [&]() -> result<void> {
    given_up_ = true;
    line_ = {};
    return fail(errc::limit_exceeded, "a line of more than " + std::to_string(most_) +
                                          " bytes is not a protocol message");
  };
  if (given_up_)
    return too_long();
  while (!bytes.empty()) {
    const auto end = bytes.find('\n');
    const auto piece = bytes.substr(0, end);
    if (line_.size() + piece.size() > most_)
      return too_long();
    line_ += piece;
    if (end == std::string_view::npos)
      return {};
    bytes.remove_prefix(end + 1);
    if (line_.ends_with('\r'))
      line_.pop_back();
    if (line_.find_first_not_of(" \t") != std::string::npos)
      take(line_);
    line_.clear();
  }
  return {};
}

} // namespace boyd::mcp
