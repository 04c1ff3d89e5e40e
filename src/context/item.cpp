#include "boyd/context/item.hpp"

#include "../core/enum_names.hpp"
#include "boyd/core/sha256.hpp"
#include "boyd/core/text.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <utility>

namespace boyd::context {

namespace {

constexpr std::array<std::string_view, 4> type_names{"file", "directory", "runtime", "generated"};
constexpr std::array<std::string_view, 6> semantic_names{"source_code", "config", "log",
                                                         "doc",         "data",   "other"};

struct named_semantic {
  std::string_view ending; ///< of the name, small letters
  semantic what;
};

/// By the end of a file's name; the first that fits.
constexpr std::array endings{
    named_semantic{"cmakelists.txt", semantic::source_code},
    named_semantic{"makefile", semantic::source_code},
    named_semantic{"dockerfile", semantic::source_code},
    named_semantic{".c", semantic::source_code},
    named_semantic{".cc", semantic::source_code},
    named_semantic{".cpp", semantic::source_code},
    named_semantic{".h", semantic::source_code},
    named_semantic{".hpp", semantic::source_code},
    named_semantic{".cs", semantic::source_code},
    named_semantic{".go", semantic::source_code},
    named_semantic{".java", semantic::source_code},
    named_semantic{".js", semantic::source_code},
    named_semantic{".jsx", semantic::source_code},
    named_semantic{".kt", semantic::source_code},
    named_semantic{".lua", semantic::source_code},
    named_semantic{".php", semantic::source_code},
    named_semantic{".pl", semantic::source_code},
    named_semantic{".py", semantic::source_code},
    named_semantic{".rb", semantic::source_code},
    named_semantic{".rs", semantic::source_code},
    named_semantic{".scala", semantic::source_code},
    named_semantic{".sh", semantic::source_code},
    named_semantic{".sql", semantic::source_code},
    named_semantic{".swift", semantic::source_code},
    named_semantic{".ts", semantic::source_code},
    named_semantic{".tsx", semantic::source_code},
    named_semantic{".css", semantic::source_code},
    named_semantic{".html", semantic::source_code},
    named_semantic{".yaml", semantic::config},
    named_semantic{".yml", semantic::config},
    named_semantic{".toml", semantic::config},
    named_semantic{".ini", semantic::config},
    named_semantic{".conf", semantic::config},
    named_semantic{".cfg", semantic::config},
    named_semantic{".env", semantic::config},
    named_semantic{".properties", semantic::config},
    named_semantic{"package.json", semantic::config},
    named_semantic{"tsconfig.json", semantic::config},
    named_semantic{".log", semantic::log},
    named_semantic{".out", semantic::log},
    named_semantic{".md", semantic::doc},
    named_semantic{".rst", semantic::doc},
    named_semantic{".adoc", semantic::doc},
    named_semantic{".tex", semantic::doc},
    named_semantic{".txt", semantic::doc},
    named_semantic{"readme", semantic::doc},
    named_semantic{"license", semantic::doc},
    named_semantic{"changelog", semantic::doc},
    named_semantic{".json", semantic::data},
    named_semantic{".jsonl", semantic::data},
    named_semantic{".csv", semantic::data},
    named_semantic{".tsv", semantic::data},
    named_semantic{".xml", semantic::data},
};

/// Parts of names, small letters.
constexpr std::array<std::string_view, 14> frozen_parts{
    ".env", "secret",      "credential", "password", "id_rsa",     "id_ed25519", ".pem",
    ".key", "production.", ".prod.",     "prod.y",   "kubeconfig", "htpasswd",   ".netrc"};

constexpr double days_of(milliseconds span) {
  return std::chrono::duration<double, std::chrono::days::period>(span).count();
}

double half_after(double half_life_days, milliseconds age) {
  return std::exp2(-std::max(days_of(age), 0.0) / half_life_days);
}

std::string small_name(std::string_view path) {
  auto name = std::string(path.substr(path.rfind('/') + 1));
  std::ranges::transform(name, name.begin(),
                         [](char c) { return c >= 'A' && c <= 'Z' ? char(c - 'A' + 'a') : c; });
  return name;
}

} // namespace

std::string_view name_of(item_type t) noexcept {
  return detail::name_in(type_names, t);
}

std::string_view name_of(semantic s) noexcept {
  return detail::name_in(semantic_names, s);
}

semantic semantic_of(std::string_view path, std::string_view content) {
  const auto name = small_name(path);
  for (const auto& e : endings)
    if (name.ends_with(e.ending))
      return e.what;
  if (content.starts_with("#!"))
    return semantic::source_code;
  if (const auto text = trim(content); text.starts_with('{') || text.starts_with('['))
    return semantic::data;
  return semantic::other;
}

bool is_frozen_name(std::string_view path) {
  const auto name = small_name(path);
  return std::ranges::any_of(frozen_parts, [&](auto part) { return name.find(part) != name.npos; });
}

std::string item_id(std::string_view scope, item_type type, std::string_view path) {
  constexpr std::size_t digits = 16;
  std::string all(scope);
  all.append("\n").append(name_of(type)).append("\n").append(path);
  return "ctx_" + sha256_hex(all).substr(0, digits);
}

std::string_view name_of(standing s) noexcept {
  switch (s) {
  case standing::open:
    return "open";
  case standing::pinned:
    return "pinned";
  case standing::shortened:
    return "shortened";
  case standing::forgotten:
    return "forgotten";
  }
  return "open";
}

double first_confidence(item_type type, bool declared) noexcept {
  constexpr double chosen = 0.7;
  constexpr double found = 0.5;
  constexpr double by_an_agent = 0.4;
  if (type == item_type::generated)
    return by_an_agent;
  return declared && type != item_type::runtime ? chosen : found;
}

double useful_rate(const item_statistics& s) noexcept {
  const auto all = s.verified_useful + s.verified_not_useful;
  return all == 0 ? 0 : static_cast<double>(s.verified_useful) / static_cast<double>(all);
}

double importance(const item_statistics& s, utc_time now) {
  constexpr double of_confidence = 0.5;
  constexpr double of_success = 0.3;
  constexpr double of_use = 0.2;
  constexpr double half_life_days = 30;
  const auto success = static_cast<double>(s.success_count);
  const auto failure = static_cast<double>(s.failure_count);
  return of_confidence * s.confidence + of_success * (success + 1) / (success + failure + 2) +
         of_use * half_after(half_life_days, now - s.last_used.value_or(s.created));
}

double freshness(const item_statistics& s, utc_time now) {
  constexpr double half_life_days = 7;
  const auto newest =
      std::max({s.created, s.last_used.value_or(s.created), s.changed.value_or(s.created)});
  return half_after(half_life_days, now - newest);
}

double declared_score(const item_statistics& s, utc_time now) {
  return importance(s, now) * (1 + std::log(1 + static_cast<double>(s.use_count))) *
         freshness(s, now);
}

} // namespace boyd::context
