#pragma once

#include "support/gate.hpp"

#include <nlohmann/json.hpp>

#include <chrono>
#include <cstddef>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

namespace boyd::test {

/// One request as it came.
struct model_request {
  std::size_t number = 0;     ///< of this endpoint's, from 0
  std::size_t connection = 0; ///< of this endpoint's, from 0
  std::string method;
  std::string path;                                         ///< with the query
  std::vector<std::pair<std::string, std::string>> headers; ///< names in lower case
  std::string body;
  nlohmann::json json; ///< the body; discarded when it is no JSON

  /// The first header of this name (lower case); "" when there is none.
  std::string header(std::string_view name) const;
};

/// How the end of the body is told.
enum class framing {
  automatic,   ///< length, or chunked for an event stream and for what has no end
  length,      ///< Content-Length: the bytes of all steps, also of those after a drop
  chunked,     ///< each step is a chunk
  until_close, ///< the connection's end is the body's
  raw,         ///< no head at all: the steps are what is sent
};

/// An answer, as steps that are done one after the other.
struct model_answer {
  struct bytes {
    std::string text;
  };
  struct wait_at {
    gate_ptr at;
  };
  struct repeat {
    std::string text;
    std::size_t times = 0; ///< 0: without end
  };
  struct drip {
    std::string text;
    std::size_t piece = 1;
    std::chrono::milliseconds every{10};
  };
  struct drop {
    bool reset = false; ///< RST instead of FIN
  };
  using step = std::variant<bytes, wait_at, repeat, drip, drop>;

  int status = 200;
  std::vector<std::pair<std::string, std::string>> headers;
  framing end = framing::automatic;
  gate_ptr before_head; ///< the head, too, waits here
  std::vector<step> steps;

  model_answer& header(std::string name, std::string value);
  model_answer& send(std::string text);
  /// The rest waits for the test.
  model_answer& wait(gate_ptr at);
  /// The same again and again; `times` 0: until the client hangs up.
  model_answer& send_repeated(std::string text, std::size_t times = 0);
  /// Few bytes at a time, by the endpoint's own timer.
  model_answer& send_slowly(std::string text, std::size_t piece, std::chrono::milliseconds every);
  /// Closes the connection in the middle.
  model_answer& hang_up();
  model_answer& hang_up_rudely();
};

/// What to answer; called on the endpoint's thread, must not block.
using model_handler = std::function<model_answer(const model_request&)>;

/// A real HTTP/1.1 server on loopback: an OpenAI-compatible endpoint that does what the test says,
/// good or bad. One thread, any number of connections; they are kept alive. What to answer is asked
/// when the whole request is there. See model_answers.hpp for the usual answers. Threads: any.
class model_endpoint {
 public:
  /// Answers by `handler`; without one by the scripted answers in turn.
  explicit model_endpoint(model_handler handler = {});
  ~model_endpoint();
  model_endpoint(const model_endpoint&) = delete;
  model_endpoint& operator=(const model_endpoint&) = delete;

  /// E.g. "http://127.0.0.1:4711".
  std::string origin() const;
  /// What a provider's `base_url` is: origin() + "/v1".
  std::string base_url() const;

  /// From the next request on.
  void handle_with(model_handler handler);
  /// One more scripted answer for a POST. When none is left the answer is 500; GET …/models lists
  /// one model, "test-model".
  model_endpoint& then(model_answer answer);

  /// All requests so far.
  std::vector<model_request> requests() const;
  std::size_t requests_count() const;
  /// Waits, bounded, until `n` requests have come.
  bool wait_for_requests(std::size_t n) const;
  /// Connections made so far, and those that are open now.
  std::size_t connections_made() const;
  std::size_t connections_open() const;
  /// Waits, bounded, until exactly `n` connections are open.
  bool wait_for_open_connections(std::size_t n) const;
  /// Keeps no more requests from here on, only their number: for tests of many.
  void keep_no_requests();

 private:
  class server;
  std::unique_ptr<server> server_;
};

} // namespace boyd::test
