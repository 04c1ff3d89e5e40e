#include "boyd/config/redact.hpp"

#include "boyd/config/secret_shapes.hpp"
#include "boyd/core/text.hpp"
#include "passes.hpp"

#include <algorithm>
#include <array>
#include <tuple>

namespace boyd::config {
namespace {

constexpr std::string_view mask = "[redacted]";
constexpr std::size_t shown_characters = 60;
/// A number of tokens has no more digits.
constexpr std::size_t count_digits = 13;

std::string upper_case(std::string_view text) {
  std::string upper;
  for (const char c : text)
    upper += c >= 'a' && c <= 'z' ? static_cast<char>(c - 'a' + 'A') : c;
  return upper;
}

/// How often it was there.
std::size_t replace_all(std::string& text, std::string_view from, std::string_view to) {
  std::size_t found = 0;
  for (auto at = text.find(from); at != std::string::npos; at = text.find(from, at + to.size())) {
    text.replace(at, from.size(), to);
    ++found;
  }
  return found;
}

} // namespace

bool smells_secret(std::string_view name) {
  const auto upper = upper_case(name);
  for (const auto* tail : {"_FILE", "_PATH", "_DIR", "ENV_PASS"}) {
    if (upper.ends_with(tail)) {
      return false;
    }
  }
  constexpr std::array<std::string_view, 6> smells{"KEY",      "TOKEN", "SECRET",
                                                   "PASSWORD", "PASS",  "CREDENTIAL"};
  for (const auto smell : smells) {
    if (upper.find(smell) != std::string::npos) {
      return true;
    }
  }
  return false;
}

bool smells_secret_header(std::string_view name) {
  const auto upper = upper_case(name);
  return upper.find("AUTH") != std::string::npos || upper.find("COOKIE") != std::string::npos;
}

bool is_count(std::string_view name, std::string_view text) {
  auto rest = upper_case(name);
  const auto at = rest.find("TOKENS");
  if (at == std::string::npos || text.size() > count_digits ||
      text.find_first_not_of("0123456789") != std::string_view::npos)
    return false;
  rest.erase(at, std::string_view("TOKENS").size());
  return !smells_secret(rest);
}

std::string_view uri_password(std::string_view text, std::size_t from) {
  // RFC 3986 §3.2: authority = [ userinfo "@" ] host; it ends at "/", "?", "#" or the end.
  for (auto at = text.find("://", from); at != std::string_view::npos;
       at = text.find("://", at + 1)) {
    auto authority = text.substr(at + 3);
    authority = authority.substr(0, authority.find_first_of("/?# \t\r\n\"'"));
    const auto host = authority.rfind('@');
    const auto colon = authority.find(':');
    if (host != std::string_view::npos && colon < host && host - colon > 1) {
      return authority.substr(colon + 1, host - colon - 1);
    }
  }
  return {};
}

namespace {

std::string redact_known(std::string text, const std::vector<std::string>& secrets,
                         std::vector<hidden_part>* hidden = nullptr) {
  for (std::size_t from = 0;;) {
    const auto password = uri_password(text, from);
    if (password.empty())
      break;
    const auto at = static_cast<std::size_t>(password.data() - text.data());
    from = at + mask.size();
    if (password == mask) // redacted before
      continue;
    if (hidden != nullptr)
      hidden->push_back({std::string(password), false});
    text.replace(at, password.size(), mask);
  }
  for (const auto& secret : secrets) {
    const auto found = replace_all(text, secret, mask);
    if (hidden != nullptr)
      hidden->insert(hidden->end(), found, {secret, true});
  }
  return text;
}

std::string redact_known_at_end(std::string text, const std::vector<std::string>& secrets) {
  text = redact_known(std::move(text), secrets);
  for (const auto& secret : secrets) {
    for (auto n = std::min(secret.size() - 1, text.size()); n >= secret_bytes; --n) {
      if (std::string_view(text).ends_with(std::string_view(secret).substr(0, n))) {
        return text.replace(text.size() - n, n, mask);
      }
    }
  }
  return text;
}

std::string redact_known_at_begin(std::string text, const std::vector<std::string>& secrets) {
  text = redact_known(std::move(text), secrets);
  for (const auto& secret : secrets) {
    for (auto n = std::min(secret.size() - 1, text.size()); n >= secret_bytes; --n) {
      if (std::string_view(text).starts_with(std::string_view(secret).substr(secret.size() - n))) {
        return text.replace(0, n, mask);
      }
    }
  }
  return text;
}

} // namespace

// What is known comes first: where it is a part of a longer word, that word has no known shape.
std::string redact_text(std::string text, const std::vector<std::string>& secrets) {
  return redact_shapes(redact_known(std::move(text), secrets));
}

std::string redact_text(std::string text, const std::vector<std::string>& secrets,
                        std::vector<hidden_part>& hidden) {
  std::vector<std::string> taken;
  text = redact_shapes(redact_known(std::move(text), secrets, &hidden), cut_at::nowhere, &taken);
  for (auto& part : taken)
    hidden.push_back({std::move(part), false});
  return text;
}

std::string redact_cut_end(std::string text, const std::vector<std::string>& secrets) {
  return redact_shapes(redact_known_at_end(std::move(text), secrets), cut_at::end);
}

std::string redact_cut_begin(std::string text, const std::vector<std::string>& secrets) {
  return redact_shapes(redact_known_at_begin(std::move(text), secrets), cut_at::begin);
}

std::vector<std::string> with_secrets(std::vector<std::string> known,
                                      const std::vector<std::string>& more) {
  known.insert(known.end(), more.begin(), more.end());
  // A summary, a log line or a row of a table shows one line of a secret that has several.
  const auto whole = known.size();
  for (std::size_t i = 0; i < whole; ++i) {
    if (known[i].find('\n') == std::string::npos)
      continue;
    const auto text = known[i];
    for (const auto line : split(text, '\n'))
      known.emplace_back(trim(line));
  }
  // Long ones first, so that a secret which contains another one is replaced as a whole.
  std::sort(known.begin(), known.end(), [](const auto& a, const auto& b) {
    return std::tuple(b.size(), a) < std::tuple(a.size(), b);
  });
  known.erase(std::unique(known.begin(), known.end()), known.end());
  std::erase_if(known, [](const auto& s) { return s.size() < secret_bytes; });
  return known;
}

tree redact(tree t, const std::vector<std::string>& secrets) {
  if (t.kind == tree::kind_t::scalar) {
    auto text = t.secret ? std::string(mask) : redact_text(t.text, secrets);
    if (text != t.text) {
      t.text = std::move(text);
      t.plain = false;
    }
    return t;
  }
  for (auto& item : t.items) {
    item = redact(std::move(item), secrets);
  }
  return t;
}

std::string shown(const tree& value) {
  switch (value.kind) {
  case tree::kind_t::sequence:
    return "a list";
  case tree::kind_t::map:
    return "a map";
  case tree::kind_t::scalar:
    break;
  }
  if (value.secret) {
    return std::string(mask);
  }
  if (value.plain && value.text.empty()) {
    return "nothing";
  }
  const auto text = redact_text(value.text, {});
  const auto cut = cut_characters(first_line(text), shown_characters);
  return "\"" + std::string(cut) + (cut.size() < text.size() ? "…\"" : "\"");
}

} // namespace boyd::config
