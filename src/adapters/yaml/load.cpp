#include "boyd/config/load.hpp"

#include "boyd/config/tree.hpp"
#include "yaml.hpp"

namespace boyd::config {

load_result load(const std::string& path, std::string_view text,
                 const environment_lookup& environment, const time_zones& zones,
                 unset_variables unset, const file_reader& files) {
  return build(path, adapters::parse_yaml(path, text), environment, zones, adapters::emit_yaml,
               unset, files, adapters::parse_yaml);
}

result<std::vector<script_executor::answer>> load_answers(const std::string& path,
                                                          std::string_view text) {
  return build_answers(path, adapters::parse_yaml(path, text));
}

result<tree> load_improve(const std::string& path, std::string_view text,
                          const environment_lookup& environment, const time_zones& zones) {
  return build_improve(path, adapters::parse_yaml(path, text), environment, zones);
}

} // namespace boyd::config
