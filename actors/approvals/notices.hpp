#pragma once

#include "actors/program/program.hpp"
#include "actors/support/node_context.hpp"
#include "boyd/ports/approval_operations.hpp"
#include "boyd/ports/http_client.hpp"

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>

namespace boyd::approving {

/// So many notices may be under way; what comes then is not told.
inline constexpr std::size_t most_notices = 100;
inline constexpr int notice_tries = 3;
inline constexpr milliseconds notice_limit = 30s;
/// Before the second try; twice that before the third.
inline constexpr milliseconds notice_again = 2s;

/// One new request as JSON: which agent asks, for which tool and why; nothing of what is to be
/// done.
std::string notice_json(const store::approval& row, const std::string& node);

/// Tells of new requests by webhook and by command. Never blocks. Its owner calls it on one thread;
/// `ended` comes from any.
class notices {
 public:
  /// One attempt is over; `why` empty: it went well. Must not block.
  using on_ended = std::function<void(std::uint64_t number, const std::string& why)>;

  notices(node_context_ptr context, on_ended ended);
  ~notices();
  notices(const notices&) = delete;
  notices& operator=(const notices&) = delete;

  /// The numbers of the notices that are under way for it from now on.
  std::vector<std::uint64_t> begin(const store::approval& row, const configuration_ptr& c);

  /// What to do after an attempt: nothing when it is over, else when to try again.
  std::optional<milliseconds> on_end(std::uint64_t number, const std::string& why);
  void again(std::uint64_t number);
  /// Looks after an attempt's program. Returns when to look again; nothing: no more.
  std::optional<milliseconds> look(std::uint64_t number);

  std::uint64_t sent() const { return sent_; }
  std::uint64_t failed() const { return failed_; }
  const std::string& last_error() const { return last_error_; }

 private:
  struct one {
    configuration_ptr configuration;
    bool command = false; ///< else the webhook
    std::string approval_id;
    std::string json;
    int tries = 0;
    std::optional<http_handle> call;
    std::unique_ptr<program> process;
  };

  void start(std::uint64_t number, one& n);
  void call(std::uint64_t number, one& n);
  void run(std::uint64_t number, one& n);
  void give_up(const one& n, const std::string& why);

  node_context_ptr context_;
  on_ended ended_;
  std::map<std::uint64_t, one> all_;
  std::uint64_t last_ = 0;
  std::uint64_t sent_ = 0;
  std::uint64_t failed_ = 0;
  std::string last_error_;
};

} // namespace boyd::approving
