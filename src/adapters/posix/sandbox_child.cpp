#include "sandbox_child.hpp"

#include "../unique_fd.hpp"
#include "sandbox_grants.hpp"
#include "sandbox_kernel.hpp"
#include "sandbox_mounts.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <fcntl.h>
#include <linux/capability.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

namespace boyd::adapters {

namespace {

/// What root keeps: rights over files, which the sandbox confines. Everything else could undo it
/// (mounts, modules, raw devices, limits, other users' identities).
constexpr std::array kept_capabilities{CAP_CHOWN, CAP_DAC_OVERRIDE, CAP_FOWNER, CAP_FSETID,
                                       CAP_KILL};
constexpr int most_capabilities = 64;
/// Mounts that are made for one program.
constexpr std::size_t most_mounts = 128;

int limit(__rlimit_resource resource, std::uint64_t value) {
  rlimit present{};
  if (::getrlimit(resource, &present) != 0)
    return errno;
  // A limit that is stricter already stays.
  const rlimit wanted{std::min<rlim_t>(value, present.rlim_max),
                      std::min<rlim_t>(value, present.rlim_max)};
  return ::setrlimit(resource, &wanted) == 0 ? 0 : errno;
}

int set_limits(const sandbox_limits& l) {
  const std::pair<__rlimit_resource, std::uint64_t> wanted[] = {
      {RLIMIT_DATA, l.memory},       {RLIMIT_FSIZE, l.file_size}, {RLIMIT_NPROC, l.processes},
      {RLIMIT_NOFILE, l.open_files}, {RLIMIT_CPU, l.cpu_seconds},
  };
  for (const auto& [resource, value] : wanted)
    if (value > 0)
      if (const int failed = limit(resource, value); failed != 0)
        return failed;
  return limit(RLIMIT_CORE, 0);
}

/// The program is executed as root without them; before that this process itself needs some.
int drop_capabilities(sandbox_kind kind) {
  if (::geteuid() != 0)
    return 0;
  for (int number = 0; number < most_capabilities; ++number) {
    // Bubblewrap, as root, makes a namespace with it, and drops it for the program.
    const bool for_namespace = kind == sandbox_kind::bubblewrap && number == CAP_SETFCAP;
    if (for_namespace || std::ranges::find(kept_capabilities, number) != kept_capabilities.end())
      continue;
    if (::prctl(PR_CAPBSET_READ, number) != 1)
      continue; // not known to this kernel, or gone already
    // Root without the right to give rights up (in a container) had few of them given.
    if (::prctl(PR_CAPBSET_DROP, number) != 0 && errno != EPERM)
      return errno;
  }
  return 0;
}

void make_read_only(const char* place) {
  constexpr unsigned long again = MS_REMOUNT | MS_BIND | MS_RDONLY | MS_NOSUID | MS_NODEV;
  if (::mount(place, place, nullptr, MS_BIND | MS_REC, nullptr) == 0)
    (void)::mount(nullptr, place, nullptr, again, nullptr);
}

/// Root's programs could set how the kernel works (what runs at a crash, for one): without Landlock
/// or bubblewrap a namespace of mounts makes that read-only. Where root may not make one (in a
/// container) these are read-only already.
void cover_kernel_settings() {
  if (::geteuid() != 0 || ::unshare(CLONE_NEWNS) != 0)
    return;
  const auto keep_here = [](const char* path) {
    return ::mount(nullptr, path, nullptr, MS_REC | MS_SLAVE, nullptr) == 0;
  };
  // In a chroot the root is mostly no mount, but the kernel's file systems are.
  const bool all = keep_here("/");
  for (const std::string_view file_system : {"/proc/", "/sys/"}) {
    if (!all && !keep_here(std::string(file_system).c_str()))
      continue;
    for (const char* place : kernel_settings)
      if (std::string_view(place).starts_with(file_system))
        make_read_only(place);
  }
}

int make_scratch(const std::string& path) {
  if (path.empty())
    return 0;
  const auto parent = path.substr(0, path.rfind('/'));
  constexpr mode_t own = 0700;
  if (::mkdir(parent.c_str(), own) != 0 && errno != EEXIST)
    return errno;
  if (::mkdir(path.c_str(), own) != 0 && errno != EEXIST)
    return errno;
  return 0;
}

/// Of the writable paths those that end with a slash are directories that a program would make in
/// one that it may not write. What cannot be made is not there, and grants nothing. Nothing is made
/// directly below / or /home: a person's home that is missing stays so.
void make_directories(const std::vector<std::string>& paths) {
  constexpr mode_t own = 0700;
  for (const auto& path : paths) {
    if (!path.ends_with('/'))
      continue;
    auto at = path.find('/', path.starts_with("/home/") ? 6 : 1);
    while (at != std::string::npos && (at = path.find('/', at + 1)) != std::string::npos)
      if (::mkdir(path.substr(0, at).c_str(), own) != 0 && errno != EEXIST)
        break;
  }
}

/// What may be written stays so, but for what must not be written in it.
int mount_apart_for(const sandbox_spec& spec) {
  std::vector<std::string> writable;
  for (auto& grant : grants_of(spec))
    if (grant.writable)
      writable.push_back(std::move(grant.path));
  if (writable.size() > most_mounts) { // Landlock tells apart what lies in them
    writable.clear();
    for (const auto& path : spec.writable)
      if (auto real = granted_path(spec, path); !real.empty())
        writable.push_back(std::move(real));
    if (!spec.scratch.empty())
      writable.push_back(real_path(spec.scratch));
  }
  std::vector<std::string> read_only;
  for (const auto* paths : {&spec.hidden, &spec.read_only})
    for (const auto& path : *paths) {
      auto real = real_path(path);
      const auto holds = [&](const auto& w) { return !real.empty() && is_within(real, w); };
      if (std::ranges::any_of(writable, holds))
        read_only.push_back(std::move(real));
    }
  return mount_apart(writable, read_only);
}

int confine_files(const sandbox_spec& spec) {
  const auto handled = landlock::rights_of(spec.landlock_abi);
  landlock::ruleset_attributes attributes;
  attributes.handled_files = handled;
  const bool ports = !spec.ports.empty() && spec.landlock_abi >= landlock::abi_of_ports;
  if (ports || (!spec.network && spec.landlock_abi >= landlock::abi_of_ports))
    attributes.handled_network = landlock::bind_tcp | landlock::connect_tcp;
  if (spec.landlock_abi >= landlock::abi_of_scopes)
    attributes.scoped = landlock::scope_signals | landlock::scope_abstract_sockets;
  const unique_fd rules(landlock::create(attributes, spec.landlock_abi));
  if (!rules)
    return errno;
  for (const auto& grant : grants_of(spec)) {
    const auto wanted = grant.writable ? landlock::write_rights : landlock::read_rights;
    const unique_fd at(::open(grant.path.c_str(), O_PATH | O_CLOEXEC | O_NOFOLLOW));
    struct stat info {};
    if (!at || ::fstat(at.get(), &info) != 0)
      continue; // what went away meanwhile needs no grant
    const auto fitting = S_ISDIR(info.st_mode) ? wanted : wanted & landlock::file_rights;
    if (landlock::allow(rules.get(), at.get(), fitting & handled) != 0)
      return errno;
  }
  for (const auto port : spec.ports)
    if (ports && landlock::allow_port(rules.get(), port) != 0)
      return errno;
  return landlock::restrict_self(rules.get()) == 0 ? 0 : errno;
}

} // namespace

int make_places(const sandbox_spec& spec) {
  if (const int failed = make_scratch(spec.scratch); failed != 0)
    return failed;
  make_directories(spec.writable);
  return 0;
}

int enter_sandbox(const sandbox_spec& spec) {
  if (const int failed = set_limits(spec.limits); failed != 0)
    return failed;
  if (spec.kind == sandbox_kind::limits)
    cover_kernel_settings();
  if (spec.own_mounts)
    if (const int failed = mount_apart_for(spec); failed != 0)
      return failed;
  if (const int failed = drop_capabilities(spec.kind); failed != 0)
    return failed;
  if (::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0)
    return errno;
  if (spec.kind == sandbox_kind::landlock)
    if (const int failed = confine_files(spec); failed != 0)
      return failed;
  // Bubblewrap has a network of its own to give; it must make that first.
  // So are its processes: others have no number there.
  const bool bubblewrap = spec.kind == sandbox_kind::bubblewrap;
  return filter_calls({.no_local_sockets = !spec.unix_sockets,
                       .no_network = !spec.network && !bubblewrap,
                       .no_other_processes = !bubblewrap,
                       .no_signals = !bubblewrap && spec.landlock_abi < landlock::abi_of_scopes});
}

} // namespace boyd::adapters
