#include "other_work.hpp"

#include "../counted.hpp"
#include "../hints.hpp"
#include "boyd/core/text.hpp"
#include "boyd/ports/clock.hpp"

#include <chrono>
#include <set>
#include <utility>
#include <vector>

namespace boyd::app {

namespace {

/// The most that one answer lists (actors/gateway/queue.cpp).
constexpr const char* most_rows = "1000";
constexpr milliseconds look_pause = 200ms;
/// What is due begins within milliseconds, unless something keeps it from that: its agent is
/// paused or gone, other nodes have its places, a budget is used up.
constexpr milliseconds start_patience = 2s;

bool is_running(const json& row) {
  return text_of(row, "status") == "running";
}

bool is_pending(const json& row) {
  return text_of(row, "status") == "pending";
}

bool is_due(const json& row, utc_time now) {
  const auto at = parse_rfc3339(text_of(row, "not_before"));
  return !at || *at <= now;
}

} // namespace

other_work::other_work(client& c, std::string node_id) : client_(c), node_id_(std::move(node_id)) {
  // What cannot be asked now is asked by `finish`, which says so.
  const auto pending = list("pending");
  const auto now = local_ports().clock->now();
  for (const auto& row : pending ? *pending : json::array())
    if (is_due(row, now))
      take(row);
}

result<json> other_work::list(const char* status) {
  const auto body =
      client_.ask(get("/api/v1/dispatches", {{"status", status}, {"limit", most_rows}}));
  if (!body)
    return fail(body.error());
  return rows_of(object_of(*body), "items");
}

other_work::open_work other_work::count_open() const {
  open_work open;
  const auto now = local_ports().clock->now();
  for (const auto& [id, w] : work_) {
    const bool runs = is_running(w.row);
    open.running += runs ? 1 : 0;
    open.all += runs || (is_pending(w.row) && is_due(w.row, now)) ? 1 : 0;
  }
  return open;
}

/// Each begin has a fence of its own. What another node of the database runs is not this one's.
void other_work::take(json row) {
  const auto id = text_of(row, "dispatch_id");
  const auto known = work_.find(id);
  const bool here = text_of(row, "lease_owner") == node_id_;
  if (is_running(row) && !here) {
    work_.erase(id);
    return;
  }
  if (known == work_.end()) {
    const bool begun = is_running(row);
    work_[id] = {std::move(row), begun};
    return;
  }
  auto& w = known->second;
  w.begun = w.begun || is_running(row) || number_of(row, "fence") != number_of(w.row, "fence");
  w.row = std::move(row);
}

/// Pending rows that come due after the first look are left to a node, but for retries of what has
/// begun here.
result<void> other_work::look(bool first) {
  auto pending = list("pending");
  auto running = pending ? list("running") : result<json>(fail(pending.error()));
  if (!running)
    return fail(running.error());
  std::set<std::string> listed;
  const auto now = local_ports().clock->now();
  const auto take_if = [&](json& row, bool is_new) {
    const auto id = text_of(row, "dispatch_id");
    if (!is_new && !work_.contains(id))
      return;
    listed.insert(id);
    take(std::move(row));
  };
  for (auto& row : *pending)
    take_if(row, first && is_due(row, now));
  for (auto& row : *running)
    take_if(row, text_of(row, "lease_owner") == node_id_);
  std::vector<std::string> left; // neither list has them any more
  for (const auto& [id, w] : work_)
    if (!listed.contains(id) && (is_running(w.row) || is_pending(w.row)))
      left.push_back(id);
  for (const auto& id : left) {
    const auto body = client_.ask(get("/api/v1/dispatches/" + id));
    if (!body)
      return fail(body.error());
    take(part_of(object_of(*body), "dispatch"));
  }
  return {};
}

result<void> other_work::finish(const std::function<void(const std::string&)>& say) {
  bool told = false;
  auto moved = std::chrono::steady_clock::now();
  for (auto looked = look(true); true; looked = look(false)) {
    if (!looked)
      return looked;
    const auto open = count_open();
    if (open.all == 0)
      return {};
    if (open.running > 0)
      moved = std::chrono::steady_clock::now();
    else if (std::chrono::steady_clock::now() - moved > start_patience)
      return {};
    if (open.running > 0 && !std::exchange(told, true))
      say("waiting for " + counted(open.all, "other run") +
          as_hint(" that no node continues (see: boyd dispatches ls)"));
    if (!client_.pause(look_pause))
      return fail(errc::cancelled, "interrupted");
  }
}

json other_work::rows() const {
  auto all = json::array();
  for (const auto& [id, w] : work_) {
    if (!w.begun)
      continue;
    json told;
    for (const auto* key : {"dispatch_id", "kernel_id", "agent_id", "status", "attempt", "summary",
                            "error", "failure_class"})
      if (w.row.contains(key))
        told[key] = w.row[key];
    all.push_back(std::move(told));
  }
  return all;
}

} // namespace boyd::app
