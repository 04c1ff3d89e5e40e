#include "zones.hpp"

#include "boyd/core/text.hpp"

#include <date/tz.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <exception>
#include <string_view>
#include <vector>

namespace boyd::adapters {
namespace {

constexpr const char* utc_name = "UTC";

/// What is UTC has one name.
std::string name_of_zone(const std::string& name) {
  constexpr std::array<std::string_view, 7> others{
      "Etc/UTC", "Etc/UCT", "Etc/Universal", "Etc/Zulu", "UCT", "Universal", "Zulu"};
  return std::ranges::find(others, name) == others.end() ? name : utc_name;
}

class utc_zone final : public time_zone {
 public:
  local_seconds to_local(std::chrono::sys_seconds t) const override {
    return local_seconds{t.time_since_epoch()};
  }
  mapping to_utc(local_seconds local) const override {
    const std::chrono::sys_seconds t{local.time_since_epoch()};
    return {mapping::unique, t, t};
  }
  std::string abbreviation(std::chrono::sys_seconds /*t*/) const override { return "UTC"; }
};

/// A zone of the system's database, which lives as long as the process.
class system_zone final : public time_zone {
 public:
  explicit system_zone(const date::time_zone& zone) : zone_(zone) {}

  local_seconds to_local(std::chrono::sys_seconds t) const override {
    return local_seconds{zone_.to_local(t).time_since_epoch()};
  }

  mapping to_utc(local_seconds local) const override {
    const date::local_seconds wanted{local.time_since_epoch()};
    const auto info = zone_.get_info(wanted);
    const auto at = [&](const date::sys_info& rules) {
      return std::chrono::sys_seconds{wanted.time_since_epoch() - rules.offset};
    };
    switch (info.result) {
    case date::local_info::nonexistent:
      return {mapping::skipped, info.first.end, info.first.end};
    case date::local_info::ambiguous:
      return {mapping::repeated, at(info.first), at(info.second)};
    default:
      return {mapping::unique, at(info.first), at(info.first)};
    }
  }

  std::string abbreviation(std::chrono::sys_seconds t) const override {
    auto name = zone_.get_info(t).abbrev;
    // Zones without a name of their own have their offset there: "+03".
    return name.find_first_of("+-") == 0 ? std::string{} : name;
  }

 private:
  const date::time_zone& zone_;
};

class system_zones final : public time_zones {
 public:
  result<std::shared_ptr<const time_zone>> find(const std::string& name) const override {
    if (name == utc_name) {
      return std::make_shared<utc_zone>();
    }
    try {
      const auto& database = date::get_tzdb();
      for (const auto& zone : database.zones) {
        if (zone.name() == name) {
          // Reads the zone's file now, where a failure can still be told.
          static_cast<void>(zone.get_info(std::chrono::sys_seconds{}));
          return std::make_shared<system_zone>(zone);
        }
      }
      return unknown(name, database);
    } catch (const std::exception& e) {
      return fail(errc::io_error, "cannot read the time zone database: " + sanitize_utf8(e.what()),
                  name, "apt-get install tzdata");
    }
  }

  std::shared_ptr<const time_zone> local() const override {
    if (auto zone = find(local_zone_name()))
      return *zone;
    return std::make_shared<utc_zone>();
  }

 private:
  static tl::unexpected<error> unknown(const std::string& name, const date::tzdb& database) {
    if (database.zones.empty()) {
      return fail(errc::io_error, "the time zone database is empty", name,
                  "apt-get install tzdata");
    }
    std::vector<std::string_view> names{"UTC"};
    for (const auto& zone : database.zones) {
      names.push_back(zone.name());
    }
    const auto near = nearest(name, names);
    return fail(errc::not_found, "unknown time zone " + sanitize_utf8(cut_characters(name, 64)), {},
                near.empty() ? "use a name such as Europe/Berlin or UTC"
                             : "did you mean " + std::string(near) + "?");
  }
};

} // namespace

std::shared_ptr<const time_zones> make_time_zones() {
  return std::make_shared<system_zones>();
}

std::string local_zone_name() {
  // What programs of this node are given, see build_environment.
  if (const char* named = std::getenv("TZ"); named != nullptr && *named != '\0') {
    const std::string_view given(named);
    const std::string name(given.front() == ':' ? given.substr(1) : given);
    if (system_zones().find(name))
      return name_of_zone(name);
  }
  try {
    return name_of_zone(date::current_zone()->name());
  } catch (const std::exception&) {
    return utc_name;
  }
}

} // namespace boyd::adapters
