#include "actors/gateway/state.hpp"
#include "boyd/core/text.hpp"
#include "boyd/faults/points.hpp"
#include "boyd/ports/entropy.hpp"
#include "src/core/json_values.hpp"

#include <spdlog/spdlog.h>

#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace boyd::gateway_impl {

namespace {

constexpr const char* body_place = "body";

error wrong_type(const char* key, const char* expected) {
  return {errc::invalid_argument, std::string(key) + " is not " + expected, body_place, {}};
}

/// Reads a member when it is there.
template <class Number>
result<void> read_number(const json& body, const char* key, Number& to) {
  const auto it = body.find(key);
  if (it == body.end())
    return {};
  if constexpr (std::is_floating_point_v<Number>) {
    if (!it->is_number())
      return fail(wrong_type(key, "a number"));
  } else {
    const bool fits = it->is_number_unsigned() ? std::in_range<Number>(it->get<std::uint64_t>())
                                               : it->is_number_integer() &&
                                                     std::in_range<Number>(it->get<std::int64_t>());
    if (!fits)
      return fail(wrong_type(key, "a whole number in its range"));
  }
  to = it->get<Number>();
  return {};
}

result<void> read_numbers(const json& body, faults::arming& a) {
  if (auto ok = read_number(body, "count", a.count); !ok)
    return ok;
  a.count = faults::count_of_strikes(a.count);
  if (auto ok = read_number(body, "probability", a.probability); !ok)
    return ok;
  if (auto ok = read_number(body, "after", a.after); !ok)
    return ok;
  if (auto ok = read_number(body, "every", a.every); !ok)
    return ok;
  std::int64_t delay = 0;
  if (auto ok = read_number(body, "delay_ms", delay); !ok)
    return ok;
  a.delay = milliseconds{delay};
  if (!body.contains("seed"))
    return {};
  std::uint64_t seed = 0;
  if (auto ok = read_number(body, "seed", seed); !ok)
    return ok;
  a.seed = seed;
  return {};
}

result<faults::arming> read_arming(const std::string& text) {
  static const std::vector<std::string_view> keys{"action", "after", "count",       "delay_ms",
                                                  "every",  "point", "probability", "seed"};
  const auto body = json::parse(text, nullptr, false);
  if (!body.is_object())
    return fail(errc::parse_error, "the body must be a JSON object", body_place);
  for (const auto& [key, value] : body.items()) {
    if (std::ranges::find(keys, key) != keys.end())
      continue;
    const auto near = nearest(key, keys);
    return fail(errc::invalid_argument, "no such key: " + key, body_place,
                near.empty() ? std::string{} : "did you mean " + std::string(near) + "?");
  }
  if (!part_in(body, "point").is_string() || !part_in(body, "action").is_string())
    return fail(wrong_type("point, or action,", "a text"));
  faults::arming a;
  a.by = faults::origin::command;
  a.point = body["point"].get<std::string>();
  const auto name = body["action"].get<std::string>();
  const auto what = faults::action_of(name);
  if (!what)
    return fail(errc::invalid_argument, "no such action: " + name, body_place,
                "crash, error, delay, drop or corrupt");
  a.what = *what;
  if (auto ok = read_numbers(body, a); !ok)
    return fail(std::move(ok.error()));
  return a;
}

json to_json(const faults::armed_fault& f) {
  json row{{"point", f.what.point},
           {"action", faults::name_of(f.what.what)},
           {"count", f.what.count},
           {"probability", f.what.probability},
           {"delay_ms", f.what.delay.count()},
           {"after", f.what.after},
           {"every", f.what.every},
           {"seed", nullptr},
           {"by", faults::name_of(f.what.by)},
           {"passes", f.passes},
           {"strikes", f.strikes},
           {"armed", !f.spent}};
  if (f.what.seed)
    row["seed"] = *f.what.seed;
  return row;
}

/// Off unless the node was started with it: a reload cannot switch it on.
bool is_allowed(const gateway_parts& p) {
  return !p.context->passive && p.started_with->node_settings.chaos;
}

} // namespace

json armed_faults() {
  json rows = json::array();
  for (const auto& f : faults::armed())
    rows.push_back(to_json(f));
  return rows;
}

void get_chaos(exchange_ptr x) {
  x->reply("chaos", {{"allowed", is_allowed(x->self->state.parts)}, {"faults", armed_faults()}});
}

void inject_fault(exchange_ptr x) {
  const auto& p = x->self->state.parts;
  if (!is_allowed(p))
    return x->fail_with({errc::refused, "fault injection is not enabled in this node", "node.chaos",
                         "set node: {chaos: true} in the configuration and restart the node"});
  auto a = read_arming(x->request.body);
  if (!a)
    return x->fail_with(a.error());
  if (auto armed = faults::arm({*a}, p.context->ports.random->next()); !armed)
    return x->fail_with(armed.error());
  get_chaos(x);
}

/// Allowed always: it only makes the node well.
void clear_faults(exchange_ptr x) {
  const auto before = faults::armed().size();
  faults::disarm();
  spdlog::warn("fault points: all faults removed by boyd chaos ({})", before);
  x->reply("chaos", {{"allowed", is_allowed(x->self->state.parts)},
                     {"cleared", before},
                     {"faults", armed_faults()}});
}

} // namespace boyd::gateway_impl
