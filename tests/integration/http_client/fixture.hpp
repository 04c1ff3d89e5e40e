#pragma once

#include "src/adapters/curl/http_client.hpp"
#include "support/model_answers.hpp"
#include "support/wait.hpp"

#include <cstddef>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

namespace boyd::test {

/// What came of one request. Threads: any.
class watched {
 public:
  http_events events();

  /// Waits, bounded, for its end; an error of its own when none comes.
  result<void> wait();
  /// Waits, bounded, until so many bytes of the body are there.
  bool wait_for_bytes(std::size_t n);
  bool wait_for_head();

  http_head head() const;
  std::string body() const;
  std::size_t bytes() const;
  bool ended() const;
  /// What came in which order: "h" head, "b" body (once in a row), "e" end.
  std::string order() const;
  /// Keeps only the number of bytes.
  void keep_no_body();

 private:
  struct state;
  std::shared_ptr<state> state_ = make();
  static std::shared_ptr<state> make();
};

/// A POST with a JSON body, as of a model.
http_request post(const std::string& url, std::string body = R"({"model":"test-model"})");
http_request get(const std::string& url);

/// Starts it and waits for the end.
struct answered {
  result<void> end;
  http_head head;
  std::string body;
  std::string order;
};
answered call(http_client& client, http_request request);

std::size_t threads_of_process();
std::size_t descriptors_of_process();
/// The value of /proc/self/status in KiB, e.g. "VmRSS".
std::size_t memory_of_process(const std::string& name);
/// Takes as many descriptors as the system gives; returns how many that are.
std::size_t raise_descriptor_limit();

} // namespace boyd::test
