#pragma once

#include "boyd/mcp/session.hpp"
#include "support/pch.hpp"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <map>

/// A session of the protocol's client without a server: what it sends is looked at, what it hears
/// is made up.
namespace boyd::mcp::lab {

using nlohmann::json;

inline constexpr steady_time start{};

/// A session, and what it wants, sorted.
class talk {
 public:
  explicit talk(session_options o = {}) : s(std::move(o)) {}

  session s;
  std::vector<json> sent; ///< messages, in order
  std::vector<effect::send> sends;
  std::map<std::string, result<std::string>> done;
  std::vector<std::pair<std::uint64_t, question>> asked;
  std::vector<std::uint64_t> withdrawn;
  std::vector<std::int64_t> abandoned;
  std::vector<std::string> notes;
  std::optional<error> failed;
  int ready = 0;
  int changed = 0;
  steady_time now = start;

  void take(session_effects effects) {
    CHECK_FALSE(failed);
    for (auto& any : effects) {
      if (auto* e = std::get_if<effect::send>(&any)) {
        sent.push_back(json::parse(e->text));
        sends.push_back(*e);
      } else if (auto* d = std::get_if<effect::call_done>(&any)) {
        CHECK(done.emplace(d->key, d->result_json).second);
      } else if (auto* q = std::get_if<effect::ask>(&any)) {
        asked.emplace_back(q->number, q->what);
      } else if (auto* w = std::get_if<effect::withdraw>(&any)) {
        withdrawn.push_back(w->number);
      } else if (auto* a = std::get_if<effect::abandon>(&any)) {
        abandoned.push_back(a->id);
      } else if (auto* n = std::get_if<effect::note>(&any)) {
        notes.push_back(n->text);
      } else if (auto* f = std::get_if<effect::failed>(&any)) {
        failed = f->why;
      } else if (std::holds_alternative<effect::ready>(any)) {
        ++ready;
      } else {
        ++changed;
      }
    }
  }

  void hear(const json& message) { take(s.on_message(message.dump(), now)); }
  void answer(const json& id, const json& result) {
    hear({{"jsonrpc", "2.0"}, {"id", id}, {"result", result}});
  }
  void refuse(const json& id, int code, const std::string& message, const json& data = nullptr) {
    json e = {{"code", code}, {"message", message}};
    if (!data.is_null())
      e["data"] = data;
    hear({{"jsonrpc", "2.0"}, {"id", id}, {"error", e}});
  }
  /// The last message with this method.
  const json& last(const std::string& method) const {
    for (auto it = sent.rbegin(); it != sent.rend(); ++it)
      if (it->value("method", "") == method)
        return *it;
    FAIL("no " + method + " was sent");
    throw 0;
  }
  int count(const std::string& method) const {
    return static_cast<int>(std::ranges::count_if(
        sent, [&](const json& m) { return m.value("method", "") == method; }));
  }
  void wait(milliseconds t) {
    now += t;
    take(s.on_time(now));
  }
};

inline json tool(const std::string& name, const json& schema = {{"type", "object"}}) {
  return {{"name", name}, {"description", "does " + name}, {"inputSchema", schema}};
}

inline json discovered(const json& capabilities = {{"tools", {{"listChanged", true}}}}) {
  return {{"resultType", "complete"},
          {"supportedVersions", {"2026-07-28"}},
          {"capabilities", capabilities},
          {"_meta", {{"io.modelcontextprotocol/serverInfo", {{"name", "s"}, {"version", "1"}}}}}};
}

inline json initialized(const std::string& version = "2025-11-25") {
  return {{"protocolVersion", version},
          {"capabilities", {{"tools", {{"listChanged", true}}}}},
          {"serverInfo", {{"name", "s"}, {"version", "1"}}}};
}

/// Ready, with one tool "t".
inline talk modern(session_options o = {}) {
  talk t(std::move(o));
  t.take(t.s.begin(t.now));
  t.answer(t.last("server/discover")["id"], discovered());
  t.answer(t.last("tools/list")["id"], {{"tools", {tool("t")}}});
  REQUIRE(t.s.is_ready());
  return t;
}

inline talk legacy(session_options o = {}) {
  talk t(std::move(o));
  t.take(t.s.begin(t.now));
  t.refuse(t.last("server/discover")["id"], -32601, "Method not found");
  t.answer(t.last("initialize")["id"], initialized());
  t.answer(t.last("tools/list")["id"], {{"tools", {tool("t")}}});
  REQUIRE(t.s.is_ready());
  return t;
}

inline server_call call_of(const std::string& key, const std::string& arguments = "{}") {
  server_call c;
  c.key = key;
  c.name = "t";
  c.arguments_json = arguments;
  return c;
}

} // namespace boyd::mcp::lab
