#include "boyd/tools/result_text.hpp"

#include "boyd/config/redact.hpp"
#include "boyd/core/text.hpp"
#include "boyd/tools/call.hpp"

#include <algorithm>
#include <cctype>
#include <utility>

namespace boyd::tools {

namespace {

constexpr std::size_t name_bytes = 100;

bool is_continuation(char c) {
  return (static_cast<unsigned char>(c) & 0xC0U) == 0x80U;
}

/// A name is made of what a caller and perhaps a model gave.
std::string file_name(std::string_view name) {
  std::string safe(name.substr(0, name_bytes));
  std::ranges::replace_if(
      safe,
      [](char c) {
        return std::isalnum(static_cast<unsigned char>(c)) == 0 && c != '-' && c != '_';
      },
      '_');
  return (safe.empty() ? "result" : safe) + ".txt";
}

result<void> keep(file_system& files, const std::string& directory, const std::string& path,
                  std::string_view text) {
  if (auto made = files.make_directories(directory); !made)
    return made;
  if (auto gone = files.unlink(path); !gone && gone.error().code != errc::not_found)
    return gone;
  auto file = files.open(path, open_mode::create_new);
  if (!file)
    return fail(std::move(file.error()));
  while (!text.empty()) {
    auto written = (*file)->write(text);
    if (!written || *written == 0) {
      (void)files.unlink(path);
      return written ? fail(errc::no_space, "the file could not be written completely", path)
                     : fail(std::move(written.error()));
    }
    text.remove_prefix(std::min(*written, text.size()));
  }
  return {};
}

/// The end of `text`, at most `bytes` of it.
std::string_view end_of(std::string_view text, std::size_t bytes) {
  auto begin = text.size() - std::min(bytes, text.size());
  while (begin < text.size() && is_continuation(text[begin]))
    ++begin;
  return text.substr(begin);
}

} // namespace

std::string_view cut_bytes(std::string_view utf8, std::size_t bytes) noexcept {
  if (utf8.size() <= bytes)
    return utf8;
  while (bytes > 0 && is_continuation(utf8[bytes]))
    --bytes;
  return utf8.substr(0, bytes);
}

tool_outcome failed_outcome(const error& e) {
  tool_outcome outcome;
  outcome.text = sanitize_utf8("error: " + to_string(e));
  outcome.is_error = true;
  outcome.bytes = outcome.text.size();
  return outcome;
}

tool_outcome fit_result(std::string_view text, bool is_error, const result_place& place,
                        file_system& files, std::size_t most) {
  tool_outcome outcome;
  outcome.text = config::redact_text(sanitize_utf8(text), place.secrets);
  outcome.is_error = is_error;
  outcome.bytes = outcome.text.size();
  if (outcome.text.size() <= most)
    return outcome;
  const std::string whole = std::move(outcome.text);
  const auto head = cut_bytes(whole, most / 2);
  const auto tail = end_of(whole, most / 2);
  const auto name = file_name(place.name);
  const auto path = place.directory + "/" + name;
  const auto kept = keep(files, place.directory, path, whole);
  std::string between = "\n[… " + std::to_string(whole.size() - head.size() - tail.size()) +
                        " of " + std::to_string(whole.size()) + " bytes omitted; ";
  if (kept) {
    outcome.spilled = path;
    between += place.missing == 0 ? "complete in " : "the stored part is in ";
    between += std::string(results_prefix) + name + " (use read_file)";
    if (place.missing > 0)
      between += "; " + std::to_string(place.missing) + " more bytes were too many to store";
    between += " …]\n";
  } else {
    between += "they could not be stored: " + sanitize_utf8(kept.error().what) + " …]\n";
  }
  outcome.text = std::string(head) + between + std::string(tail);
  return outcome;
}

} // namespace boyd::tools
