# Where each planted bug sits: planted_bug(NAME FILE TEXT REPLACEMENT). The text must stand in the
# file, once; else the build fails, and the bug is to be planted anew where its rule has gone.

planted_bug(stale_settlement src/queue/transitions.cpp
  [[if (!holds(row, node_id, item.fence))]]
  [[if (!@BUG@ && !holds(row, node_id, item.fence))]])

planted_bug(attempt_not_counted src/queue/transitions.cpp
  [[d.attempt += 1;]]
  [[d.attempt += @BUG@ && d.attempt > 0 ? 0 : 1;]])

planted_bug(lease_not_renewed src/queue/leases.cpp
  [[if (!g.refused && g.from + renew_every_ <= now && now < g.until)]]
  [[if (!@BUG@ && !g.refused && g.from + renew_every_ <= now && now < g.until)]])

planted_bug(no_journal_sync src/files/journal.cpp
  [[auto synced = handle_->sync();]]
  [[auto synced = @BUG@ ? result<void>{} : handle_->sync();]])

planted_bug(sync_tried_again src/files/journal.cpp
  [[!synced) {
    distrust_handle();
    return synced;]]
  [[!synced && !(@BUG@ && handle_->sync())) {
    distrust_handle();
    return synced;]])

planted_bug(append_not_cut src/files/journal.cpp
  [[if (auto cut = handle_->truncate(end_); !cut) {]]
  [[if (auto cut = @BUG@ ? result<void>{} : handle_->truncate(end_); !cut) {]])
# The look at the size behind each append would notice.
planted_bug(append_not_cut src/files/journal.cpp
  [[if (!size || *size != end_ + bytes.size()) {]]
  [[if (!size || (!@BUG@ && *size != end_ + bytes.size())) {]])

planted_bug(torn_tail_kept src/files/journal.cpp
  [[if (tail > 0) {]]
  [[if (tail > 0 && !@BUG@) {]])

planted_bug(no_directory_sync src/files/atomic_file.cpp
  [[return fs.sync_directory(parent_directory(path));]]
  [[return @BUG@ ? result<void>{} : fs.sync_directory(parent_directory(path));]])

# A boundary would mend it before anybody is told.
planted_bug(no_directory_sync src/state/versioned_store.cpp
  [[if (auto synced = files_.sync_directory(options_.path); !synced) {]]
  [[if (auto synced = @BUG@ ? result<void>{} : files_.sync_directory(options_.path); !synced) {]])

planted_bug(no_file_sync src/files/atomic_file.cpp
  [[if (auto synced = file_->sync(); !synced)]]
  [[if (auto synced = @BUG@ ? result<void>{} : file_->sync(); !synced)]])

planted_bug(agents_part_lost src/state/document.cpp
  [[std::string text = std::move(found.before);]]
  [[std::string text = @BUG@ ? std::string() : std::move(found.before);]])

planted_bug(commit_repeated src/state/versioned_store.cpp
  [[  if (*standing) {
]]
  [[  if (*standing && !@BUG@) {
]])

planted_bug(permit_kept actors/permits/core.cpp
  [[  release(id, it->second.held);]]
  [[  if (!@BUG@)
    release(id, it->second.held);]])

planted_bug(permit_given_twice actors/permits/core.cpp
  [[in_use_ -= n;
]]
  [[in_use_ -= @BUG@ ? 2 * n : n;
]])

planted_bug(kernel_limit_gone actors/permits/core.cpp
  [[std::min(node_limit_ - in_use_, kernel_room(kernel));]]
  [[@BUG@ ? node_limit_ - in_use_ : std::min(node_limit_ - in_use_, kernel_room(kernel));]])

planted_bug(take_back_forgotten actors/dispatcher/pool_recovery.cpp
  [[op.node_id = s.context->node_id;]]
  [[op.node_id = @BUG@ ? "nobody" : s.context->node_id;]])
# The sweep would mend it a lease later: the rule is that own rows come back.
planted_bug(take_back_forgotten actors/dispatcher/pool_recovery.cpp
  [[              look_after_own(self, std::move(r->own));]]
  [[              if (!@BUG@)
                look_after_own(self, std::move(r->own));]])

planted_bug(own_rows_taken actors/dispatcher/pool_recovery.cpp
  [[store::rescue_expired op{self->state.context->node_id,]]
  [[store::rescue_expired op{@BUG@ ? "nobody" : self->state.context->node_id,]])


planted_bug(edges_forgotten actors/kernel/follow.cpp
  [[if (!r && !is_refused_for_good(r.error()))]]
  [[if (!r && !@BUG@ && !is_refused_for_good(r.error()))]])

planted_bug(call_unreserved src/exec/chat_loop.cpp
  [[if (!r || !r->granted) {]]
  [[if (!r || (!@BUG@ && !r->granted)) {]])

planted_bug(spend_unsettled src/exec/chat_loop.cpp
  [[  s.reader.reset();
]]
  [[  if (@BUG@)
    effects.pop_back();
  s.reader.reset();
]])

planted_bug(stop_never_ends actors/node/stopping.cpp
  [[if (!s.shell->all_stopped())]]
  [[if (@BUG@ || !s.shell->all_stopped())]])

planted_bug(attempt_doubled actors/dispatcher/core.cpp
  [[to_start_.push_back(std::move(work));]]
  [[if (@BUG@)
      to_start_.push_back(work);
    to_start_.push_back(std::move(work));]])

planted_bug(lost_attempt_lives actors/dispatcher/core.cpp
  [[cancel(lost.dispatch_id, cancel_cause::lease_lost, lost.fence);]]
  [[@BUG@ ? void() : cancel(lost.dispatch_id, cancel_cause::lease_lost, lost.fence);]])

planted_bug(doubt_forgotten actors/kernel/doubts.cpp
  [[if (s.doubtful.empty() ||]]
  [[if (@BUG@ || s.doubtful.empty() ||]])

# These two rules are the database's: in the simulation its double has them.
planted_bug(lease_ignored tests/support/sim/store_queue.cpp
  [[until && *until <= now_)]]
  [[until && (@BUG@ || *until <= now_))]])

planted_bug(enqueue_twice tests/support/sim/store_queue.cpp
  [[  for (const auto& spec : op.specs) {
    const auto [key, fresh] = data_.by_agent.try_emplace(
        {spec.kernel_id, spec.cycle_id, spec.agent_id}, spec.dispatch_id);]]
  [[  for (auto spec : op.specs) {
    const bool again =
        @BUG@ && data_.by_agent.contains({spec.kernel_id, spec.cycle_id, spec.agent_id});
    spec.dispatch_id += again ? "-again" : "";
    const auto [key, fresh] = data_.by_agent.try_emplace(
        {spec.kernel_id, spec.cycle_id, spec.agent_id + (again ? "-again" : "")},
        spec.dispatch_id);]])
