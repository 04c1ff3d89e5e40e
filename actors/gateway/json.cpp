#include "actors/gateway/state.hpp"
#include "actors/support/ask.hpp"
#include "boyd/config/redact.hpp"
#include "boyd/config/secret_shapes.hpp"
#include "boyd/queue/dispatch_json.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <utility>

namespace boyd::gateway_impl {

json to_json(const std::optional<utc_time>& t) {
  return t ? json(format_rfc3339(*t, true)) : json(nullptr);
}

std::string summary_line(const cycle_record& c) {
  std::string line;
  for (const auto& a : c.agents)
    line += (line.empty() ? "" : " | ") + a.agent_id + "[" + a.status + "]: " + a.summary;
  return line;
}

json to_json(const cycle_record& c) {
  json agents = json::array();
  for (const auto& a : c.agents)
    agents.push_back({{"agent_id", a.agent_id}, {"status", a.status}, {"summary", a.summary}});
  return {{"cycle_id", c.cycle_id},
          {"kernel_id", c.kernel_id},
          {"status", name_of(c.status)},
          {"dispatched", c.dispatched},
          {"succeeded", c.succeeded},
          {"failed", c.failed},
          {"failed_agents", c.failed_agents},
          {"agent_summary", summary_line(c)},
          {"duration_ms", c.duration_ms},
          {"error", c.error},
          {"scheduled_at", to_json(std::optional(c.scheduled_at))},
          {"started_at", to_json(std::optional(c.started_at))},
          {"finished_at", to_json(c.finished_at)},
          {"node_id", c.node_id},
          {"agents", std::move(agents)}};
}

json to_json(const dispatch& d, bool with_bodies) {
  return json::parse(queue::dispatch_to_json(d, with_bodies), nullptr, false);
}

json to_json(const agent_decision& d) {
  return {{"agent_id", d.agent_id},
          {"dispatched", d.dispatched},
          {"reason", d.reason},
          {"detail", d.detail}};
}

json error_body(const error& e) {
  return {{"schema", "boyd.error/1"},
          {"error",
           {{"code", name_of(e.code)}, {"what", e.what}, {"where", e.where}, {"next", e.next}}}};
}

namespace {

/// Where answers have free text that may hold a secret of the configuration: the database keeps
/// prompts and metadata as they are, for they must run again, rows of earlier programs were not
/// redacted, and agents write files. Ids and names are given as they are, unless they have the
/// shape of a secret.
constexpr std::array<std::string_view, 14> free_texts{
    "prompt",        "metadata", "summary",   "output", "error", "last_error", "attempts",
    "agent_summary", "detail",   "sentences", "what",   "text",  "diff",       "description"};

void redact_all(json& value, const std::vector<std::string>& secrets) {
  if (value.is_string())
    value = config::redact_text(value.get<std::string>(), secrets);
  else if (value.is_structured())
    for (auto& item : value)
      redact_all(item, secrets);
}

json redacted(json value, const std::vector<std::string>& secrets) {
  if (value.is_object())
    for (auto& [key, item] : value.items())
      if (std::ranges::find(free_texts, key) != free_texts.end())
        redact_all(item, secrets);
      else
        item = redacted(std::move(item), secrets);
  else if (value.is_array())
    for (auto& item : value)
      item = redacted(std::move(item), secrets);
  else if (value.is_string())
    value = config::redact_shapes(value.get<std::string>());
  return value;
}

/// Texts of agents may hold any bytes; JSON may not.
std::string dump(const json& body) {
  return body.dump(-1, ' ', false, json::error_handler_t::replace);
}

} // namespace

gateway_state::~gateway_state() {
  for (const auto& x : open)
    x->fail_with({errc::actor_down, "the gateway is being restarted", "gateway", "try again"});
}

api_response exchange::composed(int status, json body, const std::string& allow) const {
  api_response response;
  response.status = status;
  response.allow = allow;
  response.body = dump(configuration ? redacted(std::move(body), configuration->secrets) : body);
  return response;
}

api_response exchange::response(const std::string& verb, json body, int status) const {
  body["schema"] = "boyd." + verb + "/1";
  return composed(status, std::move(body));
}

void exchange::respond(api_response response) {
  if (!std::exchange(answered, true))
    answer<api_response>(promise, std::move(response));
}

void exchange::reply(const std::string& verb, json body, int status) {
  if (left())
    return respond(api_response{});
  respond(response(verb, std::move(body), status));
}

void exchange::reply_as(api_response made) {
  respond(std::move(made));
}

void exchange::fail_with(const error& e) {
  respond(composed(http_status_of(e.code), error_body(e)));
}

void exchange::refuse_method(const std::string& allow) {
  constexpr int method_not_allowed = 405;
  respond(composed(method_not_allowed,
                   error_body({errc::invalid_argument, "this path does not take " + request.method,
                               request.path, "parameters: " + allow}),
                   allow));
}

std::string exchange::query(const std::string& key) const {
  auto it = request.query.find(key);
  return it == request.query.end() ? std::string{} : it->second;
}

std::optional<json> exchange::body() {
  if (request.body.empty())
    return json::object();
  const int depth_limit = static_cast<int>(limits::json_depth);
  bool too_deep = false;
  auto parsed = json::parse(
      request.body,
      [&](int depth, json::parse_event_t, json&) {
        too_deep = too_deep || depth > depth_limit;
        return !too_deep;
      },
      false);
  if (!parsed.is_discarded() && parsed.is_object() && !too_deep)
    return parsed;
  fail_with({errc::parse_error, "the body must be a JSON object", "body", {}});
  return std::nullopt;
}

std::optional<std::size_t> exchange::limit(std::size_t standard, std::size_t most) {
  const auto text = query("limit");
  if (text.empty())
    return standard;
  std::size_t n = 0;
  const auto [end, failed] = std::from_chars(text.data(), text.data() + text.size(), n);
  if (failed == std::errc{} && end == text.data() + text.size() && n >= 1 && n <= most)
    return n;
  fail_with({errc::invalid_argument,
             "limit must be a number from 1 to " + std::to_string(most),
             "limit=" + text,
             {}});
  return std::nullopt;
}

const config::kernel* exchange::kernel() {
  return kernel(query("kernel"));
}

const config::kernel* exchange::kernel(const std::string& id) {
  if (id.empty() && !configuration->kernels.empty())
    return &configuration->kernels.front();
  if (const auto* k = configuration->find_kernel(id))
    return k;
  std::string known;
  for (const auto& k : configuration->kernels)
    known += (known.empty() ? "" : ", ") + k.kernel_id;
  fail_with({errc::not_found, "no such kernel: " + id, configuration->path, "known: " + known});
  return nullptr;
}

} // namespace boyd::gateway_impl
