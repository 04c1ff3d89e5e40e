#include "boyd/core/text.hpp"
#include "boyd/core/web_address.hpp"
#include "convert_models.hpp"
#include "passes.hpp"
#include "reading.hpp"
#include "schema.hpp"

#include <algorithm>
#include <array>
#include <utility>

namespace boyd::config {
namespace {

/// Headers that the protocol or the transport sets itself.
constexpr std::array<std::string_view, 9> own_headers{
    "accept", "accept-encoding",   "connection",     "content-length",      "content-type",
    "host",   "transfer-encoding", "mcp-session-id", "mcp-protocol-version"};

std::string lower_case(std::string_view text) {
  std::string out;
  for (const char c : text)
    out += c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  return out;
}

bool is_pin(std::string_view text) {
  constexpr std::string_view begin = "sha256:";
  constexpr std::size_t digits = 64;
  return text.starts_with(begin) && text.size() == begin.size() + digits &&
         text.find_first_not_of("0123456789abcdef", begin.size()) == std::string_view::npos;
}

bool is_scalar(const tree* t) {
  return t != nullptr && t->kind == tree::kind_t::scalar;
}

/// The checks of `mcpServers`.
class server_checks {
 public:
  explicit server_checks(pass& p) : p_(p) {}

  void server(const tree::key_t& name, const tree& t) {
    const auto path = child_path("mcpServers", name.text);
    if (!is_mcp_name(name.text))
      p_.report(name.at, path, "not a valid server name",
                "at most " + std::to_string(mcp_name_bytes) +
                    " letters, digits, - and single _ (not at the ends)");
    if (t.kind != tree::kind_t::map)
      return;
    pins(path, t);
    const auto* command = t.find("command");
    const auto* url = t.find("url");
    if ((command == nullptr) == (url == nullptr)) {
      p_.report(t.at, path,
                command == nullptr ? "neither command nor url is set"
                                   : "command and url are both set",
                "exactly one of command and url");
      return;
    }
    transport(path, t, command != nullptr);
    if (is_scalar(url))
      address(path, t, *url);
  }

 private:
  void pins(const std::string& path, const tree& t) {
    const auto* all = t.find("pins");
    if (all == nullptr || all->kind != tree::kind_t::map)
      return;
    for (std::size_t i = 0; i < all->items.size(); ++i)
      if (is_scalar(&all->items[i]) && !all->items[i].unusable && !is_pin(all->items[i].text))
        p_.report(all->items[i].at, child_path(path + ".pins", all->keys[i].text),
                  "not a tool's pin",
                  "sha256: and 64 hexadecimal digits, as `boyd tools show` prints them");
  }

  void transport(const std::string& path, const tree& t, bool is_command) {
    const auto type = text(t, "type");
    if (type == "sse")
      p_.report(t.find("type")->at, child_path(path, "type"),
                "HTTP with SSE (revision 2024-11-05) is not supported",
                "http, and the server's URL for streamable HTTP");
    else if (!type.empty() && (type == "stdio") != is_command)
      p_.report(t.find("type")->at, child_path(path, "type"),
                std::string(is_command ? "a command" : "a url") +
                    " cannot be used with type: " + type,
                is_command ? "stdio" : "http");
    constexpr std::array<const char*, 4> of_commands{"args", "env", "env_pass", "cwd"};
    constexpr std::array<const char*, 2> of_urls{"headers", "allow_plain_http"};
    const auto useless = [&](const char* key) {
      if (const auto* found = t.find(key))
        p_.report(found->at, child_path(path, key),
                  std::string("has no effect with ") + (is_command ? "a command" : "a url"),
                  std::string("no ") + key);
    };
    if (is_command)
      std::ranges::for_each(of_urls, useless);
    else
      std::ranges::for_each(of_commands, useless);
  }

  void address(const std::string& path, const tree& t, const tree& url) {
    const auto where = child_path(path, "url");
    if (url.unusable)
      return;
    const auto address = parse_web_address(url.text);
    if (!address) {
      p_.report(url.at, where, "not a web address: " + address.error().what,
                "http://127.0.0.1:8000/mcp, or https://…");
      return;
    }
    if (!address->secure && !is_loopback_host(address->host) &&
        text(t, "allow_plain_http") != "true")
      p_.report(url.at, where, "plain http lets others on the network read calls and results",
                "https://…, or allow_plain_http: true as well");
    const auto* headers = t.find("headers");
    for (std::size_t i = 0; headers != nullptr && i < headers->keys.size(); ++i)
      if (std::ranges::find(own_headers, lower_case(headers->keys[i].text)) != own_headers.end())
        p_.report(headers->keys[i].at, child_path(path + ".headers", headers->keys[i].text),
                  "Boyd sets this header itself", "another header, or none");
  }

  pass& p_;
};

} // namespace

void check_mcp(pass& p, const tree& root) {
  const auto* servers = root.find("mcpServers");
  if (servers == nullptr || servers->kind != tree::kind_t::map)
    return;
  server_checks checks(p);
  for (std::size_t i = 0; i < servers->items.size(); ++i)
    checks.server(servers->keys[i], servers->items[i]);
}

mcp_server mcp_server_of(const pass& p, const std::string& name, const tree& t) {
  mcp_server out;
  out.name = name;
  out.command = text(t, "command");
  // A program beside the configuration file; a bare name is looked up in PATH.
  if (out.command.find('/') != std::string::npos)
    out.command = resolve(p.path, out.command);
  out.args = texts(t, "args");
  const auto pairs = [](const tree& map) {
    std::vector<std::pair<std::string, std::string>> all;
    for (std::size_t i = 0; i < map.items.size(); ++i)
      all.emplace_back(map.keys[i].text, map.items[i].text);
    return all;
  };
  out.env = pairs(get(t, "env"));
  out.env_pass = texts(t, "env_pass");
  out.cwd = text(t, "cwd");
  if (!out.cwd.starts_with(workspace_word))
    out.cwd = resolve(p.path, out.cwd);
  out.url = text(t, "url");
  out.headers = pairs(get(t, "headers"));
  if (const auto* pinned = t.find("pins"))
    out.pins = pairs(*pinned);
  out.optional = flag(t, "optional");
  out.start_timeout = duration(t, "start_timeout");
  out.call_timeout = duration(t, "call_timeout");
  out.call_limit = duration(t, "call_limit");
  out.idle_timeout = duration(t, "idle_timeout");
  return out;
}

} // namespace boyd::config
