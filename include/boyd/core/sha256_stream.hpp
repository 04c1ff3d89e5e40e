#pragma once

#include <memory>
#include <string>
#include <string_view>

namespace boyd {

/// As sha256_hex, of bytes that come in parts. Not copyable; one thread.
class sha256_stream {
 public:
  sha256_stream();
  ~sha256_stream();
  sha256_stream(const sha256_stream&) = delete;
  sha256_stream& operator=(const sha256_stream&) = delete;

  void append(std::string_view bytes);
  /// Of all bytes so far; nothing may be appended afterwards.
  std::string hex();

 private:
  struct state;
  std::unique_ptr<state> state_;
};

} // namespace boyd
