#pragma once

#include <deque>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace boyd::graph {

/// The members of a fact's meta, whose text outlives it. Reads what Boyd writes without making a
/// JSON value of it.
class fact_meta {
 public:
  explicit fact_meta(std::string_view json);
  explicit fact_meta(std::string&&) = delete;
  fact_meta(const fact_meta&) = delete;
  fact_meta& operator=(const fact_meta&) = delete;

  /// Empty: there is none, or it is no text.
  std::string text(std::string_view key) const;
  bool flag(std::string_view key) const;
  bool has(std::string_view key) const { return raw(key).data() != nullptr; }
  std::optional<double> number(std::string_view key) const;

 private:
  /// A null view: there is none.
  std::string_view raw(std::string_view key) const;

  std::vector<std::pair<std::string_view, std::string_view>> members_; ///< values as JSON
  std::deque<std::string> made_; ///< what members look at that does not stand so in the text
};

} // namespace boyd::graph
