#include "boyd/config/secret_shapes.hpp"

#include "boyd/config/redact.hpp"
#include "fuzz/target.hpp"
#include "support/planted_secrets.hpp"

#include <nlohmann/json.hpp>

namespace boyd::fuzz {
namespace {

using nlohmann::json;

constexpr std::string_view mask = "[redacted]";

/// Whether `told` is `text` with masks in place of parts of it: what stands between them stands
/// there in this order, at the begin and at the end, too.
bool only_takes_away(std::string_view text, std::string_view told) {
  if (text == told)
    return true;
  for (bool first = true;; first = false) {
    const auto end = told.find(mask);
    const auto part = told.substr(0, end);
    const auto at = end == std::string_view::npos && text.size() >= part.size()
                        ? text.size() - part.size()
                        : text.find(part);
    if (at == std::string_view::npos || (first && at != 0) || text.substr(at, part.size()) != part)
      return false;
    if (end == std::string_view::npos)
      return true;
    text.remove_prefix(at + part.size());
    told.remove_prefix(end + mask.size());
  }
}

/// The first two bytes: how it was cut, and which secret is planted; the rest is the text.
void run(std::string_view input) {
  reader in{input};
  const auto cut = static_cast<config::cut_at>(in.byte() % 3);
  const auto which = in.byte();
  const std::string text(in.rest());
  const auto told = config::redact_shapes(text, cut);
  require(only_takes_away(text, told), "nothing but secrets is taken, nothing but masks is put in");
  if (text.find_first_of("_-JIz=:Bb") == std::string::npos && cut != config::cut_at::begin)
    require(told == text, "a text without the beginnings of secrets stays as it is");
  if (cut == config::cut_at::nowhere && json::accept(text))
    require(json::accept(told), "JSON stays JSON");
  static const auto secrets = test::secret_maker(4711).all();
  const auto& secret = secrets[which % secrets.size()];
  const auto half = text.size() / 2;
  const auto planted = config::redact_text(
      text.substr(0, half) + "\n " + secret.text + "\n" + text.substr(half), {"a-known-secret"});
  require(!test::shows_part_of(planted, secret.core), "a secret disappears wherever it stands");
}

const registration registered{"secret_shapes", run};

} // namespace
} // namespace boyd::fuzz
