#include "errors.hpp"

#include <cerrno>
#include <system_error>

namespace boyd::adapters {

namespace {

errc code_of(int number) {
  switch (number) {
  case ENOENT:
    return errc::not_found;
  case EEXIST:
    return errc::already_exists;
  case ENOSPC:
  case EDQUOT:
    return errc::no_space;
  case ELOOP:
    return errc::refused;
  case ENAMETOOLONG:
    return errc::invalid_argument;
  default:
    return errc::io_error;
  }
}

std::string advice_for(int number) {
  switch (number) {
  case ENOSPC:
  case EDQUOT:
    return "free some space";
  case EACCES:
  case EPERM:
    return "check the owner and the permissions";
  case EIO:
    return "check the system log for disk errors, then try again";
  case EROFS:
    return "mount the file system writable";
  case ELOOP:
    return "replace the symbolic link with its target";
  case EMFILE:
  case ENFILE:
    return "raise the limit for open files";
  default:
    return "";
  }
}

} // namespace

error system_error(int number, std::string_view operation, const std::string& path) {
  return error{code_of(number),
               std::string(operation) + " failed: " + std::generic_category().message(number), path,
               advice_for(number)};
}

} // namespace boyd::adapters
