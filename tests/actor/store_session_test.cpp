#include "actor/store_session_fixture.hpp"

#include <filesystem>

namespace boyd::store_session_test {

namespace {

using calls = std::vector<std::vector<std::string>>;
const std::vector<std::string> all_keys{"a", "b", "c"};

} // namespace

TEST_CASE("one spooled result that the store does not take does not keep the others out",
          "[store]") {
  fixture f;
  spool_results(f, 100, 10);
  f.plan->poison = "d37";
  CHECK(ask_one(f));
  CHECK(f.plan->settled.size() == 99);
  CHECK_FALSE(std::filesystem::exists(f.directory.file("spool.jsonl")));
  const auto refused = adapters::make_posix_file_system()
                           ->read(f.directory.file("spool.jsonl.refused"), script::no_end)
                           .value();
  CHECK_THAT(refused, Catch::Matchers::Contains("\"d37\""));
  CHECK(std::ranges::count(refused, '\n') == 1);
  // The store takes no end of that run at all: both stay on show until a person has looked after
  // them.
  CHECK_THAT(f.session.health().reason, Catch::Matchers::Contains("refused 1 result") &&
                                            Catch::Matchers::Contains("refuses their end"));
  f.plan->poison.clear();
  std::filesystem::remove(f.directory.file("spool.jsonl.refused"));
  f.session.probe();
  CHECK(f.session.health().ok);
  CHECK(f.plan->settled.back() == "d37");
}

TEST_CASE("field case 26: a refused result is kept whole, its run ends, and it is told",
          "[store]") {
  const bool spooled = GENERATE(false, true);
  CAPTURE(spooled);
  fixture f;
  f.plan->poisonous = "ooooo";
  jobs batch;
  if (spooled) {
    spool_results(f, 1, 10);
    CHECK(ask_one(f));
  } else {
    settlement item;
    item.dispatch_id = "d0";
    item.fence = 1;
    item.to = settle_to::done;
    item.outcome.output = std::string(10, 'o');
    store_request request = request_of({"runs"});
    request.operations.insert(request.operations.begin(), store::settle{"n1", {item}});
    batch.emplace_back(std::move(request));
    batch.emplace_back(request_of({"c"}));
    f.session.perform(batch);
    REQUIRE(batch[0].reply);
    CHECK(std::get<std::vector<settle_result>>(store_replies::of(*batch[0].reply)[0]).front() ==
          settle_result::accepted);
    CHECK(batch[1].reply);
  }
  CHECK(f.plan->settled == std::vector<std::string>{"d0"}); // its end, without the output
  CHECK_THAT(f.session.health().reason, Catch::Matchers::Contains("refused 1 result") &&
                                            Catch::Matchers::Contains("not in this house"));
  const auto kept = f.files->read(f.directory.file("spool.jsonl.refused"), script::no_end).value();
  CHECK_THAT(kept, Catch::Matchers::Contains("oooooooooo") &&
                       Catch::Matchers::Contains("not in this house"));
  // The next process finds the file, and ends the run once more, which changes nothing.
  store_session next(std::make_unique<scripted_store>(f.plan),
                     queue::settlement_spool(f.files, f.directory.file("spool.jsonl")), *f.clock);
  jobs asked;
  asked.emplace_back(request_of({"a"}));
  next.perform(asked);
  CHECK_THAT(next.health().reason, Catch::Matchers::Contains("refused 1 result"));
  CHECK(f.plan->settled == std::vector<std::string>{"d0", "d0"});
}

TEST_CASE("field case 26: what a store refuses is on show until it takes the like", "[store]") {
  fixture f;
  f.plan->poison = "a";
  CHECK_FALSE(ask_one(f));
  CHECK_THAT(f.session.health().reason, Catch::Matchers::Contains("refuses put_fact"));
  f.plan->poison.clear();
  CHECK(ask_one(f));
  CHECK(f.session.health().ok);
}

TEST_CASE("a store that takes no result at all sets none aside", "[store]") {
  fixture f;
  spool_results(f, 3, 10);
  f.plan->takes_results = false;
  CHECK_FALSE(ask_one(f));
  CHECK_FALSE(std::filesystem::exists(f.directory.file("spool.jsonl.refused")));
  f.plan->takes_results = true;
  f.clock->passed += 1s;
  CHECK(ask_one(f));
  CHECK(f.plan->settled == std::vector<std::string>{"d0", "d1", "d2"});
}

TEST_CASE("much that was spooled is recorded in turns, and none of it twice", "[store]") {
  fixture f;
  constexpr int results = 40;
  spool_results(f, results, std::size_t{1} << 20);
  // Four results, of 1 MiB each, make a transaction, which takes three seconds.
  f.plan->settles = [&] { f.clock->passed += 3s; };
  int turns = 0;
  for (; !ask_one(f); ++turns) {
    CHECK(f.plan->settled.size() == static_cast<std::size_t>(8 * (turns + 1)));
    REQUIRE(turns < results);
    f.clock->passed += 1s;
  }
  CHECK(turns == 4);
  CHECK(f.plan->settled.size() == results);
  CHECK(std::set(f.plan->settled.begin(), f.plan->settled.end()).size() == results);
  CHECK_FALSE(std::filesystem::exists(f.directory.file("spool.jsonl")));
}

TEST_CASE("requests are joined into one batch and get their own replies", "[store]") {
  fixture f;
  auto batch = three_jobs();
  f.session.perform(batch);
  REQUIRE(f.plan->seen == calls{all_keys});
  for (const auto& j : batch) {
    REQUIRE(j.reply);
    CHECK(store_replies::of(*j.reply).size() == j.request.operations.size());
  }
  CHECK(is_whole(batch));
}

TEST_CASE("a batch is whole after its worker died, and can be repeated", "[store]") {
  fixture f;
  f.plan->steps = {script::step::throw_it};
  auto batch = three_jobs();
  CHECK_THROWS(f.session.perform(batch));
  CHECK(is_whole(batch));
  f.session.perform(batch);
  CHECK(f.plan->seen == calls{all_keys, all_keys});
  CHECK(batch.back().reply);
}

TEST_CASE("what a worker has died with is in doubt while the store cannot do it", "[store]") {
  const bool has_died = GENERATE(false, true);
  CAPTURE(has_died);
  fixture f;
  const auto code = [&](store_request request) {
    jobs batch;
    batch.emplace_back(std::move(request));
    batch.front().crashes = has_died ? 1 : 0;
    f.session.perform(batch);
    return batch.front().reply ? std::optional<errc>{} : batch.front().reply.error().code;
  };
  const auto writing = request_of({"key"});
  SECTION("a disk without room") {
    f.plan->room = 0;
    CHECK(code(writing) == (has_died ? errc::commit_in_doubt : errc::no_space));
  }
  SECTION("another process in the way") {
    f.plan->steps = {script::step::lock_it};
    CHECK(code(writing) == (has_died ? errc::commit_in_doubt : errc::locked));
  }
  SECTION("a refusal decides") {
    f.plan->poison = "key";
    CHECK(code(writing) == errc::bug);
  }
  SECTION("a question has done nothing") {
    store_request asks;
    asks.operations.emplace_back(store::get_facts{"scope"});
    f.plan->steps = {script::step::lock_it};
    CHECK(code(asks) == errc::locked);
  }
  SECTION("and then it is done") {
    CHECK_FALSE(code(writing));
  }
}

TEST_CASE("a commit in doubt is repeated once on a fresh connection", "[store]") {
  fixture f;
  f.plan->steps = {script::step::lose_it};
  auto batch = three_jobs();
  f.session.perform(batch);
  CHECK(f.plan->seen == calls{all_keys, all_keys});
  CHECK(f.plan->opened == 2);
  for (const auto& j : batch)
    CHECK(j.reply);
  CHECK(f.session.health().ok);
}

TEST_CASE("a batch that fails twice is answered and stays whole", "[store]") {
  fixture f;
  f.plan->steps = {script::step::lose_it, script::step::lose_it};
  auto batch = three_jobs();
  f.session.perform(batch);
  for (std::size_t i = 0; i < batch.size(); ++i) {
    INFO("request " << i);
    REQUIRE_FALSE(batch[i].reply);
  }
  CHECK(is_whole(batch));
  CHECK_FALSE(f.session.health().ok);
}

TEST_CASE("results are spooled also when a count comes with them, which is refused by itself",
          "[store]") {
  fixture f;
  f.plan->steps = {script::step::lose_it, script::step::lose_it};
  settlement item;
  item.dispatch_id = "dispatch-1";
  item.fence = 1;
  item.to = settle_to::done;
  store_request request = request_of({"runs"});
  request.operations.insert(request.operations.begin(), store::settle{"node-1", {item}});
  jobs batch;
  batch.emplace_back(std::move(request));
  f.session.perform(batch);
  REQUIRE(batch[0].reply);
  const auto& values = store_replies::of(*batch[0].reply);
  REQUIRE(values.size() == 2);
  CHECK(std::get<std::vector<settle_result>>(values[0]) ==
        std::vector<settle_result>{settle_result::accepted});
  CHECK(std::get<error>(values[1]).code == errc::commit_in_doubt);
  queue::settlement_spool next(adapters::make_posix_file_system(), f.directory.file("spool.jsonl"));
  const auto kept = next.load();
  REQUIRE(kept);
  REQUIRE(kept->items.size() == 1);
  CHECK(kept->items[0].item.dispatch_id == "dispatch-1");
}

TEST_CASE("what one request is refused for is not the answer to those beside it", "[store]") {
  fixture f;
  f.plan->poison = "b";
  auto batch = three_jobs();
  f.session.perform(batch);
  REQUIRE_FALSE(batch[0].reply);
  CHECK(batch[0].reply.error().code == errc::bug);
  CHECK(batch[1].reply);
  CHECK(batch[2].reply);
  CHECK(f.plan->seen.back() == std::vector<std::string>{"c"});
  CHECK(f.session.health().ok);
}

TEST_CASE("requests that carry much are not all joined", "[store]") {
  fixture f;
  jobs batch;
  constexpr std::size_t requests = 40;
  for (std::size_t i = 0; i < requests; ++i) {
    store_request r;
    r.operations.emplace_back(
        store::put_fact{"scope", std::to_string(i), std::string(std::size_t{1} << 20, 'v')});
    batch.emplace_back(std::move(r));
  }
  f.session.perform(batch);
  std::vector<std::size_t> sizes;
  for (const auto& transaction : f.plan->seen)
    sizes.push_back(transaction.size());
  CHECK(sizes == std::vector<std::size_t>{16, 16, 8});
  CHECK(std::ranges::all_of(batch, [](const auto& j) { return j.reply.has_value(); }));
}

TEST_CASE("a database that another process holds is in the store's health until it is let go",
          "[store]") {
  fixture f;
  auto batch = three_jobs();
  f.session.perform(batch);
  f.plan->steps = {script::step::lock_it, script::step::lock_it};
  batch = three_jobs();
  f.session.perform(batch);
  for (const auto& j : batch)
    CHECK(j.reply.error().code == errc::locked);
  const auto health = f.session.health();
  CHECK_FALSE(health.ok);
  CHECK(health.reason.find("another process holds the database") != std::string::npos);
  f.session.probe();
  CHECK_FALSE(f.session.health().ok);
  CHECK(f.session.health().since == health.since);

  SECTION("seen by the next request") {
    batch = three_jobs();
    f.session.perform(batch);
    CHECK(batch.front().reply);
  }
  SECTION("or by the next look") {
    f.session.probe();
  }
  CHECK(f.session.health().ok);
  CHECK(f.plan->opened == 1);
}

TEST_CASE("a lock that comes and goes does not make a full disk well", "[store]") {
  fixture f;
  auto batch = three_jobs();
  f.session.perform(batch);
  f.plan->room = 0;
  batch = three_jobs();
  f.session.perform(batch);
  REQUIRE_FALSE(f.session.health().ok);
  store_request question;
  question.operations.emplace_back(store::list_nodes{});
  for (const auto step : {script::step::lock_it, script::step::answer}) {
    f.plan->steps = {step};
    jobs asked;
    asked.emplace_back(question);
    f.session.perform(asked);
    CHECK(asked.front().reply.has_value() == (step == script::step::answer));
    CHECK_FALSE(f.session.health().ok);
    CHECK(f.session.health().reason.find("cannot grow") != std::string::npos);
  }
}

TEST_CASE("what the store is concerned about is in its health until it is over, and it works on",
          "[store]") {
  fixture f;
  auto batch = three_jobs();
  f.session.perform(batch);
  f.session.probe();
  CHECK(f.session.health().ok);
  f.plan->concerns = {"session 7 has kept a transaction open", "the log is long"};
  f.session.probe();
  auto health = f.session.health();
  CHECK_FALSE(health.ok);
  CHECK(health.reason == "session 7 has kept a transaction open; the log is long");
  const auto since = health.since;
  CHECK(since);
  batch = three_jobs();
  f.session.perform(batch);
  CHECK(batch.front().reply);
  f.session.probe();
  CHECK(f.session.health().since == since);
  f.plan->concerns.clear();
  f.session.probe();
  health = f.session.health();
  CHECK(health.ok);
  CHECK(health.reason.empty());
  CHECK_FALSE(health.since);
  CHECK(health.last_error.find("session 7") != std::string::npos);
}

TEST_CASE("case 35 enospc: a store on a full disk stays degraded until a write of some size "
          "succeeds, and answers questions meanwhile",
          "[store]") {
  fixture f;
  auto batch = three_jobs();
  f.session.perform(batch);
  REQUIRE(f.session.health().ok);
  f.plan->room = 3;
  store_request question;
  question.operations.emplace_back(store::list_nodes{});
  const auto ask_and_write = [&] {
    jobs both;
    both.emplace_back(request_of({"a"}));
    both.emplace_back(question);
    f.session.perform(both);
    return std::pair(std::move(both[0].reply), std::move(both[1].reply));
  };
  const auto [written, asked] = ask_and_write();
  REQUIRE_FALSE(written);
  CHECK(written.error().code == errc::no_space);
  CHECK(asked);
  CHECK(f.plan->opened == 1); // another connection would not find room either
  const auto since = f.session.health().since;
  // Not one probe reports it well, though everything can be read, and small things be written.
  f.plan->room = 20;
  for (int i = 0; i < 10; ++i) {
    f.clock->passed += 1s;
    f.session.probe();
    REQUIRE_FALSE(f.session.health().ok);
    const auto [small, heard] = ask_and_write();
    REQUIRE_FALSE(small);
    REQUIRE(heard);
  }
  CHECK(f.session.health().since == since);
  CHECK(f.session.health().reason.find("the database cannot grow") != std::string::npos);
  f.plan->room = script::no_end;
  f.clock->passed += 1s;
  f.session.probe();
  CHECK(f.session.health().ok);
  CHECK(ask_and_write().first);
  // What was written to prove it is taken away again.
  CHECK(f.plan->seen[f.plan->seen.size() - 2] == std::vector<std::string>{"write"});
}

TEST_CASE("case 35 enospc: writing itself finds out that there is room again, without a probe",
          "[store]") {
  fixture f;
  f.plan->room = 0;
  auto batch = three_jobs();
  f.session.perform(batch);
  CHECK_FALSE(batch.front().reply);
  f.plan->room = script::no_end;
  f.clock->passed += 1s;
  batch = three_jobs();
  f.session.perform(batch);
  CHECK(batch.front().reply);
  CHECK(f.session.health().ok);
}

} // namespace boyd::store_session_test
