#include "boyd/graph/lost_end.hpp"

#include "boyd/core/home_layout.hpp"
#include "boyd/core/sha256.hpp"
#include "boyd/core/text.hpp"
#include "boyd/files/atomic_file.hpp"
#include "boyd/graph/edge_log.hpp"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <utility>

namespace boyd::graph {

namespace {

using json = nlohmann::ordered_json;

constexpr std::string_view head_trailer = "Boyd-Graph-Head";
/// Some commits have no trailer with a head; one of so many has.
constexpr std::size_t commits_looked_at = 100;
constexpr std::size_t most_lost_ends = 64;
constexpr std::size_t lost_ends_bytes = std::size_t{1} << 20;
constexpr std::size_t shown_digits = 12;

bool is_head(std::string_view text) {
  return text.size() == genesis.size() &&
         text.find_first_not_of("0123456789abcdef") == std::string_view::npos;
}

std::optional<lost_end> parse_lost_end(std::string_view line) {
  const auto object = json::parse(line, nullptr, false);
  const auto text_at = [&](const char* key) {
    const auto it = object.is_object() ? object.find(key) : object.end();
    return it != object.end() && it->is_string() ? it->get<std::string>() : std::string();
  };
  lost_end l{{text_at("head"), text_at("kernel"), text_at("commit"), {}}, {}, false};
  const auto at = parse_rfc3339(text_at("committed_at"));
  const auto found = parse_rfc3339(text_at("found_at"));
  if (!is_head(l.named.head) || !at || !found)
    return std::nullopt;
  l.named.at = *at;
  l.found_at = *found;
  l.accepted = object.contains("accepted") && object["accepted"] == true;
  return l;
}

} // namespace

result<std::optional<anchor>> anchor_of(repository& history, const std::string& kernel_id,
                                        std::size_t commits) {
  const auto newest = history.history({}, commits);
  if (!newest)
    return fail(newest.error());
  for (const auto& c : *newest)
    for (const auto& [name, value] : c.trailers)
      if (name == head_trailer && is_head(value))
        return anchor{value, kernel_id, c.hash, c.time};
  return std::optional<anchor>{};
}

std::optional<anchor> newest_anchor(const std::string& home, file_system& files,
                                    repository_provider& repositories) {
  std::optional<anchor> newest;
  const auto kernels = files.list(home_layout(home).kernels());
  if (!kernels)
    return newest;
  for (const auto& id : *kernels) {
    const auto repository = repositories.open(home_layout(home).kernel(id), {});
    const auto found = repository ? anchor_of(**repository, id, commits_looked_at)
                                  : result<std::optional<anchor>>(fail(repository.error()));
    if (found && *found && (!newest || (*found)->at > newest->at))
      newest = **found;
  }
  return newest;
}

std::optional<anchor> expected_anchor(const std::string& home, file_system& files,
                                      repository_provider& repositories) {
  auto newest = newest_anchor(home, files, repositories);
  if (!newest)
    return std::nullopt;
  const auto lost = read_lost_ends(files, home);
  const bool is_accepted = lost && std::ranges::any_of(*lost, [&](const lost_end& l) {
                             return l.accepted && l.named.head == newest->head;
                           });
  return is_accepted ? std::nullopt : newest;
}

bool has_line(std::string_view log, const std::string& head) {
  if (head == genesis)
    return true;
  while (!log.empty()) {
    if (log.back() == '\n')
      log.remove_suffix(1);
    const auto begin = log.rfind('\n');
    const auto line = begin == std::string_view::npos ? log : log.substr(begin + 1);
    if (sha256_hex(line) == head)
      return true;
    log.remove_suffix(line.size());
  }
  return false;
}

std::string lost_ends_path(const std::string& home) {
  return home_layout(home).graph_log() + ".lost";
}

result<std::vector<lost_end>> read_lost_ends(file_system& files, const std::string& home) {
  const auto path = lost_ends_path(home);
  const auto text = files.read(path, lost_ends_bytes);
  if (!text && text.error().code == errc::not_found)
    return std::vector<lost_end>{};
  if (!text)
    return fail(text.error());
  std::vector<lost_end> all;
  for (const auto line : split(*text, '\n')) {
    if (line.empty())
      continue;
    auto one = parse_lost_end(line);
    if (!one)
      return fail(errc::corrupt, "cannot read the list of missing facts", path,
                  "check the file, then accept the log as it is: " + std::string(accept_command));
    all.push_back(std::move(*one));
  }
  return all;
}

result<void> write_lost_ends(file_system& files, const std::string& home,
                             std::vector<lost_end> lost) {
  if (lost.size() > most_lost_ends)
    lost.erase(lost.begin(), lost.end() - most_lost_ends);
  std::string text;
  for (const auto& l : lost)
    text += json{{"head", l.named.head},
                 {"kernel", l.named.kernel_id},
                 {"commit", l.named.commit},
                 {"committed_at", format_rfc3339(l.named.at, true)},
                 {"found_at", format_rfc3339(l.found_at, true)},
                 {"accepted", l.accepted}}
                .dump(-1, ' ', false, json::error_handler_t::replace) +
            "\n";
  return files::write_atomic(files, lost_ends_path(home), text);
}

bool compare_with_log(std::vector<lost_end>& lost, const std::optional<anchor>& newest,
                      const std::function<bool(const std::string& head)>& has, utc_time now) {
  const auto back =
      std::erase_if(lost, [&](const lost_end& l) { return !l.accepted && has(l.named.head); });
  const bool is_known = !newest || std::ranges::any_of(lost, [&](const lost_end& l) {
    return l.named.head == newest->head;
  });
  if (is_known || has(newest->head))
    return back > 0;
  lost.push_back({*newest, now, false});
  return true;
}

std::string told(const std::vector<lost_end>& lost) {
  std::string text;
  for (const auto& l : lost)
    if (!l.accepted)
      text += (text.empty() ? "" : "; ") + std::string("line ") +
              l.named.head.substr(0, shown_digits) + "…, the last line at commit " +
              l.named.commit.substr(0, shown_digits) + " of kernel " + l.named.kernel_id + " (" +
              format_rfc3339(l.named.at) + "), has been missing since " +
              format_rfc3339(l.found_at) + " or earlier";
  return text.empty() ? text : "the end of the log was cut off or changed: " + text;
}

} // namespace boyd::graph
