#include "actors/state_writer/performer.hpp"

#include "boyd/config/redact.hpp"
#include "boyd/core/ids.hpp"
#include "boyd/faults/points.hpp"
#include "boyd/files/atomic_file.hpp"
#include "boyd/ports/clock.hpp"
#include "boyd/ports/file_system.hpp"
#include "boyd/state/document.hpp"
#include "boyd/state/files_of_kernel.hpp"
#include "boyd/state/reducer.hpp"
#include "boyd/state/runtime_block.hpp"
#include "boyd/state/seed.hpp"

#include <spdlog/spdlog.h>

#include <utility>

namespace boyd {

namespace {

constexpr const char* state_file = "STATE.md";

template <class What>
const std::string& kernel_of(const What& what) {
  return what.kernel_id;
}

const std::string& kernel_of(const render_cycle& what) {
  return what.block.kernel_id;
}

/// Snapshots that differ in their time alone are not written again.
bool is_news(const std::string& name, const std::string& old_text, const std::string& new_text) {
  const bool snapshot = name == "INIT.md" || name == "SYSTEM_PROMPT.md";
  return snapshot ? !state::same_snapshot(old_text, new_text) : old_text != new_text;
}

} // namespace

state_session::state_session(node_context_ptr context, configuration_ptr configuration)
    : context_(std::move(context)), configuration_(std::move(configuration)) {}

void state_session::perform(std::vector<job<state_request, state_reply>>& batch) {
  for (auto& j : batch) {
    j.reply = answer(j.request);
    if (!j.reply)
      last_error_ = to_string(j.reply.error());
  }
}

result<state_reply> state_session::answer(const state_request& request) {
  auto h = home_of(std::visit(
      [](const auto& what) -> const std::string& { return kernel_of(what); }, request.what));
  if (!h)
    return fail(std::move(h.error()));
  home& known = **h;
  const bool reads = std::holds_alternative<read_state>(request.what) ||
                     std::holds_alternative<read_kernel_files>(request.what);
  if (!reads)
    if (auto passed = faults::pass("state_writer.write"); !passed)
      return fail(std::move(passed.error()));
  if (!std::holds_alternative<init_kernel_home>(request.what))
    if (auto there = check_directory(known); !there)
      return fail(std::move(there.error()));
  return std::visit([&](const auto& what) { return carry_out(known, what); }, request.what);
}

result<state_session::home*> state_session::home_of(const std::string& kernel_id) {
  if (auto it = homes_.find(kernel_id); it != homes_.end())
    return &it->second;
  if (!is_valid_name(kernel_id))
    return fail(errc::invalid_argument, "not a kernel name", kernel_id);
  home h;
  if (const auto* k = configuration_ ? configuration_->find_kernel(kernel_id) : nullptr)
    h.settings = *k;
  h.settings.kernel_id = kernel_id;
  state::versioned_store_options options;
  options.path = context_->kernel_home(kernel_id);
  options.who = {h.settings.author_name, h.settings.author_email};
  options.auto_commit = h.settings.auto_commit;
  if (configuration_)
    options.filter = [configuration = configuration_](std::string text) {
      return config::redact_text(std::move(text), configuration->secrets);
    };
  const auto& p = context_->ports;
  h.files = std::make_unique<state::versioned_store>(*p.files, *p.repositories, *p.clock, options);
  h.memory = std::make_unique<state::memory_files>(
      *h.files, *p.files, state::memory_options{kernel_id, h.settings.memory.caps, options.filter});
  return &homes_.emplace(kernel_id, std::move(h)).first->second;
}

result<void> state_session::check_directory(home& h) {
  const auto& path = h.files->path();
  const auto info = context_->ports.files->stat(path);
  if (info && info->kind == file_kind::directory) {
    h.missing.clear();
    note_time(h);
    return {};
  }
  h.missing = info ? "state directory is missing: " + path
                   : "cannot access the state directory: " + to_string(info.error());
  note_time(h);
  return fail(errc::io_error, h.missing, h.settings.kernel_id,
              "restore it; Boyd then uses it again by itself");
}

/// The history is gone although STATE.md tells of finished cycles, which is written only after the
/// repository was made: an empty one in its place would hide the loss, and collide with the real
/// one when that comes back.
bool state_session::has_lost_history(const home& h) {
  const auto& ports = context_->ports;
  const auto info = ports.files->stat(h.files->path() + "/.git");
  if (!info || info->kind != file_kind::missing)
    return false;
  // A backup without its file tells it as well.
  const auto text = files::read_checked(*ports.files, h.files->path() + "/" + state_file,
                                        limits::state_file_bytes, state::damage_of);
  const auto block = text ? state::parse_runtime_block(text->bytes) : std::nullopt;
  if (!block || block->history.empty())
    return false;
  return !ports.repositories->open(h.files->path(),
                                   {h.settings.author_name, h.settings.author_email});
}

result<state_reply> state_session::carry_out(home& h, const init_kernel_home& what) {
  const auto there_now = context_->ports.files->stat(h.files->path());
  if (what.has_run && there_now && there_now->kind == file_kind::missing)
    return fail(errc::io_error,
                "the kernel's directory is missing, although this node has run cycles of it",
                h.files->path(),
                "restore it; Boyd then uses it again by itself. Or stop the node and create a new "
                "one: boyd init");
  if (has_lost_history(h))
    spdlog::error("kernel {}: the git repository is missing, although STATE.md lists cycles: "
                  "restore {}/.git, or stop the node and create a new one: boyd init",
                  h.settings.kernel_id, h.files->path());
  else if (auto made = h.files->init(); !made)
    return fail(std::move(made.error()));
  if (auto there = check_directory(h); !there)
    return fail(std::move(there.error()));
  auto text = sound_state(h);
  if (!text)
    return fail(std::move(text.error()));
  return state_reply{};
}

result<state_reply> state_session::carry_out(home& h, const read_state& /*what*/) {
  auto text = sound_state(h);
  if (!text)
    return fail(std::move(text.error()));
  return state_reply{std::move(*text), {}};
}

/// STATE.md as somebody wrote it: restored when a fault has damaged it or it is gone, seeded when
/// there never was one.
result<std::string> state_session::sound_state(home& h) {
  auto text = h.files->read(state_file);
  if (text) {
    const auto damage = state::damage_of(*text);
    return damage.empty() ? std::move(text) : restore_state(h, damage);
  }
  if (text.error().code != errc::not_found)
    return text;
  auto kept = kept_state(h);
  if (!kept)
    return fail(std::move(kept.error()));
  if (*kept)
    return bring_back_state(h, **kept);
  if (h.files->health().degraded)
    spdlog::warn("state_writer: {}/{} is missing, has no backup, and the history is unreadable; "
                 "creating a new one",
                 h.files->path(), state_file);
  const auto& s = h.settings;
  auto seeded = h.files->seed(state_file, state::seed_state(s.name.empty() ? s.kernel_id : s.name));
  if (auto ok = written(h, seeded ? result<void>{} : fail(std::move(seeded.error()))); !ok)
    return fail(std::move(ok.error()));
  return h.files->read(state_file);
}

/// The sound text that stands beside STATE.md as its backup, else that of the newest commit with
/// one (FAULTS 38, 39); nothing when there is none. An error when the backup cannot be read just
/// now: nobody knows yet what it holds, and seeding would replace it.
result<std::optional<state_session::kept_text>> state_session::kept_state(home& h) {
  const auto path = h.files->path() + "/" + state_file;
  auto kept =
      files::read_checked(*context_->ports.files, path, limits::state_file_bytes, state::damage_of);
  if (kept)
    return std::optional(kept_text{std::move(kept->bytes), "its backup"});
  if (const auto history = h.files->history(state_file, limits::recent_results))
    for (const auto& commit : *history)
      if (auto old = h.files->read_at(commit.hash, state_file);
          old && state::damage_of(*old).empty())
        return std::optional(kept_text{std::move(*old), "commit " + commit.hash});
  if (kept.error().code != errc::not_found && kept.error().code != errc::corrupt)
    return fail(std::move(kept.error()));
  return std::optional<kept_text>{};
}

/// What a crashed file system leaves; nothing of Boyd's writes it. The damaged text goes into the
/// history first.
result<std::string> state_session::restore_state(home& h, const std::string& damage) {
  const auto path = h.files->path() + "/" + state_file;
  const auto kept = kept_state(h);
  if (!kept)
    return fail(kept.error());
  if (!*kept)
    return fail(
        errc::corrupt,
        "STATE.md is damaged (" + damage + "), and neither its backup nor a commit can restore it",
        path, "fix it by hand, or remove it, so that Boyd creates a new one: rm '" + path + "'");
  const auto& [text, from] = **kept;
  last_error_ = path + " was damaged (" + damage + ") and was restored from " + from;
  spdlog::error("state_writer: {}", last_error_);
  if (auto ok = written(h, h.files->write(state_file, text)); !ok)
    return fail(std::move(ok.error()));
  return text;
}

/// Somebody removed STATE.md, or a fault did. No snapshot goes first: it would commit the removal
/// alone. What somebody puts there meanwhile stays.
result<std::string> state_session::bring_back_state(home& h, const kept_text& kept) {
  last_error_ =
      h.files->path() + "/" + state_file + " was missing and was restored from " + kept.from;
  spdlog::error("state_writer: {}", last_error_);
  auto restored = h.files->update(
      state_file,
      [&kept](std::string_view current) -> result<std::string> {
        return current.empty() ? kept.text : std::string(current);
      },
      state::versioned_store::snapshot_first::no);
  if (auto ok = written(h, std::move(restored)); !ok)
    return fail(std::move(ok.error()));
  return h.files->read(state_file);
}

result<state_reply> state_session::carry_out(home& h, const read_kernel_files& what) {
  state_reply reply;
  for (const auto& name : what.names) {
    auto text = h.files->read(name);
    if (text)
      reply.files[name] = std::move(*text);
    else if (text.error().code == errc::invalid_argument)
      return fail(std::move(text.error())); // the name, not the file
    else if (text.error().code != errc::not_found)
      reply.unreadable.emplace(name, std::move(text.error()));
  }
  return reply;
}

/// Rows of earlier programs, and of other nodes, were redacted by other rules than these.
std::string state_session::hidden(const std::string& text) const {
  static const std::vector<std::string> none;
  return config::redact_text(text, configuration_ ? configuration_->secrets : none);
}

result<std::string> state_session::block_text(const home& h,
                                              const write_runtime_block& what) const {
  if (what.history.empty())
    return fail(errc::invalid_argument, "a runtime block needs at least one cycle",
                h.settings.kernel_id);
  auto history = what.history;
  for (auto& cycle : history) {
    cycle.error = hidden(cycle.error);
    for (auto& agent : cycle.agents)
      agent.summary = hidden(agent.summary);
  }
  return state::render_runtime_block({what.updated_at, history.front(), history}, history.size());
}

/// Whether the block that is about to be replaced is neither the one that was written last nor
/// HEAD's: then somebody has written into it, and no commit has that yet.
bool state_session::is_foreign_block(home& h, std::string_view current) {
  const auto part = state::kernels_part(current);
  if (h.own_part == part)
    return false;
  const auto at_head = h.files->read_at("HEAD", state_file);
  h.own_part = at_head ? state::kernels_part(*at_head) : std::string{};
  return *h.own_part != part;
}

result<state_reply> state_session::carry_out(home& h, const render_cycle& what) {
  const auto block = block_text(h, what.block);
  if (!block)
    return fail(block.error());
  if (auto kept = h.memory->keep_caps(h.settings.memory.warm_days, context_->ports.clock->now());
      !kept)
    last_error_ = to_string(kept.error());
  if (auto text = sound_state(h); !text)
    return fail(std::move(text.error()));
  std::vector<state::action_line> lines;
  lines.reserve(what.outcomes.size());
  for (const auto& o : what.outcomes)
    lines.push_back({o.at, o.agent_id, hidden(o.text), o.status});
  std::string own_part;
  // Both edits keep what is not ours, and the commits follow at once: no snapshot (docs/adr/0012).
  auto outcome = h.files->update_before_commit(
      state_file,
      [&](std::string_view current) -> result<std::string> {
        auto text = state::replace_runtime_block(
            state::merge_recent_actions(current, lines, what.keep), *block);
        own_part = state::kernels_part(text);
        return text;
      },
      [&](std::string_view current) { return is_foreign_block(h, current); });
  if (outcome)
    h.own_part = std::move(own_part);
  return written(h, std::move(outcome));
}

result<state_reply> state_session::carry_out(home& h, const write_runtime_block& what) {
  const auto block = block_text(h, what);
  if (!block)
    return fail(block.error());
  if (auto text = sound_state(h); !text)
    return fail(std::move(text.error()));
  // A commit follows at once and stages it.
  return written(h, h.files->update(
                        state_file,
                        [&block](std::string_view current) -> result<std::string> {
                          return state::replace_runtime_block(current, *block);
                        },
                        state::versioned_store::snapshot_first::yes,
                        state::versioned_store::staging::with_commit));
}

result<state_reply> state_session::carry_out(home& h, const write_kernel_files& what) {
  using snapshot_first = state::versioned_store::snapshot_first;
  // One snapshot before the first of them: the files belong together.
  auto first = snapshot_first::yes;
  for (const auto& file : what.files) {
    const auto& name = file.first;
    const auto& text = file.second;
    auto current = h.files->read(name);
    if (!current && current.error().code != errc::not_found)
      return fail(std::move(current.error()));
    if (current && !is_news(name, *current, text))
      continue;
    auto whole = [&text](std::string_view) -> result<std::string> { return text; };
    if (auto ok = written(h, h.files->update(name, whole, first)); !ok)
      return ok;
    first = snapshot_first::no;
  }
  return state_reply{};
}

result<state_reply> state_session::carry_out(home& h, const write_derived_files& what) {
  for (const auto& file : what.files) {
    const auto whole = [&file](std::string_view) -> result<std::string> { return file.second; };
    if (auto ok = written(h, h.files->update(file.first, whole,
                                             state::versioned_store::snapshot_first::no,
                                             state::versioned_store::staging::with_commit));
        !ok)
      return ok;
  }
  return state_reply{};
}

result<state_reply> state_session::carry_out(home& h, const write_skill& what) {
  const auto whole = [&what](std::string_view) -> result<std::string> { return what.text; };
  if (auto ok = written(h, h.files->update(what.file, whole)); !ok)
    return ok;
  state::commit_trailers trailers;
  trailers.node = context_->node_id;
  trailers.graph_head = context_->written->head();
  auto made = h.files->commit_all(what.subject, trailers);
  return made ? result<state_reply>(state_reply{}) : fail(std::move(made.error()));
}

result<state_reply> state_session::carry_out(home& h, const append_memory& what) {
  auto edit = h.memory->append(what.file, what.section, what.text, context_->ports.clock->now());
  auto reply = written(h, edit ? result<void>{} : fail(edit.error()));
  if (reply)
    reply->edits.push_back(std::move(*edit));
  return reply;
}

result<state_reply> state_session::carry_out(home& h, const import_memory& what) {
  auto imported = h.memory->add_imported(what.entries);
  auto reply = written(h, imported ? result<void>{} : fail(imported.error()));
  if (reply)
    reply->imported = *imported;
  return reply;
}

result<state_reply> state_session::carry_out(home& h, const compact_memory& what) {
  state_reply reply;
  for (const char* file : {"SOUL.md", "MEMORY.md"}) {
    auto edit = h.memory->compact(file, what.dry_run, context_->ports.clock->now());
    if (!edit)
      return written(h, fail(std::move(edit.error())));
    reply.edits.push_back(std::move(*edit));
  }
  return reply;
}

result<state_reply> state_session::carry_out(home& h, const change_buffer& what) {
  const auto now = context_->ports.clock->now();
  context::buffer_outcome outcome;
  const auto edit = [&](std::string_view current) -> result<std::string> {
    auto before = context::read_buffer(current);
    if (!before && what.what.clear)
      before = context::buffer{}; // a broken one goes, too
    if (!before)
      return fail(std::move(before.error()));
    auto changed = context::change(*before, what.what, now);
    if (!changed)
      return fail(std::move(changed.error()));
    outcome = std::move(*changed);
    const bool same = outcome.after == *before && !current.empty() && !what.what.clear;
    return same ? std::string(current) : context::to_json(outcome.after);
  };
  auto done = h.files->update(context::buffer_file, edit);
  // What was refused says nothing about the disk.
  if (!done &&
      (done.error().code == errc::invalid_argument || done.error().code == errc::not_found ||
       done.error().code == errc::corrupt || done.error().code == errc::limit_exceeded))
    return fail(std::move(done.error()));
  auto reply = written(h, std::move(done));
  if (reply)
    reply->buffer = std::move(outcome);
  return reply;
}

/// Remembers whether the disk takes writes: only the next good one proves that it does again.
result<state_reply> state_session::written(home& h, result<void> outcome) {
  if (outcome) {
    h.failed_write.clear();
    note_time(h);
    return state_reply{};
  }
  if (category_of(outcome.error()) == error_category::transient)
    h.failed_write = "cannot write: " + to_string(outcome.error());
  note_time(h);
  return fail(std::move(outcome.error()));
}

void state_session::note_time(home& h) {
  const bool sick = !h.missing.empty() || !h.failed_write.empty();
  if (sick && !h.since)
    h.since = context_->ports.clock->now();
  if (!sick)
    h.since.reset();
}

void state_session::probe() {
  for (auto& [id, h] : homes_) {
    if (!check_directory(h))
      continue;
    if (h.files->health().degraded)
      (void)h.files->has_changes(); // tries to open the repository; its outcome is in health()
  }
}

part_health state_session::health() const {
  part_health all;
  all.last_error = last_error_;
  for (const auto& [id, h] : homes_) {
    const auto& history = h.files->health();
    std::string reason = !h.missing.empty() ? h.missing : h.failed_write;
    auto since = h.since;
    if (reason.empty() && history.degraded) {
      reason = "history is off: " + history.reason;
      since = history.since;
    }
    // A home that is gone is worse than one without history.
    const bool worse = !reason.empty() && (all.ok || !h.missing.empty());
    if (!worse)
      continue;
    all.ok = false;
    all.reason = "kernel " + id + ": " + reason;
    all.since = since;
  }
  return all;
}

} // namespace boyd
