#include "boyd/tools/glob.hpp"

#include "boyd/core/text.hpp"

#include <algorithm>
#include <vector>

namespace boyd::tools {

namespace {

enum class part : std::uint8_t {
  literal,
  one,          ///< ?
  within,       ///< *
  across,       ///< **
  maybe_two,    ///< nothing of its own: this part's successor and the one after may be left out
  directories,  ///< any run that ends with "/"
  maybe_to_end, ///< all parts after it may be left out
};

struct token {
  part kind = part::literal;
  std::string_view character; ///< of a literal
};

constexpr std::string_view any_directories = "**/";

std::string_view first_character(std::string_view text) {
  return cut_characters(text, 1);
}

std::vector<token> parts_of(std::string_view pattern, glob_text kind) {
  std::vector<token> parts;
  bool at_beginning = true; // of a name
  while (!pattern.empty()) {
    if (kind == glob_text::path && pattern == "/**") {
      parts.push_back({part::maybe_to_end, {}});
      parts.push_back({part::literal, pattern.substr(0, 1)});
      parts.push_back({part::across, {}});
      break;
    }
    if (kind == glob_text::path && at_beginning && pattern.starts_with(any_directories)) {
      if (parts.empty() || parts.back().kind != part::directories) { // twice is no more than once
        parts.push_back({part::maybe_two, {}});
        parts.push_back({part::directories, {}});
      }
      pattern.remove_prefix(any_directories.size());
      continue;
    }
    const auto character = first_character(pattern);
    at_beginning = character == "/";
    if (pattern.starts_with("**")) {
      parts.push_back({part::across, {}});
      pattern.remove_prefix(2);
      continue;
    }
    if (character == "*")
      parts.push_back({kind == glob_text::path ? part::within : part::across, {}});
    else
      parts.push_back({character == "?" ? part::one : part::literal, character});
    pattern.remove_prefix(character.size());
  }
  return parts;
}

/// Every place in the pattern where the text read so far may stand: all at once, so that nothing is
/// ever tried again.
class places {
 public:
  places(const std::vector<token>& parts, glob_text kind)
      : parts_(parts), stops_at_slash_(kind == glob_text::path), now_(parts.size() + 1),
        next_(parts.size() + 1) {
    reach(now_, 0);
  }

  void read(std::string_view character) {
    std::fill(next_.begin(), next_.end(), false);
    const bool slash = character == "/";
    for (std::size_t i = 0; i < parts_.size(); ++i)
      if (now_[i])
        step(i, character, slash);
    now_.swap(next_);
  }

  bool at_end() const { return now_.back(); }
  bool any() const { return std::ranges::find(now_, true) != now_.end(); }

 private:
  using set = std::vector<bool>;

  void step(std::size_t i, std::string_view character, bool slash) {
    const bool stops = slash && stops_at_slash_;
    switch (parts_[i].kind) {
    case part::literal:
      if (character == parts_[i].character)
        reach(next_, i + 1);
      break;
    case part::one:
      if (!stops)
        reach(next_, i + 1);
      break;
    case part::within:
      if (!stops)
        reach(next_, i);
      break;
    case part::across:
      reach(next_, i);
      break;
    case part::directories:
      next_[i] = true;
      if (slash)
        reach(next_, i + 1);
      break;
    case part::maybe_two:
    case part::maybe_to_end:
      break;
    }
  }

  /// Marks place `i` and those that need no character more.
  void reach(set& s, std::size_t i) {
    for (; !s[i]; ++i) {
      s[i] = true;
      if (i == parts_.size())
        return;
      switch (parts_[i].kind) {
      case part::within:
      case part::across:
        continue;
      case part::maybe_two:
        s[i + 1] = true; // the run of directories itself takes characters
        reach(s, i + 2);
        return;
      case part::maybe_to_end:
        s.back() = true;
        continue;
      default:
        return;
      }
    }
  }

  const std::vector<token>& parts_;
  bool stops_at_slash_;
  set now_;
  set next_;
};

void read_all(places& where, std::string_view text) {
  while (!text.empty() && where.any()) {
    const auto character = first_character(text);
    where.read(character);
    text.remove_prefix(character.size());
  }
}

} // namespace

bool glob_matches(std::string_view pattern, std::string_view text, glob_text kind) {
  const auto parts = parts_of(pattern, kind);
  places where(parts, kind);
  read_all(where, text);
  return where.at_end();
}

bool glob_continues(std::string_view pattern, std::string_view beginning, glob_text kind) {
  const auto parts = parts_of(pattern, kind);
  places where(parts, kind);
  read_all(where, beginning);
  return where.any(); // from each of them some text leads to the end
}

} // namespace boyd::tools
