#include "boyd/model/probe.hpp"

#include "../core/enum_names.hpp"
#include "boyd/core/media_type.hpp"
#include "json.hpp"

#include <algorithm>
#include <array>
#include <utility>

namespace boyd::model {
namespace {

using nlohmann::json;

/// A list is there at once. A model may have to be loaded into memory before its first answer.
constexpr milliseconds list_limit = 10s;
constexpr milliseconds first_limit = 60s;
constexpr milliseconds call_limit = 30s;
constexpr std::size_t answer_bytes = 4u << 20;
/// A model that thinks first needs room before it calls a tool or follows a schema.
constexpr std::int64_t few_tokens = 64;
constexpr std::int64_t more_tokens = 1024;
/// So many models of a list are named.
constexpr std::size_t named_models = 5;

constexpr const char* tool_name = "note_word";
constexpr const char* tools_text =
    R"([{"type":"function","function":{"name":"note_word","description":"Notes one word.",)"
    R"("parameters":{"type":"object","properties":{"word":{"type":"string"}},)"
    R"("required":["word"],"additionalProperties":false}}}])";
constexpr const char* schema_text =
    R"({"type":"object","properties":{"legs":{"type":"integer"}},"required":["legs"],)"
    R"("additionalProperties":false})";

constexpr std::array<std::string_view, 5> state_names{"works", "lacks", "unclear", "failed",
                                                      "skipped"};
constexpr std::array<const char*, 6> check_names{"models",       "chat",  "stream",
                                                 "stream_usage", "tools", "schema"};

/// The request itself is not liked, so what is new in it is to blame. A failure (500) proves
/// nothing, though some servers fail where they should refuse.
bool is_refusal(const trouble& t) {
  return t.kind == trouble_kind::bad_request || t.kind == trouble_kind::not_found;
}

bool answered(const trouble& t) {
  return t.status != 0;
}

std::string shown(const std::vector<std::string>& models) {
  std::string out;
  for (std::size_t i = 0; i < std::min(models.size(), named_models); ++i)
    out += (i == 0 ? "" : ", ") + models[i];
  return models.size() > named_models ? out + ", …" : out;
}

bool is_stream(const http_head& head) {
  return std::ranges::any_of(head.headers, [](const auto& h) {
    return h.first == "content-type" && is_media_type(h.second, "text/event-stream");
  });
}

} // namespace

std::string_view name_of(probe_state s) noexcept {
  return detail::name_in(state_names, s);
}

provider_probe::provider_probe(config::provider p, std::string model, std::string key)
    : provider_(std::move(p)), configured_(provider_.capabilities), model_(std::move(model)),
      key_(std::move(key)) {
  provider_.capabilities = {};
}

http_request provider_probe::list_request() const {
  auto request = make_request(provider_, {}, key_);
  request.method = "GET";
  request.url = provider_.base_url + "/models";
  request.body.clear();
  std::erase_if(request.headers, [](const auto& h) { return h.first == "Content-Type"; });
  for (auto& [name, value] : request.headers)
    if (name == "Accept")
      value = "application/json";
  request.timeout = std::min(list_limit, provider_.request_timeout);
  request.max_answer_bytes = answer_bytes;
  return request;
}

provider_probe::call provider_probe::chat_call() const {
  auto p = provider_;
  p.capabilities.stream = at_ == step::stream || at_ == step::stream_without_usage;
  p.capabilities.stream_usage = at_ == step::stream;
  chat_request r;
  r.model = model_;
  r.max_output_tokens = few_tokens;
  const char* words = "Answer with the word: ok";
  if (at_ == step::tools || at_ == step::tools_at_will) {
    words = "Call the tool note_word with the word: ok";
    r.tools_json = tools_text;
    r.forced_tool = at_ == step::tools ? tool_name : "";
    r.max_output_tokens = more_tokens;
  } else if (at_ == step::schema) {
    words = "How many legs does a spider have?"; // in words, unless the schema holds
    r.schema_json = schema_text;
    r.max_output_tokens = more_tokens;
  }
  r.messages = {user_message(words)};
  call c;
  c.request = make_request(p, r, key_);
  c.request.timeout =
      std::min(at_ == step::chat ? first_limit : call_limit, provider_.request_timeout);
  c.request.max_answer_bytes = answer_bytes;
  c.most.input = estimate_tokens(c.request.body);
  c.most.output = r.max_output_tokens;
  return c;
}

std::optional<provider_probe::call> provider_probe::next() {
  if (at_ == step::over)
    return std::nullopt;
  if (at_ == step::models)
    return call{list_request(), {}};
  return chat_call();
}

std::optional<usage> provider_probe::finish(const http_head& head, std::string_view body,
                                            const result<void>& transport, milliseconds took) {
  took_ = took;
  if (at_ == step::over)
    return usage{};
  if (at_ == step::models) {
    on_models(head, body, transport);
    return usage{};
  }
  answer_reader reader(answer_bytes);
  if (head.status != 0)
    reader.on_head(head);
  reader.on_body(body);
  const auto read = reader.finish(transport);
  if (const auto* t = std::get_if<trouble>(&read)) {
    const bool lost = !answered(*t) && !transport && transport.error().code == errc::timed_out;
    on_trouble(*t, transport);
    return lost ? std::nullopt : std::optional(usage{});
  }
  const auto& answer = std::get<chat_answer>(read);
  on_answer(answer, is_stream(head));
  return answer.used;
}

void provider_probe::stop(std::string what, std::string next) {
  static constexpr std::array names{"models", "chat",  "stream", "stream",
                                    "tools",  "tools", "schema"};
  if (at_ == step::over)
    return;
  took_ = milliseconds{0};
  say(names[static_cast<std::size_t>(at_)], probe_state::failed, std::move(what), std::move(next));
  skip_rest();
}

void provider_probe::say(std::string name, probe_state state, std::string what, std::string next) {
  checks_.push_back({std::move(name), state, std::move(what), std::move(next), took_});
}

/// A finding, and what it means for the configuration.
void provider_probe::note(std::string name, std::optional<bool>& finding, bool can,
                          std::string what) {
  const auto pick = [&](const config::model_capabilities& c) {
    return name == "tools"    ? c.tools
           : name == "schema" ? c.schema
           : name == "stream" ? c.stream
                              : c.stream_usage;
  };
  finding = can;
  std::string next;
  if (pick(configured_) != can)
    next =
        pick(provider_.said)
            ? "the configuration says otherwise: capabilities: {" + name + ": " +
                  (can ? "true" : "false") + "} of provider " + provider_.provider_id
            : std::string(
                  "nothing: Boyd uses this from now on, because the configuration does not set it");
  say(std::move(name), can ? probe_state::works : probe_state::lacks, std::move(what),
      std::move(next));
}

void provider_probe::skip_rest() {
  took_ = milliseconds{0};
  for (const auto* name : check_names)
    if (std::ranges::none_of(checks_, [&](const auto& c) { return c.name == name; }))
      say(name, probe_state::skipped, "not tried");
  at_ = step::over;
}

std::string provider_probe::advice(const trouble& t, const result<void>& transport) const {
  const auto at = "provider " + provider_.provider_id;
  if (!answered(t) && !transport) {
    if (transport.error().code == errc::refused)
      return "check base_url of " + at +
             ", and whether the system trusts the certificate (add the CA of a proxy or company "
             "with update-ca-certificates)";
    if (transport.error().code == errc::timed_out)
      return "if the server is busy or still loads the model, try again; otherwise check base_url "
             "of " +
             at;
    return "check that the server is running" +
           std::string(provider_.preset == "ollama" ? " (ollama serve)" : "") +
           ", and check host and port in base_url of " + at;
  }
  constexpr int redirects = 3; // 301, 307, …
  if (t.status / 100 == redirects)
    return "set base_url of " + at + " to the address of the redirect";
  switch (t.kind) {
  case trouble_kind::unauthorized:
    return key_.empty() ? "no key is configured: set api_key: ${VARIABLE} or api_key_file of " + at
                        : "the key is wrong, or must not use " + model_ +
                              ": check api_key or api_key_file of " + at;
  case trouble_kind::not_found:
    if (listed_)
      return models_.empty() ? "set model of " + at
                             : "set model of " + at + " to one of: " + shown(models_);
    return "check base_url of " + at + " (it usually ends with /v1), then model";
  case trouble_kind::quota:
    return "no credit left: check the billing of the account";
  case trouble_kind::rate_limited:
  case trouble_kind::overloaded:
    return "try again later";
  case trouble_kind::bad_answer:
    return "check base_url of " + at + " (it usually ends with /v1)";
  default:
    return "read the message of the endpoint, then check model and base_url of " + at;
  }
}

void provider_probe::fail_with(std::string name, const trouble& t, const result<void>& transport) {
  say(std::move(name), probe_state::failed, t.what, advice(t, transport));
}

void provider_probe::on_models(const http_head& head, std::string_view body,
                               const result<void>& transport) {
  at_ = step::chat;
  if (!transport && head.status == 0) {
    fail_with("models", trouble_of_transport(transport.error()), transport);
    return skip_rest();
  }
  constexpr int ok = 200;
  if (head.status != ok)
    return say("models", probe_state::unclear,
               "no list of models: " + trouble_of_answer(head, body).what);
  const auto list = parse_json(body);
  const auto* data = list ? member(*list, "data") : nullptr;
  if (data == nullptr || !data->is_array())
    return say("models", probe_state::unclear, "/models did not return a list of models",
               "check base_url of provider " + provider_.provider_id +
                   " (it usually ends with /v1)");
  listed_ = true;
  for (const auto& entry : *data)
    if (auto id = text_of(entry, "id"); !id.empty())
      models_.push_back(std::move(id));
  // Gemini lists "models/NAME".
  const bool there = std::ranges::any_of(
      models_, [&](const auto& id) { return id == model_ || id == "models/" + model_; });
  const auto count = std::to_string(models_.size()) + (models_.size() == 1 ? " model" : " models");
  if (there)
    return say("models", probe_state::works, count + ", " + model_ + " is one of them");
  std::string next = "if the next check fails: set model of provider " + provider_.provider_id +
                     (models_.empty() ? "" : " to one of: " + shown(models_));
  if (provider_.preset == "ollama")
    next += ", or: ollama pull " + model_;
  say("models", probe_state::unclear, count + ", " + model_ + " is not one of them",
      std::move(next));
}

void provider_probe::on_trouble(const trouble& t, const result<void>& transport) {
  const bool refused = answered(t) && is_refusal(t);
  switch (at_) {
  case step::chat:
    fail_with("chat", t, transport);
    return skip_rest();
  case step::stream:
    if (refused) {
      at_ = step::stream_without_usage;
      return;
    }
    fail_with("stream", t, transport);
    say("stream_usage", probe_state::skipped, "not tried");
    at_ = step::tools;
    return;
  case step::stream_without_usage:
    if (refused)
      note("stream", found_.stream, false, "refused: " + t.what);
    else
      fail_with("stream", t, transport);
    say("stream_usage", probe_state::skipped, "not tried");
    at_ = step::tools;
    return;
  case step::tools:
    if (refused) {
      at_ = step::tools_at_will;
      return;
    }
    [[fallthrough]];
  case step::tools_at_will:
    if (refused)
      note("tools", found_.tools, false, "refused: " + t.what);
    else
      fail_with("tools", t, transport);
    at_ = step::schema;
    return;
  default:
    if (refused)
      note("schema", found_.schema, false, "refused: " + t.what);
    else
      fail_with("schema", t, transport);
    at_ = step::over;
  }
}

void provider_probe::on_answer(const chat_answer& a, bool streamed) {
  switch (at_) {
  case step::chat:
    answers_ = true;
    say("chat", probe_state::works, (a.model.empty() ? model_ : a.model) + " answers");
    at_ = step::stream;
    return;
  case step::stream:
  case step::stream_without_usage:
    return on_stream(a, streamed);
  case step::tools:
  case step::tools_at_will:
    return on_tools(a);
  default:
    on_schema(a);
  }
}

void provider_probe::on_stream(const chat_answer& a, bool streamed) {
  const bool asked = std::exchange(at_, step::tools) == step::stream;
  if (!streamed) {
    note("stream", found_.stream, false, "the answer comes in one piece");
    return say("stream_usage", probe_state::skipped, "no stream");
  }
  note("stream", found_.stream, true, "the answer comes as a stream");
  if (asked && a.used.reported)
    note("stream_usage", found_.stream_usage, true, "the stream ends with the usage");
  else
    note("stream_usage", found_.stream_usage, false,
         asked ? "the stream does not report usage; Boyd estimates it"
               : "stream_options is refused; Boyd estimates the usage");
}

void provider_probe::on_tools(const chat_answer& a) {
  const bool called =
      std::ranges::any_of(a.calls, [](const auto& c) { return c.name == tool_name; });
  if (called)
    note("tools", found_.tools, true, "the tool was called");
  else
    say("tools", probe_state::unclear, "the endpoint accepts tools, but the model did not call one",
        "for agents with tools, choose a model that calls tools");
  at_ = step::schema;
}

void provider_probe::on_schema(const chat_answer& a) {
  at_ = step::over;
  const auto value = parse_json(a.text);
  const auto* legs = value ? member(*value, "legs") : nullptr;
  if (legs != nullptr && legs->is_number_integer())
    return note("schema", found_.schema, true, "the answer follows the schema");
  if (a.stop == stop_reason::length)
    return say("schema", probe_state::unclear, "the answer was cut off before its end");
  note("schema", found_.schema, false,
       "response_format is accepted, but the answer does not follow it; Boyd puts the schema into "
       "the prompt");
}

} // namespace boyd::model
