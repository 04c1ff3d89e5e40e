#pragma once

#include "boyd/core/time.hpp"
#include "boyd/exec/output_keeper.hpp"
#include "boyd/ports/process_runner.hpp"

#include <cstddef>
#include <cstdint>
#include <mutex>
#include <string>
#include <string_view>

namespace boyd {

/// How much of a probe's stderr is kept for the message about its failure; bytes.
inline constexpr std::size_t probe_diagnostics_bytes = 2u << 10;

/// What a short helper program left behind.
struct probe_outcome {
  std::string output;      ///< stdout, capped; says in a line of its own what is missing
  std::uint64_t total = 0; ///< bytes that stdout had
  std::string diagnostics; ///< stderr, capped
  process_exit exit;
  bool timed_out = false;
  milliseconds timeout{0};
};

/// Why the outcome cannot be used, in one line; empty: it can.
std::string problem_of(const probe_outcome& outcome);

/// Takes the output in from the runner's thread. Threads: any.
class probe_output {
 public:
  explicit probe_output(std::size_t cap) : cap_(cap), out_(cap), err_(probe_diagnostics_bytes) {}

  void append(output_stream stream, std::string_view bytes);

  /// Fills in what was collected.
  void render(probe_outcome& into) const;

 private:
  mutable std::mutex mutex_;
  std::size_t cap_;
  exec::output_keeper out_;
  exec::output_keeper err_;
};

} // namespace boyd
