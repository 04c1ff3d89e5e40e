#include "loading.hpp"
#include "support/pch.hpp"

#include <nlohmann/json.hpp>

namespace boyd::reference_test {

using namespace boyd::config;
using namespace boyd::config::testing;
using nlohmann::json;

namespace {

/// Follows a local reference of the schema.
const json& follow(const json& root, const json& rule) {
  return rule.contains("$ref")
             ? root.at(json::json_pointer(rule.at("$ref").get<std::string>().substr(1)))
             : rule;
}

/// Calls `visit(path, key's rule)` for every key that the schema names.
template <class Visit>
void each_key(const json& root, const std::string& path, const json& map, const Visit& visit) {
  for (const auto& [key, given] : map.at("properties").items()) {
    visit(path + "." + key, follow(root, given));
  }
}

} // namespace

TEST_CASE("reference: docs/configuration.md is what the schema says", "[config]") {
  INFO("run: boyd config schema --markdown > docs/configuration.md");
  CHECK((source_file("docs/configuration.md") == reference_markdown()));
}

TEST_CASE("schema: the file is what the binary carries", "[config]") {
  CHECK((schema_json() == source_file("config/boyd.schema.json")));
  CHECK((default_yaml() == source_file("config/default.yaml")));
}

TEST_CASE("schema: every key is described, with an example, and every map is closed", "[config]") {
  const auto root = json::parse(schema_json());
  CHECK(root.at("$schema") == "http://json-schema.org/draft-07/schema#");
  CHECK(root.contains("$id"));
  const auto check = [](const std::string& path, const json& rule) {
    INFO(path);
    CHECK_FALSE(rule.value("description", std::string()).empty());
    CHECK((rule.contains("examples") || rule.value("type", json()) == "object"));
  };
  each_key(root, "", root, check);
  for (const auto& [name, definition] : root.at("definitions").items()) {
    INFO(name);
    CHECK_FALSE(definition.value("description", std::string()).empty());
    CHECK((name == "executor" || definition.at("additionalProperties") == false));
    each_key(root, name, definition, check);
  }
}

TEST_CASE("schema: the reference names every key", "[config]") {
  const auto root = json::parse(schema_json());
  const auto text = reference_markdown();
  for (const auto& [name, definition] : root.at("definitions").items()) {
    each_key(root, name, definition, [&](const std::string& path, const json&) {
      INFO(path);
      CHECK(text.find("| `" + path.substr(path.rfind('.') + 1) + "` |") != std::string::npos);
    });
  }
}

} // namespace boyd::reference_test
