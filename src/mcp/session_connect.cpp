#include "session_internal.hpp"
#include "tool_list.hpp"

#include <algorithm>
#include <utility>

namespace boyd::mcp {

namespace {

/// A version that is refused is tried once more, with one that the server names.
constexpr int most_discoveries = 2;
/// A server's word about how long its list holds is taken within these bounds.
constexpr milliseconds shortest_list = 5s;
constexpr milliseconds longest_list = 1h;
constexpr milliseconds longest_listen = std::chrono::hours{24};

std::vector<std::string> texts_in(const json& object, const char* name) {
  std::vector<std::string> all;
  const auto& list = member(object, name);
  for (std::size_t i = 0; list.is_array() && i < list.size() && i < 100; ++i)
    if (list[i].is_string())
      all.push_back(list[i].get<std::string>());
  return all;
}

std::string joined(const std::vector<std::string>& all) {
  std::string out;
  for (const auto& one : all)
    out += (out.empty() ? "" : ", ") + one;
  return out.substr(0, 500);
}

} // namespace

// -- which era -----------------------------------------------------------------------------------

void session::impl::discover(steady_time now) {
  ++discoveries;
  now_in = phase::probing;
  if (!o.http)
    probe_until = std::min(connect_by, now + o.probe_timeout);
  request({open_request::kind_t::discover, {}, connect_by}, "server/discover", json::object(), {},
          now);
}

void session::impl::initialize(steady_time now) {
  now_in = phase::greeting;
  probe_until.reset();
  json params = json::object();
  params["protocolVersion"] = legacy_versions.front();
  params["capabilities"] = capabilities();
  params["clientInfo"] = client_info();
  era = era_t::unknown;
  version.clear();
  ++greetings;
  // After a lost session nothing of the earlier one is waited for but calls.
  listing = false;
  std::erase_if(requests,
                [](const auto& r) { return r.second.kind == open_request::kind_t::tools; });
  request({open_request::kind_t::initialize, {}, connect_by}, "initialize", std::move(params), {},
          now);
}

/// The server has forgotten the session.
void session::impl::greet_again(steady_time now) {
  judge = nullptr;
  connect_by = now + o.start_timeout;
  initialize(now);
}

void session::impl::choose(const std::vector<std::string>& offered, steady_time now) {
  const auto has = [&](std::string_view v) {
    return std::ranges::find(offered, v) != offered.end();
  };
  if (has(modern_version)) {
    if (discoveries < most_discoveries)
      return discover(now);
  } else if (std::ranges::any_of(legacy_versions, has)) {
    return initialize(now);
  }
  fail_session(
      {errc::refused,
       "the server has no protocol version that this node supports; it offers: " + joined(offered),
       {},
       {}});
}

void session::impl::on_discover_error(const rpc_error& e, steady_time now) {
  if (now_in == phase::greeting)
    return; // late: the handshake is on its way
  if (e.code == rpc_code::unsupported_version)
    return choose(texts_in(e.data_json.empty() ? json() : parse(e.data_json), "supported"), now);
  if (e.code == rpc_code::header_mismatch || e.code == rpc_code::missing_capability)
    return fail_session({errc::refused, "the server refused this client: " + e.message, {}, {}});
  initialize(now);
}

void session::impl::on_discovered(const json& result, steady_time now) {
  const auto offered = texts_in(result, "supportedVersions");
  if (offered.empty()) {
    // It answers whatever it is asked: no server of the stateless revisions.
    if (now_in == phase::probing)
      initialize(now);
    return;
  }
  if (std::ranges::find(offered, modern_version) == offered.end()) {
    if (now_in == phase::probing)
      choose(offered, now);
    return;
  }
  // A slow server of the stateless revisions may have been asked for the handshake meanwhile.
  std::erase_if(requests,
                [](const auto& r) { return r.second.kind == open_request::kind_t::initialize; });
  probe_until.reset();
  era = era_t::modern;
  version = modern_version;
  read_capabilities(result);
  const auto& meta = member(result, "_meta");
  const auto& info = meta.is_object() && meta.contains(meta_key::server)
                         ? member(meta, meta_key::server)
                         : member(result, "serverInfo");
  says = text_in(info, "name") + " " + text_in(info, "version");
  now_in = phase::listing;
  if (tools_capability)
    return list_tools(now);
  tools_complete(-1, now);
}

void session::impl::on_initialized(const json& result, steady_time now) {
  const auto agreed = text_in(result, "protocolVersion");
  if (!is_legacy_version(agreed))
    return fail_session({errc::refused,
                         "the server answered the handshake with an unknown protocol version: " +
                             agreed.substr(0, 100),
                         {},
                         {}});
  std::erase_if(requests,
                [](const auto& r) { return r.second.kind == open_request::kind_t::discover; });
  era = era_t::legacy;
  version = agreed;
  read_capabilities(result);
  const auto& info = member(result, "serverInfo");
  says = text_in(info, "name") + " " + text_in(info, "version");
  notify("notifications/initialized", json::object());
  now_in = phase::listing;
  if (tools_capability)
    return list_tools(now);
  tools_complete(-1, now);
}

void session::impl::read_capabilities(const json& result) {
  const auto& all = member(result, "capabilities");
  const auto& of_tools = member(all, "tools");
  tools_capability = of_tools.is_object();
  tools_tell = member(of_tools, "listChanged") == true;
  resources_capability = member(all, "resources").is_object();
}

// -- the list of tools ---------------------------------------------------------------------------

void session::impl::list_tools(steady_time now, const std::string& cursor) {
  if (cursor.empty()) {
    if (!tools_capability)
      return;
    if (listing) {
      list_again = true;
      return;
    }
    listing = true;
    list_again = false;
    page_tools.clear();
    cursors.clear();
    page_bytes = 0;
  }
  json params = json::object();
  if (!cursor.empty())
    params["cursor"] = cursor;
  const auto by = now_in == phase::ready ? now + o.start_timeout : connect_by;
  request({open_request::kind_t::tools, {}, by}, "tools/list", std::move(params), {}, now);
}

void session::impl::on_tools(const json& result, steady_time now) {
  page_bytes += dump(result).size();
  auto next =
      read_tools(result, o.http, page_tools, [&](const std::string& why) { note(true, why); });
  std::string too_much;
  if (page_tools.size() > most_tools) {
    page_tools.resize(most_tools);
    too_much = "the server has more than " + std::to_string(most_tools) + " tools";
  } else if (page_bytes > tools_bytes) {
    too_much = "the list of tools is longer than " + std::to_string(tools_bytes >> 20) + " MiB";
  } else if (next && cursors.size() + 1 >= most_pages) {
    too_much = "the list of tools has more than " + std::to_string(most_pages) + " pages";
  } else if (next && (next->empty() || std::ranges::find(cursors, *next) != cursors.end())) {
    too_much = "the list of tools repeats itself";
  }
  if (!too_much.empty())
    note(true, too_much + "; the other tools are ignored");
  if (next && too_much.empty()) {
    cursors.push_back(*next);
    return list_tools(now, *next);
  }
  const auto& ttl = member(result, "ttlMs");
  tools_complete(ttl.is_number_unsigned() ? static_cast<int>(std::min<std::uint64_t>(
                                                ttl.get<std::uint64_t>(),
                                                static_cast<std::uint64_t>(longest_list.count())))
                                          : -1,
                 now);
}

void session::impl::tools_complete(int ttl_ms, steady_time now) {
  const bool differ = page_tools != tools;
  tools = std::exchange(page_tools, {});
  cursors.clear();
  if (!tools_tell)
    old_from = now + (ttl_ms < 0 ? o.list_lifetime
                                 : std::clamp(milliseconds{ttl_ms}, shortest_list, longest_list));
  const bool first = now_in == phase::listing;
  now_in = phase::ready;
  if (first || differ)
    judge = nullptr;
  if (first) {
    out.emplace_back(effect::ready{});
    if (era == era_t::modern && tools_tell)
      listen(now);
  } else if (differ) {
    out.emplace_back(effect::tools_changed{});
  }
  end_listing(now);
}

void session::impl::end_listing(steady_time now) {
  listing = false;
  if (std::exchange(list_again, false))
    return list_tools(now);
  list_in_doubt = false;
  start_waiting(now);
}

/// Asks a stateless server to tell when its tools change.
void session::impl::listen(steady_time now) {
  json params = json::object();
  params["notifications"] = {{"toolsListChanged", true}};
  request({open_request::kind_t::listen, {}, now + longest_listen}, "subscriptions/listen",
          std::move(params), {}, now);
}

} // namespace boyd::mcp
