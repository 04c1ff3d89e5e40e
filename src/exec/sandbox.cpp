#include "boyd/exec/sandbox.hpp"

#include "boyd/core/home_layout.hpp"
#include "boyd/faults/points.hpp"

#include <spdlog/spdlog.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <set>
#include <string_view>
#include <utility>

namespace boyd::exec {

namespace {

using mode_t = config::sandbox_settings::mode_t;
using network_t = config::sandbox_settings::network_t;

constexpr int abi_of_links = 2;
constexpr int abi_of_truncate = 3;
constexpr int abi_of_ports = 4;
constexpr int abi_of_scopes = 6;

/// Where nothing is said: far beyond what programs need, and an end to what runs away.
constexpr std::uint64_t usual_file_size = std::uint64_t{8} << 30;
constexpr std::uint64_t usual_processes = 8192;
constexpr std::uint64_t usual_open_files = 16384;

/// Programs, libraries and what they are set up with. Names of people's own files are none of them.
constexpr std::array system_readable = {"/usr",
                                        "/bin",
                                        "/sbin",
                                        "/lib",
                                        "/lib32",
                                        "/lib64",
                                        "/libx32",
                                        "/etc",
                                        "/opt",
                                        "/nix/store",
                                        "/snap",
                                        "/proc",
                                        "/sys",
                                        "/run/systemd/resolve",
                                        "/run/resolvconf",
                                        "/var/lib/dpkg/alternatives"};

constexpr std::array system_devices = {"/dev/null",    "/dev/zero", "/dev/full", "/dev/random",
                                       "/dev/urandom", "/dev/tty",  "/dev/ptmx", "/dev/pts"};

/// Of the system, for a node that runs as root: an ordinary user cannot read them anyway.
constexpr std::array system_secrets = {"/etc/shadow",   "/etc/shadow-",    "/etc/gshadow",
                                       "/etc/gshadow-", "/etc/sudoers",    "/etc/sudoers.d",
                                       "/etc/ssh",      "/etc/ssl/private"};

std::string value_of(const process_spec& process, std::string_view name) {
  for (const auto& [known, value] : process.environment)
    if (known == name)
      return value;
  return {};
}

void set_variable(process_spec& process, const std::string& name, std::string value) {
  for (auto& [known, old] : process.environment)
    if (known == name) {
      old = std::move(value);
      return;
    }
  process.environment.emplace_back(name, std::move(value));
}

void add_default(process_spec& process, const std::string& name, std::string value) {
  if (value_of(process, name).empty())
    set_variable(process, name, std::move(value));
}

std::string parent_of(const std::string& path) {
  const auto slash = path.rfind('/');
  return slash == std::string::npos || slash == 0 ? "/" : path.substr(0, slash);
}

std::string name_of(const std::string& path) {
  return path.substr(path.rfind('/') + 1);
}

std::string without_slash(std::string path) {
  while (path.size() > 1 && path.ends_with('/'))
    path.pop_back();
  return path;
}

bool is_within(const std::string& path, const std::string& above) {
  return path == above || path.starts_with(above == "/" ? above : above + '/');
}

/// Version managers and packages keep programs in `bin` or `shims` and what these need beside it:
/// then the directory above is readable, too, unless it is a person's own.
void add_programs_in(const std::string& directory, const std::string& home,
                     std::vector<std::string>& readable) {
  if (!directory.starts_with('/') || directory == "/" || directory == home)
    return;
  readable.push_back(directory);
  const auto name = name_of(directory);
  const auto above = parent_of(directory);
  const bool personal = home.empty() || is_within(home, above) || above == "/root" ||
                        parent_of(above) == "/home" || above == home + "/.local" ||
                        above == home + "/.cargo";
  if ((name == "bin" || name == ".bin" || name == "shims") && !personal)
    readable.push_back(above);
  else if (above == home + "/.local")
    readable.push_back(above + "/lib");
}

/// The directories of PATH, and that of the program itself.
void add_programs(const process_spec& process, const std::string& home,
                  std::vector<std::string>& readable) {
  const auto path = value_of(process, "PATH");
  std::string_view rest = path;
  while (!rest.empty()) {
    const auto end = std::min(rest.find(':'), rest.size());
    add_programs_in(without_slash(std::string(rest.substr(0, end))), home, readable);
    rest.remove_prefix(std::min(end + 1, rest.size()));
  }
  if (process.argv.empty() || !process.argv.front().starts_with('/'))
    return;
  readable.push_back(process.argv.front());
  add_programs_in(parent_of(process.argv.front()), home, readable);
}

std::vector<std::string> readable_for(const process_spec& process,
                                      const config::sandbox_settings& settings,
                                      const sandbox_places& places) {
  std::vector<std::string> readable(system_readable.begin(), system_readable.end());
  const auto home = without_slash(value_of(process, "HOME"));
  add_programs(process, home, readable);
  if (home.size() > 1) // git ends with an error when it may not read them
    for (const char* file : {"/.gitconfig", "/.config/git"})
      readable.push_back(home + file);
  readable.insert(readable.end(), places.readable.begin(), places.readable.end());
  readable.insert(readable.end(), settings.readable.begin(), settings.readable.end());
  return readable;
}

/// `~/x` as the program's own; other relative paths mean nothing here.
void settle_paths(std::vector<std::string>& paths, const std::string& home) {
  for (auto& path : paths) {
    if (path.starts_with("~/"))
      path = home.empty() ? std::string() : home + path.substr(1);
  }
  std::erase_if(paths, [](const auto& path) { return !path.starts_with('/'); });
  std::set<std::string> seen;
  std::erase_if(paths, [&](const auto& path) { return !seen.insert(path).second; });
}

sandbox_kind kind_for(const config::sandbox_settings& settings, const sandbox_abilities& can) {
  const bool landlock = can.landlock_abi > 0;
  const bool bubblewrap = !can.bubblewrap.empty();
  if (settings.mode == mode_t::bubblewrap)
    return bubblewrap ? sandbox_kind::bubblewrap
           : landlock ? sandbox_kind::landlock
                      : sandbox_kind::limits;
  // Bubblewrap hides processes and files from calls that Landlock does not know (chmod, for one);
  // ports are Landlock's alone.
  const bool ports = settings.network == network_t::hosts && can.landlock_abi >= abi_of_ports;
  if (landlock && (settings.mode == mode_t::landlock || ports || !bubblewrap))
    return sandbox_kind::landlock;
  return bubblewrap ? sandbox_kind::bubblewrap : sandbox_kind::limits;
}

std::vector<std::uint16_t> ports_of(const std::vector<std::string>& hosts) {
  std::set<std::uint16_t> ports;
  for (const auto& host : hosts) {
    std::uint16_t port = 0;
    const auto* const end = host.data() + host.size();
    const auto* const begin = host.data() + host.rfind(':') + 1;
    if (std::from_chars(begin, end, port).ec == std::errc{} && port > 0)
      ports.insert(port);
  }
  return {ports.begin(), ports.end()};
}

/// What was asked for and does not hold, in words for the record.
class shortcomings {
 public:
  /// `essential`: with mode `required` there is no run without it.
  void add(std::string what, bool essential = true) {
    if (essential)
      essential_.push_back(what);
    all_.push_back(std::move(what));
  }
  const std::vector<std::string>& all() const { return all_; }
  const std::vector<std::string>& essential() const { return essential_; }

 private:
  std::vector<std::string> all_;
  std::vector<std::string> essential_;
};

void look_at_files(const config::sandbox_settings& settings, const sandbox_abilities& can,
                   sandbox_kind kind, shortcomings& lack) {
  if (kind == sandbox_kind::limits) {
    lack.add("files are not protected: this kernel has no Landlock, and " + can.bubblewrap_problem);
    return;
  }
  if (settings.mode == mode_t::bubblewrap && kind != sandbox_kind::bubblewrap)
    lack.add("Landlock instead of bubblewrap: " + can.bubblewrap_problem, false);
  if (settings.mode == mode_t::landlock && kind != sandbox_kind::landlock)
    lack.add("bubblewrap instead of Landlock: this kernel has none", false);
  if (kind != sandbox_kind::landlock)
    return;
  if (!can.own_mounts)
    lack.add(
        "modes, owners, times and attributes of other files of the same user can be changed "
        "(Landlock does not cover them, and programs cannot have their own mounts on this machine)",
        false);
  if (!can.seccomp)
    lack.add("limits and priorities of other processes of the same user can be changed: no system "
             "call filter on this machine");
  if (can.landlock_abi < abi_of_links)
    lack.add("all renames and links between directories are refused (Landlock before ABI 2)",
             false);
  if (can.landlock_abi < abi_of_truncate)
    lack.add("other files can be truncated by name (Landlock before ABI 3)");
  if (can.landlock_abi < abi_of_scopes)
    lack.add("signals to other processes of the same user (Landlock before ABI 6)", false);
}

/// A writable directory in which something must stay as it is, for what Landlock cannot except.
void look_at_repositories(const sandbox_spec& spec, shortcomings& lack) {
  if (spec.kind != sandbox_kind::landlock || spec.own_mounts)
    return;
  const auto writable = [&](const std::string& path) {
    return std::ranges::any_of(spec.writable, [&](const auto& w) { return is_within(path, w); });
  };
  const auto found = std::ranges::find_if(spec.read_only, writable);
  if (found != spec.read_only.end())
    lack.add(*found + " can be written: Landlock cannot exclude files of a writable directory, and "
                      "programs cannot have their own mounts on this machine (install bubblewrap)",
             false);
}

void look_at_sockets(const config::sandbox_settings& settings, const sandbox_abilities& can,
                     sandbox_kind kind, shortcomings& lack) {
  if (!can.seccomp && !settings.unix_sockets && kind != sandbox_kind::bubblewrap)
    lack.add("programs can connect to local sockets, including the node's: no system call filter "
             "on this machine");
  if (settings.network == network_t::none && !can.seccomp && kind != sandbox_kind::bubblewrap)
    lack.add(can.landlock_abi >= abi_of_ports && kind == sandbox_kind::landlock
                 ? "network: only TCP is blocked (no system call filter on this machine)"
                 : "network: open (no system call filter on this machine)");
  if (settings.network != network_t::hosts)
    return;
  if (kind == sandbox_kind::landlock && can.landlock_abi >= abi_of_ports)
    lack.add("network: TCP is limited to the ports of `hosts`, not to the hosts; UDP is open");
  else
    lack.add("network: open; Landlock limits ports only since ABI 4");
}

void look_at_limits(const sandbox_abilities& can, shortcomings& lack) {
  if (can.root)
    lack.add("running as root: the process limit does not apply (sandbox.processes)", false);
}

sandbox_limits limits_of(const config::sandbox_settings& settings) {
  const auto given = [](std::uint64_t value, std::uint64_t otherwise) {
    return value > 0 ? value : otherwise;
  };
  return {settings.memory, given(settings.file_size, usual_file_size),
          given(settings.processes, usual_processes), given(settings.open_files, usual_open_files),
          static_cast<std::uint64_t>(std::chrono::ceil<seconds>(settings.cpu).count())};
}

std::string joined(const std::vector<std::string>& texts) {
  std::string all;
  for (const auto& text : texts)
    all += (all.empty() ? "" : "; ") + text;
  return all;
}

std::string_view name_of(sandbox_kind kind) {
  switch (kind) {
  case sandbox_kind::landlock:
    return "landlock";
  case sandbox_kind::bubblewrap:
    return "bwrap";
  case sandbox_kind::limits:
    break;
  }
  return "limits";
}

} // namespace

std::vector<std::string> hidden_from_agents(const config::configuration& c,
                                            const std::string& home) {
  std::vector<std::string> hidden{home};
  const auto add = [&](const std::string& path) {
    if (path.starts_with('/'))
      hidden.push_back(path);
  };
  add(c.path);
  add(c.node_settings.store_password_file);
  for (const auto& p : c.providers)
    add(p.api_key_file);
  hidden.insert(hidden.end(), system_secrets.begin(), system_secrets.end());
  return hidden;
}

std::vector<std::string> read_only_for_agents(const config::configuration& c,
                                              const std::string& home) {
  std::vector<std::string> all;
  for (const auto& k : c.kernels) {
    const auto kernel_home = home_layout(home).kernel(k.kernel_id) + "/";
    all.push_back(kernel_home + ".git");
    all.push_back(kernel_home + "context"); // references that all agents are given
    for (const auto& file : k.protected_files)
      all.push_back(kernel_home + file);
  }
  return all;
}

std::string scratch_of(const run_identity& who) {
  return home_layout(who.home).scratch() + "/" + who.dispatch_id + "-" + std::to_string(who.fence);
}

result<sandbox_report> confine(process_spec& process, const config::sandbox_settings& settings,
                               const sandbox_abilities& can, const sandbox_places& places,
                               const run_identity& who) {
  if (settings.mode == mode_t::off)
    return sandbox_report{"off"};
  const auto kind = kind_for(settings, can);
  shortcomings lack;
  look_at_files(settings, can, kind, lack);
  look_at_sockets(settings, can, kind, lack);
  look_at_limits(can, lack);
  if (settings.mode == mode_t::required && !lack.essential().empty())
    return fail(errc::refused, "the required sandbox is not available: " + joined(lack.essential()),
                "sandbox.mode of agent " + who.agent_id,
                "install bubblewrap, use a newer kernel, or require less; boyd doctor shows what "
                "this machine supports");
  auto spec = std::make_shared<sandbox_spec>();
  spec->own_mounts = kind == sandbox_kind::landlock && can.own_mounts;
  spec->kind = kind;
  spec->landlock_abi = kind == sandbox_kind::landlock ? can.landlock_abi : 0;
  spec->bubblewrap = kind == sandbox_kind::bubblewrap ? can.bubblewrap : std::string();
  spec->readable = readable_for(process, settings, places);
  spec->writable.assign(system_devices.begin(), system_devices.end());
  spec->writable.insert(spec->writable.end(), places.writable.begin(), places.writable.end());
  spec->writable.insert(spec->writable.end(), settings.writable.begin(), settings.writable.end());
  const auto home = without_slash(value_of(process, "HOME"));
  settle_paths(spec->readable, home);
  settle_paths(spec->writable, home);
  std::erase_if(spec->writable, [&](const auto& path) {
    return std::ranges::find(places.closed, without_slash(path)) != places.closed.end();
  });
  spec->hidden = places.hidden;
  spec->read_only = places.read_only;
  look_at_repositories(*spec, lack);
  if (kind != sandbox_kind::limits)
    spec->scratch = scratch_of(who);
  spec->network = settings.network != network_t::none;
  spec->unix_sockets = settings.unix_sockets;
  if (settings.network == network_t::hosts)
    spec->ports = ports_of(settings.hosts);
  spec->limits = limits_of(settings);
  if (!spec->scratch.empty()) {
    set_variable(process, "TMPDIR", spec->scratch);
    add_default(process, "XDG_CACHE_HOME", spec->scratch + "/cache");
    add_default(process, "npm_config_cache", spec->scratch + "/cache/npm");
  }
  sandbox_report report{std::string(name_of(kind)), {}, lack.all()};
  if (spec->landlock_abi > 0)
    report.abi = spec->landlock_abi;
  process.sandbox = std::move(spec);
  return report;
}

void remove_scratch(process_runner& processes, const std::string& scratch) {
  process_spec rm;
  rm.argv = {"/bin/rm", "-rf", "--", scratch};
  rm.cwd = "/";
  result<void> removed = faults::pass("sandbox.remove");
  if (removed)
    if (auto started = processes.start(std::move(rm), {}); !started)
      removed = fail(std::move(started.error()));
  if (!removed)
    spdlog::warn("{} cannot be removed until the next start: {}", scratch,
                 to_string(removed.error()));
}

std::string describe(const sandbox_abilities& can) {
  std::string text = can.landlock_abi > 0 ? "Landlock ABI " + std::to_string(can.landlock_abi)
                                          : std::string("no Landlock");
  text += can.seccomp ? ", seccomp" : ", no seccomp";
  text += can.bubblewrap.empty() ? ", " + can.bubblewrap_problem : ", " + can.bubblewrap;
  if (can.landlock_abi > 0 && can.bubblewrap.empty() && !can.own_mounts)
    text += "; modes, owners and times of other files can be changed";
  if (can.root)
    text += "; running as root: the process limit does not apply (sandbox.processes)";
  return text;
}

} // namespace boyd::exec
