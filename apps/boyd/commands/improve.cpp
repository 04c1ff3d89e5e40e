#include "../exit_codes.hpp"
#include "../home.hpp"
#include "../live_line.hpp"
#include "../signals.hpp"
#include "../terminal.hpp"
#include "adapters/posix/confined_files.hpp"
#include "adapters/posix/home_lock.hpp"
#include "adapters/posix/work_tree.hpp"
#include "boyd/config/tree.hpp"
#include "boyd/core/limits.hpp"
#include "boyd/core/money.hpp"
#include "boyd/core/text.hpp"
#include "boyd/exec/command_line.hpp"
#include "boyd/exec/script.hpp"
#include "boyd/improve/patch.hpp"
#include "boyd/improve/performer.hpp"
#include "boyd/ports/entropy.hpp"
#include "boyd/ports/file_system.hpp"
#include "boyd/ports/repository.hpp"
#include "commands.hpp"
#include "proposing.hpp"
#include "ticker.hpp"
#include "waiting_runner.hpp"

#include <algorithm>
#include <array>
#include <chrono>
#include <filesystem>
#include <functional>
#include <iostream>
#include <memory>
#include <poll.h>
#include <string>
#include <unistd.h>
#include <utility>
#include <vector>

namespace boyd::app {

namespace {

using namespace boyd::improve;

constexpr std::size_t shown_candidates = 20;
constexpr std::size_t nonce_bytes = 8;

result<std::string> root_of(const std::string& repo) {
  std::error_code failed;
  const auto path = std::filesystem::canonical(repo, failed);
  if (failed || !std::filesystem::is_directory(path, failed))
    return fail(errc::invalid_argument, "directory not found", repo,
                "use the top directory of a repository: --repo DIR");
  return path.string();
}

/// Of --config, else of the repository's own file, else the defaults.
result<improve_settings> settings_of(const arguments& args, const std::string& root,
                                     const ports& p) {
  // Without links and "..": the gate closes this file by its path below the repository.
  std::error_code failed;
  const auto named = std::filesystem::weakly_canonical(args.config, failed);
  auto path = args.config.empty() ? root + "/" + std::string(settings_file)
              : failed            ? std::filesystem::absolute(args.config).string()
                                  : named.string();
  auto text = p.files->read(path, limits::config_bytes);
  const bool none = !text && text.error().code == errc::not_found && args.config.empty();
  if (!text && !none)
    return fail(errc::invalid_configuration, "cannot read the configuration: " + text.error().what,
                path, "check the name and the permissions");
  std::vector<std::string> secrets;
  const auto tree =
      config::load_improve(path, none ? "version: 1\n" : *text, environment(), *p.zones, &secrets);
  if (!tree)
    return fail(tree.error());
  auto settings = read_settings(*tree, path);
  if (settings && none)
    settings->file.clear();
  if (settings)
    settings->secrets = std::move(secrets);
  return settings;
}

/// What the commands of a cycle get: as agents' programs, and no bytecode beside the sources.
result<std::vector<std::pair<std::string, std::string>>>
command_environment(const std::string& root) {
  exec::run_identity who;
  who.home = who.kernel_home = root;
  who.kernel_id = who.cycle_id = who.agent_id = who.dispatch_id = who.session_id = "improve";
  config::command_executor none;
  none.env.emplace_back("PYTHONDONTWRITEBYTECODE", "1");
  return exec::build_environment(none, who, environment());
}

/// What the operator wrote as the agent's prompt.
std::string words_of_stdin() {
  std::string text;
  std::array<char, std::size_t{16} << 10> part{};
  while (text.size() < limits::prompt_bytes && std::cin.read(part.data(), part.size()))
    text.append(part.data(), part.size());
  return text.append(part.data(), static_cast<std::size_t>(std::cin.gcount()));
}

std::string cost_of(const spending& s) {
  return s.cost_microusd == 0 && s.input_tokens + s.output_tokens == 0 ? "-"
         : s.cost_microusd == 0 ? std::to_string(s.input_tokens + s.output_tokens) + " tokens"
                                : "$" + format_dollars(s.cost_microusd);
}

failure_kind kind_of(const std::string& failure) {
  if (failure.empty())
    return failure_kind::none;
  for (const auto k : {failure_kind::transient, failure_kind::environment, failure_kind::flaky,
                       failure_kind::policy}) {
    std::string name;
    for (const char c : name_of(k))
      name += static_cast<char>(c - 'A' + 'a');
    if (name == failure)
      return k;
  }
  return failure_kind::deterministic;
}

/// Everything that stays the same from cycle to cycle.
class improvement {
 public:
  improvement(const arguments& args, std::string root) : args_(args), root_(std::move(root)) {}

  int run() {
    local_ = local_ports();
    steps_ = std::make_unique<live_line>(
        terminal_of_stderr(args_), "", std::chrono::steady_clock::now(),
        args_.quiet ? live_line::elsewhere::nothing : live_line::elsewhere::steps);
    auto settings = settings_of(args_, root_, local_);
    if (!settings)
      return fail_with(settings.error());
    settings_ = std::move(*settings);
    if (args_.verb == "improve report")
      return tell_report();
    if (auto ready = make_ready(); !ready)
      return fail_with(ready.error());
    if (args_.verb == "improve retry")
      return retry();
    const auto interval = parse_duration(args_.improve.interval);
    if (!interval)
      return report({errc::invalid_argument,
                     "--interval: " + interval.error().what,
                     {},
                     "use a form such as 30s, 5m or 1h"},
                    args_.json);
    // An id of a cycle is its second.
    return cycles(std::max<milliseconds>(*interval, 1s));
  }

 private:
  result<void> make_ready() {
    inside_ = adapters::make_confined_files({});
    tree_ = adapters::make_work_tree();
    auto runner = waiting_runner::make();
    if (!runner)
      return fail(std::move(runner.error()));
    runner_ = std::move(*runner);
    auto environment = command_environment(root_);
    if (!environment)
      return fail(std::move(environment.error()));
    runner_->set_environment(std::move(*environment));
    if (!settings_.executors.empty())
      proposing_ = std::make_unique<proposing>(root_ + "/" + settings_.outputs + "/home",
                                               settings_.file, root_, local_, signals_);
    return read_answers();
  }

  result<void> read_answers() {
    if (settings_.executor.kind != executor_settings::kind_t::script)
      return {};
    const auto text = local_.files->read(settings_.executor.file, exec::max_script_bytes);
    if (!text)
      return fail(errc::invalid_configuration, "cannot read the answers: " + text.error().what,
                  settings_.executor.file, "check improve.executor.file");
    auto answers = config::load_answers(settings_.executor.file, *text);
    if (!answers)
      return fail(std::move(answers.error()));
    answers_ = std::move(*answers);
    return {};
  }

  improve_ports world() {
    lock_holder self{::getpid(), adapters::own_start_ticks(), nonce(), adapters::boot_mark()};
    return {*local_.clock,
            *local_.files,
            *inside_,
            *tree_,
            *local_.repositories,
            [this](const command_order& o) {
              const ticker waiting(or_nothing(o.while_waiting));
              return runner_->run(o, signals_);
            },
            [this](std::int64_t n) { return scripted(n); },
            [this](const agent_order& o) {
              const ticker waiting(or_nothing(o.while_waiting));
              return proposing_->ask(o);
            },
            std::move(self),
            [](const lock_holder& h) {
              return adapters::is_alive({h.pid, {}, {}, h.start_ticks}, h.boot_id);
            },
            [this](const std::string& text) {
              if (args_.improve.unattended)
                print(step_event(text));
              else if (!args_.json)
                steps_->begin(text);
            },
            [this] { return signals_.interrupted(); }};
  }

  static std::function<void()> or_nothing(const std::function<void()>& tick) {
    return tick ? tick : std::function<void()>([] {});
  }

  std::string nonce() {
    std::string text;
    constexpr const char* digits = "0123456789abcdef";
    for (std::size_t i = 0; i < nonce_bytes; ++i)
      text += digits[local_.random->next() & 15U];
    return text;
  }

  result<answer_end> scripted(std::int64_t n) {
    const auto* a = exec::pick_answer(answers_, static_cast<std::uint64_t>(n));
    if (a == nullptr)
      return fail(errc::not_found, "the script has no answers left", settings_.executor.file);
    return answer_end{a->output, kind_of(a->fail), a->fail.empty() ? "" : a->output};
  }

  int cycles(milliseconds interval) {
    const auto& o = args_.improve;
    improve_order order{
        root_,
        settings_,
        {o.apply, o.approve, o.auto_commit, o.approved, settings_.executors, o.unattended},
        o.resume,
        o.unattended,
        o.unattended ? words_of_stdin() : std::string()};
    if (!o.unattended)
      tell_home(order); // what an earlier process could not tell
    for (std::size_t n = 1;; ++n) {
      const auto ports = world();
      const auto state = run_cycle(order, ports);
      steps_->tell("");
      if (state && !o.unattended)
        tell_home(order);
      if (!state)
        return fail_with(state.error());
      show(*state);
      if (o.unattended)
        return went_wrong(*state) ? exit_code::failure : exit_code::ok;
      const bool last = !o.loop || (o.max_cycles > 0 && n >= o.max_cycles) ||
                        state->status == improve_status::paused || !state->selected;
      if (last || !wait(interval))
        return exit_of(*state);
      order.resume = false;
      order.options.approved.clear();
    }
  }

  /// The home's log of facts hears of each end until it has it, if there is a home: as of a run by
  /// its schedule. A cycle that is told twice is one fact.
  void tell_home(const improve_order& order) {
    arguments at_home;
    at_home.home = args_.home;
    const auto where = place_of(at_home);
    const auto s = latest_state(root_, settings_, *local_.files);
    if (!s || s->untold.empty() || !where || !require_home(*where))
      return;
    std::vector<std::string> told;
    for (const auto& end : s->untold) {
      auto body = json::parse(end, nullptr, false);
      if (!body.is_object()) { // somebody has edited the state
        told.push_back(end);
        continue;
      }
      for (const auto* key : {"event", "good", "told", "cost"})
        body.erase(key);
      body["repository"] = root_;
      const auto done = ask_once(at_home, post("/api/v1/improvements", body.dump()), signals_);
      if (!done) {
        print_note("the home's log does not have it yet, the next cycle tells it again: " +
                   to_string(done.error()));
        break;
      }
      told.push_back(end);
    }
    if (told.empty())
      return;
    const auto ports = world();
    if (const auto done = mark_told(order, ports, told); !done)
      print_note("the home's log has it, which could not be noted: " + to_string(done.error()));
  }

  /// A node hears of it as of any other end, but for an interruption, which is its own.
  int fail_with(const error& e) const {
    if (args_.improve.unattended && e.code != errc::cancelled)
      print(
          failed_event(e.code == errc::locked ? failure_kind::transient : failure_kind::environment,
                       to_string(e)));
    return report(e, args_.json);
  }

  /// False: a signal came.
  bool wait(milliseconds interval) {
    const auto end = local_.clock->steady() + interval;
    while (!signals_.interrupted()) {
      const auto left = end - local_.clock->steady();
      if (left <= 0ms)
        return true;
      ::pollfd fd{signals_.descriptor(), POLLIN, 0};
      constexpr milliseconds longest = 1h;
      ::poll(&fd, 1, static_cast<int>(std::min<milliseconds>(left, longest).count()));
    }
    return false;
  }

  static int exit_of(const cycle_state& s) {
    if (s.status == improve_status::failed)
      return exit_code::failure;
    return s.status == improve_status::paused && s.applies ? exit_code::partial : exit_code::ok;
  }

  void show(const cycle_state& s) {
    if (args_.improve.unattended)
      return print(end_event(s));
    if (args_.json)
      return print(report_json(s));
    const auto t = terminal_of_stdout(args_);
    table rows({"TASK", "PRIO", "WHAT", "NOTE"});
    for (const auto& c : s.candidates) {
      const auto why = why_passed_over(c, s);
      if (rows.rows() < shown_candidates)
        rows.add_cells({c.task_id,
                        std::to_string(c.priority),
                        {c.title, why.empty() ? colour::none : colour::faint},
                        why.empty() ? one_line(c.what.message, t.width) : why});
    }
    if (rows.rows() > 0)
      print(rows.render(t));
    if (s.candidates.size() > rows.rows())
      print("and " + std::to_string(s.candidates.size() - rows.rows()) + " more in " +
            settings_.outputs + "\n");
    show_scanners(s, t);
    const bool is_said = s.reason.find("boyd improve retry") != s.reason.npos;
    if (!is_said && std::ranges::any_of(s.candidates, [&](const candidate& c) {
          return c.blocked.empty() && !why_passed_over(c, s).empty();
        }))
      print(t.paint(colour::faint, "to take a paused one up again: ") +
            "boyd improve retry TASK\n");
    if (s.selected)
      print(t.paint(colour::bold, "selected: ") + s.selected->task_id + " " +
            printable(s.selected->title) + "\n");
    for (const auto& r : s.execution.refusals)
      print("refused: " + printable(r) + "\n");
    if (!s.execution.executor.empty())
      print("asked: " + s.execution.executor + ", cost " + cost_of(s.execution.spent) + "\n");
    const bool good = s.status == improve_status::completed;
    const std::string status(name_of(s.status));
    const auto all =
        folded(status + " " + s.cycle_id + ": " + printable(s.reason) +
                   (s.commit.empty() ? "" : " (commit " + s.commit.substr(0, 10) + ")"),
               t);
    print(t.paint(good ? colour::good : colour::warn, status) + all.substr(status.size()) + "\n");
    if (s.awaits_approval())
      show_patch(s, t);
  }

  /// What is to be approved, with all that is in it.
  void show_patch(const cycle_state& s, const terminal& t) const {
    const auto file = directory_of(root_, settings_, s.cycle_id) + "/patch.diff";
    print(t.paint(colour::bold, "patch: ") + printable(file) + "\n");
    const auto diff = local_.files->read(file, patched_file_bytes);
    print(diff ? with_hidden_shown(sanitize_utf8(*diff))
               : "it cannot be shown: " + printable(to_string(diff.error())) + "\n");
    if (s.selected)
      print("to drop it: boyd improve retry " + s.selected->task_id + " --repo DIR\n");
  }

  static void show_scanners(const cycle_state& s, const terminal& t) {
    for (const auto& r : s.results.scanners)
      if (!r.problem.empty())
        print(t.paint(colour::warn, r.name + ": ") + printable(r.problem) + "\n");
    constexpr std::string_view head = "next:";
    for (const auto& a : s.results.advice)
      print(t.paint(colour::warn, head) +
            folded(std::string(head) + " " + printable(a), t).substr(head.size()) + "\n");
  }

  int retry() {
    improve_order order;
    order.root = root_;
    order.settings = settings_;
    const auto ports = world();
    const auto id = retry_task(order, ports, args_.improve.task);
    if (!id)
      return fail_with(id.error());
    print(args_.json ? json{{"task_id", *id}}.dump() + "\n"
                     : *id + " is taken up again: the next cycle may choose it\n");
    return exit_code::ok;
  }

  int tell_report() {
    const auto s = latest_state(root_, settings_, *local_.files);
    if (!s && s.error().code == errc::not_found)
      return report({errc::not_found, "no improvement cycle yet", root_, "boyd improve --repo DIR"},
                    args_.json);
    if (!s)
      return report(s.error(), args_.json);
    show(*s);
    if (args_.json)
      return exit_code::ok;
    const auto t = terminal_of_stdout(args_);
    table failures({"CYCLE", "TASK", "CLASS", "BY", "COST", "REASON"});
    for (const auto& f : s->failure_log)
      failures.add({f.cycle_id, f.task_id, std::string(name_of(f.kind)), f.executor,
                    cost_of(f.spent), f.reason});
    if (failures.rows() > 0)
      print("failed\n" + failures.render(t, "  "));
    table successes({"CYCLE", "TASK", "KIND", "BY", "COST", "APPROACH"});
    for (const auto& e : s->successes)
      successes.add({e.cycle_id, e.task_id, e.kind, e.executor, cost_of(e.spent), e.approach});
    if (successes.rows() > 0)
      print("done\n" + successes.render(t, "  "));
    return exit_code::ok;
  }

  const arguments& args_;
  std::string root_;
  signal_watch signals_;
  ports local_;
  improve_settings settings_;
  std::shared_ptr<confined_files> inside_;
  std::shared_ptr<work_tree> tree_;
  std::unique_ptr<waiting_runner> runner_;
  std::unique_ptr<live_line> steps_;
  std::vector<config::script_executor::answer> answers_;
  std::unique_ptr<proposing> proposing_;
};

} // namespace

int run_improve(const arguments& args) {
  const auto& o = args.improve;
  if (!o.approved.empty() && !o.resume)
    return report({errc::invalid_argument,
                   "--approved needs --resume",
                   {},
                   "boyd improve --apply --resume --approved DIGEST"},
                  args.json);
  if (o.resume && o.dry_run)
    return report({errc::invalid_argument,
                   "--resume continues a cycle with its original options",
                   {},
                   "leave out --dry-run"},
                  args.json);
  if ((o.approve || o.auto_commit) && !o.apply)
    return report({errc::invalid_argument,
                   "--approve and --auto-commit need --apply",
                   {},
                   "a dry run changes nothing"},
                  args.json);
  auto root = root_of(o.repo);
  if (!root)
    return report(root.error(), args.json);
  return improvement(args, std::move(*root)).run();
}

} // namespace boyd::app
