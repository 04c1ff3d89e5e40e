#pragma once

#include <string>

namespace boyd::adapters {

/// The process host: a small single-threaded process, child of the node and parent of everything
/// that the node starts. Why it exists:
///  * PR_SET_PDEATHSIG follows the thread that forked, not the process (FAULTS.md, fact 12): the
///    forking thread must live as long as the node, and this process has only one;
///  * it is a subreaper: what a child leaves behind (setsid, double fork) becomes its child, can be
///    found and is ended with its run;
///  * when the node dies by kill -9, the control socket reaches its end, the host ends every
///    descendant and exits; until then it holds the home's lock;
///  * forking a small process is cheap and needs no care for the node's threads.
///
/// The node starts it by executing its own program as `PROGRAM __process-host NONCE FILES`, with
/// the control socket as descriptor 3 and the lock, if any, as descriptor 4. The adapter looks at
/// the arguments in a constructor function, before main(): so it works for every executable that
/// links the adapter, test programs with a foreign main() included, and no static object of the
/// program matters. Signals that end the node (TERM, INT, HUP) are ignored: the host's life depends
/// on the socket alone.
///
/// Serves requests until the socket's end; returns the exit code. `nonce` is what the values of
/// BOYD_RUN begin with, `open_files` the soft limit of open files that children get; 0: as this
/// process has it.
int process_host_main(int control_fd, const std::string& nonce, unsigned long open_files);

/// The hidden argument.
extern const char* const process_host_argument;

} // namespace boyd::adapters
