#include "../counted.hpp"
#include "../exit_codes.hpp"
#include "../home.hpp"
#include "../terminal.hpp"
#include "../unread_items.hpp"
#include "boyd/config/load.hpp"
#include "commands.hpp"

#include <nlohmann/json.hpp>

#include <utility>

namespace boyd::app {

namespace {

using json = nlohmann::json;

std::string dump(const json& body) {
  return body.dump(-1, ' ', false, json::error_handler_t::replace) + "\n";
}

json findings_json(const std::vector<config::finding>& findings) {
  json rows = json::array();
  for (const auto& f : findings)
    rows.push_back({{"file", f.file},
                    {"line", f.line},
                    {"column", f.column},
                    {"key", f.key},
                    {"problem", f.problem},
                    {"expected", f.expected},
                    {"nearest", f.nearest},
                    {"text", f.text()}});
  return rows;
}

void print_counts(const config::configuration& c) {
  std::size_t agents = 0;
  for (const auto& k : c.kernels)
    agents += k.agents.size();
  print(c.path + ": valid, " + counted(c.kernels.size(), "kernel") + ", " +
        counted(agents, "agent") + "\n");
}

int validate(const arguments& args, const place& where, const config::load_result& loaded) {
  const bool valid = loaded.value.has_value();
  auto warnings = loaded.warnings;
  if (valid)
    for (auto& w : unread_items(*loaded.value, where))
      warnings.push_back(std::move(w));
  if (args.json)
    print(dump({{"schema", "boyd.config_validate/1"},
                {"path", where.config_path},
                {"valid", valid},
                {"findings", findings_json(loaded.findings)},
                {"warnings", findings_json(warnings)}}));
  for (const auto& w : warnings)
    print_note("warning: " + w.text());
  if (!valid)
    print_error(error_of(loaded, where.config_path));
  else if (!args.json)
    print_counts(*loaded.value);
  return valid ? exit_code::ok : exit_code::configuration;
}

int show(const arguments& args, const place& where, const config::load_result& loaded) {
  if (!loaded.value)
    return report(error_of(loaded, where.config_path), args.json);
  const auto& text = loaded.value->redacted_yaml;
  if (args.json)
    print(dump({{"schema", "boyd.config/1"}, {"path", where.config_path}, {"yaml", text}}));
  else
    print(text);
  return exit_code::ok;
}

int schema(const arguments& args) {
  const auto text = args.markdown ? config::reference_markdown() : config::schema_json();
  print(text + (text.ends_with('\n') ? "" : "\n"));
  return exit_code::ok;
}

} // namespace

int run_config(const arguments& args) {
  if (args.verb == "config schema")
    return schema(args);
  auto where = place_of(args);
  if (!where)
    return report(where.error(), args.json);
  if (args.config.empty())
    if (auto there = require_home(*where); !there)
      return report(there.error(), args.json);
  const auto p = local_ports();
  auto loaded = read_configuration(where->config_path, *p.files, *p.zones);
  if (!loaded)
    return report(loaded.error(), args.json);
  return args.verb == "config show" ? show(args, *where, *loaded) : validate(args, *where, *loaded);
}

} // namespace boyd::app
