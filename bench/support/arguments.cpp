#include "bench/support/arguments.hpp"

#include <algorithm>
#include <charconv>
#include <cstdio>
#include <cstdlib>

namespace boyd::bench {

result<arguments> arguments::parse(int argc, char** argv, const std::vector<std::string>& keys,
                                   const std::vector<std::string>& flags) {
  arguments parsed;
  for (int i = 1; i < argc; ++i) {
    const std::string name = argv[i];
    if (std::ranges::find(flags, name) != flags.end()) {
      parsed.values_[name] = "yes";
    } else if (std::ranges::find(keys, name) != keys.end()) {
      if (++i >= argc)
        return fail(errc::invalid_argument, name + " needs a value");
      parsed.values_[name] = argv[i];
    } else {
      return fail(errc::invalid_argument, "unknown argument " + name);
    }
  }
  return parsed;
}

std::string arguments::text(const std::string& key, const std::string& otherwise) const {
  auto it = values_.find(key);
  return it == values_.end() ? otherwise : it->second;
}

std::size_t arguments::number(const std::string& key, std::size_t otherwise, std::size_t most,
                              std::size_t least) const {
  auto it = values_.find(key);
  if (it == values_.end())
    return otherwise;
  const auto* end = it->second.data() + it->second.size();
  std::size_t value = 0;
  const auto [stop, failed] = std::from_chars(it->second.data(), end, value);
  if (failed != std::errc{} || stop != end || value < least || value > most) {
    std::fprintf(stderr, "%s must be a number from %zu to %zu\n", key.c_str(), least, most);
    std::exit(2);
  }
  return value;
}

} // namespace boyd::bench
