#include "backup_manifest.hpp"

#include "../json_view.hpp"
#include "boyd/core/json_depth.hpp"

#include <utility>

namespace boyd::app {

namespace {

constexpr const char* manifest_schema = "boyd.backup_manifest/1";

tl::unexpected<error> not_a_backup() {
  return fail(errc::corrupt, "this is not a Boyd backup: the list of files is missing", {},
              "use a file made by: boyd backup");
}

} // namespace

std::string to_json(const backup_manifest& m) {
  json files = json::array();
  for (const auto& f : m.files)
    files.push_back({{"path", f.path}, {"size", f.size}, {"sha256", f.sha256}});
  return json{{"schema", manifest_schema},
              {"version", m.version},
              {"home", m.home},
              {"made_at", format_rfc3339(m.made_at)},
              {"files", std::move(files)}}
             .dump(-1, ' ', false, json::error_handler_t::replace) +
         "\n";
}

result<backup_manifest> read_manifest(std::string_view text) {
  if (!check_json_depth(text))
    return not_a_backup();
  const auto object = object_of(std::string(text));
  const auto made_at = parse_rfc3339(text_of(object, "made_at"));
  if (text_of(object, "schema") != manifest_schema || !made_at)
    return not_a_backup();
  backup_manifest m{text_of(object, "version"), text_of(object, "home"), *made_at, {}};
  for (const auto& f : rows_of(object, "files"))
    m.files.push_back({text_of(f, "path"), static_cast<std::uint64_t>(number_of(f, "size")),
                       text_of(f, "sha256")});
  return m;
}

} // namespace boyd::app
