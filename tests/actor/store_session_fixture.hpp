#pragma once

#include "actors/store/performer.hpp"
#include "actors/store/replies.hpp"
#include "boyd/ports/clock.hpp"
#include "src/adapters/posix/file_system.hpp"
#include "support/pch.hpp"
#include "support/temp_dir.hpp"

#include <algorithm>
#include <deque>
#include <functional>
#include <set>
#include <stdexcept>

/// The store's worker with a store that does what a script says.
namespace boyd::store_session_test {

using jobs = std::vector<job<store_request, store_reply>>;

/// What the fake store does with the next batches, and what it was given.
struct script {
  enum class step { answer, throw_it, lose_it, lock_it };
  std::deque<step> steps;
  std::vector<std::vector<std::string>> seen; ///< keys of put_fact, per call
  std::vector<std::string> concerns;
  std::size_t room = no_end;     ///< bytes of facts that the disk still takes
  std::string poison;            ///< a dispatch whose settlement is refused, or the key of a fact
  std::string poisonous;         ///< a text that a settlement is refused for, final
  std::set<std::string> held;    ///< dispatches, or keys, whose rows somebody has locked
  std::function<void()> waits;   ///< called when one of these was waited for in vain
  bool holds_all = false;        ///< somebody has locked everything
  std::function<void()> settles; ///< called before settlements are taken
  std::vector<std::string> settled; ///< but not of nobody
  bool takes_results = true;
  int opened = 0;

  static constexpr std::size_t no_end = std::size_t{1} << 40;
};

/// The dispatch that is settled, or the key that is written.
inline std::string row_of(const store::operation& op) {
  if (const auto* s = std::get_if<store::settle>(&op))
    return s->items[0].dispatch_id;
  const auto* fact = std::get_if<store::put_fact>(&op);
  return fact == nullptr ? std::string{} : fact->key;
}

class scripted_store final : public dispatch_store {
 public:
  explicit scripted_store(std::shared_ptr<script> s) : script_(std::move(s)) {}

  void tell_migrations(migration_step) override {}
  result<void> open() override {
    ++script_->opened;
    return {};
  }

  result<std::vector<store::any_reply>> apply(const std::vector<store::operation>& batch) override {
    auto& keys = script_->seen.emplace_back();
    for (const auto& op : batch)
      if (const auto* fact = std::get_if<store::put_fact>(&op))
        keys.push_back(fact->key);
    auto step = script::step::answer;
    if (!script_->steps.empty()) {
      step = script_->steps.front();
      script_->steps.pop_front();
    }
    if (step == script::step::throw_it)
      throw std::runtime_error("the store breaks its worker");
    if (step == script::step::lose_it)
      return fail(errc::commit_in_doubt, "the connection is gone");
    if (step == script::step::lock_it)
      return fail(errc::locked, "another process holds the database");
    if (script_->holds_all || std::ranges::any_of(batch, [&](const auto& op) {
          return script_->held.contains(row_of(op));
        })) {
      if (script_->waits)
        script_->waits();
      return fail(errc::timed_out, "another session held a lock too long");
    }
    for (const auto& op : batch)
      if (const auto* s = std::get_if<store::settle>(&op);
          s && s->items[0].dispatch_id == script_->poison)
        return fail(errc::bug, "invalid byte sequence");
    for (const auto& op : batch)
      if (const auto* s = std::get_if<store::settle>(&op);
          s && !script_->poisonous.empty() &&
          s->items[0].outcome.output.find(script_->poisonous) != std::string::npos)
        return fail(errc::refused, "not in this house");
    for (const auto& op : batch)
      if (const auto* s = std::get_if<store::settle>(&op)) {
        if (!script_->takes_results)
          return fail(errc::bug, "the table is gone");
        if (s->items[0].dispatch_id != "nobody")
          script_->settled.push_back(s->items[0].dispatch_id);
      }
    if (script_->settles && std::holds_alternative<store::settle>(batch.front()))
      script_->settles();
    if (std::ranges::find(keys, script_->poison) != keys.end())
      return fail(errc::bug, "invalid byte sequence");
    std::size_t wanted = 0;
    for (const auto& op : batch)
      if (const auto* fact = std::get_if<store::put_fact>(&op))
        wanted += fact->value.size();
    if (wanted > script_->room)
      return fail(errc::no_space, "the database cannot grow");
    std::vector<store::any_reply> replies;
    for (const auto& op : batch) {
      const auto* s = std::get_if<store::settle>(&op);
      replies.push_back(s == nullptr ? store::any_reply(store::ok{})
                                     : store::any_reply(std::vector<settle_result>(
                                           s->items.size(), settle_result::accepted)));
    }
    return replies;
  }

  result<std::vector<std::string>> concerns() override { return script_->concerns; }
  void tidy() override {
    // nop
  }
  std::string describe() const override { return "scripted"; }

 private:
  std::shared_ptr<script> script_;
};

class manual_clock final : public clock_port {
 public:
  utc_time now() const override { return utc_time{passed}; }
  steady_time steady() const override { return steady_time{passed}; }

  milliseconds passed{1'000'000};
};

struct fixture {
  /// `disk`: where the spool is.
  explicit fixture(std::shared_ptr<file_system> disk = adapters::make_posix_file_system())
      : files(std::move(disk)) {}

  std::shared_ptr<file_system> files;
  test::temp_dir directory;
  std::shared_ptr<manual_clock> clock = std::make_shared<manual_clock>();
  std::shared_ptr<script> plan = std::make_shared<script>();
  store_session session{std::make_unique<scripted_store>(plan),
                        queue::settlement_spool(files, directory.file("spool.jsonl")), *clock};
};

inline store_request request_of(const std::vector<std::string>& keys) {
  store_request r;
  for (const auto& key : keys)
    r.operations.emplace_back(store::put_fact{"scope", key, "value"});
  return r;
}

/// Three requests with two, no and one operation.
inline jobs three_jobs() {
  jobs batch;
  batch.emplace_back(request_of({"a", "b"}));
  batch.emplace_back(request_of({}));
  batch.emplace_back(request_of({"c"}));
  return batch;
}

inline bool is_whole(const jobs& batch) {
  const auto fresh = three_jobs();
  for (std::size_t i = 0; i < fresh.size(); ++i) {
    const auto& left = batch[i].request.operations;
    const auto& right = fresh[i].request.operations;
    if (left.size() != right.size())
      return false;
    for (std::size_t k = 0; k < left.size(); ++k)
      if (std::get<store::put_fact>(left[k]).key != std::get<store::put_fact>(right[k]).key)
        return false;
  }
  return true;
}

/// Leaves `n` results, "d0" and so on, in the spool of a node that had no store.
inline void spool_results(const fixture& f, int n, std::size_t bytes) {
  queue::settlement_spool spool(f.files, f.directory.file("spool.jsonl"));
  std::vector<settlement> items;
  for (int i = 0; i < n; ++i) {
    auto& s = items.emplace_back();
    s.dispatch_id = "d" + std::to_string(i);
    s.fence = 1;
    s.to = settle_to::done;
    s.outcome.output = std::string(bytes, 'o');
  }
  REQUIRE(spool.append("n1", items));
}

inline result<store_reply> ask_one(fixture& f) {
  jobs one;
  one.emplace_back(request_of({"a"}));
  f.session.perform(one);
  return one.front().reply;
}

} // namespace boyd::store_session_test
