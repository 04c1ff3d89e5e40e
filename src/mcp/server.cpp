#include "boyd/mcp/server.hpp"

#include "boyd/mcp/protocol.hpp"
#include "json.hpp"

#include <algorithm>
#include <utility>

namespace boyd::mcp {

namespace {

/// How long a client may keep the list: the tools are this program's own and change with it alone.
constexpr int list_ttl_ms = 3'600'000;
/// Of a name that somebody else wrote, in an error.
constexpr std::size_t shown_name = 100;

/// The result of a request before it is a text.
using made = tl::expected<json, rpc_error>;

tl::unexpected<rpc_error> refuse(std::int64_t code, std::string why, std::string data = {}) {
  return tl::unexpected(rpc_error{code, std::move(why), std::move(data)});
}

/// The revision that a request is of, by its `_meta` (specification 2026-07-28, "Per-Request
/// Protocol Fields").
tl::expected<era_t, rpc_error> era_of(const json& params) {
  const auto& meta = member(params, "_meta");
  if (!meta.is_object() || !meta.contains(meta_key::version))
    return era_t::legacy;
  const auto version = text_in(meta, meta_key::version);
  if (version != modern_version) {
    json data = json::object();
    data["supported"] = json::array({modern_version});
    data["requested"] = version;
    return refuse(rpc_code::unsupported_version, "this protocol revision is not supported",
                  dump(data));
  }
  // Nothing here depends on who asks or what they can do: a request without them is served.
  for (const auto* key : {meta_key::client, meta_key::capabilities})
    if (const auto& told = member(meta, key); !told.is_null() && !told.is_object())
      return refuse(rpc_code::invalid_params, std::string("_meta needs an object ") + key);
  return era_t::modern;
}

json information(const std::string& version) {
  json out = json::object();
  out["name"] = "boyd";
  out["title"] = "Boyd";
  out["version"] = version;
  return out;
}

json capabilities() {
  json out = json::object();
  out["tools"]["listChanged"] = false;
  return out;
}

json described(const served_tool& tool) {
  json out = json::object();
  out["name"] = tool.name;
  out["title"] = tool.title;
  out["description"] = tool.description;
  out["inputSchema"] = parse(tool.schema_json);
  auto& hints = out["annotations"];
  hints["readOnlyHint"] = !tool.changes;
  hints["destructiveHint"] = tool.changes;
  hints["openWorldHint"] = false;
  return out;
}

json text_content(const std::string& text) {
  json one = json::object();
  one["type"] = "text";
  one["text"] = text;
  return json::array({std::move(one)});
}

/// How a tool ended, for whoever reads it: its failure is an answer, too.
json words_of(const result<std::string>& done) {
  json out = json::object();
  out["content"] = text_content(done ? *done : to_string(done.error()));
  if (done)
    if (auto structured = parse(*done); structured.is_object())
      out["structuredContent"] = std::move(structured);
  out["isError"] = !done;
  return out;
}

/// Why the arguments are none for the tool: a slip must not be half obeyed. Nothing: they are.
std::optional<std::string> problem_of(const served_tool& tool, const json& given) {
  const auto schema = parse(tool.schema_json);
  const auto& known = member(schema, "properties");
  for (const auto& [name, value] : given.items()) {
    const auto type = text_in(member(known, name.c_str()), "type");
    if (type.empty())
      return "the tool " + tool.name + " has no argument " + name.substr(0, shown_name);
    if (type == "string" ? !value.is_string() : !value.is_number_unsigned())
      return "the argument " + name + " of " + tool.name + " must be of type " + type;
  }
  for (const auto& name : member(schema, "required"))
    if (!given.contains(name.get<std::string>()))
      return "the tool " + tool.name + " needs the argument " + name.get<std::string>();
  return std::nullopt;
}

json list_of(const std::vector<served_tool>& tools) {
  json out = json::object();
  out["tools"] = json::array();
  for (const auto& tool : tools)
    out["tools"].push_back(described(tool));
  return out;
}

made call(const std::vector<served_tool>& tools, const tool_performer& perform,
          const json& params) {
  const auto name = text_in(params, "name");
  const auto tool = std::ranges::find(tools, name, &served_tool::name);
  if (tool == tools.end())
    return refuse(rpc_code::invalid_params, "no such tool: " + name.substr(0, shown_name));
  auto arguments = member(params, "arguments");
  if (arguments.is_null())
    arguments = json::object();
  if (!arguments.is_object())
    return refuse(rpc_code::invalid_params, "the arguments are not an object");
  if (auto problem = problem_of(*tool, arguments))
    return refuse(rpc_code::invalid_params, std::move(*problem));
  return words_of(perform(*tool, dump(arguments)));
}

} // namespace

server::server(std::string version, std::string instructions, std::vector<served_tool> tools,
               tool_performer perform)
    : version_(std::move(version)), instructions_(std::move(instructions)),
      tools_(std::move(tools)), perform_(std::move(perform)) {}

/// The methods of the handshake's revisions that carry no `_meta`.
server::outcome server::in_handshake_era(const rpc_request& request) {
  const auto params = parse(request.params_json);
  if (request.method == "initialize") {
    const auto asked = text_in(params, "protocolVersion");
    greeted_ = true;
    json out = json::object();
    out["protocolVersion"] =
        is_legacy_version(asked) ? asked : std::string(legacy_versions.front());
    out["capabilities"] = capabilities();
    out["serverInfo"] = information(version_);
    out["instructions"] = instructions_;
    return dump(out);
  }
  if (request.method == "ping")
    return dump(json::object());
  if (!greeted_)
    return refuse(rpc_code::invalid_request,
                  "start with initialize, or send _meta with each request (2026-07-28)");
  if (request.method == "tools/list")
    return dump(list_of(tools_));
  if (request.method == "tools/call")
    return call(tools_, perform_, params).map(dump);
  return refuse(rpc_code::method_not_found,
                "no such method: " + request.method.substr(0, shown_name));
}

server::outcome server::in_stateless_era(const rpc_request& request) {
  made out = json::object();
  if (request.method == "server/discover") {
    (*out)["supportedVersions"] = json::array({modern_version});
    (*out)["capabilities"] = capabilities();
    (*out)["instructions"] = instructions_;
  } else if (request.method == "tools/list") {
    out = list_of(tools_);
  } else if (request.method == "tools/call") {
    out = call(tools_, perform_, parse(request.params_json));
  } else {
    out = refuse(rpc_code::method_not_found,
                 "no such method: " + request.method.substr(0, shown_name));
  }
  if (!out)
    return tl::unexpected(std::move(out.error()));
  if (request.method != "tools/call") {
    (*out)["ttlMs"] = list_ttl_ms;
    (*out)["cacheScope"] = "public";
  }
  (*out)["resultType"] = "complete";
  (*out)["_meta"][meta_key::server] = information(version_);
  return dump(*out);
}

std::optional<std::string> server::on_message(std::string_view text) {
  auto message = read_message(text);
  if (!message)
    return to_text(rpc_response{
        std::nullopt, {}, rpc_error{rpc_code::parse_error, to_string(message.error()), {}}});
  const auto* request = std::get_if<rpc_request>(&*message);
  if (request == nullptr)
    return std::nullopt;
  const auto era = era_of(parse(request->params_json));
  outcome out = tl::unexpected(era ? rpc_error{} : era.error());
  if (era)
    out = *era == era_t::modern ? in_stateless_era(*request) : in_handshake_era(*request);
  rpc_response answer{request->id, {}, std::nullopt};
  if (out)
    answer.result_json = std::move(*out);
  else
    answer.error = std::move(out.error());
  return to_text(answer);
}

} // namespace boyd::mcp
