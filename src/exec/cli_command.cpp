#include "boyd/exec/cli_command.hpp"

#include "json_text.hpp"
#include "placeholders.hpp"

#include <algorithm>
#include <utility>

namespace boyd::exec {

namespace {

using values = placeholder_values;

bool mentions(const std::vector<config::argument_group>& argv, std::string_view what) {
  return std::ranges::any_of(argv, [&](const auto& group) {
    return std::ranges::any_of(
        group, [&](const auto& part) { return part.find(what) != std::string::npos; });
  });
}

/// Whether a placeholder in `text` has no value.
bool is_empty(std::string_view text, const values& all) {
  return std::ranges::any_of(all, [&](const auto& v) {
    return v.second.empty() && text.find(v.first) != std::string_view::npos;
  });
}

/// A value that would be read as a flag, since it begins the argument.
result<std::string> argument(const std::string& text, const values& all,
                             const std::string& agent_id) {
  auto expanded = expand(text, all);
  if (expanded.find('\0') != std::string::npos ||
      (expanded.starts_with('-') && !text.starts_with('-')))
    return fail(errc::invalid_configuration, text + " would be read as a flag: " + expanded,
                agent_id,
                "use another value, or an adapter that passes --name=VALUE as one argument");
  return expanded;
}

result<std::vector<std::string>> arguments(const config::agent_cli_executor& cli, const values& all,
                                           const std::string& agent_id) {
  std::vector<std::string> out;
  bool has_extra = false;
  const auto extra = [&] {
    has_extra = true;
    out.insert(out.end(), cli.args.begin(), cli.args.end());
  };
  for (const auto& group : cli.adapter.argv) {
    if (group.size() == 1 && group.front() == "{args}") {
      extra();
      continue;
    }
    if (std::ranges::any_of(group, [&](const auto& part) { return is_empty(part, all); }))
      continue;
    for (const auto& part : group) {
      auto one = argument(part, all, agent_id);
      if (!one)
        return fail(std::move(one.error()));
      out.push_back(std::move(*one));
    }
  }
  if (!has_extra)
    extra();
  if (!cli.program.empty() && !out.empty())
    out.front() = cli.program;
  return out;
}

/// Each string `{prompt}` becomes the prompt.
void put_prompt(nlohmann::json& value, const std::string& prompt) {
  if (value.is_string() && value.get_ref<const std::string&>() == "{prompt}")
    value = prompt;
  if (!value.is_structured())
    return; // the library would take a scalar for a range of itself
  for (auto& child : value)
    put_prompt(child, prompt);
}

result<std::string> input_of(const config::cli_adapter& adapter, std::string prompt) {
  using stdin_t = config::cli_adapter::stdin_t;
  if (adapter.input == stdin_t::none)
    return std::string();
  if (adapter.input == stdin_t::prompt)
    return prompt;
  auto value = parse_json(adapter.input_json);
  if (!value)
    return fail(errc::invalid_configuration, "stdin_json is not JSON", adapter.name);
  put_prompt(*value, prompt);
  return value->dump(-1, ' ', false, nlohmann::json::error_handler_t::replace) + '\n';
}

} // namespace

config::command_executor checks_of(const config::agent_cli_executor& cli, const cli_run& run) {
  config::command_executor out;
  out.cwd = run.directory.empty() ? cli.cwd : run.directory;
  out.env_pass = cli.env_pass;
  out.env = cli.env;
  out.output_bytes = cli.output_bytes;
  return out;
}

result<command_plan> build_agent_command(const config::agent_cli_executor& cli, cli_run run,
                                         const run_identity& who,
                                         const config::environment_lookup& environment) {
  auto command = checks_of(cli, run);
  auto all = placeholders(who);
  if (const auto valid = check_placeholders(all); !valid)
    return fail(valid.error());
  const auto directory = command.cwd.empty() ? who.kernel_home : command.cwd;
  const auto path = prompt_path(who);
  all.emplace_back("{prompt_file}", path);
  all.emplace_back("{workspace}", directory);
  all.emplace_back("{model}", cli.model);
  all.emplace_back("{permission}", !run.permission.empty()   ? run.permission
                                   : !cli.permission.empty() ? cli.permission
                                                             : cli.adapter.permission);
  all.emplace_back("{session}", run.session);
  auto argv = arguments(cli, all, who.agent_id);
  if (!argv)
    return fail(std::move(argv.error()));
  std::vector<std::pair<std::string, std::string>> variables;
  for (const auto& [name, value] : cli.adapter.env)
    if (!is_empty(value, all))
      variables.emplace_back(name, expand(value, all));
  // The executor's own come later, and so above.
  command.env.insert(command.env.begin(), variables.begin(), variables.end());
  auto environment_of_run = build_environment(command, who, environment);
  if (!environment_of_run)
    return fail(std::move(environment_of_run.error()));
  command_plan plan;
  plan.process.argv = std::move(*argv);
  plan.process.cwd = directory;
  plan.process.cwd_within = bound_of_directory(directory, who);
  plan.process.environment = std::move(*environment_of_run);
  if (mentions(cli.adapter.argv, "{prompt_file}")) {
    plan.prompt = prompt_file{path, std::move(run.prompt)};
    return plan;
  }
  auto input = input_of(cli.adapter, std::move(run.prompt));
  if (!input)
    return fail(std::move(input.error()));
  plan.process.input = std::move(*input);
  return plan;
}

} // namespace boyd::exec
