#include "actors/store/performer.hpp"

#include "boyd/core/limits.hpp"
#include "boyd/faults/points.hpp"
#include "boyd/ports/clock.hpp"

#include <spdlog/spdlog.h>

#include <algorithm>
#include <iterator>
#include <optional>
#include <type_traits>
#include <utility>

namespace boyd {

namespace {

/// Work goes on within a few seconds after the store is back (FAULTS 21).
constexpr milliseconds longest_backoff = 1s;

/// From when on nothing but hindrances is worth a look at the database.
constexpr milliseconds long_hindrance = 10s;

/// What is written, as a fact that is taken away again, to prove that the disk takes writes: more
/// than the room that a full one may still have here and there.
constexpr std::size_t proof_bytes = std::size_t{256} << 10;
constexpr const char* proof_scope = "store:proof";

/// The disk, not the connection to the store.
bool is_failed_write(const error& e) {
  return e.code == errc::no_space || e.code == errc::io_error;
}

/// Of what the requests of one transaction carry.
constexpr std::size_t most_joined_bytes = std::size_t{16} << 20;

/// Outputs, prompts and facts; the rest is small.
std::size_t bytes_of(const store::operation& op) {
  return std::visit(
      []<class Operation>(const Operation& what) {
        std::size_t bytes = 0;
        if constexpr (std::is_same_v<Operation, store::settle>)
          for (const auto& item : what.items)
            bytes += item.outcome.output.size();
        else if constexpr (std::is_same_v<Operation, store::enqueue_cycle>)
          for (const auto& spec : what.specs)
            bytes += spec.prompt.size();
        else if constexpr (std::is_same_v<Operation, store::put_fact>)
          bytes = what.value.size();
        return bytes;
      },
      op);
}

std::size_t bytes_of(const store_request& request) {
  std::size_t bytes = 0;
  for (const auto& op : request.operations)
    bytes += bytes_of(op);
  return bytes;
}

using some_jobs = std::vector<job<store_request, store_reply>*>;

/// Requests that only ask, and the others.
std::pair<some_jobs, some_jobs> apart(const some_jobs& all) {
  std::pair<some_jobs, some_jobs> parts;
  for (auto* j : all)
    (std::ranges::all_of(j->request.operations, store::is_question) ? parts.first : parts.second)
        .push_back(j);
  return parts;
}

bool is_renewal(const job<store_request, store_reply>* j) {
  return std::ranges::all_of(j->request.operations, [](const store::operation& op) {
    return std::holds_alternative<store::renew_leases>(op);
  });
}

/// Two parts, neither empty, of two jobs or more: renewals, which cannot wait, before all others,
/// else halves.
std::pair<some_jobs, some_jobs> divided(const some_jobs& batch) {
  std::pair<some_jobs, some_jobs> parts;
  for (auto* j : batch)
    (is_renewal(j) ? parts.first : parts.second).push_back(j);
  if (!parts.first.empty() && !parts.second.empty())
    return parts;
  const auto middle = batch.begin() + static_cast<std::ptrdiff_t>(batch.size() / 2);
  return {{batch.begin(), middle}, {middle, batch.end()}};
}

/// The operations of all jobs as one batch, without copying prompts and outputs. They go back to
/// their jobs at the end of the scope, also by an exception: a batch is repeated when its worker
/// dies.
class joined_operations {
 public:
  explicit joined_operations(const some_jobs& jobs) : jobs_(jobs) {
    std::size_t count = 0;
    for (const auto* j : jobs_)
      count += j->request.operations.size();
    all_.reserve(count);
    for (auto* j : jobs_)
      std::ranges::move(j->request.operations, std::back_inserter(all_));
  }

  ~joined_operations() {
    auto next = all_.begin();
    for (auto* j : jobs_)
      for (auto& op : j->request.operations)
        op = std::move(*next++);
  }

  joined_operations(const joined_operations&) = delete;
  joined_operations& operator=(const joined_operations&) = delete;

  const std::vector<store::operation>& all() const { return all_; }

 private:
  const some_jobs& jobs_;
  std::vector<store::operation> all_;
};

/// The transaction's points, by what it does; none for questions and small facts.
std::vector<faults::point> points_of(const store::operation& op) {
  using faults::point;
  return std::visit(
      []<class Operation>(const Operation& what) -> std::vector<point> {
        if constexpr (std::is_same_v<Operation, store::open_occurrence>)
          return what.cycle ? std::vector{point("store.admit"), point("store.begin")}
                            : std::vector{point("store.admit")};
        else if constexpr (std::is_same_v<Operation, store::begin_cycle>)
          return {point("store.begin")};
        else if constexpr (std::is_same_v<Operation, store::enqueue_cycle>)
          return {point("store.enqueue")};
        else if constexpr (std::is_same_v<Operation, store::claim>)
          return {point("store.claim")};
        else if constexpr (std::is_same_v<Operation, store::settle>)
          return {point("store.settle")};
        else if constexpr (std::is_same_v<Operation, store::renew_leases>)
          return {point("store.renew")};
        else if constexpr (std::is_same_v<Operation, store::finish_cycle>)
          return {point("store.finish")};
        else if constexpr (std::is_same_v<Operation, store::close_occurrence>)
          return {point("store.close")};
        else
          return {};
      },
      op);
}

/// Passes the points of a transaction, each once; true when its answer is to be lost.
result<bool> pass_points(const std::vector<store::operation>& operations) {
  if (!faults::any_armed())
    return false;
  std::vector<faults::point> points{"store.apply"};
  for (const auto& op : operations)
    for (const auto p : points_of(op))
      if (std::ranges::find(points, p.index(), &faults::point::index) == points.end())
        points.push_back(p);
  bool unheard = false;
  for (const auto p : points) {
    auto met = faults::meet(p);
    if (!met)
      return fail(errc::store_unavailable, std::move(met.error().what));
    if (met->what == faults::action::delay)
      faults::wait(met->delay);
    unheard = unheard || met->drops();
  }
  return unheard;
}

} // namespace

bool is_outage(const error& e) {
  return e.code == errc::store_unavailable || e.code == errc::commit_in_doubt ||
         e.code == errc::io_error || e.code == errc::no_space || e.code == errc::corrupt;
}

bool is_hindrance(const error& e) {
  return e.code == errc::timed_out || e.code == errc::conflict;
}

bool is_lock(const error& e) {
  return e.code == errc::locked;
}

bool is_refusal(const error& e) {
  const auto category = category_of(e);
  return !is_outage(e) &&
         (category == error_category::bug || category == error_category::permanent);
}

error answer_to(const job<store_request, store_reply>& j, error why) {
  const bool says_undone = !is_refusal(why) && !is_hindrance(why);
  if (j.crashes > 0 && says_undone &&
      !std::ranges::all_of(j.request.operations, store::is_question))
    why.code = errc::commit_in_doubt;
  return why;
}

store_session::store_session(std::unique_ptr<dispatch_store> store, queue::settlement_spool spool,
                             const clock_port& clock, std::shared_ptr<long_work> work,
                             std::shared_ptr<worker_roll> roll)
    : store_(std::move(store)), spool_(std::move(spool)), clock_(clock), work_(std::move(work)),
      roll_(std::move(roll)) {
  store_->tell_migrations([work = work_, &clock](const std::string& what) {
    if (work)
      work->begin("migrating the database: " + what, clock.steady());
    return faults::pass("store.migrate");
  });
}

/// One transaction after the other, none of them large: each is to be over long before it is given
/// up, and the log of a database grows by no more than one at a time.
void store_session::perform(jobs& batch) {
  record_late();
  begun_ = clock_.steady();
  for (auto next = batch.begin(); next != batch.end();) {
    some_jobs some;
    std::size_t bytes = 0;
    for (; next != batch.end(); ++next) {
      bytes += bytes_of(next->request);
      if (!some.empty() && bytes > most_joined_bytes)
        break;
      some.push_back(&*next);
    }
    doubted_ = false;
    perform_some(some);
  }
  show_refusals();
}

void store_session::perform_some(const some_jobs& batch) {
  if (auto ready = ensure_open(); !ready)
    answer_without(batch, ready.error());
  else if (write_failed_)
    perform_apart(batch);
  else if (kept_.empty())
    perform_together(batch);
  else
    perform_behind_spool(batch);
}

/// What is in the spool came first: a further word about the same attempt, as of a sweep that finds
/// a row which nobody runs any more, must not overtake it.
void store_session::perform_behind_spool(const some_jobs& batch) {
  some_jobs behind;
  some_jobs others;
  for (auto* j : batch)
    (is_in_spool(j->request) ? behind : others).push_back(j);
  answer_without(behind, why_late_);
  if (!others.empty())
    perform_together(others);
}

/// Tries of the parts of a batch must not last until leases run out behind it.
bool store_session::has_time() const {
  return clock_.steady() - begun_ < limits::lease_renewal;
}

void store_session::perform_together(const some_jobs& batch) {
  auto replies = apply_joined(batch);
  if (replies) {
    distribute(batch, std::move(*replies));
    return;
  }
  const bool may_split =
      is_refusal(replies.error()) || (is_hindrance(replies.error()) && has_time());
  if (may_split && batch.size() > 1) {
    // What one of them is refused or kept waiting for must not be the answer to the others.
    const auto [first, second] = divided(batch);
    perform_some(first);
    perform_some(second);
    return;
  }
  // Of a lock on the whole database the parts would each wait for as long again.
  if (is_hindrance(replies.error()) || is_lock(replies.error()))
    return answer_without(batch, replies.error());
  if (!is_outage(replies.error()))
    return take_refusal(batch, replies.error());
  lost(replies.error());
  const auto [questions, writing] = apart(batch);
  answer_without(writing, replies.error());
  answer(questions, replies.error());
}

/// A refused result ends its run all the same.
void store_session::take_refusal(const some_jobs& batch, const error& why) {
  for (auto* j : batch) {
    note_refusal(j->request, why);
    if (error instead = why; brings_results(j->request) && takes_results({}, why, instead))
      j->reply = end_refused(j->request);
    else
      j->reply = fail(answer_to(*j, std::move(instead)));
  }
}

/// While the disk takes no writes: the questions by themselves.
void store_session::perform_apart(const some_jobs& batch) {
  const auto [questions, writing] = apart(batch);
  if (!writing.empty()) {
    if (auto writable = ensure_writable(); !writable)
      answer_without(writing, writable.error());
    else
      perform_behind_spool(writing);
  }
  answer(questions, why_lost_);
}

/// `why`: what to say when the store cannot be read either.
void store_session::answer(const some_jobs& questions, const error& why) {
  if (questions.empty())
    return;
  auto replies = open_ ? apply_joined(questions) : result<all_replies>(fail(why));
  if (replies)
    return distribute(questions, std::move(*replies));
  if (open_ && is_outage(replies.error()))
    lost(replies.error());
  for (auto* j : questions)
    j->reply = fail(replies.error());
}

result<store_session::all_replies> store_session::apply_joined(const some_jobs& batch) {
  const joined_operations joined(batch);
  auto replies = apply(joined.all());
  // A disk without room has left nothing in doubt, and is full for another connection, too, which
  // may find no room for itself.
  if (replies || !is_outage(replies.error()) || replies.error().code == errc::no_space)
    return replies;
  // One repeat on a fresh connection: every operation is idempotent or fenced, so a commit in
  // doubt is decided by trying again (FAULTS 18).
  lost(replies.error());
  next_try_ = {};
  if (!ensure_open())
    return replies;
  doubted_ = doubted_ || replies.error().code == errc::commit_in_doubt;
  auto again = apply(joined.all());
  // What was in doubt before is so still, unless it is refused now or somebody is in its way.
  const bool undecided = !again && !is_refusal(again.error()) && !is_hindrance(again.error()) &&
                         replies.error().code == errc::commit_in_doubt;
  return undecided ? std::move(replies) : std::move(again);
}

result<store_session::all_replies>
store_session::apply(const std::vector<store::operation>& operations) {
  if (operations.empty())
    return all_replies{};
  auto unheard = pass_points(operations);
  if (!unheard)
    return fail(std::move(unheard.error()));
  auto replies = store_->apply(operations);
  note_lock(replies);
  if (!replies)
    return replies;
  note_taken(operations);
  if (*unheard)
    return fail(errc::commit_in_doubt, "a fault point lost the answer");
  return replies;
}

void store_session::distribute(const some_jobs& batch, all_replies replies) {
  show_ended(replies);
  std::size_t next = 0;
  for (auto* j : batch) {
    const std::size_t n = j->request.operations.size();
    if (next + n > replies.size()) {
      j->reply = fail(errc::bug, "the store answered too few operations");
      continue;
    }
    const auto first = replies.begin() + static_cast<std::ptrdiff_t>(next);
    const auto last = first + static_cast<std::ptrdiff_t>(n);
    j->reply = store_reply{{std::make_move_iterator(first), std::make_move_iterator(last)},
                           doubted_ || j->crashes > 0};
    next += n;
  }
}

result<void> store_session::ensure_open() {
  if (open_)
    return {};
  if (clock_.steady() < next_try_)
    return fail(error(why_lost_));
  return open_now();
}

result<void> store_session::open_now() {
  auto opening = roll_ ? roll_->enter(opening_of_store) : nullptr;
  auto opened = faults::pass("store.open");
  if (opened)
    opened = store_->open();
  opening.reset();
  if (work_)
    work_->end();
  if (!opened) {
    lost(opened.error());
    return fail(opened.error());
  }
  open_ = true;
  if (write_failed_) {
    auto writable = ensure_writable();
    return open_ ? result<void>{} : writable;
  }
  works_off_ = false;
  find_refused();
  if (auto recorded = record_spool(); !recorded) {
    lost(recorded.error());
    return fail(recorded.error());
  }
  restored();
  // Whoever looks at once is to be told, too; what cannot be said now is looked for by the probe.
  if (auto found = store_->concerns())
    concerns_ = std::move(*found);
  show();
  return {};
}

/// After a failed write: whether the disk takes writes again, tried when it is time.
result<void> store_session::ensure_writable() {
  if (!write_failed_)
    return {};
  if (clock_.steady() < next_try_)
    return fail(error(why_lost_));
  auto proved = prove_writes();
  if (proved)
    proved = record_spool();
  if (!proved) {
    lost(proved.error());
    return fail(error(why_lost_));
  }
  write_failed_ = false;
  restored();
  show();
  return {};
}

/// Small writes go into room that the store's files have already, so that they prove nothing.
result<void> store_session::prove_writes() {
  const auto write = [this](std::string value) -> result<void> {
    auto written = apply({store::put_fact{proof_scope, "write", std::move(value)}});
    if (!written)
      return fail(std::move(written.error()));
    return {};
  };
  if (auto written = write(std::string(proof_bytes, '0')); !written)
    return written;
  return write({});
}

void store_session::tidy() {
  if (open_ && faults::pass("store.tidy"))
    store_->tidy();
}

void store_session::probe() {
  record_late();
  end_unended();
  if (!open_) {
    (void)ensure_open(); // its outcome is in health()
    return;
  }
  if (write_failed_) {
    (void)ensure_writable(); // the same
    return;
  }
  const auto alive = store_->apply({store::list_nodes{}});
  note_lock(alive);
  if (!alive && is_outage(alive.error()))
    lost(alive.error());
  else if (!locked_out_ && (alive || !is_hindrance(alive.error())))
    look_for_concerns();
}

/// Somebody's open transaction is no outage, and every request is told of it when it has waited; so
/// is whoever looks at the node, which does nothing in that time. What is in the way of some
/// requests is told to these, and of the node only when nothing has gone through for a while.
void store_session::note_lock(const result<std::vector<store::any_reply>>& answered) {
  // A disk that takes no writes is the worse news, and ends in another way.
  if (write_failed_) {
    locked_out_ = false;
    return;
  }
  const bool hindered = !answered && is_hindrance(answered.error());
  if (!hindered)
    hindered_since_.reset();
  else if (!hindered_since_)
    hindered_since_ = clock_.steady();
  const bool locked_out = hindered ? clock_.steady() - *hindered_since_ >= long_hindrance
                                   : !answered && answered.error().code == errc::locked;
  if (locked_out && !locked_out_) {
    health_.since = clock_.now();
    health_.ok = false;
    health_.reason = to_string(answered.error());
    health_.last_error = health_.reason;
  }
  if (std::exchange(locked_out_, locked_out) && answered)
    look_for_concerns();
}

/// The store works; whoever looks at the node is to know what will slow it down or fill the disk.
void store_session::look_for_concerns() {
  const auto found = store_->concerns();
  if (!found) {
    if (is_outage(found.error()))
      lost(found.error());
    return;
  }
  concerns_ = *found;
  show();
}

/// What is to be seen of a store that works. While results wait it is not well, so that it is
/// looked after every second.
void store_session::show() {
  auto concerns = concerns_;
  for (auto& said : refusals())
    concerns.push_back(std::move(said));
  if (!kept_.empty())
    concerns.push_back("results waiting in the spool: " + std::to_string(kept_.size()) +
                       "; cannot record them: " + to_string(why_late_));
  if (concerns.empty())
    return restored();
  if (health_.ok)
    health_.since = clock_.now();
  health_.ok = false;
  health_.reason.clear();
  for (const auto& c : concerns)
    health_.reason += (health_.reason.empty() ? "" : "; ") + c;
  health_.last_error = health_.reason;
}

void store_session::lost(const error& why) {
  // A disk without room does not end the connection, which is what questions are answered through.
  const bool worked = works();
  open_ = open_ && why.code == errc::no_space;
  write_failed_ = write_failed_ || is_failed_write(why);
  backoff_ = backoff_ == milliseconds{0} ? limits::backoff_base
                                         : std::min<milliseconds>(backoff_ * 2, longest_backoff);
  next_try_ = clock_.steady() + backoff_;
  if (health_.ok || worked)
    health_.since = clock_.now();
  health_.ok = false;
  health_.reason = to_string(why);
  concerns_.clear();
  health_.last_error = health_.reason;
  why_lost_ = why;
  // Nothing of the next question was tried: it is not in doubt, and no answer to it was late.
  if (why_lost_.code != errc::corrupt)
    why_lost_.code = errc::store_unavailable;
  if (why_lost_.where.empty())
    why_lost_.where = store_->describe();
}

void store_session::restored() {
  backoff_ = milliseconds{0};
  spooling_told_ = false;
  health_.ok = true;
  health_.reason.clear();
  health_.since.reset();
}

part_health store_session::health() const {
  return health_;
}

} // namespace boyd
