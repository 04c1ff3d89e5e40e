#include "operations.hpp"

namespace boyd::adapters::sqlite {

std::string_view row_columns() noexcept {
  return "d.dispatch_id, d.kernel_id, d.cycle_id, d.agent_id, d.priority, d.status, d.metadata, "
         "d.attempt, d.max_attempts, d.rescues, d.fence, d.settled_fence, d.not_before, "
         "d.lease_owner, d.last_owner, d.lease_expires_at, d.created_at, d.started_at, "
         "d.finished_at, d.execution, d.claim, d.verification, d.failure_class, d.exit_code, "
         "d.output_cut, d.session_id, d.summary, d.error, d.usage, d.attempts";
}

queue::queue_row read_row(const statement& s) {
  queue::queue_row row;
  auto& d = row.d;
  d.dispatch_id = s.text(0);
  d.kernel_id = s.text(1);
  d.cycle_id = s.text(2);
  d.agent_id = s.text(3);
  d.priority = static_cast<int>(s.integer(4));
  d.status = dispatch_status_from(s.view(5)).value_or(dispatch_status::failed);
  d.metadata_json = s.text(6);
  d.attempt = static_cast<int>(s.integer(7));
  d.max_attempts = static_cast<int>(s.integer(8));
  d.rescues = static_cast<int>(s.integer(9));
  d.fence = s.integer(10);
  row.settled_fence = s.integer(11);
  d.not_before = s.time(12);
  d.lease_owner = s.text(13);
  row.last_owner = s.text(14);
  d.lease_expires_at = s.optional_time(15);
  d.created_at = s.time(16);
  d.started_at = s.optional_time(17);
  d.finished_at = s.optional_time(18);
  d.outcome.execution = execution_verdict_from(s.view(19)).value_or(execution_verdict::none);
  d.outcome.claim = claim_verdict_from(s.view(20)).value_or(claim_verdict::none);
  d.outcome.verification =
      verification_verdict_from(s.view(21)).value_or(verification_verdict::none);
  d.outcome.failure = failure_class_from(s.view(22)).value_or(failure_class::none);
  d.outcome.exit_code = static_cast<int>(s.integer(23));
  d.outcome.output_cut = static_cast<std::uint64_t>(s.integer(24));
  d.outcome.session_id = s.text(25);
  d.outcome.summary = s.text(26);
  d.outcome.error = s.text(27);
  d.outcome.usage_json = s.text(28);
  d.attempts_json = s.text(29);
  return row;
}

bool operations::insert_dispatch(const queue::queue_row& row) {
  const auto& d = row.d;
  auto s = db_.prepare(
      "INSERT INTO dispatches(dispatch_id, kernel_id, cycle_id, agent_id, priority, status, "
      "metadata, attempt, max_attempts, rescues, fence, settled_fence, not_before, lease_owner, "
      "last_owner, created_at, execution, claim, verification, failure_class, exit_code, "
      "output_cut, session_id, summary, error, usage, attempts) "
      "VALUES(?,?,?,?,?,'pending',?,0,?,0,0,0,?,'','',?,'none','none','none','none',-1,0,'','','',"
      "'','[]') ON CONFLICT DO NOTHING");
  s.bind(d.dispatch_id).bind(d.kernel_id).bind(d.cycle_id).bind(d.agent_id).bind(d.priority);
  s.bind(d.metadata_json).bind(d.max_attempts).bind(d.not_before).bind(d.created_at);
  s.run();
  if (db_.changes() == 0)
    return false;
  auto p = db_.prepare("INSERT INTO dispatch_prompts(id, prompt) VALUES(?,?)");
  p.bind(db_.last_id()).bind(d.prompt).run();
  return true;
}

operations::stored operations::load(const std::string& dispatch_id) {
  static const std::string sql =
      "SELECT " + std::string{row_columns()} + ", d.id FROM dispatches d WHERE d.dispatch_id = ?";
  auto s = db_.prepare(sql);
  s.bind(dispatch_id);
  if (!s.step())
    return {};
  return {s.integer(row_column_count), read_row(s)};
}

void operations::save(std::int64_t id, const queue::queue_row& row) {
  const auto& d = row.d;
  const auto& o = d.outcome;
  auto s = db_.prepare(
      "UPDATE dispatches SET status=?, attempt=?, rescues=?, fence=?, settled_fence=?, "
      "not_before=?, lease_owner=?, last_owner=?, lease_expires_at=?, started_at=?, finished_at=?, "
      "execution=?, claim=?, verification=?, failure_class=?, exit_code=?, output_cut=?, "
      "session_id=?, summary=?, error=?, usage=?, attempts=? WHERE id=?");
  s.bind(name_of(d.status)).bind(d.attempt).bind(d.rescues).bind(d.fence).bind(row.settled_fence);
  s.bind(d.not_before).bind(d.lease_owner).bind(row.last_owner).bind(d.lease_expires_at);
  s.bind(d.started_at).bind(d.finished_at);
  s.bind(name_of(o.execution)).bind(name_of(o.claim)).bind(name_of(o.verification));
  s.bind(name_of(o.failure)).bind(o.exit_code).bind(static_cast<std::int64_t>(o.output_cut));
  s.bind(o.session_id).bind(o.summary).bind(o.error).bind(o.usage_json).bind(d.attempts_json);
  s.bind(id).run();
}

void operations::save_output(std::int64_t id, const queue::queue_row& row) {
  if (row.d.outcome.output.empty())
    return;
  auto s = db_.prepare("INSERT OR REPLACE INTO dispatch_outputs(id, fence, output) VALUES(?,?,?)");
  s.bind(id).bind(row.d.fence).bind(row.d.outcome.output).run();
}

} // namespace boyd::adapters::sqlite
