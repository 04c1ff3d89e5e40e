#include "usage.hpp"

#include "json.hpp"

#include <algorithm>
#include <limits>
#include <string>

namespace boyd::model {
namespace {

using nlohmann::json;

constexpr std::size_t bytes_per_token = 4;
/// Of a request: the provider's own instructions and marks.
constexpr std::size_t added_by_providers = 16u << 10;
/// Reasoning may not count for a request's limit of tokens.
constexpr std::int64_t least_output_cap = 100'000;
/// Without a limit in the request; no model answers with more.
constexpr std::int64_t longest_answer = 1'000'000;
/// Of one figure, as it is told to people.
constexpr std::int64_t most_told = 1'000'000'000'000;
/// Prices are per so many tokens.
constexpr std::int64_t price_unit = 1'000'000;
constexpr std::int64_t unpayable = std::numeric_limits<std::int64_t>::max();

std::int64_t first_count(const json& from, std::initializer_list<const char*> keys) {
  for (const char* key : keys)
    if (const auto count = count_of(from, key))
      return *count;
  return 0;
}

/// A number of another object inside, e.g. prompt_tokens_details.cached_tokens.
std::int64_t detail_count(const json& from, std::initializer_list<const char*> objects,
                          const char* key) {
  for (const char* object : objects)
    if (const auto* details = member(from, object))
      if (const auto count = count_of(*details, key))
        return *count;
  return 0;
}

/// A running sum of tokens times prices that stays at the largest number instead of overflowing.
class bill {
 public:
  void add(std::int64_t tokens, std::int64_t price) {
    tokens = std::max<std::int64_t>(tokens, 0);
    price = std::max<std::int64_t>(price, 0);
    std::int64_t whole = 0;
    std::int64_t part = 0;
    if (__builtin_mul_overflow(tokens / price_unit, price, &whole) ||
        __builtin_add_overflow(whole_, whole, &whole_) ||
        __builtin_mul_overflow(tokens % price_unit, price, &part) ||
        __builtin_add_overflow(parts_, part, &parts_))
      over_ = true;
  }

  std::int64_t rounded_up() const {
    const std::int64_t rest = parts_ / price_unit + (parts_ % price_unit == 0 ? 0 : 1);
    std::int64_t sum = 0;
    return over_ || __builtin_add_overflow(whole_, rest, &sum) ? unpayable : sum;
  }

 private:
  std::int64_t whole_ = 0;
  std::int64_t parts_ = 0; ///< in millionths of `whole_`
  bool over_ = false;
};

} // namespace

std::optional<usage> read_usage(const json& answer) {
  const auto* found = member(answer, "usage");
  if (!found || !found->is_object()) {
    const auto* groq = member(answer, "x_groq");
    found = groq ? member(*groq, "usage") : nullptr;
  }
  if (!found || !found->is_object() || found->empty())
    return std::nullopt;
  usage out;
  out.reported = true;
  out.input = first_count(*found, {"prompt_tokens", "input_tokens"});
  out.output = first_count(*found, {"completion_tokens", "output_tokens"});
  out.reasoning = detail_count(*found, {"completion_tokens_details", "output_tokens_details"},
                               "reasoning_tokens");
  // DeepSeek and Moonshot name the cache beside the details.
  out.cached = std::max(
      detail_count(*found, {"prompt_tokens_details", "input_tokens_details"}, "cached_tokens"),
      first_count(*found, {"prompt_cache_hit_tokens", "cached_tokens"}));
  // Gemini and xAI leave reasoning out of completion_tokens, but not out of the total (and the
  // bill).
  const auto total = first_count(*found, {"total_tokens"});
  if (total > out.input + out.output) {
    out.reasoning = std::max(out.reasoning, total - out.input - out.output);
    out.output = total - out.input;
  }
  out.cached = std::min(out.cached, out.input);
  out.reasoning = std::min(out.reasoning, out.output);
  return out;
}

std::int64_t tokens_of_bytes(std::size_t bytes) noexcept {
  return static_cast<std::int64_t>((bytes + bytes_per_token - 1) / bytes_per_token);
}

std::int64_t estimate_tokens(std::string_view text) noexcept {
  return tokens_of_bytes(text.size());
}

std::int64_t cost_of(const config::provider& p, const std::string& model, const usage& u) noexcept {
  auto found = p.prices.find(model);
  if (found == p.prices.end())
    found = p.prices.find("*");
  if (found == p.prices.end())
    return 0;
  const auto cached = std::clamp<std::int64_t>(u.cached, 0, std::max<std::int64_t>(u.input, 0));
  bill sum;
  sum.add(u.input - cached, found->second.input);
  sum.add(cached, found->second.cached_input);
  sum.add(u.output, found->second.output);
  return sum.rounded_up();
}

std::string cap_usage(usage& used, std::size_t request_bytes, std::int64_t output_limit) {
  const auto most_input = static_cast<std::int64_t>(request_bytes + added_by_providers);
  const auto most_output =
      output_limit > 0 ? std::max(2 * output_limit, least_output_cap) : longest_answer;
  if (used.input <= most_input && used.output <= most_output)
    return {};
  const auto told = [](std::int64_t n) {
    return std::to_string(std::clamp<std::int64_t>(n, 0, most_told));
  };
  const auto reported = told(used.input) + " input and " + told(used.output) + " output tokens";
  used.input = std::min(used.input, most_input);
  used.output = std::min(used.output, most_output);
  used.cached = std::min(used.cached, used.input);
  used.reasoning = std::min(used.reasoning, used.output);
  return "the provider reported " + reported + ", more than the call can have used; counted as " +
         std::to_string(used.input) + " and " + std::to_string(used.output);
}

} // namespace boyd::model
