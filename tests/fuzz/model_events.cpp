#include "boyd/model/sse.hpp"
#include "fuzz/target.hpp"

#include <utility>

namespace boyd::fuzz {
namespace {

using events = std::vector<std::pair<std::string, std::string>>;

events read(std::string_view bytes, std::size_t first, std::size_t piece) {
  model::sse_reader reader;
  events out;
  while (!bytes.empty()) {
    const auto size = std::min(first, bytes.size());
    const auto fed = reader.feed(bytes.substr(0, size), [&](const model::sse_event& e) {
      out.emplace_back(e.type, e.data);
    });
    require(fed.has_value(), "a small stream is within the limit");
    bytes.remove_prefix(size);
    first = piece;
  }
  return out;
}

/// A byte for the cut, then the stream: the same events however it is cut, and an event that is
/// written again is read again.
void run(std::string_view input) {
  reader in(input);
  const auto cut = std::size_t{in.byte()};
  const auto whole = read(in.rest(), in.rest().size(), 1);
  require(read(in.rest(), cut + 1, cut % 5 + 1) == whole, "the cut does not matter");
  std::string written;
  for (const auto& [type, data] : whole) {
    require(type.find_first_of("\r\n") == std::string::npos, "a type is one line");
    require(data.find('\r') == std::string::npos, "data has line feeds alone");
    written += "event: " + type + "\ndata: ";
    for (const char c : data)
      written += c == '\n' ? std::string("\ndata: ") : std::string(1, c);
    written += "\n\n";
  }
  require(read(written, written.size(), 1) == whole, "events that were written are read back");
}

const registration registered{"model_events", run};

} // namespace
} // namespace boyd::fuzz
