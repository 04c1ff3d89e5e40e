#pragma once

#include "program.hpp"
#include "support/model_answers.hpp"
#include "support/pch.hpp"

#include <algorithm>
#include <filesystem>
#include <sstream>

/// Homes of one agent that talks to a model, and what its runs leave behind.
namespace boyd::test::chat_homes {

/// A node with one provider, the endpoint, and one agent that talks to it; `more` goes into the
/// agent, `provider` into the provider.
inline std::string yaml_of(const model_endpoint& endpoint, const std::string& more = {},
                           const std::string& provider = {}, const std::string& top = {}) {
  return "version: 1\n" + top +
         "providers:\n"
         "  - provider_id: local\n"
         "    base_url: " +
         endpoint.base_url() +
         "\n"
         "    model: test-model\n" +
         provider +
         "kernels:\n"
         "  - kernel_id: default\n"
         "    schedule: \"0 0 1 1 *\"\n"
         "    system_prompt: You are terse.\n"
         "    agents:\n"
         "      - agent_id: writer\n"
         "        prompt: \"Say something about {TIME}.\"\n"
         "        executor: {type: chat, provider: local}\n" +
         more;
}

inline nlohmann::json last_dispatch(const home_of_boyd& home) {
  const auto all = home.run({"dispatches", "ls", "--json"}).json();
  REQUIRE(all.is_object());
  REQUIRE(!all["items"].empty());
  const std::string id = all["items"][0]["dispatch_id"];
  const auto row = home.run({"dispatches", "show", id, "--json"}).json()["dispatch"];
  REQUIRE(row.is_object());
  return row;
}

inline std::vector<nlohmann::json> turns_of(const home_of_boyd& home, const nlohmann::json& row) {
  std::vector<nlohmann::json> lines;
  const auto folder = home.file("executions/" + row["dispatch_id"].get<std::string>());
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    if (entry.path().extension() != ".jsonl")
      continue;
    std::istringstream in(read_file(entry.path()));
    for (std::string line; std::getline(in, line);)
      lines.push_back(nlohmann::json::parse(line));
  }
  return lines;
}

inline std::vector<nlohmann::json> events_of(const home_of_boyd& home, const nlohmann::json& row,
                                             const std::string& event) {
  auto lines = turns_of(home, row);
  std::erase_if(lines, [&](const nlohmann::json& line) { return line["event"] != event; });
  return lines;
}

} // namespace boyd::test::chat_homes
