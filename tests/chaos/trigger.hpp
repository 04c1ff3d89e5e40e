#pragma once

#include <optional>
#include <string>

namespace boyd::test {

/// A cycle that is asked for over a home's control socket and not waited for: the node may be
/// stopped, or killed before it answers.
class trigger {
 public:
  explicit trigger(const std::string& home);
  ~trigger();
  trigger(trigger&& other) noexcept;
  trigger& operator=(trigger&& other) noexcept;

  /// Takes what has come; true when there will be no more.
  bool ended();
  /// The cycle, once the node has said that it is admitted: then its slot is in the database.
  std::optional<std::string> admitted() const;
  /// What was answered, head and body.
  const std::string& answer() const { return answer_; }

 private:
  int fd_ = -1;
  std::string answer_;
};

} // namespace boyd::test
