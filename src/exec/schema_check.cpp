#include "schema_check.hpp"

#include "schema_rules.hpp"

#include <nlohmann/json.hpp>
#include <valijson/adapters/nlohmann_json_adapter.hpp>
#include <valijson/schema.hpp>
#include <valijson/schema_parser.hpp>
#include <valijson/validation_results.hpp>
#include <valijson/validator.hpp>

#include <exception>

namespace boyd::exec {

std::string schema_finding(const nlohmann::json& schema, const nlohmann::json& value) {
  if (auto why = too_large_for(schema, value); !why.empty())
    return why;
  try {
    const auto usable = usable_schema(schema, value);
    valijson::Schema parsed;
    valijson::SchemaParser parser;
    add_text_rules(parser);
    const valijson::adapters::NlohmannJsonAdapter schema_view(usable);
    parser.populateSchema(schema_view, parsed);
    valijson::Validator validator;
    valijson::ValidationResults results;
    const valijson::adapters::NlohmannJsonAdapter value_view(value);
    if (validator.validate(parsed, value_view, &results))
      return {};
    valijson::ValidationResults::Error first;
    if (!results.popError(first))
      return "does not validate";
    std::string place;
    for (const auto& part : first.context)
      place += part;
    return place + ": " + first.description;
  } catch (const std::exception& e) {
    return std::string("cannot use the schema: ") + e.what();
  }
}

} // namespace boyd::exec
