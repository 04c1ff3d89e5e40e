#include "actors/gateway/state.hpp"
#include "actors/support/ask.hpp"
#include "boyd/core/json_depth.hpp"
#include "boyd/core/text.hpp"

#include <charconv>
#include <memory>
#include <utility>

/// What a run has written and said so far.
namespace boyd::gateway_impl {

namespace {

/// A conversation that is longer is not read.
constexpr std::size_t turns_bytes = std::size_t{64} << 20;
/// Lines of it in one answer, in sum.
constexpr std::size_t page_bytes = std::size_t{2} << 20;

/// A count in the query, 0 when it is not given; nothing when it is none, which is answered.
std::optional<std::uint64_t> count_of(const exchange_ptr& x, const char* key) {
  const auto text = x->query(key);
  std::uint64_t n = 0;
  const auto [end, failed] = std::from_chars(text.data(), text.data() + text.size(), n);
  if (text.empty() || (failed == std::errc{} && end == text.data() + text.size()))
    return n;
  x->fail_with({errc::invalid_argument, std::string(key) + " must be a number, 0 or more",
                key + ("=" + text), "leave it out, or use `next` of the last answer"});
  return std::nullopt;
}

json part_json(const exec::running_outputs::part& p) {
  return {{"text", p.text}, {"next", p.next}, {"missing", p.missing}};
}

/// What the program of the run has written from there on; null when none runs here.
json live_json(const exchange& x, const dispatch& d, exec::running_outputs::position from) {
  const auto& outputs = *x.self->state.parts.context->outputs;
  const auto seen =
      d.status == dispatch_status::running ? outputs.read(d.dispatch_id, from) : std::nullopt;
  if (!seen || seen->fence != d.fence)
    return nullptr;
  return {{"output", part_json(seen->out)}, {"errors", part_json(seen->err)}};
}

/// Whole lines from `from` on: what has no end is still being written, or was when its node died.
json turns_json(std::int64_t fence, std::string_view lines, std::uint64_t from) {
  json items = json::array();
  const auto end = lines.rfind('\n') + 1;
  auto at = std::min<std::size_t>(static_cast<std::size_t>(from), end);
  const auto begin = at;
  while (at < end && at - begin < page_bytes) {
    const auto stop = lines.find('\n', at);
    const auto line = lines.substr(at, stop - at);
    at = stop + 1;
    if (!check_json_depth(line))
      continue;
    if (auto item = json::parse(line, nullptr, false); item.is_object())
      items.push_back(std::move(item));
  }
  return {{"fence", fence}, {"items", std::move(items)}, {"next", at}, {"more", at < end}};
}

/// The conversation of one attempt, then `then`; null where none was recorded.
void read_turns(const exchange_ptr& x, const dispatch& d, std::int64_t fence, std::uint64_t from,
                std::function<void(json)> then) {
  const auto path = x->self->state.parts.context->layout().turns(d.dispatch_id, fence);
  ask<workspace_reply>(x->self, x->self->state.parts.workspace,
                       workspace_request{{}, read_text_file{path, turns_bytes}},
                       [x, fence, from, path, then](const result<workspace_reply>& r) {
                         if (r)
                           return then(turns_json(fence, r->text, from));
                         if (r.error().code == errc::not_found)
                           return then(nullptr);
                         auto e = r.error();
                         if (e.code == errc::limit_exceeded)
                           e.next = "read the file itself: " + path;
                         x->fail_with(e);
                       });
}

} // namespace

void show_logs(exchange_ptr x, const std::string& id) {
  const auto out = count_of(x, "out");
  const auto err = out ? count_of(x, "err") : std::nullopt;
  const auto turns = err ? count_of(x, "turns") : std::nullopt;
  const auto run = turns ? count_of(x, "run") : std::nullopt;
  if (!run)
    return;
  find_dispatch(x, id,
                [x, from = exec::running_outputs::position{*out, *err}, turns = *turns,
                 run = *run](const dispatch& d) {
                  auto row = to_json(d, true);
                  row.erase("prompt");
                  json body{{"dispatch", std::move(row)},
                            {"live", live_json(*x, d, from)},
                            {"turns", nullptr}};
                  if (x->query("turns").empty())
                    return x->reply("logs", std::move(body));
                  const auto fence = run > 0 ? static_cast<std::int64_t>(run) : d.fence;
                  read_turns(x, d, fence, turns, [x, body = std::move(body)](json read) mutable {
                    body["turns"] = std::move(read);
                    x->reply("logs", std::move(body));
                  });
                });
}

} // namespace boyd::gateway_impl
