#pragma once

#include "program.hpp"
#include "support/model_answers.hpp"

#include <string>

namespace boyd::test {

/// A node whose one agent, `worker`, talks to the endpoint and has tools: `agent` and `kernel` go
/// into these, `rule` is its policy's only one.
inline std::string working_yaml(const model_endpoint& endpoint, const std::string& agent = {},
                                const std::string& kernel = {},
                                const std::string& rule = "{tool: run_command, decision: allow}") {
  return "version: 1\n"
         "providers:\n"
         "  - {provider_id: local, base_url: \"" +
         endpoint.base_url() +
         "\", model: test-model, max_retries: 0}\n"
         "kernels:\n"
         "  - kernel_id: default\n"
         "    schedule: \"0 0 1 1 *\"\n" +
         kernel +
         "    agents:\n"
         "      - agent_id: worker\n"
         "        prompt: Do it.\n"
         "        retry: {max_attempts: 1}\n"
         "        executor: {type: chat, provider: local}\n"
         "        tools: [run_command, read_file, write_file]\n"
         "        policy: {rules: [" +
         rule + "]}\n" + agent;
}

} // namespace boyd::test
