#include "boyd/plan/expand.hpp"

#include "boyd/core/time.hpp"

#include <algorithm>
#include <array>
#include <utility>

namespace boyd::plan {
namespace {

using member = std::string placeholder_values::*;
constexpr std::array<std::pair<std::string_view, member>, 8> placeholders{{
    {"{STATE}", &placeholder_values::state},
    {"{GOAL}", &placeholder_values::goal},
    {"{RECENT_RESULTS}", &placeholder_values::recent_results},
    {"{TIME}", &placeholder_values::time},
    {"{MEMORY}", &placeholder_values::memory},
    {"{SKILLS}", &placeholder_values::skills},
    {"{SENSES}", &placeholder_values::senses},
    {"{CONTEXT}", &placeholder_values::context},
}};

} // namespace

result<std::string> expand(std::string_view text, const placeholder_values& values,
                           std::size_t max_bytes, std::vector<section>* sections) {
  std::string out;
  out.reserve(std::min(text.size(), max_bytes));
  while (!text.empty()) {
    const auto brace = std::min(text.find('{'), text.size());
    std::string_view piece = text.substr(0, brace);
    std::size_t taken = brace;
    if (piece.empty()) {
      piece = text.substr(0, 1);
      taken = 1;
      for (const auto& [name, value] : placeholders) {
        if (text.starts_with(name)) {
          piece = values.*value;
          taken = name.size();
          const bool is_place = name == "{CONTEXT}" || name == "{SKILLS}";
          if (sections != nullptr && (is_place || !piece.empty()))
            sections->push_back({name.substr(1, name.size() - 2), out.size(), piece.size()});
        }
      }
    }
    if (piece.size() > max_bytes - out.size())
      return fail(errc::limit_exceeded,
                  "the expanded text is longer than " + std::to_string(max_bytes) + " bytes", {},
                  "shorten the values of its placeholders, or use fewer placeholders");
    out.append(piece);
    text.remove_prefix(taken);
  }
  return out;
}

} // namespace boyd::plan
