#include "actors/executor/options.hpp"
#include "actors/executor/parts.hpp"
#include "actors/support/ask.hpp"
#include "boyd/config/redact.hpp"
#include "boyd/core/home_layout.hpp"
#include "boyd/core/text.hpp"
#include "boyd/exec/cli_command.hpp"
#include "boyd/exec/patch_words.hpp"

#include <caf/send.hpp>

#include <algorithm>
#include <fmt/format.h>
#include <utility>

namespace boyd::executing {

namespace {

/// Ids of sessions are short words; anything else is not gone on with.
constexpr std::size_t session_bytes = 200;
/// A worktree that is not made or removed after so long is given up: a mount that hangs must not
/// hold a run for ever. The next start of the node removes it.
constexpr milliseconds tree_patience = 5min;

const config::agent_cli_executor* cli_of(self_pointer self) {
  const auto* agent = self->state.order.agent;
  return agent == nullptr ? nullptr : std::get_if<config::agent_cli_executor>(&agent->run);
}

/// Where the last session of the agent is noted: with the node, as the programs keep theirs on the
/// machine.
std::string session_file(self_pointer self) {
  const auto& row = self->state.order.work->row;
  return self->state.order.context->layout().session(row.kernel_id, row.agent_id);
}

bool is_session(std::string_view text) {
  return !text.empty() && text.size() <= session_bytes &&
         std::ranges::all_of(text, [](char c) { return c > ' ' && c < '\x7f'; });
}

/// Each run of a dispatch has its own: an earlier attempt's changes are not overwritten.
std::string patch_name(const dispatch& row) {
  return "patch-" + std::to_string(row.fence) + ".diff";
}

run_tree tree_for(self_pointer self, const config::worktree_settings& settings) {
  const auto& row = self->state.order.work->row;
  // The fence, so that no two runs of a dispatch ever meet.
  const auto name = row.dispatch_id + "-" + std::to_string(row.fence);
  const auto layout = self->state.order.context->layout();
  run_tree tree;
  tree.order = {settings.repo,
                settings.base,
                layout.worktrees() + "/" + name,
                "boyd/" + row.agent_id + "/" + name,
                layout.execution(row.dispatch_id) + "/" + patch_name(row),
                [secrets = self->state.secrets, changed = tree.changed](const std::string& patch) {
                  *changed = exec::read_patch(patch);
                  return config::redact_text(patch, secrets) != patch;
                }};
  return tree;
}

/// The repository itself, whose commits a worktree shares. Named by the configuration, not by a
/// file in the worktree: that one an agent can write.
std::string git_of(const std::string& repo) {
  return repo.ends_with(".git") ? repo : repo + "/.git";
}

/// What a commit in the worktree writes there: objects, and the agent's own branches, whose
/// directories git puts its locks in. Not other people's references, hooks and configuration:
/// these are followed later, by people and their programs.
void add_git_of(const run_tree& tree, std::vector<std::string>& writable) {
  const auto git = git_of(tree.order.repo);
  const auto name = tree.order.path.substr(tree.order.path.rfind('/') + 1);
  const auto branches = "refs/heads/" + tree.order.branch.substr(0, tree.order.branch.rfind('/'));
  // With a slash at the end they are made where they are missing.
  for (const auto& part :
       {std::string("objects"), branches + "/", "logs/" + branches + "/", "worktrees/" + name})
    writable.push_back(git + "/" + part);
}

bool is_within(const std::string& path, const std::string& above) {
  return path == above || path.starts_with(above + '/');
}

/// What no agent CLI may write as a whole: the homes of the node and its kernels.
std::vector<std::string> homes_of(self_pointer self, const exec::run_identity& who) {
  const auto& order = self->state.order;
  std::vector<std::string> homes{who.home, home_layout(who.home).kernels(), who.kernel_home};
  for (const auto& kernel : order.configuration->kernels)
    homes.push_back(order.context->kernel_home(kernel.kernel_id));
  return homes;
}

/// The permission of a program with a sandbox of its own: in a home only one with which it writes
/// nothing, since it opens its working directory. Empty: the executor's.
result<std::string> permission_in(const std::string& directory,
                                  const config::agent_cli_executor& cli, bool confined,
                                  const std::vector<std::string>& homes,
                                  const std::string& agent_id) {
  const auto holds = [&](const std::string& home) { return is_within(home, directory); };
  const auto& harmless = cli.adapter.read_only;
  if (confined || !cli.adapter.own_sandbox || harmless.empty() ||
      std::ranges::none_of(homes, holds))
    return std::string();
  const auto& given = cli.permission.empty() ? cli.adapter.permission : cli.permission;
  if (given.empty())
    return harmless.front();
  if (std::ranges::find(harmless, given) != harmless.end())
    return given;
  return fail(errc::refused,
              cli.adapter.name + " with permission " + given +
                  " could write in the kernel's home, its working directory",
              "agent " + agent_id, "set cwd or worktree of its executor");
}

void start_program(self_pointer self) {
  auto& s = self->state;
  const auto& cli = *cli_of(self);
  const auto who = identity_of(s.order, s.session_id);
  exec::cli_run run;
  run.prompt = prompt_of(self);
  run.session = s.session;
  if (s.tree)
    run.directory = s.tree->order.path;
  const auto checks = exec::checks_of(cli, run);
  const auto directory = checks.cwd.empty() ? who.kernel_home : checks.cwd;
  const bool has_sandbox =
      agent_now(s.order)->sandbox.mode != config::sandbox_settings::mode_t::off;
  const auto homes = homes_of(self, who);
  auto permission = permission_in(directory, cli, has_sandbox, homes, who.agent_id);
  if (!permission)
    return finish_unstarted(self, permission.error(), failure_class::environment);
  run.permission = std::move(*permission);
  auto plan = exec::build_agent_command(cli, std::move(run), who, s.order.context->environment);
  if (!plan)
    return finish_unstarted(self, plan.error(), failure_class::environment);
  const auto confine = [&](process_spec& process) {
    return confine_cli(self, process, plan->prompt ? plan->prompt->path : std::string());
  };
  if (auto confined = confine(plan->process); !confined)
    return finish_unstarted(self, confined.error(), failure_class::environment);
  auto options = options_for(*s.order.context, *s.order.agent, s.order.work->row);
  options.output_bytes = cli.output_bytes;
  options.context = exec::level_for(s.order.work->row.attempts_json);
  options.base_directory = plan->process.cwd;
  // The adapter lives as long as the configuration, which the alias holds.
  options.cli = exec::cli_contract{
      std::shared_ptr<const config::cli_adapter>(s.order.configuration, &cli.adapter),
      cli.denials_fail, cli.startup_timeout.value_or(cli.adapter.startup_timeout),
      s.order.agent->budget.run};
  options.wall_budget = s.order.agent->budget.run.wall;
  if (auto added = add_checks(self, options, checks, confine); !added)
    return finish_unstarted(self, added.error(), failure_class::environment);
  if (s.record)
    s.record->told.directory = plan->process.cwd;
  begin_program(self, std::move(*plan), std::move(options));
}

tl::unexpected<error> overdue(const std::string& where) {
  return fail(errc::timed_out, "no worktree after " + format_duration(tree_patience), where);
}

void make_tree(self_pointer self, const config::worktree_settings& settings) {
  auto& s = self->state;
  auto* trees = s.order.context->ports.trees.get();
  if (trees == nullptr)
    return finish_unstarted(self, {errc::refused, "this node does not support worktrees", {}, {}},
                            failure_class::environment);
  s.tree = tree_for(self, settings);
  past_faults(self, faults::point("worktrees.make"), [self, trees](const error* fault) {
    if (!self->state.tree)
      return; // given up meanwhile
    const auto& order = self->state.tree->order;
    if (fault != nullptr)
      return self->send(self, tree_made{{}, fail(errc::io_error, fault->what, order.path)});
    caf::actor_addr me = self->address();
    // The port outlives its own calls; who asked may not.
    trees->make(order, [me, trees, order](result<worktree_made> made) {
      if (auto strong = caf::actor_cast<caf::actor>(me))
        caf::anon_send(strong, tree_made{{}, std::move(made)});
      else if (made)
        trees->close(order, made->base, [](const result<worktree_change>&) {});
    });
  });
  self->delayed_send(self, tree_patience, tree_made{{}, overdue(s.tree->order.repo)});
}

/// What it refers to is read where it works.
void read_and_start(self_pointer self) {
  const auto& s = self->state;
  const bool in_tree = s.tree && s.order.agent->reads.workspace.empty();
  gather_items(self, in_tree ? s.tree->order.path : reading_root_of(self),
               [self] { begin_recording(self, {}, [self] { start_program(self); }); });
}

void prepare(self_pointer self) {
  if (const auto& worktree = cli_of(self)->worktree)
    make_tree(self, *worktree);
  else
    read_and_start(self);
}

/// Of the repository's references: who moved them is not known, a person may have.
std::string moved_in_words(const worktree_change& c) {
  if (c.moved == 0)
    return {};
  std::string names;
  for (const auto& name : c.moved_references)
    names += (names.empty() ? "" : ", ") + name;
  const auto more = c.moved - c.moved_references.size();
  return "--- changed during the run, by the run or others: " + names +
         (more == 0 ? "" : " and " + std::to_string(more) + " more") + " ---\n";
}

/// Beside the numbers of the run: what it changed.
void tell_change(run_outcome& o, const run_tree& tree, const worktree_change& c,
                 const dispatch& row) {
  const auto patch = "executions/" + row.dispatch_id + "/" + patch_name(row);
  auto text = c.files == 0 ? std::string("--- worktree: nothing changed ---\n")
                           : fmt::format("--- worktree: {} {} changed, +{} -{}, {}{} ---\n",
                                         c.files, c.files == 1 ? "file" : "files", c.added,
                                         c.removed, patch, c.cut ? ", cut" : "");
  if (c.has_secret)
    text += "--- the patch seems to contain a secret, not redacted ---\n";
  if (c.cut)
    text +=
        c.not_on_branch.empty()
            ? std::string("--- the patch is cut: a file is over 8 MiB, or all of it over 16 MiB; "
                          "all of the change is on the branch ---\n")
            : "--- the patch is cut, and the rest is lost: " + c.not_on_branch + " ---\n";
  if (c.has_commits)
    text += "--- its commits are on the branch " + tree.order.branch + " ---\n";
  text += moved_in_words(c);
  if (!o.output.empty() && o.output.back() != '\n')
    o.output += '\n';
  o.output += text;
  const auto figure = [](std::size_t n) { return static_cast<std::int64_t>(n); };
  o.usage.worktree = worktree_report{figure(c.files), figure(c.added), figure(c.removed),
                                     c.cut,           c.has_commits,   figure(c.moved)};
}

} // namespace

result<void> confine_cli(self_pointer self, process_spec& process, const std::string& prompt) {
  const auto& s = self->state;
  const auto& adapter = cli_of(self)->adapter;
  const auto who = identity_of(s.order, s.session_id);
  // Of a home it may write what is its own below it: a worktree, a directory that is its cwd.
  std::vector<std::string> writable{process.cwd};
  writable.insert(writable.end(), adapter.writable.begin(), adapter.writable.end());
  auto readable = adapter.readable;
  readable.push_back(who.kernel_home);
  if (s.tree) {
    add_git_of(*s.tree, writable);
    readable.push_back(git_of(s.tree->order.repo));
  }
  if (!prompt.empty())
    readable.push_back(prompt);
  return put_into_sandbox(self, process, std::move(writable), std::move(readable),
                          homes_of(self, who));
}

void begin_agent_cli(self_pointer self, const config::agent_cli_executor& cli) {
  if (!cli.resume)
    return prepare(self);
  ask<workspace_reply>(self, self->state.order.services.workspace,
                       workspace_request{{}, read_text_file{session_file(self), session_bytes}},
                       [self](const result<workspace_reply>& r) {
                         // Without one a new session begins.
                         if (r && is_session(trim(r->text)))
                           self->state.session = std::string(trim(r->text));
                         prepare(self);
                       });
}

void on_tree_made(self_pointer self, tree_made& m) {
  auto& s = self->state;
  if (!s.tree || !s.tree->base.empty())
    return; // the patience of one that stands
  if (!m.made) {
    s.tree.reset();
    const bool busy = m.made.error().code == errc::overloaded ||
                      m.made.error().code == errc::locked || m.made.error().code == errc::timed_out;
    return finish_unstarted(self, m.made.error(),
                            busy ? failure_class::transient : failure_class::environment);
  }
  s.tree->base = std::move(m.made->base);
  s.tree->order.references = std::move(m.made->references);
  set_up(self, [self] { read_and_start(self); });
}

bool closes_tree(self_pointer self, run_outcome& outcome) {
  auto& s = self->state;
  if (!s.tree || s.tree->base.empty())
    return false;
  if (s.closing)
    return true;
  s.closing = std::move(outcome);
  past_faults(self, faults::point("worktrees.close"), [self](const error* fault) {
    const auto& present = self->state;
    if (!present.tree)
      return; // given up meanwhile
    const auto& order = present.tree->order;
    if (fault != nullptr)
      return self->send(self, tree_closed{{}, fail(errc::io_error, fault->what, order.path)});
    caf::actor_addr me = self->address();
    present.order.context->ports.trees->close(
        order, present.tree->base, [me](result<worktree_change> change) {
          if (auto strong = caf::actor_cast<caf::actor>(me))
            caf::anon_send(strong, tree_closed{{}, std::move(change)});
        });
  });
  self->delayed_send(self, tree_patience, tree_closed{{}, overdue(s.tree->order.path)});
  return true;
}

void on_tree_closed(self_pointer self, tree_closed& m) {
  auto& s = self->state;
  if (!s.closing || !s.tree)
    return;
  auto outcome = std::move(*s.closing);
  const auto tree = std::move(*s.tree);
  s.closing.reset();
  s.tree.reset();
  if (m.change) {
    tell_change(outcome, tree, *m.change, s.order.work->row);
    if (s.record) { // what it changed shows what it read (docs/context.md)
      s.record->paths.insert(s.record->paths.end(), tree.changed->paths.begin(),
                             tree.changed->paths.end());
      s.record->wrote = std::move(tree.changed->added);
    }
  } else {
    // What it changed is its result.
    const auto why = "cannot store its changes: " + to_string(m.change.error());
    outcome.error += (outcome.error.empty() ? "" : "; ") + why;
    if (outcome.execution == execution_verdict::succeeded) {
      outcome.execution = execution_verdict::failed;
      outcome.failure = failure_class::environment;
      outcome.summary = std::string(cut_characters(why, limits::summary_characters));
    }
  }
  finish(self, std::move(outcome));
}

void keep_report(self_pointer self, const run_outcome& outcome) {
  auto& s = self->state;
  const auto* cli = cli_of(self);
  if (cli == nullptr || !s.attempt)
    return;
  const std::unique_lock lock(s.attempt->mutex);
  const auto* report = s.attempt->core.events();
  if (report == nullptr)
    return;
  if (cli->resume && is_success(outcome) && is_session(report->session))
    caf::anon_send(s.order.services.workspace,
                   workspace_request{{}, write_private_file{session_file(self), report->session}});
  else if (cli->resume && !s.session.empty() && !is_success(outcome))
    // It may be the session that cannot be gone on with: the next run starts afresh.
    caf::anon_send(s.order.services.workspace,
                   workspace_request{{}, remove_file{session_file(self)}});
}

} // namespace boyd::executing
