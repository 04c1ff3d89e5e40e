#include "boyd/core/text.hpp"
#include "boyd/memory/document.hpp"
#include "boyd/memory/words.hpp"

#include <algorithm>
#include <array>
#include <map>
#include <utility>

namespace boyd::memory {

namespace {

/// Who an agent is: never left out.
constexpr std::array<std::string_view, 3> core_identity{"Who I Am", "My Traits", "When I'm Idle"};

/// A piece of one of the files, and whether it is shown.
struct shown_piece {
  piece what;
  std::size_t file = 0;
  bool shown = false;
};

bool is_core(const piece& p) {
  return std::ranges::any_of(core_identity, [&](std::string_view name) {
    return p.section == name || p.section.starts_with(std::string(name) + " — ");
  });
}

bool is_below(const shown_piece& p, const shown_piece& heading) {
  const auto& name = heading.what.section;
  return p.file == heading.file &&
         (name.empty() || p.what.section == name || p.what.section.starts_with(name + " — "));
}

/// What may be left out of a section, the most wanted first: the text that stands between its
/// entries, then these, the newest first.
std::vector<std::vector<std::size_t>> by_section(const std::vector<shown_piece>& pieces) {
  std::vector<std::vector<std::size_t>> all;
  std::map<std::pair<std::size_t, std::string>, std::size_t> places;
  std::vector<std::vector<std::size_t>> entries;
  for (std::size_t i = 0; i < pieces.size(); ++i) {
    const auto& p = pieces[i];
    if (p.shown || p.what.heading)
      continue;
    const auto place = places.try_emplace({p.file, p.what.section}, all.size()).first->second;
    all.resize(places.size());
    entries.resize(places.size());
    (p.what.entry ? entries : all)[place].push_back(i);
  }
  for (std::size_t s = 0; s < all.size(); ++s) {
    std::vector<std::string_view> texts;
    for (const auto i : entries[s])
      texts.emplace_back(pieces[i].what.text);
    const auto oldest_first = places_by_age(texts);
    for (auto place = oldest_first.rbegin(); place != oldest_first.rend(); ++place)
      all[s].push_back(entries[s][*place]);
  }
  return all;
}

/// The budget of one prompt, spent piece by piece.
class chooser {
 public:
  chooser(std::vector<shown_piece>& pieces, std::int64_t budget) : pieces_(pieces), left_(budget) {}

  void show_core() {
    for (std::size_t i = 0; i < pieces_.size(); ++i)
      if (is_core(pieces_[i].what) && !pieces_[i].what.heading)
        show(i, price(i));
  }

  bool take(std::size_t i) {
    const auto tokens = price(i);
    if (tokens > left_)
      return false;
    show(i, tokens);
    return true;
  }

 private:
  /// With the headings that it needs and that are not shown yet.
  std::int64_t price(std::size_t i) const {
    auto tokens = count_tokens(pieces_[i].what.text);
    for (const auto& p : pieces_)
      if (p.what.heading && !p.shown && is_below(pieces_[i], p))
        tokens += count_tokens(p.what.text);
    return tokens;
  }

  void show(std::size_t i, std::int64_t tokens) {
    left_ -= tokens;
    for (auto& p : pieces_)
      if (p.what.heading && is_below(pieces_[i], p))
        p.shown = true;
    pieces_[i].shown = true;
  }

  std::vector<shown_piece>& pieces_;
  std::int64_t left_;
};

std::string left_out(std::size_t entries, std::int64_t tokens) {
  return "(" + std::to_string(entries) + (entries == 1 ? " older entry is" : " older entries are") +
         " left out: " + std::to_string(tokens) +
         " tokens. `recall` and `boyd memory recall` find them.)\n";
}

} // namespace

std::string memory_for_prompt(const std::vector<std::string>& files, std::int64_t budget_tokens) {
  std::vector<shown_piece> pieces;
  std::size_t number = 0;
  for (const auto& file : files) {
    if (trim(file).empty())
      continue;
    if (!pieces.empty())
      pieces.back().what.text += pieces.back().what.text.ends_with('\n') ? "\n" : "\n\n";
    for (auto& p : split_memory(file))
      pieces.push_back({std::move(p), number});
    ++number;
  }
  std::string whole;
  for (const auto& p : pieces)
    whole += p.what.text;
  if (count_tokens(whole) <= budget_tokens)
    return whole;
  constexpr std::size_t many = 1'000'000;
  chooser choose(pieces, budget_tokens - count_tokens(left_out(many, many)));
  choose.show_core();
  std::size_t entries = 0;
  std::int64_t tokens = 0;
  const auto sections = by_section(pieces);
  for (std::size_t turn = 0, more = 1; more != 0; ++turn) {
    more = 0;
    for (const auto& section : sections) {
      if (turn >= section.size())
        continue;
      ++more;
      if (choose.take(section[turn]))
        continue;
      const auto& p = pieces[section[turn]].what;
      entries += trim(p.text).empty() ? 0 : 1;
      tokens += count_tokens(p.text);
    }
  }
  std::string text;
  for (const auto& p : pieces)
    if (p.shown)
      text += p.what.text;
  return text +
         (text.empty()           ? ""
          : text.ends_with('\n') ? "\n"
                                 : "\n\n") +
         left_out(entries, tokens);
}

} // namespace boyd::memory
