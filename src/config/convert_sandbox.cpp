#include "convert_sandbox.hpp"

#include "reading.hpp"

#include <array>
#include <utility>

namespace boyd::config {

namespace {

using mode_t = sandbox_settings::mode_t;
using network_t = sandbox_settings::network_t;

constexpr std::array<std::pair<std::string_view, mode_t>, 5> modes{
    {{"auto", mode_t::automatic},
     {"landlock", mode_t::landlock},
     {"bwrap", mode_t::bubblewrap},
     {"off", mode_t::off},
     {"required", mode_t::required}}};

constexpr std::array<std::pair<std::string_view, network_t>, 3> networks{
    {{"allow", network_t::allow}, {"none", network_t::none}, {"hosts", network_t::hosts}}};

} // namespace

sandbox_settings sandbox_of(const pass& p, const tree& t, sandbox_settings outer) {
  auto out = std::move(outer);
  const auto given = [&](std::string_view key) { return t.find(key) != nullptr; };
  if (given("mode"))
    out.mode = choice(t, "mode", modes);
  if (given("scope"))
    out.commands = text(t, "scope") == "all";
  for (const auto& path : texts(t, "writable"))
    out.writable.push_back(resolve(p.path, path));
  for (const auto& path : texts(t, "readable"))
    out.readable.push_back(resolve(p.path, path));
  if (given("network"))
    out.network = choice(t, "network", networks);
  for (auto& host : texts(t, "hosts"))
    out.hosts.push_back(std::move(host));
  if (given("unix_sockets"))
    out.unix_sockets = flag(t, "unix_sockets");
  if (given("memory"))
    out.memory = size(t, "memory");
  if (given("file_size"))
    out.file_size = size(t, "file_size");
  if (given("processes"))
    out.processes = number<std::uint64_t>(t, "processes");
  if (given("open_files"))
    out.open_files = number<std::uint64_t>(t, "open_files");
  if (given("cpu"))
    out.cpu = duration(t, "cpu");
  return out;
}

} // namespace boyd::config
