#include "boyd/core/outside_json.hpp"
#include "boyd/files/atomic_file.hpp"
#include "lock_internal.hpp"

#include <nlohmann/json.hpp>

#include <optional>
#include <utility>

namespace boyd::improve {

namespace {

constexpr std::size_t lock_bytes = 4096;
constexpr int takeovers = 3;
constexpr unsigned lock_mode = 0600;

struct recorded {
  lock_holder holder;
  utc_time renewed{};
};

std::optional<recorded> read(const std::string& text) {
  const auto mended = mend_json(text);
  if (!mended)
    return std::nullopt;
  const auto j = nlohmann::json::parse(mended->text, nullptr, false);
  if (!j.is_object())
    return std::nullopt;
  try {
    recorded r;
    r.holder = {j.at("pid"), j.at("start_ticks"), j.at("nonce"), j.value("boot_id", "")};
    r.renewed = from_unix_ms(j.at("renewed_ms"));
    return r;
  } catch (const nlohmann::json::exception&) {
    return std::nullopt;
  }
}

} // namespace

repository_lock::repository_lock(std::string path, const improve_ports& ports)
    : path_(std::move(path)), ports_(ports) {}

repository_lock::~repository_lock() {
  if (!held_)
    return;
  if (const auto mine = is_mine(); mine && *mine)
    ports_.files.unlink(path_);
}

std::string repository_lock::text() const {
  return nlohmann::json{{"pid", ports_.self.pid},
                        {"start_ticks", ports_.self.start_ticks},
                        {"nonce", ports_.self.nonce},
                        {"boot_id", ports_.self.boot_id},
                        {"renewed_ms", to_unix_ms(ports_.clock.now())}}
             .dump() +
         "\n";
}

/// It appears whole: an empty one, which a crash would leave, names nobody who could be gone.
result<void> repository_lock::make() {
  const auto fresh = path_ + ".new-" + ports_.self.nonce;
  if (auto staged = ports_.tree.stage(fresh, text(), lock_mode); !staged)
    return staged;
  const auto slash = path_.rfind('/');
  auto moved = ports_.tree.move_in(path_.substr(0, slash), path_.substr(slash + 1), fresh);
  if (!moved) {
    ports_.files.unlink(fresh);
    return moved;
  }
  held_ = true;
  renewed_ = ports_.clock.steady();
  return {};
}

result<void> repository_lock::acquire() {
  for (int i = 0; i < takeovers; ++i) {
    auto made = make();
    if (made || made.error().code != errc::already_exists)
      return made;
    const auto seen = ports_.files.read(path_, lock_bytes);
    if (!seen && seen.error().code == errc::not_found)
      continue;
    if (!seen)
      return fail(seen.error());
    const auto r = read(*seen);
    const auto now = ports_.clock.now();
    // Of one that cannot be read the age decides.
    const auto info = ports_.files.stat(path_);
    const auto renewed = r ? r->renewed : info ? info->modified : now;
    const bool expired = now - renewed > lock_ttl || renewed - now > lock_ttl;
    const bool gone = r && !ports_.lives(r->holder);
    if (!expired && !gone)
      return fail(errc::locked,
                  "another cycle works on this repository" +
                      (r ? " (process " + std::to_string(r->holder.pid) + ", since " +
                               format_rfc3339(renewed) + ")"
                         : std::string()),
                  path_, "wait for its end");
    if (auto done = take_over(*seen); !done)
      return done;
  }
  return fail(errc::locked, "other cycles take the lock of this repository at the same time", path_,
              "try again");
}

/// Moves the stale lock away; what was moved must be what was seen.
result<void> repository_lock::take_over(const std::string& seen) {
  const auto aside = path_ + ".stale-" + ports_.self.nonce;
  auto moved = ports_.files.rename(path_, aside);
  if (!moved)
    return moved.error().code == errc::not_found ? result<void>() : moved;
  const auto text = ports_.files.read(aside, lock_bytes);
  if (text && *text == seen)
    return ports_.files.unlink(aside);
  // Somebody else was quicker: theirs goes back. They look before each write.
  return ports_.files.rename(aside, path_);
}

result<bool> repository_lock::is_mine() {
  const auto text = ports_.files.read(path_, lock_bytes);
  if (!text && text.error().code == errc::not_found)
    return false;
  if (!text)
    return fail(text.error());
  const auto r = read(*text);
  return r && r->holder.nonce == ports_.self.nonce;
}

result<void> repository_lock::keep() {
  const auto mine = is_mine();
  if (!mine)
    return fail(mine.error());
  if (!*mine) {
    held_ = false;
    return fail(errc::locked, "another cycle has taken over the lock of this repository", path_,
                "this one ends here; nothing of it is half written");
  }
  renewed_ = ports_.clock.steady();
  return files::write_atomic(ports_.files, path_, text());
}

void repository_lock::renew() {
  constexpr int parts = 10;
  if (held_ && ports_.clock.steady() - renewed_ >= lock_ttl / parts)
    static_cast<void>(keep());
}

} // namespace boyd::improve
