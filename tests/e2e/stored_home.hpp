#pragma once

#include <string>

namespace boyd::test {

/// A configuration with this store and one kernel that no schedule wakes. `agents`: entries of its
/// list, indented as these.
inline std::string
stored_yaml(const std::string& store,
            const std::string& agents =
                "      - {agent_id: one, executor: {type: command, argv: [echo, hello]}}\n") {
  return "version: 1\n"
         "node: {store: \"" +
         store +
         "\"}\n"
         "kernels:\n"
         "  - schedule: \"0 0 1 1 *\"\n"
         "    agents:\n" +
         agents;
}

} // namespace boyd::test
