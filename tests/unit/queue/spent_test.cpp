#include "boyd/queue/spend.hpp"
#include "boyd/queue/spent.hpp"
#include "support/pch.hpp"

namespace boyd::spent_test {

using namespace boyd;
using Catch::Matchers::Contains;

namespace {

struct house {
  config::configuration c;

  house() {
    config::provider p;
    p.provider_id = "local";
    p.model = "m";
    p.prices["*"] = {.input = 1'000'000, .cached_input = 0, .output = 4'000'000};
    c.providers.push_back(p);
    config::kernel k;
    config::agent chat;
    chat.agent_id = "writer";
    config::chat_executor run;
    run.provider_id = "local";
    run.max_output_tokens = 1'000;
    chat.run = run;
    chat.budget.day = {.tokens = 10'000, .cost = 0};
    config::agent program;
    program.agent_id = "program";
    program.run = config::command_executor{};
    k.agents = {chat, program};
    c.kernels.push_back(k);
  }

  config::kernel& kernel() { return c.kernels.front(); }

  std::map<std::string, std::string> spent(std::int64_t tokens, std::int64_t cost = 0,
                                           std::int64_t node_tokens = 0) {
    store::sum_spend::reply rows(2);
    rows[0].key = queue::agent_scope("default", "writer");
    rows[0].used = {.input = tokens, .cost = cost};
    rows[1].key = queue::node_scope("n");
    rows[1].used = {.input = node_tokens};
    return queue::spent_agents(c, kernel(), "n", rows);
  }
};

} // namespace

TEST_CASE("spent: an agent is held back when no call fits its day any more", "[spent]") {
  house h;
  CHECK(h.spent(0).empty());
  CHECK(h.spent(9'000).empty());
  // What is left is less than an answer may take: the call would be refused.
  REQUIRE(h.spent(9'001).contains("writer"));
  CHECK_THAT(h.spent(10'000)["writer"], Contains("10000 of 10000 tokens"));
  h.kernel().agents[0].budget.day = {.tokens = 0, .cost = 100'000};
  CHECK(h.spent(1'000'000'000, 96'000).empty());
  CHECK_THAT(h.spent(0, 96'001)["writer"], Contains("0.096001 of 0.10 dollars"));
}

TEST_CASE("spent: the node's budget holds whoever calls models, and nobody else", "[spent]") {
  house h;
  h.c.node_settings.budget_day.tokens = 50'000;
  const auto spent = h.spent(0, 0, 50'000);
  CHECK(spent.size() == 1);
  CHECK_THAT(spent.at("writer"), Contains("the node's budget"));
  CHECK(h.spent(0, 0, 49'000).empty());
}

TEST_CASE("spent: without a limit nothing is spent", "[spent]") {
  house h;
  h.kernel().agents[0].budget.day = {};
  h.c.node_settings.budget_day = {};
  CHECK(h.spent(1'000'000'000'000, 1'000'000'000'000, 1'000'000'000'000).empty());
  CHECK(queue::has_budgets(h.kernel()));
  h.kernel().agents.erase(h.kernel().agents.begin());
  CHECK_FALSE(queue::has_budgets(h.kernel()));
}

TEST_CASE("spent: the run of an agent's own program is reserved as a whole", "[spent]") {
  house h;
  h.kernel().agents[0].run = config::agent_cli_executor{};
  h.kernel().agents[0].budget.run = {.tokens = 4'000, .cost = 0};
  CHECK(queue::has_budgets(h.kernel()));
  CHECK(h.spent(6'000).empty());
  CHECK(h.spent(6'001).contains("writer"));
}

} // namespace boyd::spent_test
