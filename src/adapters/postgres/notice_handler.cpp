#include "notice_handler_internal.hpp"
#include "notices.hpp"

#include <utility>

namespace boyd::adapters::postgres {

#if BOYD_PQXX_NEW_CALLS

std::shared_ptr<void> handle_notices(pqxx::connection& connection, std::string place) {
  connection.set_notice_handler(
      [place = std::move(place)](pqxx::zview text) noexcept { log_notice(place, text.c_str()); });
  return nullptr; // the connection keeps it
}

#else

namespace {

class notice_log final : public pqxx::errorhandler {
 public:
  notice_log(pqxx::connection& connection, std::string place)
      : pqxx::errorhandler(connection), place_(std::move(place)) {}
  bool operator()(const char text[]) noexcept override {
    log_notice(place_, text);
    return false; // to no other
  }

 private:
  std::string place_;
};

} // namespace

std::shared_ptr<void> handle_notices(pqxx::connection& connection, std::string place) {
  return std::make_shared<notice_log>(connection, std::move(place));
}

#endif

} // namespace boyd::adapters::postgres
