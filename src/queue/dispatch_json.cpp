#include "boyd/queue/dispatch_json.hpp"

#include "../core/json_values.hpp"
#include "boyd/core/limits.hpp"
#include "boyd/core/text.hpp"
#include "boyd/queue/transitions.hpp"
#include "boyd/queue/usage_json.hpp"
#include "usage_object.hpp"

#include <nlohmann/json.hpp>

#include <utility>

namespace boyd::queue {

namespace {

using json = nlohmann::ordered_json;

json time_json(const std::optional<utc_time>& t) {
  return t ? json(format_rfc3339(*t, true)) : json();
}

/// What did not exit by itself has none.
json exit_code_json(std::int64_t code) {
  return code < 0 ? json() : json(code);
}

/// JSON kept as text, as a value; `fallback` when it is empty or damaged.
json value_of(const std::string& text, json fallback) {
  auto value = json::parse(text, nullptr, false);
  return value.is_discarded() ? std::move(fallback) : value;
}

json outcome_json(const run_outcome& o) {
  return {{"execution", name_of(o.execution)},
          {"claim", name_of(o.claim)},
          {"verification", name_of(o.verification)},
          {"failure", name_of(o.failure)},
          {"exit_code", o.exit_code},
          {"summary", sanitize_utf8(o.summary)},
          {"output", sanitize_utf8(o.output)},
          {"output_cut", o.output_cut},
          {"error", sanitize_utf8(o.error)},
          {"session_id", sanitize_utf8(o.session_id)},
          {"usage", usage_json(o.usage)}};
}

/// The enumerator that `object[key]` names; `at` of a missing key throws, as does a wrong type.
template <class F>
auto named(const json& object, const char* key, F from) {
  const auto value = from(object.at(key).get<std::string>());
  if (!value)
    throw json::other_error::create(0, std::string{"unknown "} + key, nullptr);
  return *value;
}

/// The whole number at `key`; one that `Number` cannot hold throws as a wrong type does. The
/// library would convert it, from a fraction or 1e30 without any defined result.
template <class Number>
Number whole(const json& object, const char* key) {
  const auto& value = object.at(key);
  const bool holds =
      value.is_number_unsigned()
          ? std::in_range<Number>(value.get<std::uint64_t>())
          : value.is_number_integer() && std::in_range<Number>(value.get<std::int64_t>());
  if (!holds)
    throw json::other_error::create(0, std::string{"not an integer in range: "} + key, nullptr);
  return value.get<Number>();
}

run_outcome outcome_from(const json& j) {
  run_outcome o;
  o.execution = named(j, "execution", execution_verdict_from);
  o.claim = named(j, "claim", claim_verdict_from);
  o.verification = named(j, "verification", verification_verdict_from);
  o.failure = named(j, "failure", failure_class_from);
  o.exit_code = whole<int>(j, "exit_code");
  o.summary = j.at("summary").get<std::string>();
  o.output = j.at("output").get<std::string>();
  o.output_cut = whole<std::uint64_t>(j, "output_cut");
  o.error = j.at("error").get<std::string>();
  o.session_id = j.at("session_id").get<std::string>();
  o.usage = usage_from(j.at("usage").get<std::string>());
  return o;
}

} // namespace

std::string dispatch_to_json(const dispatch& row, bool with_bodies) {
  const auto& o = row.outcome;
  json j{{"dispatch_id", row.dispatch_id},
         {"kernel_id", row.kernel_id},
         {"cycle_id", row.cycle_id},
         {"agent_id", row.agent_id}};
  if (with_bodies)
    j["prompt"] = row.prompt;
  j["priority"] = row.priority;
  j["status"] = name_of(row.status);
  j["metadata"] = value_of(row.metadata_json, json::object());
  j["attempt"] = row.attempt;
  j["max_attempts"] = row.max_attempts;
  j["not_before"] = format_rfc3339(row.not_before, true);
  j["lease_owner"] = row.lease_owner;
  j["lease_expires_at"] = time_json(row.lease_expires_at);
  j["fence"] = row.fence;
  j["created_at"] = format_rfc3339(row.created_at, true);
  j["started_at"] = time_json(row.started_at);
  j["finished_at"] = time_json(row.finished_at);
  j["session_id"] = o.session_id;
  j["summary"] = o.summary;
  j["error"] = o.error;
  j["usage"] = usage_object(o.usage);
  j["rescues"] = row.rescues;
  j["execution"] = name_of(o.execution);
  j["claim"] = name_of(o.claim);
  j["verification"] = name_of(o.verification);
  j["failure_class"] = name_of(o.failure);
  j["exit_code"] = exit_code_json(o.exit_code);
  j["output_cut"] = o.output_cut;
  if (with_bodies)
    j["output"] = o.output;
  j["attempts"] = value_of(row.attempts_json, json::array());
  for (auto& earlier : j["attempts"]) {
    if (!earlier.is_object())
      continue;
    if (const auto code = earlier.find("exit_code");
        code != earlier.end() && code->is_number_integer())
      *code = exit_code_json(code->get<std::int64_t>());
    if (!with_bodies)
      earlier.erase("output");
  }
  return dump(j);
}

std::string settlement_to_json(const std::string& node_id, const settlement& item) {
  return dump({{"node_id", node_id},
               {"dispatch_id", item.dispatch_id},
               {"fence", item.fence},
               {"to", name_of(item.to)},
               {"delay_ms", item.delay.count()},
               {"outcome", outcome_json(item.outcome)}});
}

result<node_settlement> settlement_from_json(std::string_view line) {
  try {
    const auto j = json::parse(line);
    node_settlement s;
    s.node_id = j.at("node_id").get<std::string>();
    s.item.dispatch_id = j.at("dispatch_id").get<std::string>();
    s.item.fence = whole<std::int64_t>(j, "fence");
    s.item.to = named(j, "to", settle_to_from);
    s.item.delay = milliseconds{whole<std::int64_t>(j, "delay_ms")};
    s.item.outcome = outcome_from(j.at("outcome"));
    return s;
  } catch (const json::exception& e) {
    return fail(errc::parse_error, std::string{"not a settlement: "} + e.what());
  }
}

} // namespace boyd::queue
