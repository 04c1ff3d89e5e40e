#include "actors/mcp/core.hpp"

#include "boyd/mcp/catalogue.hpp"

#include <algorithm>

namespace boyd::mcp_core {

namespace {

bool names_workspace(const config::mcp_server& s) {
  const auto has = [](const std::string& text) {
    return text.find(config::workspace_word) != std::string::npos;
  };
  return has(s.cwd) || std::ranges::any_of(s.args, has) ||
         std::ranges::any_of(s.env, [&](const auto& v) { return has(v.second); });
}

/// Once, without looking at what was put in.
std::string filled(std::string text, const std::string& workspace) {
  std::string out;
  for (std::size_t at = 0; at < text.size();) {
    const auto found = text.find(config::workspace_word, at);
    out += text.substr(at, found - at);
    if (found == std::string::npos)
      break;
    out += workspace;
    at = found + config::workspace_word.size();
  }
  return out;
}

} // namespace

std::string key_of(std::string_view server, const std::string& workspace) {
  return "mcp:" + std::string(server) + (workspace.empty() ? "" : "@" + workspace);
}

instance instance_of(const config::mcp_server& server, const std::string& workspace,
                     const std::string& home, const std::string& file) {
  instance i;
  i.name = server.name;
  i.definition = server;
  i.workspace = names_workspace(server) ? workspace : std::string();
  i.key = key_of(server.name, i.workspace);
  i.file = file;
  for (auto& a : i.definition.args)
    a = filled(a, workspace);
  for (auto& [name, value] : i.definition.env)
    value = filled(value, workspace);
  i.definition.cwd = filled(server.cwd, workspace);
  i.cwd = i.definition.cwd.empty() ? home : i.definition.cwd;
  return i;
}

std::vector<const config::mcp_server*> wanted(const config::configuration& c,
                                              const std::vector<std::string>& patterns) {
  std::vector<const config::mcp_server*> all;
  for (const auto& s : c.mcp_servers)
    if (std::ranges::any_of(patterns, [&](const auto& p) { return mcp::may_name(p, s.name); }))
      all.push_back(&s);
  return all;
}

std::string file_of(const std::string& workspace) {
  return workspace + "/.mcp.json";
}

std::string trust_file_of(const std::string& home) {
  return home + "/trust/mcp.json";
}

namespace {

/// A server of a workspace's .mcp.json, whether it may be used or not.
instance instance_in(const std::string& workspace, const mcp::found_server& f) {
  auto i = instance_of(f.definition, workspace, workspace, file_of(workspace));
  i.workspace = workspace;
  i.key = key_of(f.definition.name, workspace);
  if (!i.cwd.starts_with('/'))
    i.cwd = workspace + "/" + i.cwd;
  i.pinned = true;
  i.secrets = f.secrets;
  i.programs = f.programs;
  i.shown = mcp::pin_text(f);
  i.pin = mcp::pin_of(f);
  return i;
}

std::string joined(const std::vector<std::string>& lines) {
  std::string all;
  for (const auto& line : lines)
    all += (all.empty() ? "" : "; ") + line;
  return all;
}

} // namespace

std::vector<std::string> programs_of(const std::string& workspace, const mcp::found_server& found) {
  if (!found.problem.empty() || found.definition.command.empty())
    return {};
  const auto i = instance_in(workspace, found);
  return mcp::named_paths(i.definition, i.cwd, workspace);
}

workspace_servers judge(const std::string& workspace, const std::vector<mcp::found_server>& found,
                        const std::vector<mcp::trusted_server>& trusted) {
  const auto file = file_of(workspace);
  workspace_servers out;
  for (const auto& f : found) {
    const auto& name = f.definition.name;
    const auto refuse = [&](errc code, std::string what, std::string next, bool changed = false) {
      out.refused.push_back({name,
                             f.words,
                             mcp::pin_text(f),
                             mcp::pin_of(f),
                             changed,
                             {code, std::move(what), file, std::move(next)}});
    };
    const auto known = std::ranges::find_if(
        trusted, [&](const auto& t) { return t.file == file && t.name == name; });
    const auto trust = "boyd tools trust " + name + " --path " + workspace;
    if (known == trusted.end())
      refuse(errc::refused, "the server " + name + " is not trusted yet; it would run: " + f.words,
             "review it, then run: " + trust);
    else if (known->hash != f.hash)
      refuse(errc::refused,
             "the server " + name + " differs from the trusted one; trusted: " + known->words +
                 "; now: " + f.words,
             "review it, then run: " + trust, true);
    else if (!f.problem.empty())
      refuse(errc::invalid_configuration, "the server " + name + ": " + f.problem, {});
    else if (const auto changes = mcp::program_changes(known->programs, f.programs);
             !changes.empty())
      refuse(errc::refused,
             "the server " + name +
                 " would run other files than the trusted ones: " + joined(changes),
             "review it, then run: " + trust, true);
    else
      out.usable.push_back(instance_in(workspace, f));
  }
  return out;
}

instance kept_in_sandbox(instance i, const config::agent& user,
                         const std::vector<const config::agent*>& sharing) {
  i.sandbox = user.sandbox;
  const auto same = [&](const config::agent* a) { return a->sandbox == user.sandbox; };
  const auto first = std::ranges::find_if(sharing, same);
  if (first != sharing.begin() && first != sharing.end())
    i.key += "#" + (*first)->agent_id;
  return i;
}

std::vector<mcp::trusted_server> without_trust(std::vector<mcp::trusted_server> all,
                                               const std::string& file, const std::string& name) {
  std::erase_if(all, [&](const auto& t) { return t.file == file && t.name == name; });
  return all;
}

std::vector<mcp::trusted_server> with_trust(std::vector<mcp::trusted_server> all,
                                            const mcp::trusted_server& server) {
  all = without_trust(std::move(all), server.file, server.name);
  all.push_back(server);
  return all;
}

std::vector<std::string> missing(const std::vector<std::string>& known,
                                 const std::vector<std::string>& patterns) {
  std::vector<std::string> all;
  for (const auto& p : patterns) {
    const std::string name(mcp::server_of(p));
    if (!name.empty() && name.find_first_of("*?") == std::string::npos &&
        std::ranges::find(known, name) == known.end() && std::ranges::find(all, name) == all.end())
      all.push_back(name);
  }
  return all;
}

} // namespace boyd::mcp_core
