#include "given_file.hpp"

#include <fstream>
#include <iostream>
#include <iterator>

namespace boyd::app {

result<std::string> read_given_file(const std::string& path, std::size_t most,
                                    const std::string& advice) {
  std::ifstream file;
  if (path != "-") {
    file.open(path, std::ios::binary);
    if (!file)
      return fail(errc::not_found, "cannot open the file", path,
                  "check the name and the permissions");
  }
  std::istream& in = path == "-" ? std::cin : file;
  std::string bytes;
  for (std::istreambuf_iterator<char> at(in), end; at != end && bytes.size() <= most; ++at)
    bytes += *at;
  if (in.bad())
    return fail(errc::io_error, "cannot read the file", path, "check the disk");
  if (bytes.size() > most)
    return fail(errc::limit_exceeded, "it has more than " + std::to_string(most) + " bytes", path,
                advice);
  return bytes;
}

} // namespace boyd::app
