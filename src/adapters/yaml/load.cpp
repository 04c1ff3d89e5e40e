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
                          const environment_lookup& environment, const time_zones& zones,
                          std::vector<std::string>* secrets) {
  return build_improve(path, adapters::parse_yaml(path, text), environment, zones, secrets);
}

load_result load_proposers(const std::string& path, std::string_view text,
                           const environment_lookup& environment, const time_zones& zones,
                           const file_reader& files, const std::string& repository) {
  return build(path, proposers_of(adapters::parse_yaml(path, text), repository), environment, zones,
               adapters::emit_yaml, unset_variables::are_errors, files, adapters::parse_yaml);
}

} // namespace boyd::config
