#include "boyd/mcp/trust.hpp"

#include "boyd/config/redact.hpp"
#include "boyd/core/json_depth.hpp"
#include "boyd/core/sha256.hpp"
#include "boyd/core/text.hpp"
#include "boyd/core/web_address.hpp"
#include "boyd/core/workspace_path.hpp"
#include "boyd/tools/describe.hpp"
#include "json.hpp"

#include <algorithm>
#include <optional>
#include <utility>

namespace boyd::mcp {

namespace {

constexpr const char* trust_schema = "boyd.mcp_trust/1";
/// Of the one line about a server.
constexpr std::size_t words_characters = 200;

/// Replaces ${VAR} and ${VAR:-default}; collects what came from the environment.
class filler {
 public:
  filler(const config::environment_lookup& environment, found_server& into)
      : environment_(environment), into_(into) {}

  std::string fill(const std::string& text) {
    std::string out;
    for (std::size_t at = 0; at < text.size();) {
      const auto begin = text.find("${", at);
      out += text.substr(at, begin - at);
      if (begin == std::string::npos)
        break;
      const auto end = text.find('}', begin);
      if (end == std::string::npos) {
        into_.problem = "a ${ without a }";
        return out;
      }
      out += value_of(text.substr(begin + 2, end - begin - 2));
      at = end + 1;
    }
    return out;
  }

 private:
  std::string value_of(const std::string& reference) {
    const auto colon = reference.find(":-");
    const auto name = reference.substr(0, colon);
    auto value = environment_(name);
    if (value && !value->empty()) {
      into_.secrets.push_back(*value);
      return *value;
    }
    if (colon != std::string::npos)
      return reference.substr(colon + 2);
    if (!value)
      into_.problem = "the environment variable " + name + " is not set";
    return {};
  }

  const config::environment_lookup& environment_;
  found_server& into_;
};

std::vector<std::pair<std::string, std::string>> texts_of(const json& map) {
  std::vector<std::pair<std::string, std::string>> all;
  if (map.is_object())
    for (const auto& [key, value] : map.items())
      all.emplace_back(key, value.is_string() ? value.get<std::string>() : dump(value));
  return all;
}

std::string names_of(const std::vector<std::pair<std::string, std::string>>& all) {
  std::string out;
  for (const auto& [name, value] : all)
    out += (out.empty() ? "" : ", ") + name;
  return out;
}

/// What the trust is about: all that decides what runs, or who is asked.
std::string hash_of(const json& entry) {
  json parts = json::object();
  for (const auto* name : {"command", "args", "env", "cwd", "url", "headers"})
    if (const auto& value = member(entry, name); !value.is_null())
      parts[name] = value;
  // As nlohmann::json its members are sorted: another order is the same server.
  return "sha256:" + sha256_hex(nlohmann::json(parts).dump(
                         -1, ' ', false, nlohmann::json::error_handler_t::replace));
}

std::string words_of(const config::mcp_server& raw) {
  std::string out = raw.url.empty() ? raw.command : raw.url;
  for (const auto& a : raw.args)
    out += " " + a;
  if (!raw.env.empty())
    out += " (variables: " + names_of(raw.env) + ")";
  if (!raw.headers.empty())
    out += " (headers: " + names_of(raw.headers) + ")";
  out = tools::visible_text(out);
  std::ranges::replace(out, '\n', ' ');
  const auto cut = cut_characters(out, words_characters);
  return cut.size() < out.size() ? std::string(cut) + "…" : out;
}

/// One line of what a person reads: nothing in it can look like another line.
std::string line_of(const std::string& name, const json& value) {
  return tools::visible_text(name + ": " + dump(value)) + "\n";
}

/// All of it, as the file has it.
std::string shown_of(const json& entry) {
  std::string out;
  for (const auto* name : {"command", "args", "cwd", "url"})
    if (const auto& value = member(entry, name); !value.is_null())
      out += line_of(name, value);
  for (const auto* name : {"env", "headers"})
    if (const auto& map = member(entry, name); map.is_object())
      for (const auto& [key, value] : map.items())
        out += line_of(std::string(name) + " " + dump(json(key)), value);
  return out;
}

constexpr std::string_view signs_between = " \t\r\n\"'`=,;:|&()<>$";

/// The text itself, and what stands between the signs in it.
void add_parts(const std::string& text, std::vector<std::string>& parts) {
  parts.push_back(text);
  for (std::size_t at = 0; at < text.size();) {
    const auto end = std::min(text.find_first_of(signs_between, at), text.size());
    if (end > at && end - at < text.size())
      parts.push_back(text.substr(at, end - at));
    at = end + 1;
  }
  if (text.size() > 2 && text[0] == '-' && text[1] != '-') // -rFILE
    parts.push_back(text.substr(2));
}

/// No file system has a file of another name.
bool may_be_file(std::string_view path) {
  constexpr std::size_t longest_name = 255;
  for (std::size_t at = 0; at < path.size();) {
    const auto end = std::min(path.find('/', at), path.size());
    if (end - at > longest_name)
      return false;
    at = end + 1;
  }
  return true;
}

std::string problem_of(const config::mcp_server& s, const std::string& type) {
  if (!config::is_mcp_name(s.name))
    return "its name is not valid: use letters, digits, - and single _ (not at the ends)";
  if (type == "sse")
    return "HTTP with SSE is not supported; use the URL for streamable HTTP";
  if (s.command.empty() == s.url.empty())
    return "it needs either a command or a url";
  if (s.url.empty())
    return {};
  const auto address = parse_web_address(s.url);
  if (!address)
    return "its url is not a web address: " + address.error().what;
  if (!address->secure && !is_loopback_host(address->host))
    return "its url is plain http to another machine";
  return {};
}

found_server server_of_entry(const std::string& name, const json& entry,
                             const config::environment_lookup& environment) {
  found_server out;
  auto& d = out.definition;
  d.name = name;
  d.command = text_in(entry, "command");
  const auto& args = member(entry, "args");
  for (std::size_t i = 0; args.is_array() && i < args.size(); ++i)
    d.args.push_back(args[i].is_string() ? args[i].get<std::string>() : dump(args[i]));
  d.env = texts_of(member(entry, "env"));
  d.cwd = text_in(entry, "cwd");
  d.url = text_in(entry, "url");
  d.headers = texts_of(member(entry, "headers"));
  out.hash = hash_of(entry);
  out.words = words_of(d);
  out.shown = shown_of(entry);
  filler fill(environment, out);
  d.command = fill.fill(d.command);
  for (auto& a : d.args)
    a = fill.fill(a);
  for (auto& [key, value] : d.env)
    value = fill.fill(value);
  d.url = fill.fill(d.url);
  for (auto& [key, value] : d.headers)
    value = fill.fill(value);
  if (auto problem = problem_of(d, text_in(entry, "type")); !problem.empty())
    out.problem = std::move(problem);
  else if (out.shown.size() > definition_bytes)
    out.problem = "its definition is too long to review: more than " +
                  std::to_string(definition_bytes >> 10) + " KiB";
  return out;
}

} // namespace

result<std::vector<found_server>> read_mcp_json(std::string_view text,
                                                const config::environment_lookup& environment) {
  if (text.size() > mcp_json_bytes)
    return fail(errc::limit_exceeded,
                "longer than " + std::to_string(mcp_json_bytes >> 10) + " KiB");
  if (auto deep = check_json_depth(text); !deep)
    return fail(std::move(deep.error()));
  const auto all = parse(text);
  const auto& servers = member(all, "mcpServers");
  if (!servers.is_object())
    return fail(errc::parse_error, "not a JSON object with an object mcpServers");
  if (servers.size() > most_servers)
    return fail(errc::limit_exceeded, "more than " + std::to_string(most_servers) + " servers");
  std::vector<found_server> out;
  for (const auto& [name, entry] : servers.items())
    out.push_back(server_of_entry(name, entry, environment));
  std::ranges::sort(out, {}, [](const found_server& s) { return s.definition.name; });
  return out;
}

std::string pin_of(const found_server& s) {
  if (s.programs.empty())
    return s.hash;
  return "sha256:" +
         sha256_hex(s.hash + "\n" +
                    nlohmann::json(s.programs)
                        .dump(-1, ' ', false, nlohmann::json::error_handler_t::replace));
}

std::string pin_text(const found_server& s) {
  auto out = s.shown;
  for (const auto& [path, hash] : s.programs)
    out += line_of("file", path + " sha256:" + hash);
  return out;
}

std::string unseen_problem(const found_server& s, const std::vector<std::string>& secrets) {
  const auto text = pin_text(s);
  if (config::redact_text(text, secrets) == text)
    return {};
  return "its definition seems to contain a secret, which a reviewer would not see: put the secret "
         "into an environment variable and write ${NAME} instead, or rename the value if it is not "
         "a secret";
}

std::vector<std::string> named_paths(const config::mcp_server& s, const std::string& cwd,
                                     const std::string& workspace) {
  std::vector<std::string> parts;
  if (s.command.find('/') != std::string::npos)
    parts.push_back(s.command);
  for (const auto& [name, value] : s.env)
    if (name == "PATH" && s.command.find('/') == std::string::npos)
      for (std::size_t at = 0; at <= value.size();) {
        const auto end = std::min(value.find(':', at), value.size());
        parts.push_back((end == at ? std::string(".") : value.substr(at, end - at)) + "/" +
                        s.command);
        at = end + 1;
      }
  for (const auto& a : s.args)
    add_parts(a, parts);
  std::vector<std::string> paths;
  for (const auto& part : parts) {
    const auto inside = workspace_path(workspace, part.starts_with('/') ? part : cwd + "/" + part);
    if (inside && *inside != "." && may_be_file(*inside))
      paths.push_back(workspace + "/" + *inside);
  }
  std::ranges::sort(paths);
  paths.erase(std::unique(paths.begin(), paths.end()), paths.end());
  return paths;
}

std::vector<std::string> program_changes(const program_prints& then, const program_prints& now) {
  std::vector<std::string> all;
  for (const auto& [path, hash] : now) {
    const auto was = then.find(path);
    if (was == then.end())
      all.push_back("the file " + path + " is new or was not checked");
    else if (was->second != hash)
      all.push_back("the file " + path + " has changed");
  }
  for (const auto& [path, hash] : then)
    if (!now.contains(path))
      all.push_back("the file " + path + " was removed");
  return all;
}

std::string tool_pin(const server_tool& tool) {
  // As nlohmann::json its members are sorted.
  const auto all = nlohmann::json::array(
      {tool.name, tool.description, nlohmann::json::parse(tool.schema_json, nullptr, false)});
  return "sha256:" + sha256_hex(all.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace));
}

pinned_tools by_pins(const std::vector<std::pair<std::string, std::string>>& pins,
                     const std::vector<server_tool>& tools) {
  if (pins.empty())
    return {tools, {}, {}};
  pinned_tools out;
  for (const auto& t : tools) {
    const auto pin = std::ranges::find(pins, t.name, [](const auto& p) { return p.first; });
    if (pin == pins.end())
      out.withheld[t.name] = "new, without a pin";
    else if (pin->second != tool_pin(t))
      out.withheld[t.name] = "its description or arguments differ from the pin";
    else
      out.usable.push_back(t);
  }
  for (const auto& [name, pin] : pins)
    if (std::ranges::find(tools, name, &server_tool::name) == tools.end())
      out.gone.push_back(name);
  return out;
}

std::map<std::string, tool_print> prints_of(const std::vector<server_tool>& tools) {
  std::map<std::string, tool_print> all;
  for (const auto& t : tools)
    all[t.name] = {sha256_hex(t.description), sha256_hex(t.schema_json)};
  return all;
}

std::vector<std::string> changes_since(const trusted_server& then,
                                       const std::vector<server_tool>& now) {
  std::vector<std::string> all;
  const auto present = prints_of(now);
  for (const auto& [name, print] : present) {
    const auto was = then.tools.find(name);
    if (was == then.tools.end())
      all.push_back("the tool " + name + " is new");
    else if (was->second.description != print.description)
      all.push_back("the tool " + name + " has another description");
    else if (was->second.schema != print.schema)
      all.push_back("the tool " + name + " has other arguments");
  }
  for (const auto& [name, print] : then.tools)
    if (!present.contains(name))
      all.push_back("the tool " + name + " was removed");
  return all;
}

std::string trust_text(const std::vector<trusted_server>& all) {
  json servers = json::array();
  for (const auto& s : all) {
    json tools;
    if (s.has_tools) {
      tools = json::object();
      for (const auto& [name, print] : s.tools)
        tools[name] = {{"description", print.description}, {"arguments", print.schema}};
    }
    servers.push_back({{"file", s.file},
                       {"server", s.name},
                       {"definition", s.hash},
                       {"was", s.words},
                       {"trusted_at", s.at},
                       {"programs", s.programs},
                       {"tools", std::move(tools)}});
  }
  const json out = {{"schema", trust_schema}, {"servers", std::move(servers)}};
  return out.dump(2, ' ', false, json::error_handler_t::replace) + "\n";
}

result<std::vector<trusted_server>> read_trust(std::string_view text) {
  const auto bad = [](const std::string& why) {
    return fail(errc::corrupt, "cannot read the list of trusted servers: " + why, {},
                "fix the file, or remove it, so that no server is trusted");
  };
  if (auto deep = check_json_depth(text); !deep)
    return bad(deep.error().what);
  const auto all = parse(text);
  if (text_in(all, "schema") != trust_schema)
    return bad(std::string("the schema is not ") + trust_schema);
  const auto& servers = member(all, "servers");
  if (!servers.is_array())
    return bad("no list of servers");
  std::vector<trusted_server> out;
  for (const auto& s : servers) {
    trusted_server t;
    t.file = text_in(s, "file");
    t.name = text_in(s, "server");
    t.hash = text_in(s, "definition");
    t.words = text_in(s, "was");
    t.at = text_in(s, "trusted_at");
    for (const auto& [path, hash] : texts_of(member(s, "programs")))
      t.programs[path] = hash;
    const auto& tools = member(s, "tools");
    t.has_tools = tools.is_object();
    if (t.has_tools)
      for (const auto& [name, print] : tools.items())
        t.tools[name] = {text_in(print, "description"), text_in(print, "arguments")};
    out.push_back(std::move(t));
  }
  return out;
}

} // namespace boyd::mcp
