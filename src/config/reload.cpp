#include "boyd/config/reload.hpp"

#include <algorithm>
#include <tuple>

namespace boyd::config {

namespace {

auto home_settings(const kernel& k) {
  return std::tie(k.name, k.author_name, k.author_email, k.auto_commit, k.memory, k.learning);
}

} // namespace

std::vector<std::string> waiting_for_restart(const configuration& started_with,
                                             const configuration& now) {
  const auto& before = started_with.node_settings;
  const auto& after = now.node_settings;
  std::vector<std::string> keys;
  if (before.store != after.store)
    keys.emplace_back("node.store");
  if (before.store_password_file != after.store_password_file)
    keys.emplace_back("node.store_password_file");
  if (before.chaos != after.chaos)
    keys.emplace_back("node.chaos");
  return keys;
}

bool home_settings_differ(const configuration& known, const configuration& now) {
  // A kernel that the keepers have never heard of gets the defaults from them.
  static const kernel unknown;
  // They know what must not be written anywhere.
  if (known.secrets != now.secrets)
    return true;
  return std::ranges::any_of(now.kernels, [&](const kernel& k) {
    const auto* before = known.find_kernel(k.kernel_id);
    return home_settings(before == nullptr ? unknown : *before) != home_settings(k);
  });
}

} // namespace boyd::config
