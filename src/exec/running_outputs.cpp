#include "boyd/exec/running_outputs.hpp"

#include "boyd/config/redact.hpp"
#include "boyd/core/text.hpp"
#include "boyd/exec/live_output.hpp"

#include <utility>

namespace boyd::exec {

namespace {

/// Whether the byte before `offset` is not the end of a line, as far as it is known.
bool is_within_line(const running_outputs::source& from, output_stream stream,
                    std::uint64_t offset) {
  if (offset == 0)
    return false;
  const auto before = from.read(stream, offset - 1, 1);
  return before.begin + 1 != offset || before.bytes != "\n";
}

/// What can be shown of a stream from byte `offset` on.
running_outputs::part part_of(const running_outputs::source& from, output_stream stream,
                              std::uint64_t offset) {
  auto kept = from.read(stream, offset, running_outputs::part_bytes);
  auto end = showable(kept.bytes);
  // A line of that length is shown in parts, like any text of which a part is missing.
  const bool is_cut_behind =
      kept.is_cut_behind || (end == 0 && kept.bytes.size() >= running_outputs::part_bytes);
  if (is_cut_behind)
    end = kept.bytes.size();
  if (end == 0)
    return {{}, offset, 0};
  running_outputs::part out{std::move(kept.bytes), kept.begin + end, kept.begin - offset};
  out.text.resize(end);
  if (is_cut_behind)
    out.text = config::redact_cut_end(std::move(out.text), from.secrets);
  if (is_within_line(from, stream, kept.begin))
    out.text = config::redact_cut_begin(std::move(out.text), from.secrets);
  out.text = sanitize_utf8(config::redact_text(std::move(out.text), from.secrets));
  return out;
}

} // namespace

std::shared_ptr<const void> running_outputs::add(const std::string& dispatch_id, source from) {
  const auto run = std::make_shared<const source>(std::move(from));
  {
    const std::lock_guard lock(table_->mutex);
    table_->runs[dispatch_id] = run;
  }
  const auto forget = [known = std::weak_ptr<table>(table_), dispatch_id, run](const void*) {
    const auto all = known.lock();
    if (!all)
      return;
    const std::lock_guard lock(all->mutex);
    const auto it = all->runs.find(dispatch_id);
    if (it != all->runs.end() && it->second == run)
      all->runs.erase(it);
  };
  return {nullptr, forget};
}

std::optional<running_outputs::view> running_outputs::read(const std::string& dispatch_id,
                                                           position from) const {
  std::unique_lock lock(table_->mutex);
  const auto it = table_->runs.find(dispatch_id);
  if (it == table_->runs.end())
    return std::nullopt;
  const auto run = it->second;
  lock.unlock();
  return view{run->fence, part_of(*run, output_stream::out, from.out),
              part_of(*run, output_stream::err, from.err)};
}

} // namespace boyd::exec
