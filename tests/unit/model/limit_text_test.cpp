#include "boyd/model/limit_text.hpp"
#include "src/adapters/tz/zones.hpp"
#include "support/pch.hpp"

/// Texts about limits of use, from the field.
namespace boyd::limit_text_test {

using namespace boyd;
using namespace boyd::model;
using kind_t = told_limit::kind_t;

namespace {

constexpr const char* start = "2026-11-29T10:00:00Z"; // a Sunday

/// The machine stands in Berlin.
class zones_in_berlin final : public time_zones {
 public:
  result<std::shared_ptr<const time_zone>> find(const std::string& name) const override {
    return real_->find(name);
  }
  std::shared_ptr<const time_zone> local() const override {
    return real_->find("Europe/Berlin").value();
  }

 private:
  std::shared_ptr<const time_zones> real_ = adapters::make_time_zones();
};

/// The time that the text names; empty: none that lies ahead.
std::string told(const std::string& text, const std::string& now = start) {
  static const zones_in_berlin zones;
  const auto at = parse_rfc3339(now).value();
  const auto found = find_time(text);
  const auto wait = found ? wait_until(*found, at, &zones) : std::nullopt;
  return wait ? format_rfc3339(at + *wait, true) : std::string();
}

std::string whole(const std::string& time) {
  return "2026-" + time + ".000Z";
}

} // namespace

TEST_CASE("field case 20: a wait in words", "[model]") {
  for (const auto& [text, wait] : std::vector<std::pair<std::string, milliseconds>>{
           {"Rate limit reached, try again in 20s", 20s},
           {"Please try again in 8.456s.", 8456ms},
           {"try again in 1m30s", 90s},
           {"please retry in 34.074824224s", 34'075ms},
           {"retry after 2 hours", 2h},
           {"Please retry after 26 seconds.", 26s},
           {"Retry-After: 120", 120s},
           {"retry-after=1.5", 1500ms},
           {"\"retry_after_ms\": 1500", 1500ms},
           {"\"retry_after\":20}", 20s},
           {"\"retryDelay\":\"34s\"", 34s},
           {"\"resets_in_seconds\":3600", 1h},
           {"x-ratelimit-reset-requests: 6m0s", 6min},
           {"wait 1 hour and 5 minutes before the next call", 65min},
           {"Your quota will reset after 3h24m12s.", 3h + 24min + 12s},
           {"try again in 3 days 4 hours 5 minutes", 76h + 5min},
           {"try again in an hour", 1h},
           {"resets in about 45 mins", 45min},
           {"Retry after PT1H30M", 90min},
           {"available again in 250 ms", 250ms}}) {
    INFO(text);
    const auto found = find_time(text);
    REQUIRE(found);
    CHECK(found->wait == wait);
  }
  for (const auto* const none :
       {"try again later", "try again in a few minutes", "Retry 3 of 5 failed", "will not retry",
        "retry in 2 business days", "reset 20", "try again", "resets soon", "try again at 5"}) {
    INFO(none);
    CHECK_FALSE(find_time(none));
  }
}

TEST_CASE("field case 20: a moment, with its zone or in the machine's", "[model]") {
  for (const auto& [text, at] : std::vector<std::pair<std::string, std::string>>{
           {"You've hit your limit · resets 3am (Europe/Berlin)", "11-30T02:00:00"},
           {"You’ve hit your limit ∙ resets 3am (America/New_York)", "11-30T08:00:00"},
           {"resets 3pm (Asia/Kolkata)", "11-30T09:30:00"},
           {"Please try again at 5:30 PM", "11-29T16:30:00"}, // of Berlin
           {"Please try again at 5:30\u202FPM.", "11-29T16:30:00"},
           {"try again at 17:30", "11-29T16:30:00"},
           {"try again at 5:30 p.m. UTC", "11-29T17:30:00"},
           {"resets at 9:00 (UTC+2)", "11-30T07:00:00"},
           {"resets at 09:00 -08:00", "11-29T17:00:00"},
           {"resets 8pm GMT-0530", "11-30T01:30:00"},
           {"resets 8am PST", "11-29T16:00:00"},
           {"resets 8am Pacific Time", "11-29T16:00:00"},
           {"resets at noon UTC", "11-29T12:00:00"},
           {"resets at midnight (UTC)", "11-30T00:00:00"},
           {"resets 11am", "11-29T10:00:00"}, // it is just that
           {"resets tomorrow at 3am UTC", "11-30T03:00:00"},
           {"resets at 2026-12-01T00:00Z", "12-01T00:00:00"},
           {"resets at 2026-12-01T00:00:00.5+02:00", "11-30T22:00:00"},
           {"resets 2026-12-01 06:00:00 UTC", "12-01T06:00:00"},
           {"You will regain access on 2026-12-01 at 00:00 UTC.", "12-01T00:00:00"},
           {"resets on 2026-12-01", "11-30T23:00:00"},
           {"Retry-After: Tue, 01 Dec 2026 00:00:00 GMT", "12-01T00:00:00"},
           {"try again at Nov 30th, 2026 5:30 PM.", "11-30T16:30:00"},
           {"resets Dec 1, 3pm (Europe/Berlin)", "12-01T14:00:00"},
           {"resets 1 December at 12:30 UTC", "12-01T12:30:00"},
           {"Your limit will reset Monday at 9:00 AM (UTC)", "11-30T09:00:00"},
           {"resets Tue 9:00 UTC", "12-01T09:00:00"},
           {"usage limit reached|1796083200", "12-01T00:00:00"},
           {"\"resets_at\":1796083200000", "12-01T00:00:00"}}) {
    INFO(text);
    CHECK(told(text) == (text == "resets 11am" ? std::string() : whole(at)));
  }
  CHECK(told("resets Jan 2 at 3am UTC") == "2027-01-02T03:00:00.000Z");
  // What is over is waited for no longer.
  CHECK(told("Claude AI usage limit reached|1732900000").empty());
  CHECK(told("resets at 2026-11-28T00:00Z").empty());
  CHECK(told("resets 3am (Europe/Berlin)", "2026-11-30T02:00:30Z").empty());
  CHECK(told("resets 3am (Europe/Berlin)", "2026-11-30T02:05:00Z") == whole("12-01T02:00:00"));
  // The hour that is skipped, and the one that comes twice: not before the time told.
  CHECK(told("resets 2:30am (Europe/Berlin)", "2026-03-28T12:00:00Z") == whole("03-29T01:00:00"));
  CHECK(told("resets 2:30am (Europe/Berlin)", "2026-10-24T12:00:00Z") == whole("10-25T01:30:00"));
  // A zone that is not known is the machine's.
  CHECK(told("resets 3pm (Moon/Crater)") == whole("11-29T14:00:00"));
  CHECK(told("resets 25:00").empty());
  CHECK(told("resets Feb 30 at 3am").empty());
}

TEST_CASE("field case 20: what is a limit of use, and what is none", "[model]") {
  for (const auto* const text :
       {"API Error: Rate limit reached", "Claude AI usage limit reached|1732900000",
        "5-hour limit reached ∙ resets 3pm", "You've hit your limit · resets 3am (Europe/Berlin)",
        "You've hit your org's monthly usage limit", "HTTP 429: slow down, please",
        "openai.RateLimitError: Error code: 429 - {}", "You're out of extra usage · resets 3am",
        "You have exhausted your capacity on this model.", "429 Too Many Requests",
        "Weekly limit reached", "[API Error: Resource has been exhausted (e.g. check quota).]",
        "Opus limit reached, resets Dec 1", "server busy, retry in 20s",
        "You have reached your specified API usage limits."}) {
    INFO(text);
    const auto limit = find_limit(text);
    REQUIRE(limit);
    CHECK(limit->kind == kind_t::use);
  }
  for (const auto* const text :
       {"insufficient_quota: You exceeded your current quota", "Your credit balance is too low",
        "Quota exceeded. Check your plan and billing details."}) {
    INFO(text);
    const auto limit = find_limit(text);
    REQUIRE(limit);
    CHECK(limit->kind == kind_t::credit);
  }
  CHECK(find_limit("You exceeded your current quota. Please retry in 34.07s.")->kind ==
        kind_t::use);
  for (const auto* const text :
       {"maximum context length exceeded", "prompt is too long: 210000 tokens > 200000 maximum",
        "turn limit reached", "memory limit exceeded", "the rate limiter test failed",
        "file size limit exceeded", "assertion failed: expected 20, got 429", "no such file",
        "wait until the build is done", "recursion limit reached", ""}) {
    INFO(text);
    CHECK_FALSE(find_limit(text));
  }
}

TEST_CASE("field case 20: an answer that is the notice of a limit", "[model]") {
  for (const auto* const text :
       {"API Error: Rate limit reached", "Claude AI usage limit reached|1732900000",
        "You've hit your limit · resets 3am (Europe/Berlin)", "You’ve hit your session limit",
        "  **5-hour limit reached ∙ resets 3pm** \n", "Rate limit reached"}) {
    INFO(text);
    CHECK(is_limit_notice(text));
  }
  for (const auto* const text :
       {"Rate limit handling is in place: the client waits when it was reached, and tests pass.",
        "I added a retry when the API says 429 Too Many Requests.", "Done.", "",
        "Rate limit reached\nI then did the rest of it."}) {
    INFO(text);
    CHECK_FALSE(is_limit_notice(text));
  }
}

} // namespace boyd::limit_text_test
