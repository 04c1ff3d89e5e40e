#include "adapters.hpp"
#include "convert_models.hpp"
#include "convert_sandbox.hpp"
#include "passes.hpp"
#include "reading.hpp"

#include <filesystem>
#include <stdexcept>
#include <utility>

namespace boyd::config {
namespace {

/// Converts one file; holds what relative paths and inherited values need.
class converter {
 public:
  converter(const pass& p, const tree& root) : p_(p), root_(root) {}

  configuration whole() const {
    const auto& t = root_;
    configuration out;
    out.version = number<int>(t, "version");
    out.node_settings = node_of(get(t, "node"));
    out.notices = notices_of(p_, get(t, "approvals"));
    for (const auto& item : get(t, "providers").items) {
      out.providers.push_back(provider_of(p_, item));
    }
    const auto& servers = get(t, "mcpServers");
    for (std::size_t i = 0; i < servers.items.size(); ++i) {
      out.mcp_servers.push_back(mcp_server_of(p_, servers.keys[i].text, servers.items[i]));
    }
    for (const auto& item : get(t, "kernels").items) {
      out.kernels.push_back(kernel_of(item));
    }
    for (const auto& item : get(t, "faults").items) {
      out.faults.push_back(fault_of(item));
    }
    return out;
  }

 private:
  std::string resolved(const tree& t, std::string_view key) const {
    return resolve(p_.path, text(t, key));
  }

  static fault fault_of(const tree& t) {
    fault out;
    out.point = text(t, "point");
    out.action = text(t, "action");
    out.count = number<int>(t, "count");
    out.probability = number<double>(t, "probability");
    out.delay = duration(t, "delay");
    out.after = number<std::int64_t>(t, "after");
    out.every = number<std::int64_t>(t, "every");
    if (t.find("seed") != nullptr)
      out.seed = number<std::uint64_t>(t, "seed");
    return out;
  }

  node node_of(const tree& t) const {
    node out;
    out.max_concurrent = number<int>(t, "max_concurrent");
    out.store = text(t, "store");
    out.store_password_file = resolved(t, "store_password_file");
    out.retention = duration(t, "retention");
    out.lease = duration(t, "lease");
    out.lease_renewal = duration(t, "lease_renewal");
    out.drain_grace = duration(t, "drain_grace");
    out.log_level = text(t, "log_level");
    const auto& day = get(t, "budget_day");
    out.budget_day.tokens = number<std::int64_t>(day, "tokens");
    out.budget_day.cost = dollars(day, "cost");
    out.chaos = flag(t, "chaos");
    out.sandbox = sandbox_of(p_, get(t, "sandbox"), {});
    return out;
  }

  /// `zone`: for a schedule without its own.
  static schedule schedule_of(const tree& t, const std::string& zone) {
    static constexpr std::array<std::pair<std::string_view, overlap_policy>, 3> overlaps{
        {{"skip", overlap_policy::skip},
         {"queue_one", overlap_policy::queue_one},
         {"cancel", overlap_policy::cancel}}};
    static constexpr std::array<std::pair<std::string_view, misfire_policy>, 3> misfires{
        {{"run_once", misfire_policy::run_once},
         {"skip", misfire_policy::skip},
         {"all", misfire_policy::all}}};
    schedule out;
    out.expression = text(t, "schedule");
    out.tz = t.find("tz") == nullptr ? zone : text(t, "tz");
    if (t.find("jitter") != nullptr)
      out.jitter = duration(t, "jitter");
    // Only a kernel's schedule has these: an agent's slot that passed is made up for once, by the
    // next cycle.
    if (t.find("grace") != nullptr) {
      out.overlap = choice(t, "overlap", overlaps);
      out.misfire = choice(t, "misfire", misfires);
      out.grace = duration(t, "grace");
    }
    return out;
  }

  executor executor_of(const tree& t) const {
    if (text(t, "type") == "script") {
      script_executor out;
      out.file = resolved(t, "file");
      for (const auto& item : get(t, "answers").items) {
        out.answers.push_back({text(item, "output"), text(item, "summary"), duration(item, "delay"),
                               text(item, "fail")});
      }
      return out;
    }
    if (text(t, "type") == "chat") {
      return chat_executor_of(p_, t);
    }
    if (text(t, "type") == "agent_cli") {
      return agent_cli_executor_of(p_, root_, t);
    }
    if (text(t, "type") == "improve") {
      return improve_executor_of(p_, root_, t);
    }
    if (text(t, "type") == "command") {
      return command_executor_of(t);
    }
    throw std::logic_error("the schema has an executor that is not converted: " + text(t, "type"));
  }

  command_executor command_executor_of(const tree& t) const {
    command_executor out;
    out.argv = texts(t, "argv");
    out.shell = text(t, "shell");
    out.cwd = resolved(t, "cwd");
    out.env_pass = texts(t, "env_pass");
    const auto& env = get(t, "env");
    for (std::size_t i = 0; i < env.items.size(); ++i) {
      out.env.emplace_back(env.keys[i].text, env.items[i].text);
    }
    out.output_bytes = size(t, "output_bytes");
    const auto& classes = get(t, "exit_classes");
    for (std::size_t i = 0; i < classes.items.size(); ++i) {
      out.exit_classes.emplace(std::stoi(classes.keys[i].text), classes.items[i].text);
    }
    return out;
  }

  wake_policy wake_of(const tree& t) const {
    wake_policy out;
    out.argv = texts(t, "argv");
    for (const auto& path : texts(t, "inputs")) {
      out.inputs.push_back(resolve(p_.path, path));
    }
    out.timeout = duration(t, "timeout");
    out.max_backoff = duration(t, "max_backoff");
    return out;
  }

  /// An entry was checked before: what is no reference does not come here.
  static context::wanted wanted_of(const tree& t) {
    const bool is_map = t.kind == tree::kind_t::map;
    context::wanted out;
    out.what =
        context::parse_declared(is_map ? text(t, "item") : t.text).value_or(context::reference{});
    out.required = is_map && flag(t, "required");
    out.configured = true;
    return out;
  }

  /// A list, or a map with a list.
  context_settings context_of(const tree& t) const {
    static constexpr std::array<std::pair<std::string_view, context::order>, 3> strategies{
        {{"ranked", context::order::ranked},
         {"recent", context::order::recent},
         {"all", context::order::all}}};
    context_settings out;
    const bool is_map = t.kind == tree::kind_t::map;
    for (const auto& item : is_map ? get(t, "items").items : t.items) {
      out.items.push_back(wanted_of(item));
    }
    if (!is_map) {
      return out;
    }
    out.strategy = choice(t, "strategy", strategies);
    out.budget_tokens = number<std::int64_t>(t, "budget_tokens");
    if (t.find("contract") != nullptr) {
      out.contract = text(t, "contract") == "enforce" ? citation_contract::enforce
                                                      : citation_contract::observe;
    }
    out.workspace = resolved(t, "workspace");
    out.summarizer = text(get(t, "summarizer"), "provider");
    out.summarizer_model = text(get(t, "summarizer"), "model");
    for (auto& item : out.items) {
      item.required = item.required || flag(t, "required");
    }
    return out;
  }

  agent agent_of(const tree& t, const std::string& zone, const nlohmann::json& metadata) const {
    agent out;
    out.agent_id = text(t, "agent_id");
    out.prompt = text(t, "prompt");
    out.priority = number<int>(t, "priority");
    out.enabled = flag(t, "enabled");
    out.run = executor_of(get(t, "executor"));
    out.max_concurrent = number<int>(t, "max_concurrent");
    out.timeout = duration(t, "timeout");
    out.no_output_timeout = duration(t, "no_output_timeout");
    out.cooldown = duration(t, "cooldown");
    const auto& retry = get(t, "retry");
    out.retry = {number<int>(retry, "max_attempts"), duration(retry, "base"),
                 duration(retry, "cap")};
    if (t.find("schedule") != nullptr) {
      out.when = schedule_of(t, zone);
    }
    for (const auto& item : get(t, "require").items) {
      out.require.push_back(parse_requirement(item).value_or(requirement{}));
    }
    if (text(get(t, "executor"), "type") == "improve" && out.require.empty()) {
      out.require.emplace_back(); // its exit code is the cycle's own verdict
    }
    if (const auto* wake = t.find("wake")) {
      out.wake = wake_of(*wake);
    }
    if (const auto* after = t.find("after")) {
      out.after = {texts(*after, "agents"), text(*after, "when") == "success"};
    }
    if (const auto* reads = t.find("context")) {
      out.reads = context_of(*reads);
    }
    if (text(get(t, "executor"), "type") == "chat") {
      out.tools = texts(t, "tools");
      out.mcp_json = flag(t, "mcp_json");
      out.policy = policy_of(get(t, "policy"));
      out.budget = budget_of(get(t, "budget"));
    } else if (const auto* own = t.find("budget")) {
      out.budget = budget_of(*own);
    }
    out.sandbox = sandbox_of(p_, get(get(root_, "node"), "sandbox"), {});
    if (brings_own_sandbox(p_, root_, get(t, "executor")) &&
        out.sandbox.mode != sandbox_settings::mode_t::required) {
      out.sandbox.mode = sandbox_settings::mode_t::off;
    }
    if (const auto* own = t.find("sandbox")) {
      out.sandbox = sandbox_of(p_, get(get(root_, "node"), "sandbox"), {});
      out.sandbox = sandbox_of(p_, *own, std::move(out.sandbox));
      out.sandbox.commands = true;
    }
    auto merged = metadata;
    merged.update(json_of(get(t, "metadata"), {}));
    out.metadata_json = merged.dump();
    return out;
  }

  memory_settings memory_of(const tree& t) const {
    memory_settings out;
    out.budget_tokens = number<std::int64_t>(t, "budget_tokens");
    out.recall = number<std::size_t>(t, "recall");
    out.warm_days = number<int>(t, "warm_days");
    out.policy_auto = texts(get(t, "policy"), "auto");
    for (const auto& item : get(t, "caps").items) {
      memory::set_cap(
          out.caps, text(item, "section"),
          {number<std::size_t>(item, "entries"), number<std::size_t>(item, "characters")});
    }
    return out;
  }

  static learning_settings learning_of(const tree& t) {
    learning_settings out;
    out.bank = number<std::size_t>(t, "bank");
    out.skills = number<std::size_t>(t, "skills");
    out.skill_tokens = number<std::int64_t>(t, "skill_tokens");
    out.bank_item_tokens = number<std::int64_t>(t, "bank_item_tokens");
    out.types.clear();
    for (const auto& name : texts(t, "types")) {
      for (const auto type : {context::item_type::file, context::item_type::directory}) {
        if (name == context::name_of(type)) {
          out.types.push_back(type);
        }
      }
    }
    for (const auto method : {context::learning_method::ema, context::learning_method::bandit}) {
      if (text(t, "method") == context::name_of(method)) {
        out.method = method;
      }
    }
    if (const auto* policy = t.find("approve_when")) {
      out.approves = {number<double>(*policy, "confidence"),
                      number<double>(*policy, "success_rate")};
    }
    return out;
  }

  kernel kernel_of(const tree& t) const {
    kernel out;
    out.kernel_id = text(t, "kernel_id");
    out.name = text(t, "name");
    out.when = schedule_of(t, {});
    out.max_concurrent = number<int>(t, "max_concurrent");
    out.max_cycle_history = number<std::size_t>(t, "max_cycle_history");
    out.recent_actions = number<std::size_t>(t, "recent_actions");
    out.ends_with_slot = text(t, "cycle_deadline") == "next_slot";
    out.cycle_deadline = out.ends_with_slot ? limits::longest_cycle : duration(t, "cycle_deadline");
    out.plan = planner_of(get(t, "planner"));
    out.reduce = reducer_of(get(t, "reducer"));
    out.system_prompt = text(t, "system_prompt");
    out.author_name = text(t, "author_name");
    out.author_email = text(t, "author_email");
    out.auto_commit = flag(t, "auto_commit");
    out.protected_files = texts(t, "protected_files");
    out.heartbeat_url = text(t, "heartbeat_url");
    const auto metadata = json_of(get(t, "metadata"), {});
    out.metadata_json = metadata.dump();
    for (const auto& item : get(t, "quiet_hours").items) {
      out.quiet.push_back(
          {schedule_of(item, out.when.tz), duration(item, "length"), text(item, "reason")});
    }
    for (const auto& item : get(t, "senses").items) {
      out.senses.push_back({text(item, "name"), texts(item, "argv"), resolved(item, "cwd"),
                            duration(item, "interval"), duration(item, "timeout"),
                            size(item, "output_bytes")});
    }
    out.memory = memory_of(get(t, "memory"));
    out.learning = learning_of(get(t, "learning"));
    for (const auto& item : get(t, "agents").items) {
      out.agents.push_back(agent_of(item, out.when.tz, metadata));
    }
    return out;
  }

  const pass& p_;
  const tree& root_;
};

} // namespace

configuration convert(const pass& p, const tree& root) {
  return converter(p, root).whole();
}

std::string resolve(const std::string& configuration_path, const std::string& path) {
  const auto folder = std::filesystem::path(configuration_path).parent_path();
  return path.empty() ? path : (folder / path).lexically_normal().string();
}

} // namespace boyd::config
