#include "harness.hpp"
#include "support/telling.hpp"

#include <atomic>
#include <set>
#include <thread>

namespace boyd::concurrency_test {

using namespace boyd;
using namespace boyd::test;

namespace {

constexpr int rows = 400;
constexpr int workers = 3;

std::vector<std::string> shared_kinds() {
  std::vector<std::string> out;
  for (const auto& kind : store_kinds())
    if (make_world(kind)->shared())
      out.push_back(kind);
  return out;
}

} // namespace

TEST_CASE("connections that claim at the same time get disjoint sets") {
  const auto w = make_world(GENERATE(from_range(shared_kinds())));
  std::vector<dispatch_spec> specs;
  for (int i = 1; i <= rows; ++i)
    specs.push_back(spec(i, "agent" + std::to_string(i)));
  enqueue(w->store(), specs);
  std::vector<std::unique_ptr<dispatch_store>> stores;
  for (int i = 0; i < workers; ++i) {
    stores.push_back(w->connect());
    REQUIRE(stores.back()->open());
  }
  std::vector<std::vector<std::string>> got(workers);
  std::vector<std::thread> threads;
  for (std::size_t i = 0; i < workers; ++i)
    threads.emplace_back([&, i] {
      for (int round = 0; round < rows; ++round) {
        const store::claim op{"n" + std::to_string(i), "k", "", 7, 30s};
        const auto replies = stores[i]->apply({op});
        const auto* claimed =
            replies ? std::get_if<store::claim::reply>(&replies->front()) : nullptr;
        if (claimed == nullptr || claimed->empty())
          return;
        for (const auto& c : *claimed)
          got[i].push_back(c.row.dispatch_id);
      }
    });
  for (auto& t : threads)
    t.join();
  std::set<std::string> all;
  std::size_t total = 0;
  for (const auto& some : got) {
    all.insert(some.begin(), some.end());
    total += some.size();
  }
  REQUIRE(promised(all.size() == total, "no row is claimed twice"));
  REQUIRE(total == rows);
}

TEST_CASE("two connections never both open one slot") {
  const auto w = make_world(GENERATE(from_range(shared_kinds())));
  w->store();
  std::vector<std::unique_ptr<dispatch_store>> stores;
  for (int i = 0; i < 2; ++i) {
    stores.push_back(w->connect());
    REQUIRE(stores.back()->open());
  }
  constexpr int slots = 50;
  std::atomic<int> opened{0};
  std::vector<std::thread> threads;
  for (auto& s : stores)
    threads.emplace_back([&opened, store = s.get()] {
      for (int slot = 1; slot <= slots; ++slot) {
        store::open_occurrence op;
        op.slot.kernel_id = "k";
        op.slot.scheduled_at = from_unix_ms(slot);
        const auto replies = store->apply({op});
        if (replies && std::get<store::open_occurrence::reply>(replies->front()).opened)
          ++opened;
      }
    });
  for (auto& t : threads)
    t.join();
  REQUIRE(promised(opened <= slots, "no slot is opened twice"));
  REQUIRE(opened == slots);
}

} // namespace boyd::concurrency_test
