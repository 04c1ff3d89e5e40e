#include "../edit_configuration.hpp"
#include "../exit_codes.hpp"
#include "../hints.hpp"
#include "../home.hpp"
#include "../person.hpp"
#include "../terminal.hpp"
#include "../time_view.hpp"
#include "../unread_items.hpp"
#include "adapters/posix/home_lock.hpp"
#include "adapters/tz/zones.hpp"
#include "asking.hpp"
#include "boyd/core/ids.hpp"
#include "boyd/core/limits.hpp"
#include "boyd/core/text.hpp"
#include "boyd/files/atomic_file.hpp"
#include "boyd/plan/next_run.hpp"
#include "boyd/plan/schedule.hpp"
#include "boyd/ports/clock.hpp"
#include "boyd/ports/file_system.hpp"
#include "commands.hpp"

#include <algorithm>
#include <array>
#include <filesystem>
#include <optional>
#include <string_view>
#include <utility>

/// `boyd agents add` and `boyd agents rm`: edit the configuration file.
namespace boyd::app {

namespace {

using settings_ptr = std::shared_ptr<const config::configuration>;

/// The file as it is.
struct opened_file {
  std::string path; ///< behind symbolic links
  std::string text;
  settings_ptr settings;
};

result<opened_file> open_file_of(const place& where, const ports& p) {
  std::error_code failed;
  const auto real = std::filesystem::canonical(where.config_path, failed);
  opened_file f{failed ? where.config_path : real.string(), {}, {}};
  auto text = p.files->read(f.path, limits::config_bytes);
  if (!text)
    return fail(errc::invalid_configuration,
                "the configuration cannot be read: " + text.error().what, f.path,
                "boyd init makes one");
  f.text = std::move(*text);
  auto settings = parse_configuration_to_ask(f.path, f.text, *p.files, *p.zones);
  if (!settings)
    return fail(std::move(settings.error()));
  f.settings = std::move(*settings);
  return f;
}

/// All of it but the agents of one kernel.
bool is_same_elsewhere(const config::configuration& a, const config::configuration& b,
                       std::size_t kernel) {
  if (a.kernels.size() != b.kernels.size())
    return false;
  auto kernels = b.kernels;
  kernels[kernel].agents = a.kernels[kernel].agents;
  return a.version == b.version && a.node_settings == b.node_settings && a.kernels == kernels &&
         a.faults == b.faults;
}

/// The new text, checked as a whole, takes the file's place; its permissions stay.
result<void> replace(const opened_file& f, const std::string& text, const ports& p) {
  const auto before = p.files->stat(f.path);
  if (!before)
    return fail(before.error());
  const auto now = p.files->read(f.path, limits::config_bytes);
  if (!now || *now != f.text)
    return fail(errc::conflict, "the file was changed meanwhile, and stays as it is", f.path,
                "run the command again");
  if (auto written = files::write_atomic(*p.files, f.path, text); !written)
    return written;
  std::error_code failed;
  std::filesystem::permissions(f.path, static_cast<std::filesystem::perms>(before->mode), failed);
  return failed ? fail(errc::io_error, "the file's permissions could not be kept", f.path,
                       "set them: chmod")
                : result<void>{};
}

result<std::size_t> kernel_index(const config::configuration& settings, const std::string& name) {
  for (std::size_t i = 0; i < settings.kernels.size(); ++i)
    if (name.empty() || settings.kernels[i].kernel_id == name)
      return i;
  return fail(errc::not_found, "no such kernel: " + name, settings.path,
              "list them with: boyd status");
}

std::string executor_of(const arguments& args) {
  const auto& o = args.new_agent;
  const auto more = [](const char* key, const std::string& value) {
    return value.empty() ? std::string() : std::string(", ") + key + ": " + quoted_yaml(value);
  };
  if (!args.provider.empty())
    return "{type: chat, provider: " + quoted_yaml(args.provider) + more("model", args.model) + "}";
  if (!o.adapter.empty())
    return "{type: agent_cli, adapter: " + quoted_yaml(o.adapter) + more("model", args.model) +
           more("cwd", o.cwd) +
           (o.worktree.empty() ? "" : ", worktree: {repo: " + quoted_yaml(o.worktree) + "}") + "}";
  std::string words;
  for (const auto& w : args.message)
    words += (words.empty() ? "" : ", ") + quoted_yaml(w);
  return "{type: command, " +
         (o.shell.empty() ? "argv: [" + words + "]" : "shell: " + quoted_yaml(o.shell)) +
         more("cwd", o.cwd) + "}";
}

/// The text stays as it is read: a block keeps its line breaks, quotes the rest.
std::string prompt_text(const std::string& prompt) {
  const bool is_block = prompt.find('\n') != std::string::npos && prompt.back() == '\n' &&
                        !prompt.ends_with("\n\n") && prompt.front() != ' ' &&
                        prompt.front() != '\n' && std::ranges::none_of(prompt, [](char c) {
                          return static_cast<unsigned char>(c) < ' ' && c != '\n';
                        });
  return is_block ? prompt : quoted_yaml(prompt);
}

agent_text text_of_agent(const arguments& args) {
  const auto& o = args.new_agent;
  agent_text t;
  const auto add = [&](const char* key, const std::string& value) {
    if (!value.empty())
      t.keys.emplace_back(key, value);
  };
  add("agent_id", args.agent);
  add("enabled", o.disabled ? "false" : "");
  add("prompt", o.prompt.empty() ? "" : prompt_text(o.prompt));
  add("prompt_file", o.prompt_file.empty() ? "" : quoted_yaml(o.prompt_file));
  add("executor", executor_of(args));
  add("schedule", args.schedule.empty() ? "" : quoted_yaml(args.schedule));
  add("timeout", o.timeout);
  return t;
}

bool has_executor(const arguments& args) {
  return !args.message.empty() || !args.new_agent.shell.empty() || !args.provider.empty() ||
         !args.new_agent.adapter.empty();
}

constexpr const char* added_schema = "boyd.agent_added/1";

void tell(const arguments& args, const place& where, const std::string& schema, const char* word,
          const config::kernel& k, const std::string& agent, const std::string& path,
          const json& more = json::object()) {
  if (args.json) {
    json body{
        {"schema", schema}, {"kernel_id", k.kernel_id}, {"agent_id", agent}, {"config", path}};
    body.update(more);
    return print(body.dump() + "\n");
  }
  print(std::string(word) + " " + k.kernel_id + "/" + agent + " in " + path + "\n");
  const auto owner = adapters::read_home_owner(where.home);
  if (owner && *owner)
    print(as_hint("next: boyd reload (the running node still has the old configuration)\n"));
  else if (schema == added_schema)
    print(as_hint("next: boyd run ") + shell_word(agent) + "\n");
}

/// A schedule that its kernel's cycles cannot keep is told at once.
void warn_of_schedule(const opened_file& f, const std::string& edited, std::size_t kernel,
                      const config::configuration& now, const std::string& agent, const ports& p) {
  const auto& agents = now.kernels[kernel].agents;
  const auto at = std::ranges::find(agents, agent, &config::agent::agent_id) - agents.begin();
  const auto key =
      "kernels[" + std::to_string(kernel) + "].agents[" + std::to_string(at) + "].schedule";
  for (const auto& w : judge_configuration_to_ask(f.path, edited, *p.files, *p.zones).warnings)
    if (w.key == key)
      print_error({errc::invalid_configuration,
                   "warning: " + w.problem,
                   {},
                   "set " + w.expected + " of " + f.path});
}

/// When the agent of the new configuration runs, for a person.
std::string when_it_runs(const arguments& args, const config::kernel& k, const std::string& agent,
                         const ports& p) {
  const auto* a = config::find_agent(k, agent);
  if (a == nullptr || !a->enabled)
    return {};
  if (!a->when)
    return "It runs in every cycle of its kernel (" + k.when.expression + ").\n";
  const auto cycles = plan::schedule_rule::make(k.when, *p.zones);
  const auto own = plan::schedule_rule::make(*a->when, *p.zones);
  if (!cycles || !own)
    return {};
  const auto times = plan::fire_times(k, a, *cycles, &*own, p.clock->now(), 1);
  if (times.empty())
    return {};
  const auto zone = args.utc ? std::string("UTC") : adapters::local_zone_name();
  return "Runs next: " + moment_of(json{{"at", format_rfc3339(times.front().at)}}, "at") +
         (a->when->tz == zone ? "" : " (the schedule is in " + a->when->tz + ", the kernel's tz)") +
         "\n";
}

/// The configuration that the edited file would be.
result<std::shared_ptr<const config::configuration>>
read_edited(const opened_file& f, const std::string& edited, const ports& p) {
  auto now = parse_configuration_to_ask(f.path, edited, *p.files, *p.zones, false);
  if (!now)
    return fail(errc::invalid_argument,
                "the file was not changed, because it would have errors: " + now.error().what,
                now.error().where, now.error().next);
  return now;
}

/// Keys of a new agent, and what of the command line they come from.
constexpr std::array<std::pair<std::string_view, std::string_view>, 9> flags{{
    {"agent_id", "NAME"},
    {"prompt_file", "--prompt-file"},
    {"schedule", "--schedule"},
    {"timeout", "--timeout"},
    {"executor.provider", "--provider"},
    {"executor.adapter", "--adapter"},
    {"executor.model", "--model"},
    {"executor.cwd", "--cwd"},
    {"executor.worktree", "--worktree"},
}};

/// What is wrong with a flag, in a file that was right without it; nothing where it is none's.
/// `only`: of this flag; empty: of any.
std::optional<error> error_of_flag(const opened_file& f, const std::string& edited, const ports& p,
                                   std::string_view only = {}) {
  const auto judged = judge_configuration_to_ask(f.path, edited, *p.files, *p.zones);
  for (const auto& found : judged.findings) {
    const auto agent = found.key.find(".agents[");
    const auto dot = agent == std::string::npos ? agent : found.key.find("].", agent);
    if (dot == std::string::npos)
      continue;
    const auto key = std::string_view(found.key).substr(dot + 2);
    for (const auto& [name, flag] : flags)
      if ((only.empty() || flag == only) &&
          (key == name || key.starts_with(std::string(name) + ".")))
        return error{errc::invalid_argument,
                     std::string(flag) + ": " + found.problem,
                     {},
                     !found.nearest.empty()   ? "did you mean " + found.nearest + "?"
                     : found.expected.empty() ? std::string("see: boyd agents add --help")
                                              : "expected: " + found.expected};
  }
  return std::nullopt;
}

/// A line for a shell in the place of a program: nobody would split it, or make its pipes.
bool is_shell_line(const std::string& program) {
  std::error_code failed;
  return program.find_first_of(" |&;<>$`") != std::string::npos &&
         !std::filesystem::exists(program, failed);
}

/// Of a new agent there is a name, and what runs it.
result<void> check_command(const arguments& args) {
  const auto name = args.agent.empty() ? std::string("NAME") : shell_word(args.agent);
  const auto add = "  boyd agents add " + name + " ";
  if (args.agent.empty() || !has_executor(args))
    return fail(errc::invalid_argument,
                args.agent.empty() ? "the agent needs a name" : "nothing says what runs the agent",
                {},
                "choose a program, a line for the shell, an AI model or an AI tool:\n" + add +
                    "-- PROGRAM ARGUMENT…\n" + add + "--shell 'LINE'\n" + add +
                    "--provider NAME --prompt TEXT\n" + add + "--adapter claude --prompt TEXT");
  if (!args.message.empty() && is_shell_line(args.message.front()))
    return fail(errc::invalid_argument, "this is no program, but a line for the shell",
                args.message.front(),
                "to run it with the shell:\n" + add + "--shell " +
                    shell_word(args.message.size() == 1 ? args.message.front() : "LINE"));
  return {};
}

/// Asks for what was not given, and checks each answer before the next question.
class agent_questions {
 public:
  agent_questions(arguments& args, const opened_file& f, std::size_t kernel, const ports& p)
      : args_(args), file_(f), kernel_(kernel), ports_(p) {}

  /// False when the input ended before the last answer.
  bool ask() {
    auto& o = args_.new_agent;
    if (args_.agent.empty() &&
        !ask_person(args_.agent, "Name of the agent", "",
                    [&](const std::string& name) { return problem_of_agent(name); }))
      return false;
    if (has_executor(args_))
      return true;
    if (!ask_for_executor())
      return false;
    if (o.prompt.empty() && o.prompt_file.empty() && !ask_person(o.prompt, "Prompt", ""))
      return false;
    return !args_.schedule.empty() ||
           ask_person(args_.schedule, "Schedule (nothing: with every cycle of the kernel)", "",
                      problem_of_schedule);
  }

 private:
  std::string problem_of_agent(const std::string& name) const {
    if (auto problem = problem_of_name(name); !problem.empty())
      return problem;
    return config::find_agent(file_.settings->kernels[kernel_], name) == nullptr
               ? ""
               : "This name is taken.";
  }

  bool ask_for_executor() {
    auto& o = args_.new_agent;
    std::string kind;
    if (!ask_person(kind,
                    "What runs it? command = a program, chat = an AI model, cli = an AI tool such "
                    "as claude",
                    "command", [&](const std::string& answer) { return problem_of_kind(answer); }))
      return false;
    if (kind == "command")
      return ask_person(o.shell, "Command", "", [](const std::string& answer) {
        return answer.empty() ? std::string("An answer is needed.") : std::string();
      });
    std::string providers;
    for (const auto& provider : file_.settings->providers)
      providers += (providers.empty() ? "" : ", ") + provider.provider_id;
    const bool named =
        kind == "chat"
            ? ask_person(args_.provider, "Provider (" + providers + ")",
                         file_.settings->providers.front().provider_id,
                         [&](const std::string& answer) {
                           return problem_of(&arguments::provider, answer, "--provider");
                         })
            : ask_person(o.adapter, "Which one (claude, codex, gemini, goose or opencode)",
                         "claude", [&](const std::string& answer) {
                           auto tried = args_;
                           tried.new_agent.adapter = answer;
                           return problem_of_flag(tried, "--adapter");
                         });
    return named && ask_person(args_.model, "Model (nothing: the usual one)", "");
  }

  std::string problem_of_kind(const std::string& answer) const {
    if (answer == "chat" && file_.settings->providers.empty())
      return "No provider of AI models is configured yet (providers in " + file_.path +
             "); command and cli need none.";
    return answer == "command" || answer == "chat" || answer == "cli"
               ? ""
               : "Write command, chat or cli.";
  }

  std::string problem_of(std::string arguments::*member, const std::string& answer,
                         std::string_view flag) const {
    auto tried = args_;
    tried.*member = answer;
    return problem_of_flag(tried, flag);
  }

  /// What the file would have against the value of this flag.
  std::string problem_of_flag(const arguments& tried, std::string_view flag) const {
    const auto edited = with_agent(file_.path, file_.text, kernel_, text_of_agent(tried));
    const auto found = edited ? error_of_flag(file_, *edited, ports_, flag) : std::nullopt;
    return found ? found->what + "; " + found->next : "";
  }

  arguments& args_;
  const opened_file& file_;
  std::size_t kernel_;
  const ports& ports_;
};

result<int> add(arguments args, const place& where, const ports& p) {
  const auto f = open_file_of(where, p);
  if (!f)
    return fail(f.error());
  const auto kernel = kernel_index(*f->settings, args.kernel);
  if (!kernel)
    return fail(kernel.error());
  const auto& k = f->settings->kernels[*kernel];
  if (config::find_agent(k, args.agent) != nullptr)
    return fail(errc::invalid_argument, "the agent is there already: " + args.agent, f->path,
                "choose another name, or edit the file");
  if (!args.agent.empty() && !is_valid_name(args.agent))
    return fail(errc::invalid_argument, "\"" + args.agent + "\" is not a valid name", {},
                problem_of_name(args.agent));
  if (can_ask(args) && !agent_questions(args, *f, *kernel, p).ask())
    return fail(unanswered());
  if (auto whole = check_command(args); !whole)
    return fail(std::move(whole.error()));
  const auto text = text_of_agent(args);
  auto edited = with_agent(f->path, f->text, *kernel, text);
  if (!edited)
    return fail(std::move(edited.error()));
  const auto now = read_edited(*f, *edited, p);
  if (!now)
    return fail(error_of_flag(*f, *edited, p).value_or(now.error()));
  // All others must be what they were: a key in the wrong place would be another agent's.
  auto others = (*now)->kernels.at(*kernel).agents;
  const auto added = std::erase_if(others, [&](const auto& a) { return a.agent_id == args.agent; });
  if (added != 1 || others != k.agents || !is_same_elsewhere(*f->settings, **now, *kernel))
    return fail(errc::bug, "the edited file would not mean what was asked for, and is not written",
                f->path, "add the agent by hand");
  if (auto written = replace(*f, *edited, p); !written)
    return fail(std::move(written.error()));
  tell(args, where, added_schema, "Added", k, args.agent, f->path);
  if (!args.json)
    print(folded(when_it_runs(args, (*now)->kernels.at(*kernel), args.agent, p),
                 terminal_of_stdout(args)));
  warn_of_schedule(*f, *edited, *kernel, **now, args.agent, p);
  const auto prefix = "kernels[" + std::to_string(*kernel) + "].";
  for (const auto& w : unread_items(**now, where, args.agent))
    if (w.key.starts_with(prefix))
      print_note("warning: " + w.problem);
  return exit_code::ok;
}

/// Of an agent's dispatches: ids of those that wait, and how many run.
struct open_runs {
  std::vector<std::string> waiting;
  std::size_t running = 0;
};

result<open_runs> runs_of(const arguments& args, const config::kernel& k, signal_watch& signals) {
  open_runs found;
  for (const std::string status : {"pending", "running"}) {
    const auto body = ask_once(args,
                               get("/api/v1/dispatches", {{"kernel", k.kernel_id},
                                                          {"agent", args.agent},
                                                          {"status", status},
                                                          {"limit", "1000"}}),
                               signals);
    if (!body)
      return fail(body.error());
    for (const auto& row : rows_of(object_of(*body), "items"))
      if (status == "running")
        ++found.running;
      else
        found.waiting.push_back(text_of(row, "dispatch_id"));
  }
  return found;
}

/// How many of them it cancelled: those that have ended meanwhile are left.
result<std::size_t> cancel(const arguments& args, const std::vector<std::string>& ids,
                           signal_watch& signals) {
  std::size_t cancelled = 0;
  for (const auto& id : ids) {
    const auto done = ask_once(args, post("/api/v1/dispatches/" + id + "/cancel"), signals);
    if (!done && done.error().code != errc::conflict)
      return fail(done.error());
    cancelled += done ? 1U : 0U;
  }
  return cancelled;
}

/// "3 queued runs", "1 queued run".
std::string counted_runs(std::size_t n, const std::string& kind) {
  return std::to_string(n) + " " + kind + (n == 1 ? " run" : " runs");
}

/// Writes the file without the agent, then cancels what waits to be run for it: a node would do so
/// when it has the new configuration. The file counts: what went wrong with the queue is a note.
result<int> remove_with_runs(const arguments& args, const place& where, const ports& p,
                             const opened_file& f, const config::kernel& k,
                             const std::string& edited) {
  signal_watch signals;
  auto runs = runs_of(args, k, signals);
  if (auto written = replace(f, edited, p); !written)
    return fail(std::move(written.error()));
  // Of a shared database another node may still have the agent.
  const bool stay = f.settings->node_settings.store != embedded_store;
  const auto left = runs && stay ? std::exchange(runs->waiting, {}).size() : 0;
  const auto cancelled =
      runs ? cancel(args, runs->waiting, signals) : result<std::size_t>(fail(runs.error()));
  tell(args, where, "boyd.agent_removed/1", "Removed", k, args.agent, f.path,
       {{"cancelled", cancelled ? json(*cancelled) : json()},
        {"running", runs ? json(runs->running) : json()}});
  if (!cancelled)
    print_note("its queued runs are not cancelled yet: " + cancelled.error().what +
               "; the next node or cycle cancels them");
  else if (left > 0)
    print_note(counted_runs(left, "queued") +
               " of it stay in the shared database: another node may "
               "have the agent");
  else if (!args.json && *cancelled > 0)
    print("Cancelled its " + counted_runs(*cancelled, "queued") + ".\n");
  if (!args.json && runs && runs->running > 0)
    print("Its " + counted_runs(runs->running, "active") + " may finish.\n");
  return exit_code::ok;
}

result<int> remove(const arguments& args, const place& where, const ports& p) {
  const auto f = open_file_of(where, p);
  if (!f)
    return fail(f.error());
  const auto kernel = kernel_index(*f->settings, args.kernel);
  if (!kernel)
    return fail(kernel.error());
  const auto& k = f->settings->kernels[*kernel];
  const auto found = std::ranges::find(k.agents, args.agent, &config::agent::agent_id);
  if (found == k.agents.end()) {
    std::vector<std::string_view> names;
    for (const auto& a : k.agents)
      names.push_back(a.agent_id);
    const auto close = nearest(args.agent, names);
    return fail(errc::not_found, "no such agent: " + args.agent, f->path,
                close.empty() ? "list them with: boyd agents"
                              : "did you mean " + std::string(close) + "?");
  }
  auto edited =
      without_agent(f->path, f->text, *kernel, static_cast<std::size_t>(found - k.agents.begin()));
  if (!edited)
    return fail(std::move(edited.error()));
  const auto now = read_edited(*f, *edited, p);
  if (!now)
    return fail(now.error());
  auto wanted = k.agents;
  wanted.erase(wanted.begin() + (found - k.agents.begin()));
  if ((*now)->kernels.at(*kernel).agents != wanted ||
      !is_same_elsewhere(*f->settings, **now, *kernel))
    return fail(errc::bug, "the edited file would not mean what was asked for, and is not written",
                f->path, "remove the agent by hand");
  const bool cancels = f->settings->node_settings.store == embedded_store;
  if (auto agreed = agree(args,
                          "Remove agent " + args.agent + " from " + f->path +
                              (cancels ? ", and cancel its queued runs?" : "?"),
                          "agents rm " + shell_word(args.agent) +
                              (args.kernel.empty() ? "" : " --kernel " + shell_word(args.kernel)));
      !agreed)
    return fail(std::move(agreed.error()));
  return remove_with_runs(args, where, p, *f, k, *edited);
}

} // namespace

int run_agents_edit(const arguments& args) {
  const auto where = place_of(args);
  if (!where)
    return report(where.error(), args.json);
  const auto p = local_ports();
  const auto done = args.verb == "agents add" ? add(args, *where, p) : remove(args, *where, p);
  return done ? *done : report(done.error(), args.json);
}

} // namespace boyd::app
