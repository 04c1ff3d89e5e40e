#pragma once

#include "boyd/core/time.hpp"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace boyd::context {

enum class item_type : std::uint8_t {
  file,
  directory,
  runtime,   ///< output of a command or tool
  generated, ///< an agent's text: notes, memory entries
};

std::string_view name_of(item_type t) noexcept;

/// What a text is about, by its name and first bytes.
enum class semantic : std::uint8_t { source_code, config, log, doc, data, other };

std::string_view name_of(semantic s) noexcept;
semantic semantic_of(std::string_view path, std::string_view content);

/// Names of configuration that runs in production, and of files that hold secrets: never changed,
/// banked or promoted automatically.
bool is_frozen_name(std::string_view path);

/// "ctx_" and 16 hexadecimal digits: the same thing keeps its id when its content changes.
std::string item_id(std::string_view scope, item_type type, std::string_view path);

/// What a memory policy has decided about an item (docs/memory.md).
enum class standing : std::uint8_t {
  open,      ///< nothing
  pinned,    ///< it belongs to the first section
  shortened, ///< it is shown as a summary alone
  forgotten, ///< it is read neither from the bank nor from the buffer
};

/// What the log of facts says about an item.
struct item_statistics {
  std::int64_t injected = 0;
  std::int64_t use_count = 0;
  std::int64_t referenced = 0;
  std::int64_t success_count = 0;
  std::int64_t failure_count = 0;
  std::int64_t verified_useful = 0;
  std::int64_t verified_not_useful = 0;
  double confidence = 0; ///< by steps
  double average = 0;    ///< of its runs that were verified, the latest weighing most; 0: none was
  utc_time created{};
  std::optional<utc_time> last_used;
  std::optional<utc_time> changed; ///< its content, the last time
  standing policy = standing::open;
  /// Of the content for which `policy` is `shortened`: another one is shown whole. Empty: any.
  std::string policy_hash{};

  bool operator==(const item_statistics&) const = default;
};

std::string_view name_of(standing s) noexcept;

/// Of a new item: the more it was chosen by a person, the more.
double first_confidence(item_type type, bool declared) noexcept;

/// Of the runs that used the item and were verified, the share that went well; 0 without any.
double useful_rate(const item_statistics& s) noexcept;

/// 0 to 1; docs/context.md.
double importance(const item_statistics& s, utc_time now);

/// 0 to 1: a half after 7 days without a change or use; docs/context.md.
double freshness(const item_statistics& s, utc_time now);

/// The score of a declared item; docs/context.md.
double declared_score(const item_statistics& s, utc_time now);

} // namespace boyd::context
