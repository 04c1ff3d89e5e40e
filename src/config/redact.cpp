#include "boyd/config/redact.hpp"

#include "boyd/core/text.hpp"
#include "passes.hpp"

#include <algorithm>
#include <array>

namespace boyd::config {
namespace {

constexpr std::string_view mask = "[redacted]";
constexpr std::size_t shown_characters = 60;

void replace_all(std::string& text, std::string_view from, std::string_view to) {
  for (auto at = text.find(from); at != std::string::npos; at = text.find(from, at + to.size())) {
    text.replace(at, from.size(), to);
  }
}

} // namespace

bool smells_secret(std::string_view name) {
  std::string upper;
  for (const char c : name) {
    upper += c >= 'a' && c <= 'z' ? static_cast<char>(c - 'a' + 'A') : c;
  }
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

std::string redact_text(std::string text, const std::vector<std::string>& secrets) {
  for (auto password = uri_password(text); !password.empty() && password != mask;) {
    const auto at = static_cast<std::size_t>(password.data() - text.data());
    text.replace(at, password.size(), mask);
    password = uri_password(text, at + mask.size());
  }
  for (const auto& secret : secrets) {
    replace_all(text, secret, mask);
  }
  return text;
}

std::string redact_cut_end(std::string text, const std::vector<std::string>& secrets) {
  text = redact_text(std::move(text), secrets);
  for (const auto& secret : secrets) {
    for (auto n = std::min(secret.size() - 1, text.size()); n >= secret_bytes; --n) {
      if (std::string_view(text).ends_with(std::string_view(secret).substr(0, n))) {
        return text.replace(text.size() - n, n, mask);
      }
    }
  }
  return text;
}

std::string redact_cut_begin(std::string text, const std::vector<std::string>& secrets) {
  text = redact_text(std::move(text), secrets);
  for (const auto& secret : secrets) {
    for (auto n = std::min(secret.size() - 1, text.size()); n >= secret_bytes; --n) {
      if (std::string_view(text).starts_with(std::string_view(secret).substr(secret.size() - n))) {
        return text.replace(0, n, mask);
      }
    }
  }
  return text;
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
