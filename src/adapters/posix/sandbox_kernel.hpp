#pragma once

#include <cstdint>

/// The kernel's own words for a sandbox. The headers of the system that Boyd is built on may be
/// older than the kernel it runs on, so numbers stand here.
namespace boyd::adapters {

namespace landlock {

using rights = std::uint64_t;

inline constexpr rights execute = 1u << 0;
inline constexpr rights write_file = 1u << 1;
inline constexpr rights read_file = 1u << 2;
inline constexpr rights read_directory = 1u << 3;
inline constexpr rights remove_directory = 1u << 4;
inline constexpr rights remove_file = 1u << 5;
inline constexpr rights make_char = 1u << 6;
inline constexpr rights make_directory = 1u << 7;
inline constexpr rights make_regular = 1u << 8;
inline constexpr rights make_socket = 1u << 9;
inline constexpr rights make_fifo = 1u << 10;
inline constexpr rights make_block = 1u << 11;
inline constexpr rights make_symlink = 1u << 12;
inline constexpr rights refer = 1u << 13;        ///< ABI 2: links and renames between directories
inline constexpr rights truncate = 1u << 14;     ///< ABI 3
inline constexpr rights ioctl_device = 1u << 15; ///< ABI 5

inline constexpr rights read_rights = execute | read_file | read_directory;
/// Device files are made by nobody.
inline constexpr rights write_rights = read_rights | write_file | remove_directory | remove_file |
                                       make_directory | make_regular | make_socket | make_fifo |
                                       make_symlink | refer | truncate | ioctl_device;
/// Those that mean something for what is no directory.
inline constexpr rights file_rights = execute | write_file | read_file | truncate | ioctl_device;

inline constexpr std::uint64_t bind_tcp = 1u << 0;
inline constexpr std::uint64_t connect_tcp = 1u << 1;
inline constexpr std::uint64_t scope_abstract_sockets = 1u << 0;
inline constexpr std::uint64_t scope_signals = 1u << 1;

inline constexpr int abi_of_truncate = 3;
inline constexpr int abi_of_ports = 4;
inline constexpr int abi_of_scopes = 6;

/// As the kernel reads it; older ones a shorter part.
struct ruleset_attributes {
  std::uint64_t handled_files = 0;
  std::uint64_t handled_network = 0;
  std::uint64_t scoped = 0;
};

/// 0: the kernel has none.
int abi();

/// All rights that a kernel of this ABI can refuse.
rights rights_of(int abi);

/// The descriptor of a new ruleset; -1 and errno.
int create(const ruleset_attributes& attributes, int abi);

/// 0, or -1 and errno.
int allow(int rules, int path, rights what);
int allow_port(int rules, std::uint16_t port);
int restrict_self(int rules);

} // namespace landlock

struct call_filter {
  bool no_local_sockets = false; ///< AF_UNIX; pairs stay
  bool no_network = false;       ///< every family but netlink
  /// Tracing, memory, limits, priorities and processors of processes other than the caller itself,
  /// and the user's keys. A process that names itself by its number is refused, too.
  bool no_other_processes = false;
  bool no_signals = false; ///< beside it: signals to all at once, and by descriptors
};

/// Whether system calls can be filtered here.
bool can_filter_calls();

/// 0, or an errno. Also refuses what could go around it: io_uring, and system calls of another
/// architecture than the program's own.
int filter_calls(const call_filter& filter);

} // namespace boyd::adapters
