#include "libpq_internal.hpp"
#include "session.hpp"

#include <algorithm>
#include <libpq-fe.h>
#include <map>

namespace boyd::adapters::postgres {

namespace {

using settings = std::map<std::string, std::string>;

/// The URI's or key=value string's parts, as libpq reads them: what is done with it begins here.
result<settings> parse(const std::string& uri) {
  if (auto ready = load_libpq(); !ready)
    return fail(std::move(ready.error()));
  char* message = nullptr;
  PQconninfoOption* all = PQconninfoParse(uri.c_str(), &message);
  if (all == nullptr) {
    PQfreemem(message);
    return fail(errc::invalid_configuration, "not a PostgreSQL address", "store",
                "use the form postgres://user@host:port/database");
  }
  settings out;
  for (const auto* o = all; o->keyword != nullptr; ++o)
    if (o->val != nullptr)
      out[o->keyword] = o->val;
  PQconninfoFree(all);
  return out;
}

std::string quoted(const std::string& value) {
  std::string out = "'";
  for (const char c : value) {
    if (c == '\'' || c == '\\')
      out += '\\';
    out += c;
  }
  return out + "'";
}

} // namespace

result<std::string> connection_string(const postgres_options& options) {
  auto parts = parse(options.uri);
  if (!parts)
    return fail(parts.error());
  constexpr std::int64_t least_seconds = 2;
  const auto connect = std::max<std::int64_t>(
      least_seconds, std::chrono::ceil<seconds>(options.connect_timeout).count());
  auto& p = *parts;
  if (options.password)
    p["password"] = *options.password;
  p["connect_timeout"] = std::to_string(connect);
  p["application_name"] = options.application_name;
  p["tcp_user_timeout"] = std::to_string(options.tcp_user_timeout.count());
  p["client_encoding"] = "UTF8";
  std::string out;
  for (const auto& [key, value] : p)
    out += key + "=" + quoted(value) + " ";
  return out;
}

std::string spoken_by(const postgres_options& options) {
  return options.speaker + " ";
}

std::string place(const postgres_options& options) {
  auto parts = parse(options.uri);
  if (!parts)
    return "(malformed address)";
  const auto get = [&](const char* key, const char* fallback) {
    const auto it = parts->find(key);
    return it == parts->end() || it->second.empty() ? std::string{fallback} : it->second;
  };
  return get("host", "localhost") + ":" + get("port", "5432") + "/" +
         get("dbname", get("user", "").c_str());
}

} // namespace boyd::adapters::postgres
