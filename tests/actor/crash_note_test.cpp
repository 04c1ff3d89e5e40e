#include "apps/boyd/crash_note.hpp"
#include "boyd/faults/points.hpp"
#include "boyd/ports/dispatch_store.hpp"
#include "support/pch.hpp"
#include "support/sim/disk.hpp"

namespace boyd::crash_note_test {

using namespace boyd;

namespace {

/// What came through to a store.
struct heard {
  int max_rescues = 0;
  std::size_t own_rows = 0; ///< what there is to take back
  bool told_migrations = false;
  int tidied = 0;
};

/// A store with something to say.
class telling_store final : public dispatch_store {
 public:
  explicit telling_store(std::shared_ptr<heard> h) : heard_(std::move(h)) {}

  void tell_migrations(migration_step before) override {
    heard_->told_migrations = static_cast<bool>(before);
  }
  result<void> open() override { return fail(errc::store_unavailable, "not today"); }
  result<std::vector<store::any_reply>> apply(const std::vector<store::operation>& batch) override {
    std::vector<store::any_reply> replies(batch.size(), store::ok{});
    for (std::size_t i = 0; i < batch.size(); ++i)
      if (const auto* asked = std::get_if<store::take_back>(&batch[i])) {
        heard_->max_rescues = asked->max_rescues;
        const auto page = std::min(asked->limit, heard_->own_rows);
        heard_->own_rows -= page;
        replies[i] = store::take_back::reply{std::vector<std::string>(page, "d"), {}};
      }
    return replies;
  }
  void tidy() override { ++heard_->tidied; }
  result<std::vector<std::string>> concerns() override {
    return std::vector<std::string>{"a transaction stays open"};
  }
  std::string describe() const override { return "telling"; }

 private:
  std::shared_ptr<heard> heard_;
};

struct fixture {
  std::shared_ptr<sim::sim_disk> disk = std::make_shared<sim::sim_disk>();
  std::shared_ptr<heard> outside = std::make_shared<heard>();
  std::unique_ptr<dispatch_store> after_crash;

  fixture() {
    REQUIRE(disk->make_directories("/boyd/run"));
    disk->put("/boyd/run/crash", "11\n");
    after_crash = app::strict_after_crash(
        [h = outside] { return std::make_unique<telling_store>(h); }, "/boyd", disk)();
  }

  int rescues_of_take_back() {
    store::take_back op;
    op.max_rescues = 3;
    REQUIRE(after_crash->apply({op}));
    return outside->max_rescues;
  }
};

} // namespace

TEST_CASE("after a crash a store is strict once, and all else of it comes through",
          "[supervision]") {
  fixture f;
  f.after_crash->tell_migrations([](const std::string&) -> result<void> { return {}; });
  CHECK(f.outside->told_migrations);
  CHECK(f.after_crash->open().error().code == errc::store_unavailable);
  CHECK(f.after_crash->describe() == "telling");
  CHECK(f.after_crash->concerns().value() == std::vector<std::string>{"a transaction stays open"});
  f.after_crash->tidy();
  CHECK(f.outside->tidied == 1);
  CHECK(f.rescues_of_take_back() == 1);
  CHECK_FALSE(app::has_crash_note("/boyd", *f.disk));
  CHECK(f.rescues_of_take_back() == 3);
  CHECK(f.after_crash->concerns().value().size() == 1);
}

TEST_CASE(
    "case 25 poison-segv: after a crash all that is taken back is held to the strict limit, not "
    "the first page alone",
    "[supervision]") {
  fixture f;
  f.outside->own_rows = 2 * store::take_back{}.limit + 1;
  for (int page = 0; page < 3; ++page)
    CHECK(f.rescues_of_take_back() == 1);
  CHECK_FALSE(app::has_crash_note("/boyd", *f.disk));
  CHECK(f.rescues_of_take_back() == 3);
}

TEST_CASE("fault points: a note of a crash that stays makes the next take-back strict, too",
          "[supervision][faults]") {
  const faults::isolation of_this_test;
  fixture f;
  REQUIRE(faults::arm({{"home.crash_note", faults::action::error}}, 1));
  CHECK(f.rescues_of_take_back() == 1);
  CHECK(app::has_crash_note("/boyd", *f.disk));
  CHECK(f.rescues_of_take_back() == 1);
  CHECK_FALSE(app::has_crash_note("/boyd", *f.disk));
}

} // namespace boyd::crash_note_test
