#pragma once

#include "boyd/exec/output_keeper.hpp"
#include "boyd/ports/process_runner.hpp"

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

namespace boyd::exec {

/// What programs of runs under way have written so far, for whoever asks. It is read from the
/// memory of their attempts when somebody does; until then nothing is copied. Threads: any.
class running_outputs {
 public:
  /// Of one stream, so many bytes are given at a time.
  static constexpr std::size_t part_bytes = 256u << 10;

  /// A run that can be asked.
  struct source {
    std::int64_t fence = 0;           ///< of the attempt
    std::vector<std::string> secrets; ///< as config::redact_text takes them
    /// As output_keeper::since of that stream; must not block.
    std::function<output_keeper::piece(output_stream stream, std::uint64_t offset,
                                       std::size_t limit)>
        read;
  };

  struct part {
    std::string text;          ///< whole lines, without secrets; valid UTF-8
    std::uint64_t next = 0;    ///< where the next part begins, in bytes of the stream
    std::uint64_t missing = 0; ///< bytes before `text` that are not kept

    bool operator==(const part&) const = default;
  };

  struct view {
    std::int64_t fence = 0;
    part out;
    part err;
  };

  /// Where to read on: bytes of each stream.
  struct position {
    std::uint64_t out = 0;
    std::uint64_t err = 0;
  };

  /// Announces a run; it is known until the last copy of what is returned is gone. Of two with one
  /// id the later one is known.
  [[nodiscard]] std::shared_ptr<const void> add(const std::string& dispatch_id, source from);

  /// Nothing: no program of this dispatch runs here.
  std::optional<view> read(const std::string& dispatch_id, position from) const;

 private:
  using entry = std::shared_ptr<const source>;
  struct table {
    std::mutex mutex;
    std::map<std::string, entry> runs;
  };

  std::shared_ptr<table> table_ = std::make_shared<table>();
};

} // namespace boyd::exec
