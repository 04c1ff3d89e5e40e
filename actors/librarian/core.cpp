#include "actors/librarian/core.hpp"

#include "boyd/core/limits.hpp"
#include "boyd/core/sha256.hpp"
#include "boyd/core/text.hpp"
#include "boyd/memory/document.hpp"
#include "src/core/json_values.hpp"

#include <nlohmann/json.hpp>

#include <algorithm>

namespace boyd {

namespace {

/// TERM, KILL, and what messages take on a busy machine.
constexpr milliseconds probe_overhead = 4 * limits::term_grace;

} // namespace

std::string write_sense_memory(const sense_memory& memory) {
  nlohmann::json v = {{"at", to_unix_ms(memory.at)},
                      {"changed_at", to_unix_ms(memory.changed_at)},
                      {"hash", memory.hash},
                      {"output", sanitize_utf8(memory.output)},
                      {"problem", sanitize_utf8(memory.problem)}};
  return v.dump();
}

std::optional<sense_memory> read_sense_memory(std::string_view text) {
  try {
    const auto v = nlohmann::json::parse(text);
    sense_memory m;
    m.at = from_unix_ms(v.at("at").get<std::int64_t>());
    m.changed_at = from_unix_ms(v.at("changed_at").get<std::int64_t>());
    m.hash = text_in(v, "hash");
    m.output = text_in(v, "output");
    m.problem = text_in(v, "problem");
    return m;
  } catch (const nlohmann::json::exception&) {
    return std::nullopt;
  }
}

std::map<std::string, sense_memory>
read_sense_memories(const std::map<std::string, std::string>& facts) {
  std::map<std::string, sense_memory> memory;
  for (const auto& [name, text] : facts)
    if (auto m = read_sense_memory(text))
      memory[name] = std::move(*m);
  return memory;
}

bool is_due(const config::sense& sense, const std::optional<sense_memory>& memory, utc_time now) {
  return !memory || now < memory->at || now - memory->at >= sense.interval;
}

sense_memory after_run(const std::optional<sense_memory>& before,
                       const result<program_outcome>& outcome, utc_time now) {
  sense_memory m = before.value_or(sense_memory{});
  m.at = now;
  m.problem = outcome ? problem_of(*outcome) : to_string(outcome.error());
  if (!m.problem.empty())
    return m;
  const auto hash = hash_of(*outcome);
  if (hash != m.hash)
    m.changed_at = now;
  m.hash = hash;
  m.output = outcome->output;
  return m;
}

std::string render_senses(const std::vector<config::sense>& senses,
                          const std::map<std::string, sense_memory>& memory) {
  std::string text;
  for (const auto& sense : senses) {
    const auto it = memory.find(sense.name);
    if (it == memory.end())
      continue;
    const auto& m = it->second;
    if (!text.empty())
      text += '\n';
    text += "### " + sense.name + " (";
    if (!m.problem.empty()) {
      text += "failed at " + format_rfc3339(m.at) + ": " + m.problem + ")\n";
      continue;
    }
    text += "as of " + format_rfc3339(m.at);
    text += m.changed_at == m.at ? ", changed)\n"
                                 : ", unchanged since " + format_rfc3339(m.changed_at) + ")\n";
    text += m.output;
    if (!m.output.empty() && m.output.back() != '\n')
      text += '\n';
  }
  return text;
}

std::vector<std::string> sense_problems(const std::vector<config::sense>& senses,
                                        const std::map<std::string, sense_memory>& memory) {
  std::vector<std::string> problems;
  for (const auto& sense : senses)
    if (const auto it = memory.find(sense.name); it != memory.end() && !it->second.problem.empty())
      problems.push_back("sense " + sense.name + ": " + it->second.problem);
  return problems;
}

std::string unreadable_text(const std::string& name, const error& why) {
  return "[" + name + " exists, but cannot be read: " + why.what +
         ". Do not act as if it were empty.]\n";
}

std::vector<std::string> note_unreadable(const std::map<std::string, error>& unreadable,
                                         std::map<std::string, std::string>& files) {
  std::vector<std::string> problems;
  for (const auto& [name, why] : unreadable) {
    files[name] = unreadable_text(name, why);
    problems.push_back(name + " cannot be read: " + to_string(why));
  }
  return problems;
}

std::string memory_text(const std::map<std::string, std::string>& kernel_files,
                        std::int64_t budget_tokens) {
  std::vector<std::string> files;
  for (const auto* name : {"SOUL.md", "MEMORY.md"})
    if (const auto it = kernel_files.find(name); it != kernel_files.end())
      files.push_back(it->second);
  return memory::memory_for_prompt(files, budget_tokens);
}

std::string hash_of(const program_outcome& outcome) {
  return sha256_hex(outcome.output + '\0' + std::to_string(outcome.total));
}

milliseconds gather_limit(const config::kernel& kernel) {
  milliseconds longest{0};
  for (const auto& sense : kernel.senses)
    longest = std::max(longest, helper_patience + sense.timeout + probe_overhead);
  return longest + 2 * limits::request_timeout;
}

milliseconds wake_limit(const config::kernel& kernel) {
  milliseconds longest{0};
  for (const auto& agent : kernel.agents)
    if (agent.wake)
      longest = std::max(longest, helper_patience + agent.wake->timeout + probe_overhead);
  return longest + 2 * limits::request_timeout;
}

} // namespace boyd
