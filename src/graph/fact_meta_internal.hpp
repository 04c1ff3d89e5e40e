#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace boyd::graph {

/// The members of a fact's meta. Reads what Boyd writes without making a JSON value of it.
class fact_meta {
 public:
  explicit fact_meta(std::string_view json);

  /// Empty: there is none, or it is no text.
  std::string text(std::string_view key) const;
  bool flag(std::string_view key) const;
  bool has(std::string_view key) const { return raw(key) != nullptr; }
  std::optional<double> number(std::string_view key) const;

 private:
  const std::string* raw(std::string_view key) const;

  std::vector<std::pair<std::string, std::string>> members_; ///< values as JSON
};

} // namespace boyd::graph
