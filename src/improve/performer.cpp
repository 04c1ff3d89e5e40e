#include "boyd/improve/performer.hpp"

#include "boyd/config/redact.hpp"
#include "boyd/core/text.hpp"
#include "boyd/core/workspace_path.hpp"
#include "boyd/files/atomic_file.hpp"
#include "boyd/improve/patch.hpp"
#include "boyd/improve/protection.hpp"
#include "boyd/improve/task_prompt.hpp"
#include "lock_internal.hpp"
#include "scanning_internal.hpp"
#include "work_tree_internal.hpp"

#include <algorithm>
#include <array>
#include <deque>
#include <iterator>
#include <map>
#include <optional>
#include <set>
#include <utility>

namespace boyd::improve {

namespace {

constexpr std::size_t read_bytes = std::size_t{1} << 20;
constexpr std::size_t day_characters = 8;

/// One cycle being carried out.
class performer {
 public:
  performer(const improve_order& order, const improve_ports& ports)
      : order_(order), ports_(renewing(ports)), outputs_(order.root + "/" + order.settings.outputs),
        lock_(outputs_ + "/lock", ports_), scanning_(order, ports_), tree_(order, ports_),
        undo_(order.root, outputs_, ports.files, ports.tree) {}

  result<cycle_state> run() {
    if (auto done = prepare(); !done)
      return fail(std::move(done.error()));
    auto core = start();
    if (waiting_for_a_person_)
      return std::move(*waiting_for_a_person_);
    if (!core)
      return fail(std::move(core.error()));
    core_.emplace(std::move(*core));
    if (keeps_state_)
      tell("the patch that waits for a person stays as it is");
    take(core_->begin(ports_.clock.now()));
    while (!waiting_.empty() && !broken_) {
      auto next = std::move(waiting_.front());
      waiting_.pop_front();
      if (ports_.interrupted && ports_.interrupted())
        return fail(errc::cancelled, "interrupted in " + std::string(name_of(core_->state().at)),
                    {}, "go on with: boyd improve --resume");
      std::visit([this](const auto& e) { perform(e); }, next);
    }
    if (broken_)
      return fail(std::move(*broken_));
    return core_->state();
  }

  result<std::string> retry(const std::string& task) {
    if (auto done = prepare(); !done)
      return fail(std::move(done.error()));
    auto state = earlier();
    if (!state)
      return fail(std::move(state.error()));
    auto id = take_up(*state, task);
    if (id)
      write(outputs_ + "/state.json", state_json(*state), true);
    if (broken_)
      return fail(std::move(*broken_));
    return id;
  }

  result<void> told(const std::vector<std::string>& ends) {
    if (auto done = prepare(); !done)
      return done;
    auto state = earlier();
    if (!state)
      return fail(std::move(state.error()));
    std::erase_if(state->untold,
                  [&](const auto& e) { return std::ranges::find(ends, e) != ends.end(); });
    write(outputs_ + "/state.json", state_json(*state), true);
    return broken_ ? fail(std::move(*broken_)) : result<void>();
  }

 private:
  /// The same ports; the lock is renewed while programs and agents work.
  improve_ports renewing(const improve_ports& ports) {
    auto own = ports;
    own.run = [this, &ports](command_order order) {
      order.while_waiting = [this] { lock_.renew(); };
      return ports.run(order);
    };
    own.agent = [this, &ports](agent_order order) {
      order.while_waiting = [this] { lock_.renew(); };
      return ports.agent(order);
    };
    if (ports.tell)
      own.tell = [this, &ports](const std::string& text) {
        const auto& s = core_->state();
        ports.tell((s.is_open() ? std::string(name_of(s.at)) + ": " : "") + text);
      };
    return own;
  }

  result<void> prepare() {
    for (const auto& directory : {outputs_, order_.root + "/" + order_.settings.logs}) {
      if (auto done = ports_.files.make_directories(directory); !done)
        return done;
      // What stands here is no part of the repository, whatever its .gitignore says.
      const auto marker = directory + "/.gitignore";
      const auto there = ports_.files.stat(marker);
      if (there && there->kind == file_kind::missing)
        if (auto done = files::write_atomic(ports_.files, marker, "*\n"); !done)
          return done;
    }
    if (auto done = lock_.acquire(); !done)
      return done;
    const auto removed = files::remove_leftover_temporaries(ports_.files, outputs_);
    return removed ? result<void>() : fail(removed.error());
  }

  /// The state of the cycle before, or an empty one.
  result<cycle_state> earlier() {
    auto s = latest_state(order_.root, order_.settings, ports_.files);
    if (s || s.error().code != errc::not_found)
      return s;
    cycle_state none;
    none.status = improve_status::completed;
    return none;
  }

  result<cycle_core> start() {
    auto s = earlier();
    if (!s)
      return fail(std::move(s.error()));
    const bool interrupted = s->is_open() && s->applies && s->at >= phase::execute;
    if ((order_.resume && !s->cycle_id.empty()) || (order_.resume_open && interrupted))
      return cycle_core::resumed(std::move(*s), order_.options);
    if (order_.resume_open && s->awaits_approval()) {
      waiting_for_a_person_ = std::move(*s);
      return fail(errc::conflict, "a patch waits for a person");
    }
    if (s->awaits_approval() && order_.options.apply && !order_.resume)
      return fail(errc::conflict, "the patch of cycle " + s->cycle_id + " waits for a person",
                  directory_of(order_.root, order_.settings, s->cycle_id) + "/patch.diff",
                  "apply it: boyd improve --repo DIR --apply --resume --approved " +
                      s->execution.patch->digest + "; or drop it: boyd improve retry " +
                      (s->selected ? s->selected->task_id : std::string("TASK")) + " --repo DIR");
    // A dry run asks for nothing and leaves nothing: what waits for a person goes on waiting.
    keeps_state_ = s->awaits_approval() && !order_.options.apply;
    if (order_.resume)
      return fail(errc::refused, "no cycle has run here", order_.root,
                  "begin one without --resume");
    if (interrupted)
      return fail(errc::conflict,
                  "cycle " + s->cycle_id + " was interrupted in " + std::string(name_of(s->at)),
                  outputs_ + "/state.json", "go on with it: boyd improve --repo DIR --resume");
    // Without a state that tells of it: somebody moved state.json away.
    const auto open = undo_.open_cycles();
    if (!open)
      return fail(open.error());
    for (const auto& cycle : *open)
      if (const auto back = undo_.roll_back(cycle); !back)
        return fail(back.error());
    auto core = cycle_core::fresh(*s, order_.options, ports_.clock.now());
    if (core.state().cycle_id == s->cycle_id)
      return fail(errc::conflict, "another cycle began in this second", {}, "try again");
    return core;
  }

  void take(cycle_effects effects) {
    for (auto& e : effects)
      waiting_.push_back(std::move(e));
  }

  void tell(const std::string& text) {
    if (ports_.tell)
      ports_.tell(text);
    log(text);
  }

  /// A log that cannot be written stops nothing.
  void log(const std::string& text) {
    const auto& s = core_->state();
    const auto directory =
        order_.root + "/" + order_.settings.logs + "/" + s.cycle_id.substr(0, day_characters);
    if (!ports_.files.make_directories(directory))
      return;
    auto file = ports_.files.open(directory + "/" + s.cycle_id + ".log", open_mode::append);
    if (file)
      (*file)->write(format_rfc3339(ports_.clock.now(), true) + " " + std::string(name_of(s.at)) +
                     " " + config::redact_text(text, order_.settings.secrets) + "\n");
  }

  /// False: the cycle cannot go on.
  bool still_mine() {
    auto kept = lock_.keep();
    if (!kept)
      broken_ = std::move(kept.error());
    return kept.has_value();
  }

  void write(const std::string& path, const std::string& text, bool backup = false) {
    if (broken_)
      return;
    auto done = files::write_atomic(ports_.files, path, text, {.backup = backup});
    if (!done)
      broken_ = std::move(done.error());
  }

  void perform(const effect::save& e) {
    if (still_mine() && !keeps_state_)
      write(outputs_ + "/state.json", state_json(e.state), true);
  }

  void perform(const effect::look&) {
    preflight p;
    if (core_->state().applies)
      p = look();
    take(core_->on_look(p, ports_.clock.now()));
  }

  preflight look() {
    preflight p;
    if (order_.settings.executor.kind == executor_settings::kind_t::none &&
        order_.settings.executors.empty())
      p.hindrance = "no executor is configured: write improve.executor into the configuration";
    auto repository = ports_.repositories.open(order_.root, {});
    if (!repository) {
      p.hindrance = to_string(repository.error());
      return p;
    }
    const auto head = (*repository)->head();
    if (!head || !*head) {
      p.hindrance = head ? "the repository has no commit" : to_string(head.error());
      return p;
    }
    p.head = **head;
    const auto now = tree_.changes(**repository);
    if (!now)
      p.hindrance = to_string(now.error());
    else if (!now->tracked.empty())
      p.dirty = not_committed(now->tracked);
    return p;
  }

  std::string why_not_alone() const {
    return tree_.why_not_alone(core_->state().execution.patch->changes);
  }

  gate_rules rules() {
    gate_rules r{order_.root, {order_.settings.outputs, order_.settings.logs}, {}};
    if (order_.settings.file.starts_with(order_.root + "/"))
      r.closed.push_back(order_.settings.file.substr(order_.root.size() + 1));
    r.protected_paths = {order_.settings.protect,
                         files_run(order_.settings, order_.root, tree_.known_files()),
                         order_.settings.may_change, order_.settings.may_change_tests};
    r.secrets = order_.settings.secrets;
    if (core_->state().selected)
      r.task = core_->state().selected->what;
    if (order_.settings.hygiene.enabled)
      r.largest_file = std::min(r.largest_file, order_.settings.hygiene.large_file);
    return r;
  }

  void perform(const effect::scan&) {
    auto seen = scanning_.scan();
    // No patch can settle what stands in a file that no patch may touch.
    const auto closed = rules().protected_paths;
    for (auto& f : seen.findings)
      if (f.from != finding_source::test && f.unfixable.empty() && !f.path.empty())
        f.unfixable = why_protected(f.path, closed);
    log(std::to_string(seen.findings.size()) + " findings");
    take(core_->on_scan(seen.findings, std::move(seen.results), ports_.clock.now()));
  }

  void perform(const effect::recheck& e) {
    tell("checking again: " + e.task.title);
    // The scan was the first run, this is the second.
    take(core_->on_recheck(scanning_.recheck(e.task, core_->state()), ports_.clock.now()));
  }

  void perform(const effect::ask& e) {
    tell("asking " + (e.executor.empty() ? "" : e.executor + " ") + "for a patch, try " +
         std::to_string(core_->state().execution.tries + 1) + " of " + std::to_string(most_tries) +
         ": " + e.task.title);
    const auto before = tree_.look(core_->state().base);
    if (!before || !before->tracked.empty())
      return disturbed(before ? not_committed(before->tracked) : to_string(before.error()), {});
    auto a = answer_to(e);
    if (auto why = disturbance(*before, tree_.look(core_->state().base)); !why.empty())
      return disturbed(std::move(why), a.spent);
    take(core_->on_answer(std::move(a), ports_.clock.now()));
  }

  void disturbed(std::string why, const spending& spent) {
    take(core_->on_disturbed(std::move(why), spent, ports_.clock.now()));
  }

  answer_end answer_to(const effect::ask& e) {
    const auto& x = order_.settings.executor;
    const auto prompt =
        config::redact_text(task_prompt(core_->state(), parts_of(e)), order_.settings.secrets);
    if (!e.executor.empty())
      return ports_.agent({e.executor, prompt});
    if (x.kind != executor_settings::kind_t::script)
      return answer_of(ports_.run({x.argv, order_.root, prompt, x.timeout}));
    auto scripted = ports_.scripted(core_->state().answers);
    return scripted ? std::move(*scripted)
                    : answer_end{{}, failure_kind::environment, to_string(scripted.error())};
  }

  prompt_parts parts_of(const effect::ask& e) {
    prompt_parts parts;
    parts.edits = e.edits;
    parts.closed = order_.settings.protect;
    for (const auto& own : {order_.settings.outputs, order_.settings.logs})
      parts.closed.push_back(own + "/**");
    const auto known = tree_.known_files();
    std::ranges::move(files_run(order_.settings, order_.root, known),
                      std::back_inserter(parts.closed));
    parts.closed.push_back("files that start programs or say what is checked (build files, CI, "
                           "settings of tests, linters, editors and agents)");
    if (!order_.settings.may_change_tests)
      parts.closed.push_back(e.task.what.from == finding_source::test
                                 ? "files that hold tests"
                                 : "files that hold tests, but for the file of the finding");
    parts.refused = refused_;
    parts.guidance = order_.guidance;
    std::vector<named_place> places{{e.task.what.path, e.task.what.line}};
    std::ranges::move(places_in(core_->state().execution.evidence + "\n" + e.task.what.message),
                      std::back_inserter(places));
    std::size_t room = shown_file_bytes;
    for (auto& place : places) {
      // What git does not know is nobody's business but a person's, whatever an output names.
      const auto path = workspace_path(order_.root, place.path);
      if (!path || !known.contains(*path) || parts.files.size() == shown_files ||
          std::ranges::find(parts.files, *path, &prompt_file::path) != parts.files.end())
        continue;
      // Nor what a link leads to.
      if (const auto there = ports_.inside.find(order_.root, *path);
          !there || there->where != *path)
        continue;
      place.path = *path;
      if (auto file = file_at(place, room)) {
        room -= std::min(room, file->text.size());
        parts.files.push_back(std::move(*file));
      }
    }
    return parts;
  }

  std::optional<prompt_file> file_at(const named_place& place, std::size_t most) {
    const auto part = ports_.inside.read(order_.root, place.path, 0, read_bytes);
    if (!part || part->text.find('\0') != std::string::npos || most == 0)
      return std::nullopt;
    auto file = around(place.path, redact_lines(sanitize_utf8(part->text), order_.settings.secrets),
                       place.line, most);
    file.is_cut = part->size > part->text.size();
    return file;
  }

  void perform(const effect::judge& e) {
    auto patch = judge(e);
    refused_ = patch || e.is_diff ? std::string() : e.answer;
    if (patch)
      write_diff(*patch);
    take(core_->on_judged(std::move(patch), ports_.clock.now()));
  }

  result<accepted_patch> judge(const effect::judge& e) {
    auto p = e.is_diff ? read_diff(e.answer) : read_proposal(e.answer);
    if (!p) {
      log("refused: " + to_string(p.error()));
      return fail(std::move(p.error()));
    }
    auto patch = judge_patch(*p, rules(), ports_.tree, ports_.inside);
    if (patch)
      if (auto known = tree_.check_known(*patch); !known)
        patch = fail(std::move(known.error()));
    if (!patch)
      log("refused: " + to_string(patch.error()));
    return patch;
  }

  void perform(const effect::apply& e) {
    if (!still_mine())
      return;
    tell("applying the patch");
    auto done = tree_.check_base(core_->state().base);
    if (done) {
      const auto others = tree_.changed_besides(e.patch.changes);
      if (!others)
        done = fail(others.error());
      else if (!others->empty())
        done = fail(errc::conflict, not_committed(*others));
    }
    if (done)
      done = undo_.apply(core_->state().cycle_id, e.patch);
    take(core_->on_applied(done, ports_.clock.now()));
  }

  void perform(const effect::compare&) {
    const auto base = tree_.check_base(core_->state().base);
    const auto stands = base ? undo_.stands(core_->state().cycle_id) : fail(base.error());
    if (stands && *stands)
      if (auto why = why_not_alone(); !why.empty())
        return disturbed(std::move(why), {});
    take(core_->on_compared(stands, ports_.clock.now()));
  }

  void perform(const effect::prove& e) {
    tell("verifying: " + e.task.title);
    const auto end = scanning_.prove(e.task, core_->state());
    if (end.passed)
      if (auto why = why_not_alone(); !why.empty())
        return disturbed(std::move(why), {});
    take(core_->on_proved(end, ports_.clock.now()));
  }

  void perform(const effect::guard&) {
    tell("verifying: the gate");
    take(core_->on_guarded(scanning_.guard(core_->state()), ports_.clock.now()));
  }

  void perform(const effect::roll_back&) {
    if (!still_mine())
      return;
    auto end = take_back();
    if (end)
      tell_others(*end);
    if (!end)
      broken_ = end.error();
    else if (!end->told.empty())
      tell(end->told);
    take(core_->on_rolled_back(end, ports_.clock.now()));
  }

  /// What the patch changed beyond its own files is not taken back: nobody can tell it from a
  /// person's edits.
  void tell_others(undo_end& end) {
    const auto& s = core_->state();
    if (s.outcome.empty() || !s.execution.patch) // it is applied once more
      return;
    const auto others = tree_.changed_besides(s.execution.patch->changes);
    if (!others || others->empty() || s.reason.find(names_of(*others)) != std::string::npos)
      return;
    end.told +=
        (end.told.empty() ? "" : "; ") + ("other files changed, too (" + names_of(*others) +
                                          "): look at them, then commit them or take them back");
  }

  result<undo_end> take_back() {
    const auto& s = core_->state();
    if (!s.execution.applied || !s.execution.patch || !tree_.is_in_head(*s.execution.patch, s.base))
      return undo_.roll_back(s.cycle_id);
    // Taking it back would undo a person's commit.
    if (auto done = undo_.forget(s.cycle_id); !done)
      return fail(std::move(done.error()));
    undo_end end;
    for (const auto& c : s.execution.patch->changes)
      end.kept.push_back(c.path);
    end.told = "the patch stays, because somebody committed it meanwhile";
    return end;
  }

  void perform(const effect::commit& e) {
    if (still_mine())
      take(core_->on_committed(tree_.commit(e, core_->state(), undo_), ports_.clock.now()));
  }

  void perform(const effect::forget&) {
    auto done = undo_.forget(core_->state().cycle_id);
    if (!done)
      broken_ = done.error();
    take(core_->on_forgotten(done, ports_.clock.now()));
  }

  void perform(const effect::report&) {
    const auto& s = core_->state();
    const auto directory = made_directory();
    if (directory.empty())
      return;
    const auto day = outputs_ + "/" + s.cycle_id.substr(0, day_characters);
    for (const auto& place : {directory + "/", day + "/latest_"}) {
      write(place + "candidates.json", candidates_json(s));
      write(place + "report.json", report_json(s));
    }
    tell(std::string(name_of(s.status)) + ": " + s.reason);
  }

  /// Of what people read of this cycle; empty: it cannot be made.
  std::string made_directory() {
    auto directory = directory_of(order_.root, order_.settings, core_->state().cycle_id);
    auto done = ports_.files.make_directories(directory);
    if (done)
      return directory;
    broken_ = std::move(done.error());
    return {};
  }

  /// What the patch changes, for people. Its files are still those that it was made for.
  void write_diff(const accepted_patch& p) {
    const auto directory = made_directory();
    if (directory.empty())
      return;
    std::string text = "# " + p.summary + "\n# digest " + p.digest + "\n";
    for (const auto& c : p.changes) {
      const auto there = ports_.tree.look(order_.root, c.path, patched_file_bytes);
      text += "# " + std::string(name_of(c.action)) + " " + c.path + "\n" +
              render_diff(c.path, there ? there->content : std::string(), c.after);
    }
    write(directory + "/patch.diff", config::redact_text(std::move(text), order_.settings.secrets));
  }

  const improve_order& order_;
  const improve_ports ports_;
  std::string outputs_;
  std::string refused_; ///< the last answer, if it was refused
  repository_lock lock_;
  scanning scanning_;
  work_tree tree_;
  undo_log undo_;
  std::optional<cycle_core> core_;
  std::deque<cycle_effect> waiting_;
  std::optional<cycle_state> waiting_for_a_person_;
  std::optional<error> broken_;
  bool keeps_state_ = false; ///< state.json has a patch that waits for a person
};

} // namespace

std::string directory_of(const std::string& root, const improve_settings& settings,
                         const std::string& cycle_id) {
  return root + "/" + settings.outputs + "/" + cycle_id.substr(0, day_characters) + "/" + cycle_id;
}

result<cycle_state> latest_state(const std::string& root, const improve_settings& settings,
                                 file_system& files) {
  const auto path = root + "/" + settings.outputs + "/state.json";
  auto content = files::read_checked(files, path, state_bytes, why_unreadable);
  if (!content)
    return fail(std::move(content.error()));
  return read_state(content->bytes);
}

result<cycle_state> run_cycle(const improve_order& order, const improve_ports& ports) {
  return performer(order, ports).run();
}

result<std::string> retry_task(const improve_order& order, const improve_ports& ports,
                               const std::string& task) {
  return performer(order, ports).retry(task);
}

result<void> mark_told(const improve_order& order, const improve_ports& ports,
                       const std::vector<std::string>& told) {
  return performer(order, ports).told(told);
}

} // namespace boyd::improve
