#include "boyd/exec/command_line.hpp"

#include "boyd/core/text.hpp"
#include "placeholders.hpp"

#include <algorithm>
#include <array>
#include <map>

namespace boyd::exec {

namespace {

using pairs = placeholder_values;

constexpr std::array let_through = {
    "HOME",           "USER",       "LOGNAME",     "LANG",        "LC_ALL",
    "LC_ADDRESS",     "LC_COLLATE", "LC_CTYPE",    "LC_MONETARY", "LC_IDENTIFICATION",
    "LC_MEASUREMENT", "LC_NAME",    "LC_MESSAGES", "LC_NUMERIC",  "LC_PAPER",
    "LC_TELEPHONE",   "LC_TIME",    "TZ",          "TMPDIR",      "TERM",
    "SHELL"};

bool is_variable_name(const std::string& name) {
  return !name.empty() && name.find('=') == std::string::npos &&
         name.find('\0') == std::string::npos;
}

bool mentions_prompt_file(const std::vector<std::string>& argv) {
  for (const auto& argument : argv)
    if (argument.find("{prompt_file}") != std::string::npos)
      return true;
  return false;
}

result<process_spec> make_spec(const std::vector<std::string>& argv,
                               const config::command_executor& command, const run_identity& who,
                               const config::environment_lookup& environment, const pairs& values) {
  if (argv.empty() || argv.front().empty())
    return fail(errc::invalid_configuration, "the command is empty", who.agent_id,
                "set argv or shell of its executor");
  if (const auto valid = check_placeholders(values); !valid)
    return fail(valid.error());
  auto variables = build_environment(command, who, environment);
  if (!variables)
    return fail(variables.error());
  process_spec spec;
  for (const auto& argument : argv)
    spec.argv.push_back(expand(argument, values));
  spec.cwd = command.cwd.empty() ? who.kernel_home : command.cwd;
  spec.cwd_within = bound_of_directory(spec.cwd, who);
  spec.environment = std::move(*variables);
  return spec;
}

} // namespace

std::string make_session_id(std::string_view agent_id, std::string_view run_id) {
  std::string id = "kernel-";
  id.append(agent_id).append("-").append(run_id);
  return id;
}

std::string bound_of_directory(const std::string& directory, const run_identity& who) {
  const bool below = !who.kernel_home.empty() && directory.starts_with(who.kernel_home + '/');
  return below ? who.kernel_home : std::string();
}

result<pairs> build_environment(const config::command_executor& command, const run_identity& who,
                                const config::environment_lookup& environment) {
  std::map<std::string, std::string> found;
  found["PATH"] = environment("PATH").value_or(std::string(default_path));
  for (const std::string name : let_through)
    if (auto value = environment(name))
      found[name] = std::move(*value);
  for (const auto& name : command.env_pass) {
    if (!is_variable_name(name))
      return fail(errc::invalid_configuration, "not a variable name: " + name, who.agent_id);
    if (auto value = environment(name))
      found[name] = std::move(*value);
  }
  for (const auto& [name, value] : command.env) {
    if (!is_variable_name(name) || value.find('\0') != std::string::npos)
      return fail(errc::invalid_configuration, "not a variable: " + name, who.agent_id);
    found[name] = value;
  }
  found["BOYD_HOME"] = who.home;
  found["BOYD_KERNEL_HOME"] = who.kernel_home;
  found["BOYD_KERNEL_ID"] = who.kernel_id;
  found["BOYD_CYCLE_ID"] = who.cycle_id;
  found["BOYD_AGENT_ID"] = who.agent_id;
  found["BOYD_DISPATCH_ID"] = who.dispatch_id;
  found["BOYD_ATTEMPT"] = std::to_string(who.attempt);
  found["BOYD_FENCE"] = std::to_string(who.fence);
  found["BOYD_SESSION_ID"] = who.session_id;
  return pairs(found.begin(), found.end());
}

result<command_plan> build_command(const config::command_executor& command, std::string prompt,
                                   const run_identity& who,
                                   const config::environment_lookup& environment) {
  const bool has_shell = !command.shell.empty();
  auto values = has_shell ? pairs{} : placeholders(who);
  const bool to_file = !has_shell && mentions_prompt_file(command.argv);
  const auto path = prompt_path(who);
  if (to_file)
    values.emplace_back("{prompt_file}", path);
  const std::vector<std::string> argv =
      has_shell ? std::vector<std::string>{"/bin/sh", "-c", command.shell} : command.argv;
  auto spec = make_spec(argv, command, who, environment, values);
  if (!spec)
    return fail(spec.error());
  command_plan plan{std::move(*spec), std::nullopt};
  if (to_file)
    plan.prompt = prompt_file{path, std::move(prompt)};
  else
    plan.process.input = std::move(prompt);
  return plan;
}

result<process_spec> build_check(const std::vector<std::string>& argv,
                                 const config::command_executor& command, const run_identity& who,
                                 const config::environment_lookup& environment) {
  return make_spec(argv, command, who, environment, placeholders(who));
}

} // namespace boyd::exec
