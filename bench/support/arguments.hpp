#pragma once

#include "boyd/core/result.hpp"

#include <cstddef>
#include <map>
#include <string>
#include <vector>

namespace boyd::bench {

/// The command line of a benchmark: "--key value" pairs and bare "--flag"s.
class arguments {
 public:
  /// `invalid_argument` for a name that is in neither list, or a value that is missing.
  static result<arguments> parse(int argc, char** argv, const std::vector<std::string>& keys,
                                 const std::vector<std::string>& flags);

  bool has(const std::string& flag) const { return values_.count(flag) > 0; }
  std::string text(const std::string& key, const std::string& otherwise) const;
  /// A number from `least` to `most`, or `otherwise` when the key is not given; ends the process
  /// with a message when it is no such number.
  std::size_t number(const std::string& key, std::size_t otherwise, std::size_t most,
                     std::size_t least = 1) const;

 private:
  std::map<std::string, std::string> values_;
};

} // namespace boyd::bench
