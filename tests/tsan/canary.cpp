// A run of ThreadSanitizer that finds nothing proves nothing: does it see a race between actors,
// and none where messages alone keep the order? The first shows that the product's code is watched,
// the second that CAF's own edges are known (with a CAF that is not instrumented there are dozens
// of reports).

#include "messages/message.hpp"

#include <caf/actor_system.hpp>
#include <caf/actor_system_config.hpp>
#include <caf/event_based_actor.hpp>
#include <caf/scoped_actor.hpp>
#include <caf/send.hpp>

#include <chrono>
#include <cstdio>
#include <memory>
#include <vector>

namespace {

struct baton : boyd::message {
  std::shared_ptr<int> carried;
};

int owned_by_nobody = 0;

caf::behavior runner(caf::event_based_actor* /*self*/, bool races) {
  return {[races](baton& m) {
    if (races)
      ++owned_by_nobody;
    return ++*m.carried;
  }};
}

} // namespace

int main(int argc, char** /*argv*/) {
  constexpr int rounds = 1'000;
  const bool races = argc > 1;
  caf::actor_system_config configuration;
  configuration.set("scheduler.max-threads", 4);
  caf::actor_system system(configuration);
  caf::scoped_actor self(system);
  const std::vector<caf::actor> all{system.spawn(runner, races), system.spawn(runner, races),
                                    system.spawn<caf::detached>(runner, races),
                                    system.spawn<caf::detached>(runner, races)};
  // From one to the next: everybody writes the same number, each after the other.
  const auto carried = std::make_shared<int>(0);
  for (int i = 0; i < rounds; ++i)
    for (const auto& one : all)
      self->request(one, std::chrono::minutes{1}, baton{{}, carried})
          .receive([](int) {}, [](caf::error&) {});
  // All at once: each its own number, and one that is everybody's.
  if (races)
    for (int i = 0; i < rounds; ++i)
      for (const auto& one : all)
        self->send(one, baton{{}, std::make_shared<int>(0)});
  for (const auto& one : all)
    self->send_exit(one, caf::exit_reason::user_shutdown);
  std::printf("%d messages in order\n", *carried);
  return *carried == rounds * static_cast<int>(all.size()) ? 0 : 1;
}
