#pragma once

#include <cstddef>
#include <random>
#include <string>
#include <string_view>
#include <vector>

/// Secrets that are none: made anew by each run, so that no file of the tree looks like one.
namespace boyd::test {

/// One secret, as it stands in a text.
struct planted_secret {
  std::string name; ///< of its form
  std::string text; ///< with what tells that it is one
  std::string core; ///< what must be nowhere
};

/// Makes secrets of all forms that are known by their shape.
class secret_maker {
 public:
  explicit secret_maker(unsigned seed) : random_(seed) {}

  /// Letters and digits (and `more`) without order: every fourth is a digit.
  std::string key(std::size_t length, std::string_view more = {}) {
    const std::string letters =
        "abcdefghijkmnopqrstuvwxyzABCDEFGHJKLMNPQRSTUVWXYZ" + std::string(more);
    std::string out;
    for (std::size_t i = 0; i < length; ++i)
      out += i % 4 == 1 ? static_cast<char>('0' + below(10)) : letters[below(letters.size())];
    return out;
  }

  planted_secret with_prefix(const std::string& prefix, std::size_t length,
                             std::string_view more = {}) {
    const auto core = key(length, more);
    return {prefix, prefix + core, core};
  }

  planted_secret aws(const std::string& prefix) {
    std::string core;
    for (int i = 0; i < 16; ++i)
      core += i % 4 == 1 ? static_cast<char>('2' + below(6)) : static_cast<char>('A' + below(26));
    return {prefix, prefix + core, core};
  }

  /// `before` names the value, `after` ends it.
  planted_secret named(const std::string& before, std::size_t length,
                       const std::string& after = {}) {
    const auto core = key(length);
    return {before, before + core + after, core};
  }

  planted_secret pem(const std::string& label, std::size_t lines) {
    std::string body;
    for (std::size_t i = 0; i < lines; ++i)
      body += key(64, "+/") + "\n";
    const auto last = key(22, "+/");
    // "BEGIN" and the dashes apart, so that this file does not hold a key's beginning.
    const std::string dashes(5, '-');
    return {label,
            dashes + "BEGIN " + label + dashes + "\n" + body + last + "==\n" + dashes + "END " +
                label + dashes + "\n",
            body.substr(0, 64)};
  }

  planted_secret web_token() {
    const auto signature = key(43, "-_");
    return {"web token", "ey" + ("JhbGciOiJIUzI1NiJ9." + ("ey" + key(40))) + "." + signature,
            signature};
  }

  /// One of each form.
  std::vector<planted_secret> all() {
    std::vector<planted_secret> out;
    for (const auto* prefix : {"ghp", "gho", "ghu", "ghs", "ghr", "npm"})
      out.push_back(with_prefix(std::string(prefix) + "_", 36));
    out.push_back(with_prefix(std::string("github") + "_pat_", 82, "_"));
    for (const auto* prefix : {"sk", "rk"})
      out.push_back(with_prefix(std::string(prefix) + "_live_", 24));
    out.push_back(with_prefix(std::string("hf") + "_", 34));
    out.push_back(with_prefix(std::string("glpat") + "-", 20, "_-"));
    for (const auto* prefix : {"xoxb", "xoxp", "xoxa", "xapp"})
      out.push_back(with_prefix(std::string(prefix) + "-", 40, "-"));
    out.push_back(with_prefix(std::string("sk") + "-", 48));
    for (const auto* kind : {"proj", "ant-api03", "or-v1"})
      out.push_back(with_prefix(std::string("sk-") + kind + "-", 64));
    out.push_back(with_prefix(std::string("AI") + "za", 35, "-_"));
    out.push_back(with_prefix(std::string("pypi") + "-AgEIcHlwaS5vcmc", 100, "-_"));
    out.push_back(aws("AKIA"));
    out.push_back(aws("ASIA"));
    out.push_back(pem("RSA PRIVATE KEY", 6));
    out.push_back(pem("OPENSSH PRIVATE KEY", 3));
    out.push_back(pem("PGP PRIVATE KEY BLOCK", 4));
    out.push_back(web_token());
    out.push_back(named("Authorization: Bearer ", 32));
    out.push_back(named("authorization: token ", 24));
    out.push_back(named("bearer ", 24));
    out.push_back(named("password=", 20));
    out.push_back(named("DB_PASSWORD='", 24, "'"));
    out.push_back(named("aws_secret_access_key = ", 40));
    out.push_back(named("\"SecretAccessKey\": \"", 40, "\""));
    out.push_back(named("api_key: ", 32));
    out.push_back(named("x-api-key: ", 32));
    out.push_back(named("https://example.org/?access_token=", 32, "&page=2"));
    out.push_back(named("client_secret: \"", 28, "\""));
    out.push_back(named("AccountKey=", 86, "==;"));
    return out;
  }

 private:
  std::size_t below(std::size_t n) {
    return std::uniform_int_distribution<std::size_t>(0, n - 1)(random_);
  }

  std::mt19937 random_;
};

/// Whether some twelve characters in a row of `core` stand in `text`.
inline bool shows_part_of(std::string_view text, std::string_view core) {
  constexpr std::size_t part = 12;
  for (std::size_t at = 0; at + part <= core.size(); at += part / 2)
    if (text.find(core.substr(at, part)) != std::string_view::npos)
      return true;
  return core.size() < part && text.find(core) != std::string_view::npos;
}

} // namespace boyd::test
