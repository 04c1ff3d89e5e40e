#pragma once

#include "boyd/core/time.hpp"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace boyd {

class entropy;

/// A UUIDv7 (RFC 9562 §5.7) in its 36-character text form: sortable by creation time, unique
/// across nodes. `rand` supplies 74 random bits.
std::string make_uuid_v7(utc_time now, entropy& rand);

/// When that UUIDv7 was made, to the millisecond; nothing for what is none.
std::optional<utc_time> time_of_uuid_v7(std::string_view text);

/// True when `text` is a UUID in lower-case text form.
bool is_uuid(std::string_view text) noexcept;

/// True for identifiers that people choose (kernel_id, agent_id): 1 to 64 characters of
/// [A-Za-z0-9._-], starting with a letter or digit. Safe as file and branch names.
bool is_valid_name(std::string_view text) noexcept;

} // namespace boyd
