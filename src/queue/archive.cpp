#include "boyd/queue/archive.hpp"

#include "boyd/core/text.hpp"

#include <nlohmann/json.hpp>

#include <cmath>
#include <cstdint>
#include <optional>
#include <type_traits>

namespace boyd::queue {

namespace {

using json = nlohmann::json;
using kind = store::archive_column::kind;

/// Up to here each integer is a double of its own.
constexpr double exact_integers = 9007199254740992.0;

/// A database may write 1e3 as 1000, or 1000.0.
void settle_numbers(json& value) {
  if (value.is_structured()) {
    for (auto& each : value)
      settle_numbers(each);
    return;
  }
  if (!value.is_number_float())
    return;
  const auto number = value.get<double>();
  if (std::abs(number) < exact_integers && std::trunc(number) == number)
    value = static_cast<std::int64_t>(number);
}

template <class Column>
store::archive_column archived(const Column& c, const char* name) {
  if (c.form.json)
    return {name, kind::json};
  using value = typename Column::value;
  const bool is_number = std::is_integral_v<value> || std::is_same_v<value, utc_time> ||
                         std::is_same_v<value, std::optional<utc_time>>;
  return {name, is_number ? kind::integer : kind::text};
}

std::vector<store::archive_column> columns_of_dispatches() {
  std::vector<store::archive_column> all{{"dispatch_id"}, {"kernel_id"}, {"agent_id"}};
  for_each_column(columns_of_request, [&](const auto& c) { all.push_back(archived(c, c.name)); });
  all.push_back(archived(prompt_column, prompt_column.name));
  all.insert(all.end(), {{"owner"},
                         {"lease_expires_at", kind::integer},
                         {"lease_started_at", kind::integer},
                         {"lease_fence", kind::integer},
                         {"lease_attempt", kind::integer}});
  for_each_column(columns_of_result, [&](const auto& c) {
    all.push_back(archived(c, c.form.as_requested ? "result_not_before" : c.name));
  });
  all.push_back(archived(output_column, output_column.name));
  return all;
}

std::vector<store::archive_section> make_sections() {
  return {
      {"dispatches", 1, columns_of_dispatches()},
      {"occurrences",
       2,
       {{"kernel_id"},
        {"scheduled_at", kind::integer},
        {"trigger"},
        {"state"},
        {"late", kind::boolean},
        {"reason"},
        {"cycle_id"},
        {"node_id"},
        {"created_at", kind::integer},
        {"finished_at", kind::integer}}},
      {"cycles",
       1,
       {{"cycle_id"},
        {"kernel_id"},
        {"scheduled_at", kind::integer},
        {"status"},
        {"dispatched", kind::integer},
        {"succeeded", kind::integer},
        {"failed", kind::integer},
        {"failed_agents", kind::json},
        {"agents", kind::json},
        {"duration_ms", kind::integer},
        {"error"},
        {"started_at", kind::integer},
        {"finished_at", kind::integer},
        {"node_id"},
        {"no", kind::integer}}},
      {"decisions",
       3,
       {{"kernel_id"},
        {"cycle_id"},
        {"agent_id"},
        {"decided_at", kind::integer},
        {"dispatched", kind::boolean},
        {"reason"},
        {"detail"}}},
      {"pauses", 2, {{"kernel_id"}, {"agent_id"}, {"reason"}, {"since", kind::integer}}},
      {"facts", 2, {{"scope"}, {"key"}, {"value"}}},
      {"nodes",
       1,
       {{"node_id"},
        {"host"},
        {"pid", kind::integer},
        {"first_seen", kind::integer},
        {"last_seen", kind::integer}}},
      {"spend",
       1,
       {{"call_id"},
        {"day"},
        {"created_at", kind::integer},
        {"settled_at", kind::integer},
        {"dispatch_id"},
        {"kernel_id"},
        {"agent_id"},
        {"provider_id"},
        {"model"},
        {"input", kind::integer},
        {"cached", kind::integer},
        {"output", kind::integer},
        {"reasoning", kind::integer},
        {"cost", kind::integer},
        {"scopes", kind::names},
        {"released_at", kind::integer},
        {"released_by"},
        {"release_reason"},
        {"released_tokens", kind::integer},
        {"released_cost", kind::integer}}},
      {"spend_totals", 2, {{"day"}, {"scope"}, {"tokens", kind::integer}, {"cost", kind::integer}}},
      {"approvals",
       1,
       {{"approval_id"},
        {"kernel_id"},
        {"agent_id"},
        {"dispatch_id"},
        {"tool"},
        {"arguments_sha256"},
        {"workspace"},
        {"before_sha256"},
        {"shown"},
        {"matter"},
        {"hash"},
        {"reason"},
        {"node_id"},
        {"fence", kind::integer},
        {"held", kind::integer},
        {"state"},
        {"created_at", kind::integer},
        {"expires_at", kind::integer},
        {"decided_at", kind::integer},
        {"decided_by"},
        {"note"},
        {"ended_at", kind::integer},
        {"decision_id"},
        {"use_id"},
        {"lines", kind::integer}}},
      {"approval_trail",
       2,
       {{"approval_id"},
        {"number", kind::integer},
        {"at", kind::integer},
        {"what"},
        {"outcome"},
        {"by_whom"},
        {"detail"}}}};
}

} // namespace

const std::vector<store::archive_section>& archive_sections() {
  static const auto all = make_sections();
  return all;
}

std::string archive_value(const store::archive_column& column, std::string_view text) {
  using kind = store::archive_column::kind;
  if (column.type != kind::json && column.type != kind::names)
    return sanitize_utf8(text);
  auto value = json::parse(text, nullptr, false);
  if (value.is_discarded())
    return sanitize_utf8(text);
  settle_numbers(value);
  return value.dump(-1, ' ', false, json::error_handler_t::replace);
}

std::string line_of(const store::archive_row& row) {
  json line = json::array();
  for (const auto& value : row)
    line.push_back(value ? json(*value) : json(nullptr));
  return line.dump(-1, ' ', false, json::error_handler_t::replace);
}

} // namespace boyd::queue
