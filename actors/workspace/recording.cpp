#include "actors/workspace/performer.hpp"
#include "boyd/core/sha256.hpp"
#include "boyd/ports/clock.hpp"
#include "boyd/ports/file_system.hpp"

#include <spdlog/spdlog.h>

#include <algorithm>
#include <utility>

/// Records of executions, and the contents that they name.
namespace boyd {

/// An older content is written again: whoever removes what no record names (leftovers.cpp) may not
/// know of this record yet.
constexpr milliseconds content_age = std::chrono::minutes{30};

/// Each once: a content that stands there is whole, for it came under its name at once. Always
/// durable: records that wait for the disk may name what another one has brought.
result<void> workspace_session::keep(const std::vector<std::string>& contents) {
  const auto layout = context_->layout();
  for (const auto& text : contents) {
    const auto path = layout.object(sha256_hex(text));
    const auto info = context_->ports.files->stat(path);
    if (info && info->kind == file_kind::regular && info->size == text.size() &&
        info->modified + content_age > context_->ports.clock->now())
      continue;
    if (auto ok = write_durable(path, text); !ok)
      return ok;
  }
  return {};
}

/// A damaged record is put aside, and a new one begins.
result<record::execution> workspace_session::record_of(const std::string& dispatch_id) {
  if (auto open = open_records_.extract(dispatch_id))
    return std::move(open.mapped());
  const auto path = context_->layout().record(dispatch_id);
  auto text = context_->ports.files->read(path, most_record_bytes);
  if (!text)
    return text.error().code == errc::not_found ? result<record::execution>{}
                                                : fail(std::move(text.error()));
  // Power was lost before the disk had it.
  if (text->empty())
    return record::execution{};
  auto known = record::read_execution(*text);
  if (known)
    return known;
  const auto aside = path + ".damaged";
  spdlog::warn("workspace: {}: {}; moved to {}", path, known.error().what, aside);
  if (auto ok = write_durable(aside, *text); !ok)
    return fail(std::move(ok.error()));
  return record::execution{};
}

result<void> workspace_session::write_record(const record::execution& e, bool durable) {
  return replace(context_->layout().record(e.dispatch_id), record::to_json(e), durable);
}

void workspace_session::keep_open(record::execution e) {
  // Those that nobody ended must not fill it for ever.
  if (open_records_.size() >= most_open_records)
    open_records_.clear();
  auto id = e.dispatch_id;
  open_records_.insert_or_assign(std::move(id), std::move(e));
}

/// The record with the attempt, not written yet.
result<record::execution> workspace_session::begin(const begin_record& what) {
  auto e = record_of(what.dispatch_id);
  if (!e)
    return e;
  e->dispatch_id = what.dispatch_id;
  e->kernel_id = what.kernel_id;
  e->cycle_id = what.cycle_id;
  e->agent_id = what.agent_id;
  context::snapshot last;
  const bool reads = !what.begun.turns.empty() && !what.begun.turns.front().snapshot.items.empty();
  const bool is_first =
      std::ranges::none_of(e->attempts, [&](const auto& a) { return a.fence != what.begun.fence; });
  if (reads && is_first)
    if (const auto text = context_->ports.files->read(
            context_->layout().last_snapshot(what.kernel_id, what.agent_id), most_record_bytes))
      last = context::read_snapshot(*text);
  record::begin_attempt(*e, what.begun, last);
  return e;
}

result<workspace_reply> workspace_session::carry_out(const begin_record& what) {
  if (auto ok = keep(what.contents); !ok)
    return fail(std::move(ok.error()));
  auto e = begin(what);
  if (!e)
    return fail(std::move(e.error()));
  if (auto ok = write_record(*e, what.durable); !ok)
    return fail(std::move(ok.error()));
  if (!what.durable)
    keep_open(std::move(*e));
  return workspace_reply{};
}

result<workspace_reply> workspace_session::carry_out(const end_record& what) {
  const auto& begun = what.begun;
  if (auto ok = keep(what.contents); !ok)
    return fail(std::move(ok.error()));
  auto e = record_of(begun.dispatch_id);
  if (!e)
    return fail(std::move(e.error()));
  if (!record::end_attempt(*e, what.end)) {
    // It had failed before it could be put on record, or the record was damaged since.
    if (auto ok = keep(begun.contents); !ok)
      return fail(std::move(ok.error()));
    e = begin(begun);
    if (!e)
      return fail(std::move(e.error()));
    (void)record::end_attempt(*e, what.end);
  }
  const auto explanation = record::explain(*e);
  e->explanation = sha256_hex(explanation);
  const auto layout = context_->layout();
  if (begun.durable)
    if (auto ok = replace(layout.explanation(begun.dispatch_id), explanation, false); !ok)
      return fail(std::move(ok.error()));
  if (auto ok = write_record(*e, begun.durable); !ok)
    return fail(std::move(ok.error()));
  const auto latest = record::latest_snapshot(*e);
  if (!latest.items.empty())
    if (auto ok = write_durable(layout.last_snapshot(begun.kernel_id, begun.agent_id),
                                context::to_json(latest));
        !ok)
      return fail(std::move(ok.error()));
  return workspace_reply{};
}

/// The record and its explanation are two files: the old explanation goes first, so that whenever
/// this breaks off, what is there fits together. A record without explain.md is explained anew by
/// whoever asks.
result<void> workspace_session::add_evidence_to(const record::execution_facts& facts) {
  auto& files = *context_->ports.files;
  const auto layout = context_->layout();
  const auto path = layout.record(facts.dispatch_id);
  auto text = files.read(path, most_record_bytes);
  // Of a flood, or removed since.
  if (!text && text.error().code == errc::not_found)
    return {};
  if (!text && text.error().code != errc::limit_exceeded && text.error().code != errc::refused)
    return fail(std::move(text.error()));
  auto e = text ? record::read_execution(*text) : fail(text.error());
  if (!e) { // it stays as it is, and others are completed
    spdlog::warn("workspace: {}: {}; cannot add facts to this record", path, e.error().what);
    return {};
  }
  record::add_facts(*e, facts);
  std::string explanation;
  // While a further attempt is under way its end explains all of it.
  if (!e->explanation.empty()) {
    explanation = record::explain(*e);
    e->explanation = sha256_hex(explanation);
  }
  const auto page = layout.explanation(facts.dispatch_id);
  if (record::to_json(*e) != *text) {
    if (auto gone = files.unlink(page); !gone && gone.error().code != errc::not_found)
      return gone;
    if (auto ok = write_record(*e, true); !ok)
      return ok;
  }
  if (const auto open = open_records_.find(facts.dispatch_id); open != open_records_.end())
    open->second = std::move(*e);
  return explanation.empty() ? result<void>{} : replace(page, explanation, false);
}

result<workspace_reply> workspace_session::carry_out(const add_evidence& what) {
  for (const auto& facts : what.executions)
    if (auto added = add_evidence_to(facts); !added)
      return fail(std::move(added.error()));
  return workspace_reply{};
}

result<workspace_reply> workspace_session::carry_out(const update_record& what) {
  if (auto ok = keep(what.contents); !ok)
    return fail(std::move(ok.error()));
  auto e = record_of(what.dispatch_id);
  if (!e)
    return fail(std::move(e.error()));
  if (!record::go_on(*e, what.fence, what.turns))
    return fail(errc::not_found, "the record has no such attempt",
                context_->layout().record(what.dispatch_id));
  if (auto ok = write_record(*e, what.durable); !ok)
    return fail(std::move(ok.error()));
  if (!what.durable)
    keep_open(std::move(*e));
  return workspace_reply{};
}

} // namespace boyd
