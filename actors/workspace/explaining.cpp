#include "actors/workspace/performer.hpp"
#include "boyd/core/ids.hpp"
#include "boyd/ports/file_system.hpp"

#include <optional>
#include <utility>

/// Executions, told and put together again from what is kept of them.
namespace boyd {

namespace {

/// Not every text in a record that was tampered with is a hash.
bool is_hash(const std::string& text) {
  constexpr std::size_t digits = 64;
  return text.size() == digits && text.find_first_not_of("0123456789abcdef") == text.npos;
}

/// What of an execution stands in its folder.
struct kept_execution {
  std::string text;
  record::execution record;
};

result<kept_execution> kept_of(const node_context& context, const std::string& dispatch_id) {
  if (!is_valid_name(dispatch_id))
    return fail(errc::invalid_argument, "not an execution id", dispatch_id);
  const auto path = context.layout().record(dispatch_id);
  auto text = context.ports.files->read(path, most_record_bytes);
  const bool is_missing = text ? text->empty() : text.error().code == errc::not_found;
  if (is_missing)
    return fail(errc::not_found, "no record of this run", path,
                "it has not started, an older version ran it, or the power failed during the run; "
                "see: boyd dispatches show " +
                    dispatch_id);
  if (!text)
    return fail(std::move(text.error()));
  auto e = record::read_execution(*text);
  if (!e)
    return fail(
        errc::corrupt, e.error().what, path,
        "restore it from a backup of the home; the database still has: boyd dispatches show " +
            dispatch_id);
  return kept_execution{std::move(*text), std::move(*e)};
}

} // namespace

result<workspace_reply> workspace_session::carry_out(const explain_execution& what) {
  auto kept = kept_of(*context_, what.dispatch_id);
  if (!kept)
    return fail(std::move(kept.error()));
  workspace_reply reply;
  reply.text = record::explain(kept->record, what.options);
  reply.record = std::move(kept->text);
  return reply;
}

result<workspace_reply> workspace_session::carry_out(const replay_execution& what) {
  auto kept = kept_of(*context_, what.dispatch_id);
  if (!kept)
    return fail(std::move(kept.error()));
  auto& files = *context_->ports.files;
  const auto layout = context_->layout();
  std::optional<std::string> stored;
  // While an attempt is under way it is that of the one before.
  if (!kept->record.explanation.empty())
    if (auto text = files.read(layout.explanation(what.dispatch_id), most_record_bytes))
      stored = std::move(*text);
  workspace_reply reply;
  reply.replay = record::replay(
      kept->record,
      [&](const std::string& hash) -> result<std::string> {
        if (!is_hash(hash))
          return fail(errc::not_found, "not a hash", "record.json");
        return files.read(layout.object(hash), most_record_bytes);
      },
      stored, record::seal_of(kept->text), context_->version);
  reply.record = std::move(kept->text);
  return reply;
}

} // namespace boyd
