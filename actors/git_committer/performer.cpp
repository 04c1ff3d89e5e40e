#include "actors/git_committer/performer.hpp"

#include "boyd/config/redact.hpp"
#include "boyd/core/ids.hpp"
#include "boyd/core/limits.hpp"
#include "boyd/faults/points.hpp"
#include "boyd/ports/clock.hpp"
#include "boyd/state/document.hpp"

#include <spdlog/spdlog.h>

#include <algorithm>
#include <utility>

namespace boyd {

namespace {

template <class What>
const std::string& kernel_of(const What& what) {
  return what.kernel_id;
}

const std::string& kernel_of(const commit_cycle& what) {
  return what.later.kernel_id;
}

/// The state that the node knew before it told of the cycle: with the block of the one before.
const earlier_version before_its_block{"STATE.md",
                                       [](const std::string& at_head, const std::string& later) {
                                         return state::with_block_of(later, at_head);
                                       }};

result<state::commit_trailers>
trailers_of(const std::vector<std::pair<std::string, std::string>>& given) {
  state::commit_trailers trailers;
  for (const auto& [name, value] : given) {
    if (name == "Boyd-Cycle")
      trailers.cycle = value;
    else if (name == "Boyd-Node")
      trailers.node = value;
    else if (name == "Boyd-Graph-Head")
      trailers.graph_head = value;
    else if (name == "Boyd-Late")
      trailers.late = value;
    else
      return fail(errc::invalid_argument, "not a valid commit trailer", name);
  }
  return trailers;
}

result<repository_reply> text_reply(result<std::string> text) {
  if (!text)
    return fail(std::move(text.error()));
  repository_reply reply;
  reply.text = std::move(*text);
  return reply;
}

} // namespace

repository_session::repository_session(node_context_ptr context, configuration_ptr configuration)
    : context_(std::move(context)), configuration_(std::move(configuration)) {}

void repository_session::perform(std::vector<job<repository_request, repository_reply>>& batch) {
  for (auto& j : batch) {
    j.reply = answer(j.request);
    if (!j.reply && j.reply.error().code != errc::not_found)
      last_error_ = to_string(j.reply.error());
  }
}

result<repository_reply> repository_session::answer(const repository_request& request) {
  auto h = home_of(std::visit(
      [](const auto& what) -> const std::string& { return kernel_of(what); }, request.what));
  if (!h)
    return fail(std::move(h.error()));
  if (std::holds_alternative<commit_boundary>(request.what) ||
      std::holds_alternative<commit_cycle>(request.what))
    if (auto passed = faults::pass("git_committer.commit"); !passed)
      return fail(std::move(passed.error()));
  return std::visit([&](const auto& what) { return carry_out(**h, what); }, request.what);
}

result<repository_session::home*> repository_session::home_of(const std::string& kernel_id) {
  if (auto it = homes_.find(kernel_id); it != homes_.end())
    return &it->second;
  if (!is_valid_name(kernel_id))
    return fail(errc::invalid_argument, "not a kernel name", kernel_id);
  config::kernel settings;
  if (const auto* k = configuration_ ? configuration_->find_kernel(kernel_id) : nullptr)
    settings = *k;
  state::versioned_store_options options;
  options.path = context_->kernel_home(kernel_id);
  options.who = {settings.author_name, settings.author_email};
  options.auto_commit = settings.auto_commit;
  if (configuration_)
    options.filter = [configuration = configuration_](std::string text) {
      return config::redact_text(std::move(text), configuration->secrets);
    };
  const auto& p = context_->ports;
  home h;
  h.store = std::make_unique<state::versioned_store>(*p.files, *p.repositories, *p.clock, options);
  h.pack_at = p.clock->steady() + packing_interval;
  // A command commits nothing: what a node knows from its commits it has to look for.
  if (context_->passive)
    (void)h.store->has_changes();
  return &homes_.emplace(kernel_id, std::move(h)).first->second;
}

result<repository_reply> repository_session::carry_out(home& h, const commit_boundary& what) {
  auto trailers = trailers_of(what.trailers);
  if (!trailers)
    return fail(std::move(trailers.error()));
  return committed(h, h.store->commit_boundary(what.message, *trailers, what.restarted));
}

result<repository_reply> repository_session::carry_out(home& h, const commit_cycle& what) {
  const auto& later = what.later;
  auto trailers = trailers_of(later.trailers);
  if (!trailers)
    return fail(std::move(trailers.error()));
  auto lost = h.store->lost_cycles();
  if (!lost)
    return committed(h, fail(std::move(lost.error())));
  if (!lost->empty()) {
    repository_reply reply;
    reply.lost = std::move(*lost);
    return reply;
  }
  return committed(h, h.store->commit_cycle(what.earlier, later.message, *trailers,
                                            before_its_block, later.restarted));
}

/// Remembers whether commits can be made: only the next good one proves that they can again.
result<repository_reply> repository_session::committed(home& h, result<std::string> commit) {
  if (!commit) {
    if (!h.since)
      h.since = context_->ports.clock->now();
    h.failed_commit = to_string(commit.error());
    h.failed_at = context_->ports.clock->steady();
    // A repository that can be read proves nothing about a disk that took no commit.
    h.may_pass = category_of(commit.error()) == error_category::transient &&
                 commit.error().code != errc::no_space && commit.error().code != errc::io_error;
    return fail(std::move(commit.error()));
  }
  h.failed_commit.clear();
  h.since.reset();
  repository_reply reply;
  reply.commit = std::move(*commit);
  return reply;
}

result<repository_reply> repository_session::carry_out(home& h, const query_history& what) {
  auto commits = h.store->history(what.path, std::min(what.limit, limits::history_search));
  if (!commits)
    return fail(std::move(commits.error()));
  repository_reply reply;
  reply.commits = std::move(*commits);
  return reply;
}

result<repository_reply> repository_session::carry_out(home& h, const query_file_at& what) {
  return text_reply(h.store->read_at(what.at, what.path));
}

result<repository_reply> repository_session::carry_out(home& h, const query_diff& what) {
  return text_reply(h.store->diff(what.from, what.to));
}

void repository_session::probe() {
  const auto now = context_->ports.clock->steady();
  for (auto& [id, h] : homes_) {
    if (h.store->health().degraded || (h.may_pass && !h.failed_commit.empty())) {
      // What was not committed stays in the work tree and goes into the next commit. While somebody
      // tries again and again, the trouble goes on.
      if (now - h.failed_at >= failure_memory && h.store->has_changes() &&
          !h.store->health().degraded) {
        h.failed_commit.clear();
        h.since.reset();
      }
      continue;
    }
    if (h.pack_at > now)
      continue;
    h.pack_at = now + packing_interval;
    auto packed = h.store->maintain();
    if (!packed)
      spdlog::warn("git_committer: kernel {}: packing: {}", id, to_string(packed.error()));
    else if (*packed > 0)
      spdlog::info("git_committer: kernel {}: packed {} objects", id, *packed);
    if (packed && *packed >= limits::pack_loose_at_once)
      h.pack_at = now; // there are more, for the next look
    return;
  }
}

part_health repository_session::health() const {
  part_health all;
  all.last_error = last_error_;
  for (const auto& [id, h] : homes_) {
    const auto& store = h.store->health();
    for (const auto& path : store.left_out)
      all.notice += (all.notice.empty() ? "" : "; ") + h.store->path() + "/" + path +
                    " is a separate git repository and is not versioned: remove its .git, or list "
                    "it in .gitignore";
    for (const auto& path : store.filtered)
      all.notice += (all.notice.empty() ? "" : "; ") + h.store->path() + "/" + path +
                    " seems to contain a secret, which is [redacted] in the history: remove it "
                    "from the file, and replace the secret if it is real";
    for (const auto& remark : store.remarks)
      all.notice += (all.notice.empty() ? "" : "; ") + h.store->path() + ": " + remark;
    if (!all.ok || (!store.degraded && h.failed_commit.empty()))
      continue;
    all.ok = false;
    all.reason = "kernel " + id + ": " +
                 (store.degraded ? "history is off: " + store.reason
                                 : "the last commit failed: " + h.failed_commit);
    all.since = store.degraded ? store.since : h.since;
  }
  return all;
}

} // namespace boyd
