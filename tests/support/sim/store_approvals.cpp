#include "boyd/queue/approval_rows.hpp"
#include "support/sim/store_transaction.hpp"

#include <algorithm>
#include <tuple>
#include <utility>

namespace boyd::sim {

using namespace store;

class sim_transaction::inbox final : public queue::approval_rows {
 public:
  inbox(sim_database::tables& data, utc_time now) : data_(data), now_(now) {}

  utc_time now() override { return now_; }

  bool run_lives(const std::string& dispatch_id, std::int64_t fence) override {
    const auto it = data_.dispatches.find(dispatch_id);
    return it != data_.dispatches.end() && it->second.d.status == dispatch_status::running &&
           it->second.d.fence == fence;
  }

  std::optional<approval> hold(const std::string& approval_id) override {
    const auto it = data_.approvals.find(approval_id);
    return it == data_.approvals.end() ? std::nullopt : std::optional(it->second.row);
  }

  std::optional<approval> hold_latest(const std::string& dispatch_id,
                                      const std::string& matter) override {
    std::optional<approval> found;
    for (const auto& [id, kept] : data_.approvals)
      if (kept.row.matter.dispatch_id == dispatch_id && kept.matter == matter &&
          (!found || std::tie(found->created_at, found->approval_id) <
                         std::tie(kept.row.created_at, kept.row.approval_id)))
        found = kept.row;
    return found;
  }

  std::vector<approval> hold_open(const std::string& dispatch_id, std::int64_t fence) override {
    std::vector<approval> out;
    for (const auto& [id, kept] : data_.approvals)
      if (queue::is_open(kept.row.state) && kept.row.matter.dispatch_id == dispatch_id &&
          kept.row.fence == fence)
        out.push_back(brief(kept.row));
    return out;
  }

  std::vector<approval> hold_over(std::size_t limit) override {
    std::vector<approval> out;
    for (const auto& [id, kept] : data_.approvals) {
      const auto& row = kept.row;
      if (out.size() < limit && queue::is_open(row.state) &&
          (row.expires_at <= now_ || (!row.held && !run_lives(row.matter.dispatch_id, row.fence))))
        out.push_back(brief(row));
    }
    return out;
  }

  std::uint64_t count(approval_state state) override {
    return static_cast<std::uint64_t>(std::ranges::count_if(
        data_.approvals, [state](const auto& k) { return k.second.row.state == state; }));
  }

  void insert(const approval& row, const std::string& matter) override {
    data_.approvals[row.approval_id] = {row, matter, {}};
  }

  void update(const approval& row) override {
    auto& kept = data_.approvals.at(row.approval_id).row;
    auto shown = std::move(kept.matter.shown);
    kept = row;
    kept.matter.shown = std::move(shown);
  }

  void add_line(const std::string& approval_id, const approval_line& line) override {
    data_.approvals.at(approval_id).trail.push_back(line);
  }

  std::vector<approval> beginning_with(const std::string& prefix) override {
    std::vector<approval> out;
    for (auto it = data_.approvals.lower_bound(prefix);
         it != data_.approvals.end() && it->first.starts_with(prefix) && out.size() < 2; ++it)
      out.push_back(it->second.row);
    return out;
  }

  std::vector<approval_line> trail(const std::string& approval_id) override {
    return data_.approvals.at(approval_id).trail;
  }

  std::vector<approval> list(const list_approvals& op) override {
    std::vector<approval> out;
    for (const auto& [id, kept] : data_.approvals)
      if ((op.kernel_id.empty() || kept.row.matter.kernel_id == op.kernel_id) &&
          (!op.open || queue::is_open(kept.row.state)) &&
          (op.ids.empty() || std::ranges::find(op.ids, id) != op.ids.end()))
        out.push_back(brief(kept.row));
    std::ranges::sort(out, [](const auto& a, const auto& b) {
      return std::tie(b.created_at, b.approval_id) < std::tie(a.created_at, a.approval_id);
    });
    out.resize(std::min(out.size(), op.limit));
    return out;
  }

 private:
  static approval brief(approval row) {
    row.matter.shown.clear();
    return row;
  }

  sim_database::tables& data_;
  utc_time now_;
};

namespace {

template <class Reply>
any_reply either(result<Reply> reply) {
  return reply ? any_reply(std::move(*reply)) : any_reply(std::move(reply.error()));
}

} // namespace

any_reply sim_transaction::run(const ask_approval& op) {
  inbox box(data_, now_);
  return either(queue::carry_out(box, op));
}

any_reply sim_transaction::run(const decide_approval& op) {
  inbox box(data_, now_);
  return queue::carry_out(box, op);
}

any_reply sim_transaction::run(const use_approval& op) {
  inbox box(data_, now_);
  return queue::carry_out(box, op);
}

any_reply sim_transaction::run(const withdraw_approvals& op) {
  inbox box(data_, now_);
  return queue::carry_out(box, op);
}

any_reply sim_transaction::run(const sweep_approvals& op) {
  inbox box(data_, now_);
  return queue::carry_out(box, op);
}

any_reply sim_transaction::run(const find_approval& op) {
  inbox box(data_, now_);
  return either(queue::carry_out(box, op));
}

any_reply sim_transaction::run(const list_approvals& op) {
  inbox box(data_, now_);
  return queue::carry_out(box, op);
}

std::uint64_t sim_transaction::remove_approvals(milliseconds age, std::uint64_t limit) {
  std::uint64_t removed = 0;
  for (auto it = data_.approvals.begin(); it != data_.approvals.end() && removed < limit;) {
    const auto& ended = it->second.row.ended_at;
    const bool old = ended && *ended < now_ - age;
    removed += old ? 1 : 0;
    it = old ? data_.approvals.erase(it) : std::next(it);
  }
  return removed;
}

std::vector<find_approval::story> sim_database::approvals() const {
  const std::lock_guard lock(mutex_);
  std::vector<find_approval::story> out;
  for (const auto& [id, kept] : data_.approvals)
    out.push_back({kept.row, kept.trail});
  return out;
}

} // namespace boyd::sim
