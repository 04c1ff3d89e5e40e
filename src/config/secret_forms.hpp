#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

// Forms of keys, as their services document them or issue them (2026):
//   -----BEGIN … PRIVATE KEY-----        RFC 7468 §10, OpenSSH, OpenPGP (PRIVATE KEY BLOCK)
//   AKIA…, ASIA…                         AWS: four letters and 16 of base32
//   ghp_ gho_ ghu_ ghs_ ghr_             GitHub: 36 letters and digits; github_pat_: 82 with '_'
//   glpat-                               GitLab: 20 and more
//   xoxb- xoxp- xoxa- xoxe- xoxr- xoxs- xoxo- xapp-   Slack
//   sk- (sk-proj-, sk-ant-, sk-or-v1-)   OpenAI, Anthropic, OpenRouter, others
//   AIza                                 Google: 35 of base64url
//   sk_live_, rk_live_                   Stripe
//   npm_                                 npm: 36 letters and digits
//   pypi-AgE                             PyPI: a macaroon in base64url
//   hf_                                  Hugging Face: 34 letters
//   eyJ….….…                             JSON web tokens: '{"' in base64url
namespace boyd::config {

/// A key that begins with `prefix`, whose last character is what the scanner stops at.
struct key_form {
  std::string_view prefix;
  std::size_t shortest;  ///< characters after the prefix
  std::size_t different; ///< so many different ones, or it is a placeholder
  bool anywhere = false; ///< the prefix is long enough to be taken in the middle of a word
  bool strong = true;    ///< no other word has the prefix: a part of a key is known by it
};

inline constexpr std::array<key_form, 10> underscore_forms{{{"ghp_", 36, 6},
                                                            {"gho_", 36, 6},
                                                            {"ghu_", 36, 6},
                                                            {"ghs_", 36, 6},
                                                            {"ghr_", 36, 6},
                                                            {"github_pat_", 22, 6, true},
                                                            {"sk_live_", 16, 6, true},
                                                            {"rk_live_", 16, 6, true},
                                                            {"npm_", 36, 6, false, false},
                                                            {"hf_", 30, 8, false, false}}};

inline constexpr std::array<key_form, 10> dash_forms{{{"glpat-", 20, 6, true},
                                                      {"xoxb-", 20, 6},
                                                      {"xoxp-", 20, 6},
                                                      {"xoxa-", 20, 6},
                                                      {"xoxe-", 20, 6},
                                                      {"xoxr-", 20, 6},
                                                      {"xoxs-", 20, 6},
                                                      {"xoxo-", 20, 6},
                                                      {"xapp-", 20, 6},
                                                      {"pypi-", 50, 8, true}}};

/// After "sk-": whose key it is, which no other word has there.
inline constexpr std::array<std::string_view, 4> sk_kinds{"ant-", "or-v1-", "proj-", "svcacct-"};

/// What to look for around a character; most have nothing.
enum class anchor : std::uint8_t { none, underscore, dash, jwt, aws, google, value, bearer };

constexpr std::array<anchor, 256> make_anchors() {
  std::array<anchor, 256> all{};
  all['_'] = anchor::underscore;
  all['-'] = anchor::dash;
  all['J'] = anchor::jwt;
  all['I'] = anchor::aws;
  all['z'] = anchor::google;
  all['='] = anchor::value;
  all[':'] = anchor::value;
  all['B'] = anchor::bearer;
  all['b'] = anchor::bearer;
  return all;
}
inline constexpr std::array<anchor, 256> anchors = make_anchors();

} // namespace boyd::config
