#pragma once

#include "boyd/context/item.hpp"
#include "boyd/core/time.hpp"

#include <optional>
#include <string>
#include <string_view>

/// Keys of the lists that the fold keeps for questions about all that it knows. They sort as their
/// times do. Pure.
namespace boyd::graph {

/// Of index_area::items_by_use; without a time the item stands behind all others.
std::string key_by_use(const std::optional<utc_time>& last_used, std::string_view id);
/// Of index_area::skills_by_use; with an empty name what stands before it is earlier.
std::string key_by_age(utc_time last_used, std::string_view skill);
/// The id or name in either.
std::string name_in_key(std::string_view key);

/// Ten runs or more were given it, and fewer than one of ten used it.
bool is_noisy(const context::item_statistics& counts) noexcept;

} // namespace boyd::graph
