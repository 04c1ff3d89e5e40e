#include "file_reading.hpp"

#include "boyd/core/text.hpp"
#include "boyd/tools/result_text.hpp"

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstdio>
#include <utility>

namespace boyd::tools {

namespace {

constexpr std::size_t chunk_bytes = 256u << 10;
/// A line that lies further in is found by byte_offset.
constexpr std::uint64_t skipped_bytes = std::uint64_t{64} << 20;
/// Left of a result for the line that says what is missing.
constexpr std::size_t footer_bytes = 512;
constexpr std::size_t text_bytes = tool_result_bytes - footer_bytes;

struct known_beginning {
  std::string_view bytes;
  std::string_view kind;
};
using namespace std::string_view_literals;
constexpr std::array known_beginnings{
    known_beginning{"\x7F"
                    "ELF"sv,
                    "a program (ELF)"sv},
    known_beginning{"\x89PNG"sv, "an image (PNG)"sv},
    known_beginning{"\xFF\xD8\xFF"sv, "an image (JPEG)"sv},
    known_beginning{"GIF8"sv, "an image (GIF)"sv},
    known_beginning{"%PDF"sv, "a PDF document"sv},
    known_beginning{"PK\x03\x04"sv, "a ZIP archive"sv},
    known_beginning{"\x1F\x8B"sv, "compressed by gzip"sv},
    known_beginning{"SQLite format 3"sv, "an SQLite database"sv},
    known_beginning{"\xFF\xFE"sv, "perhaps text in UTF-16"sv},
    known_beginning{"\xFE\xFF"sv, "perhaps text in UTF-16"sv},
};

std::string described(std::string_view beginning, std::uint64_t size) {
  std::string text = "[a binary file of " + std::to_string(size) + " bytes";
  for (const auto& k : known_beginnings)
    if (beginning.starts_with(k.bytes)) {
      text.append(", ").append(k.kind);
      break;
    }
  text += "; it begins with";
  constexpr std::size_t shown = 16;
  for (const char c : beginning.substr(0, shown)) {
    std::array<char, 4> hex{};
    std::snprintf(hex.data(), hex.size(), " %02x",
                  static_cast<unsigned>(static_cast<unsigned char>(c)));
    text += hex.data();
  }
  return text + "]\n";
}

/// Reads a file from front to back and keeps the lines that are asked for.
class line_reader {
 public:
  explicit line_reader(const read_file_call& call)
      : call_(call), at_(call.byte_offset), first_(call.byte_offset > 0 ? 1 : call.offset) {}

  std::uint64_t position() const { return at_; }
  bool done() const { return done_; }
  bool skips() const { return line_ < first_; }

  void take(std::string_view bytes) {
    while (!bytes.empty() && !done_) {
      const auto end = bytes.find('\n');
      const auto part = bytes.substr(0, end == std::string_view::npos ? end : end + 1);
      if (!skips())
        add(part);
      if (done_)
        return;
      at_ += part.size();
      bytes.remove_prefix(part.size());
      if (end != std::string_view::npos)
        end_line();
    }
  }

  /// `size`: of the file.
  std::string finish(std::uint64_t size) {
    if (text_.empty() && at_ >= size)
      return size == 0 ? "[the file is empty]\n"
                       : "[past the end: the file has " + counted_lines() + std::to_string(size) +
                             " bytes]\n";
    std::string footer;
    if (at_ < size) {
      footer = text_.ends_with('\n') ? "[" : "\n[";
      if (call_.byte_offset == 0)
        footer += "lines " + std::to_string(first_) + " to " +
                  std::to_string(inside_line_ ? line_ : line_ - 1) + "; ";
      footer +=
          "up to byte " + std::to_string(at_) + " of " + std::to_string(size) + "; continue with ";
      footer += inside_line_ || call_.byte_offset > 0 ? "byte_offset " + std::to_string(at_)
                                                      : "offset " + std::to_string(line_);
      footer += "]\n";
    } else if (first_ > 1 || call_.byte_offset > 0) {
      footer = text_.ends_with('\n') ? "[end of the file]\n" : "\n[end of the file]\n";
    }
    return std::move(text_) + footer;
  }

 private:
  void add(std::string_view part) {
    std::string number;
    if (call_.line_numbers && !inside_line_ && call_.byte_offset == 0)
      number = std::to_string(line_) + "\t";
    const auto room = text_bytes - std::min(text_bytes, text_.size() + number.size());
    if (part.size() > room) {
      // A line that fits into an answer of its own is not begun in this one.
      done_ = true;
      if (!inside_line_ && !text_.empty() && part.size() < text_bytes)
        return;
      const auto cut = cut_bytes(part, room);
      if (!cut.empty())
        text_.append(number).append(cut);
      at_ += cut.size();
      inside_line_ = true;
      return;
    }
    text_.append(number).append(part);
    inside_line_ = !part.ends_with('\n');
  }

  void end_line() {
    const bool counted = !skips();
    ++line_;
    if (counted && ++lines_ >= call_.limit)
      done_ = true;
  }

  std::string counted_lines() const {
    return call_.byte_offset > 0 ? "" : std::to_string(line_ - 1) + " line ends and ";
  }

  const read_file_call& call_;
  std::uint64_t line_ = 1;
  std::uint64_t at_;
  std::uint64_t first_;
  std::uint64_t lines_ = 0;
  std::string text_;
  bool inside_line_ = false;
  bool done_ = false;
};

} // namespace

bool looks_binary(std::string_view beginning) noexcept {
  return beginning.substr(0, binary_look_bytes).find('\0') != std::string_view::npos;
}

result<read_text> read_lines(confined_files& files, const std::string& root,
                             const std::string& path, const read_file_call& call) {
  line_reader reader(call);
  read_text found;
  for (bool first = true;; first = false) {
    auto part = files.read(root, path, reader.position(), chunk_bytes);
    if (!part)
      return fail(std::move(part.error()));
    if (first && looks_binary(part->text)) {
      found.text = described(part->text, part->size);
      found.where = std::move(part->where);
      return found;
    }
    // What a link led to once must be what it leads to now: the policy sees one place.
    if (!first && part->where != found.where)
      return fail(errc::conflict, "the file was replaced during reading", path, "try again");
    found.where = std::move(part->where);
    const auto before = reader.position();
    reader.take(part->text);
    if (reader.done() || part->text.empty() || reader.position() == before) {
      found.text = reader.finish(part->size);
      return found;
    }
    if (reader.skips() && reader.position() >= skipped_bytes)
      return fail(errc::limit_exceeded,
                  "line " + std::to_string(call.offset) + " is after the first " +
                      std::to_string(skipped_bytes) + " bytes",
                  path, "use byte_offset instead of offset");
  }
}

} // namespace boyd::tools
