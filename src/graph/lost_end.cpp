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

std::vector<anchor> newest_anchors(const std::string& home, file_system& files,
                                   repository_provider& repositories) {
  std::vector<anchor> all;
  const auto kernels = files.list(home_layout(home).kernels());
  if (!kernels)
    return all;
  for (const auto& id : *kernels) {
    const auto repository = repositories.open(home_layout(home).kernel(id), {});
    const auto found = repository ? anchor_of(**repository, id, commits_looked_at)
                                  : result<std::optional<anchor>>(fail(repository.error()));
    if (found && *found)
      all.push_back(**found);
  }
  std::ranges::stable_sort(all, {}, &anchor::at);
  return all;
}

std::vector<anchor> expected_anchors(const std::string& home, file_system& files,
                                     repository_provider& repositories) {
  auto all = newest_anchors(home, files, repositories);
  const auto lost = read_lost_ends(files, home);
  if (!lost)
    return all;
  for (const auto& l : *lost) {
    const auto is_same = [&](const anchor& a) { return a.head == l.named.head; };
    if (l.accepted)
      std::erase_if(all, is_same);
    else if (std::ranges::none_of(all, is_same))
      all.push_back(l.named);
  }
  return all;
}

std::set<std::string> heads_of(const std::vector<anchor>& anchors) {
  std::set<std::string> heads;
  for (const auto& a : anchors)
    heads.insert(a.head);
  return heads;
}

std::set<std::string> heads_not_in(std::string_view log, std::set<std::string> heads) {
  heads.erase(std::string(genesis));
  while (!log.empty() && !heads.empty()) {
    if (log.back() == '\n')
      log.remove_suffix(1);
    const auto begin = log.rfind('\n');
    const auto line = begin == std::string_view::npos ? log : log.substr(begin + 1);
    heads.erase(sha256_hex(line));
    log.remove_suffix(line.size());
  }
  return heads;
}

bool has_line(std::string_view log, const std::string& head) {
  return heads_not_in(log, {head}).empty();
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

bool compare_with_log(std::vector<lost_end>& lost, const std::vector<anchor>& newest,
                      const std::function<bool(const std::string& head)>& has, utc_time now) {
  bool has_changed =
      std::erase_if(lost, [&](const lost_end& l) { return !l.accepted && has(l.named.head); }) > 0;
  for (const auto& a : newest) {
    const bool is_known =
        std::ranges::any_of(lost, [&](const lost_end& l) { return l.named.head == a.head; });
    if (is_known || has(a.head))
      continue;
    lost.push_back({a, now, false});
    has_changed = true;
  }
  return has_changed;
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
