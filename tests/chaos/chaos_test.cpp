#include "acceptance/agreement.hpp"
#include "boyd/core/limits.hpp"
#include "findings.hpp"
#include "knobs.hpp"
#include "lab.hpp"
#include "support/pch.hpp"
#include "support/telling.hpp"

#include <fmt/format.h>
#include <iostream>

namespace boyd::chaos_test {

using namespace boyd::test;

namespace {

std::string times(const std::vector<double>& s) {
  return fmt::format("{} (p50 {:.1f} s, p99 {:.1f} s, longest {:.1f} s)", s.size(),
                     percentile(s, 0.50), percentile(s, 0.99), s.empty() ? 0 : s.back());
}

std::string report(const chaos_lab& lab, const chaos_findings& f) {
  std::string text;
  for (const auto& [what, n] : lab.record().faults)
    text += fmt::format("  {:4} {}\n", n, what);
  text += fmt::format("  {:4} commits cut on the way\n", lab.commits_cut());
  text +=
      fmt::format("chaos: cycles admitted {}, dispatches {}, runs {}, effects {}, absorbed {}\n",
                  lab.record().acknowledged.size(), f.dispatches, f.runs, f.effects, f.absorbed);
  text += fmt::format("chaos: rescues {}, late results refused {}, given up {}, edges wanted {}\n",
                      f.rescues, f.refused, f.given_up, f.edges);
  text += "chaos: a lost node's work runs elsewhere: " + times(f.elsewhere_s) +
          "\nchaos: the same at home, after its restart: " + times(f.at_home_s) + "\n";
  for (const auto& late : f.late)
    text += "chaos: late: " + late + "\n";
  return text;
}

} // namespace

TEST_CASE("PostgreSQL chaos: four nodes lose nothing and do nothing twice", "[chaos]") {
  auto* server = shared_postgres();
  if (server == nullptr)
    return;
  const auto seed = chaos_seed();
  std::cout << "chaos: BOYD_CHAOS_SEED=" << seed << " BOYD_CHAOS_SECONDS=" << chaos_time().count()
            << " BOYD_CHAOS_LEASE=" << chaos_lease() << std::endl;
  chaos_lab lab(*server, seed, chaos_lease());
  lab.start();
  lab.rage(chaos_time());
  const auto amiss = lab.settle();
  // What has not moved after as long again is not late.
  if (!amiss.empty() && lab.settle() == amiss)
    tell_broken("it stands still: " + amiss);
  INFO(amiss);
  CHECK(amiss.empty());
  for (const int code : lab.end())
    CHECK(code == 0);
  const auto found = judge(lab);
  std::cout << report(lab, found);
  // What is still open when the time has run out is not lost yet.
  for (const auto& w : amiss.empty() ? found.wrong : found.for_good)
    tell_broken(w);
  INFO(told(found.wrong));
  CHECK(found.wrong.empty());
  INFO(told(lab.record().surprises));
  CHECK(lab.record().surprises.empty());
  CHECK(found.dispatches > 0);
  CHECK(found.effects == found.dispatches);
  CHECK(found.edges > 0);
  // With a shorter lease a moment's absence of all the others is a large part of it.
  if (strict_times() && std::chrono::seconds{chaos_lease()} >= limits::lease) {
    CHECK_FALSE(found.elsewhere_s.empty());
    CHECK(percentile(found.elsewhere_s, 0.99) <= rescue_bound_s(chaos_lease()));
  }
  // Chaos in which nothing struck would show nothing.
  CHECK(lab.commits_cut() > 0);
  for (const auto& kind : lab.record().never) {
    INFO("never struck: " << kind);
    CHECK(kind.empty());
  }
}

} // namespace boyd::chaos_test
