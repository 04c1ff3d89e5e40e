#include "boyd/queue/transitions.hpp"

#include "../core/json_values.hpp"
#include "boyd/core/text.hpp"
#include "usage_object.hpp"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstring>

namespace boyd::queue {

namespace {

using json = nlohmann::json;

constexpr std::array<std::pair<settle_to, std::string_view>, 5> settle_names{{
    {settle_to::done, "done"},
    {settle_to::failed, "failed"},
    {settle_to::cancelled, "cancelled"},
    {settle_to::retry, "retry"},
    {settle_to::release, "release"},
}};

constexpr const char* cancelled_waiting = "cancelled before it ran";
constexpr const char* cancelled_between = "cancelled while waiting for another attempt";

/// The first attempt_output_bytes, without half a character at their end.
std::string_view beginning_of(std::string_view utf8) {
  if (utf8.size() <= attempt_output_bytes)
    return utf8;
  auto end = attempt_output_bytes;
  constexpr unsigned char mask = 0xC0;
  constexpr unsigned char continuation = 0x80;
  while (end > 0 && (static_cast<unsigned char>(utf8[end]) & mask) == continuation)
    --end;
  return utf8.substr(0, end);
}

/// Appends what the row says about its latest attempt to attempts_json.
void remember_attempt(queue_row& row, std::string_view to, utc_time now) {
  const auto& d = row.d;
  const auto kept = beginning_of(d.outcome.output);
  // What it read is in the execution's record.
  auto usage = d.outcome.usage;
  usage.reading.reset();
  json entry{{"attempt", d.attempt},
             {"fence", d.fence},
             {"node", row.last_owner},
             {"started_at", d.started_at ? json(format_rfc3339(*d.started_at, true)) : json()},
             {"ended_at", format_rfc3339(d.finished_at.value_or(now), true)},
             {"to", to},
             {"execution", name_of(d.outcome.execution)},
             {"claim", name_of(d.outcome.claim)},
             {"verification", name_of(d.outcome.verification)},
             {"failure", name_of(d.outcome.failure)},
             {"exit_code", d.outcome.exit_code},
             {"summary", d.outcome.summary},
             {"error", d.outcome.error},
             {"usage", usage_object(usage)},
             {"output", kept},
             {"output_cut", d.outcome.output_cut + d.outcome.output.size() - kept.size()}};
  auto all = json::parse(d.attempts_json, nullptr, false);
  if (!all.is_array())
    all = json::array();
  // Given back time and again, it must not wash out what was attempted.
  if (to == name_of(settle_to::release) && !all.empty() && all.back().is_object() &&
      text_in(all.back(), "to") == to && number_in(all.back(), "attempt") == d.attempt)
    all.erase(all.size() - 1);
  while (all.size() >= max_attempt_records)
    all.erase(all.begin());
  all.push_back(std::move(entry));
  row.d.attempts_json = all.dump(-1, ' ', false, json::error_handler_t::replace);
}

void drop_lease(dispatch& d) {
  d.lease_owner.clear();
  d.lease_expires_at.reset();
}

/// Without a delay it is due whatever the time is, as one that has just come in (not_before is
/// created_at): a clock that is set back must not keep it waiting. A delay always stands behind
/// that.
void back_to_pending(dispatch& d, utc_time now, milliseconds delay = milliseconds{0}) {
  d.status = dispatch_status::pending;
  d.not_before = delay > milliseconds{0} ? std::max(now, d.created_at) + delay : d.created_at;
  d.started_at.reset();
  d.finished_at.reset();
  drop_lease(d);
}

void finish(dispatch& d, dispatch_status status, utc_time now) {
  d.status = status;
  d.finished_at = now;
  drop_lease(d);
}

/// Most texts are plain ASCII, which is looked at eight bytes at a time and left as it is.
bool is_plain(std::string_view text) noexcept {
  constexpr std::uint64_t ones = 0x0101010101010101;
  constexpr std::uint64_t highs = 0x8080808080808080;
  std::uint64_t word = 0;
  for (; text.size() >= sizeof word; text.remove_prefix(sizeof word)) {
    std::memcpy(&word, text.data(), sizeof word);
    // A byte that is zero borrows into its high bit, one beyond ASCII has it set.
    if ((((word - ones) | word) & highs) != 0)
      return false;
  }
  return std::all_of(text.begin(), text.end(), [](char c) { return c > 0; });
}

void sanitize(std::string& text) {
  if (!is_plain(text))
    text = sanitize_utf8(text);
}

/// So much of a word that is not understood is quoted.
constexpr std::size_t quoted_bytes = 64;

void add_damage(std::string& damage, std::string_view what) {
  damage += damage.empty() ? "" : "; ";
  damage += what;
}

/// What keeps a row from being run; empty when nothing does.
std::string damage_of(const queue_row& row) {
  std::string damage = row.damage;
  if (!is_metadata(row.d.metadata_json))
    add_damage(damage, "its metadata is not a JSON object");
  if (row.d.attempts_json != "[]" &&
      !(row.d.attempts_json.starts_with('[') && json::accept(row.d.attempts_json)))
    add_damage(damage, "its attempts are not a JSON list");
  return damage;
}

run_outcome clean(const run_outcome& from) {
  auto o = from;
  for (auto* text : {&o.summary, &o.output, &o.error, &o.session_id})
    sanitize(*text);
  each_text(o.usage, sanitize);
  return o;
}

} // namespace

queue_row new_row(const dispatch_spec& spec, utc_time now) {
  queue_row row;
  auto& d = row.d;
  d.dispatch_id = spec.dispatch_id;
  d.kernel_id = spec.kernel_id;
  d.cycle_id = spec.cycle_id;
  d.agent_id = spec.agent_id;
  d.prompt = spec.prompt;
  sanitize(d.prompt);
  d.priority = spec.priority;
  d.max_attempts = spec.max_attempts;
  d.metadata_json = spec.metadata_json;
  d.created_at = now;
  d.not_before = now + std::max(spec.delay, milliseconds{0});
  return row;
}

void claim_row(queue_row& row, const std::string& node_id, milliseconds lease, utc_time now) {
  auto& d = row.d;
  d.status = dispatch_status::running;
  d.fence += 1;
  d.attempt += 1;
  d.lease_owner = node_id;
  d.lease_expires_at = now + lease;
  d.started_at = now;
  d.outcome = run_outcome{};
  row.last_owner = node_id;
  if (const auto damage = damage_of(row); !damage.empty()) {
    d.outcome.failure = failure_class::deterministic;
    d.outcome.error = "its row is unreadable and was not run: " + damage +
                      "; it was written by a newer version, or is damaged: upgrade or fix the row, "
                      "then run `boyd dispatches retry`";
    d.outcome.summary = d.outcome.error;
  }
}

std::optional<run_outcome> refusal_of(const dispatch& claimed) {
  if (claimed.outcome.failure == failure_class::none)
    return std::nullopt;
  return claimed.outcome;
}

void note_unknown(queue_row& row, std::string_view column, std::string_view word) {
  add_damage(row.damage, "its " + std::string(column) + " \"" +
                             sanitize_utf8(word.substr(0, quoted_bytes)) +
                             "\" is not known to this version");
}

settle_result settle_row(queue_row& row, const std::string& node_id, const settlement& item,
                         utc_time now) {
  auto& d = row.d;
  if (item.fence == row.settled_fence) {
    // Of its newest fence the row knows whose it was. Of an earlier one it does not, once it has
    // been claimed again: then a repeat is believed, which changes nothing.
    const bool knows_who = d.fence == item.fence;
    return knows_who && row.last_owner != node_id ? settle_result::stale
                                                  : settle_result::already_settled;
  }
  // The fence alone does not do: two nodes can have the same one when a database that took over
  // had not received the first one's claim.
  if (!holds(row, node_id, item.fence))
    return settle_result::stale;
  d.outcome = clean(item.outcome);
  row.settled_fence = item.fence;
  switch (item.to) {
  case settle_to::done:
    finish(d, dispatch_status::done, now);
    break;
  case settle_to::failed:
    finish(d, dispatch_status::failed, now);
    break;
  case settle_to::cancelled:
    finish(d, dispatch_status::cancelled, now);
    break;
  case settle_to::retry:
    remember_attempt(row, name_of(item.to), now);
    back_to_pending(d, now, item.delay);
    break;
  case settle_to::release:
    remember_attempt(row, name_of(item.to), now);
    d.attempt = std::max(0, d.attempt - 1);
    back_to_pending(d, now, item.delay);
    break;
  }
  return settle_result::accepted;
}

bool rescue_row(queue_row& row, int max_rescues, utc_time now) {
  auto& d = row.d;
  d.outcome = run_outcome{};
  d.outcome.execution = execution_verdict::indeterminate;
  d.rescues += 1;
  if (d.rescues > max_rescues) {
    d.outcome.failure = failure_class::deterministic;
    d.outcome.error = "failed: its node was lost in " + std::to_string(d.rescues) +
                      " attempts; to run it again: boyd dispatches retry";
    finish(d, dispatch_status::failed, now);
    return true;
  }
  d.outcome.error = "its node was lost during the run";
  remember_attempt(row, "rescue", now);
  d.attempt = std::max(0, d.attempt - 1);
  back_to_pending(d, now);
  return false;
}

store::retry_dispatch::reply retry_row(queue_row& row, utc_time now) {
  auto& d = row.d;
  const auto was = d.status;
  if (was == dispatch_status::pending)
    return {settle_result::already_settled, was};
  if (was == dispatch_status::running)
    return {settle_result::stale, was};
  remember_attempt(row, name_of(was), now);
  d.attempt = 0;
  d.rescues = 0;
  back_to_pending(d, now);
  return {settle_result::accepted, was};
}

store::cancel_dispatch::reply cancel_row(queue_row& row, utc_time now, std::string_view cause) {
  auto& d = row.d;
  const auto was = d.status;
  if (is_final(was))
    return {settle_result::already_settled, was, d.fence, {}};
  if (was == dispatch_status::running)
    return {settle_result::stale, was, d.fence, d.lease_owner};
  d.outcome = run_outcome{};
  d.outcome.execution = execution_verdict::cancelled;
  d.outcome.error = d.fence > 0 ? cancelled_between : cancelled_waiting;
  if (!cause.empty())
    d.outcome.error += ": " + std::string(cause);
  finish(d, dispatch_status::cancelled, now);
  return {settle_result::accepted, was, d.fence, {}};
}

std::string unknown_status(std::string_view word) {
  return "its status \"" + sanitize_utf8(word) +
         "\" is unknown to this version; it was written by a newer version; to run it: boyd "
         "dispatches retry";
}

bool holds(const queue_row& row, const std::string& node_id, std::int64_t fence) {
  return row.d.status == dispatch_status::running && row.d.fence == fence &&
         row.d.lease_owner == node_id;
}

std::string_view name_of(settle_to to) noexcept {
  for (const auto& [value, name] : settle_names)
    if (value == to)
      return name;
  return "failed";
}

std::optional<settle_to> settle_to_from(std::string_view name) noexcept {
  for (const auto& [value, text] : settle_names)
    if (text == name)
      return value;
  return std::nullopt;
}

} // namespace boyd::queue
