#include "unit/house/rules.hpp"

#include <algorithm>
#include <array>
#include <cctype>
#include <filesystem>
#include <map>
#include <optional>
#include <set>
#include <string_view>

namespace house {
namespace {

using namespace std::string_view_literals;

/// Rooms from the bottom up; a file includes its own room and those before it. Adapters are one
/// level but must not know each other. `core` and `ports` are one level, the vocabulary.
constexpr std::array rooms{"core"sv,    "faults"sv, "files"sv,   "memory"sv,   "context"sv,
                           "record"sv,  "config"sv, "model"sv,   "tools"sv,    "mcp"sv,
                           "state"sv,   "plan"sv,   "queue"sv,   "exec"sv,     "graph"sv,
                           "effects"sv, "skills"sv, "improve"sv, "adapters"sv, "messages"sv,
                           "actors"sv,  "apps"sv};

constexpr std::size_t most_lines = 800;

/// Libraries that any .cpp may use, and tl::expected, which is part of every signature.
constexpr std::array everyday_libraries{"nlohmann"sv, "valijson"sv, "spdlog"sv,
                                        "fmt"sv,      "tl"sv,       "caf"sv};

/// Other libraries and the one folder that sees their headers. A library that is not here is a
/// decision to make: add it to docs/dependencies.md and to this table.
struct library {
  std::string_view header; ///< how its headers' names begin
  std::string_view folder;
};
constexpr std::array libraries{
    library{"git2", "src/adapters/libgit2/"},
    library{"libaio", "src/adapters/libgit2/"},
    library{"pqxx/", "src/adapters/postgres/"},
    library{"libpq", "src/adapters/postgres/"},
    library{"sqlite3", "src/adapters/sqlite/"},
    library{"yaml-cpp/", "src/adapters/yaml/"},
    library{"date/", "src/adapters/tz/"},
    library{"openssl/", "src/adapters/openssl/"},
    library{"boost/beast", "src/adapters/control/"},
    library{"boost/asio", "src/adapters/control/"},
    library{"zlib", "src/core/"},
    library{"curl/", "src/adapters/curl/"},
    library{"jemalloc/", "src/adapters/heap/"},
    library{"CLI/", "apps/"},
    library{"re2/", "src/exec/"},
    library{"utf8proc", "src/memory/"},
    library{"expat", "src/improve/"},
};

bool begins_with_any(std::string_view name, const auto& beginnings) {
  return std::ranges::any_of(beginnings, [&](auto b) { return name.starts_with(b); });
}

bool is_product(const source& s) {
  constexpr std::array folders{"include/"sv, "src/"sv, "messages/"sv, "actors/"sv, "apps/"sv};
  return s.is_cpp() && begins_with_any(s.path, folders);
}

/// actors/<name>/core.* and *_core.*: decisions, free of CAF.
bool is_core_of_actor(const source& s) {
  const auto stem = std::filesystem::path(s.path).stem().string();
  return s.is_below("actors/") && (stem == "core" || stem.ends_with("_core"));
}

bool is_caf_free(const source& s) {
  return s.is_cpp() && (s.is_below("include/") || s.is_below("src/") || is_core_of_actor(s));
}

/// A header that only the files beside it include.
bool is_internal(std::string_view path) {
  return path.ends_with("internal.hpp");
}

std::string at(const source& s, int line, std::string_view what) {
  return s.path + ":" + std::to_string(line) + ": " + std::string(what);
}

int line_of(std::string_view text, std::size_t offset) {
  return 1 +
         static_cast<int>(std::count(text.begin(), text.begin() + static_cast<long>(offset), '\n'));
}

bool is_word(char c) {
  return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_';
}

/// The offset of `token` in `text`, not inside a longer name.
std::optional<std::size_t> find_word(std::string_view text, std::string_view token) {
  for (auto i = text.find(token); i != std::string_view::npos; i = text.find(token, i + 1)) {
    const auto end = i + token.size();
    const bool glued_before = i > 0 && is_word(token.front()) && is_word(text[i - 1]);
    const bool glued_after = end < text.size() && is_word(token.back()) && is_word(text[end]);
    if (!glued_before && !glued_after)
      return i;
  }
  return std::nullopt;
}

/// One finding per file and token that appears in `text_of(file)` of the files that `concerns`
/// picks.
findings forbid(const source_tree& tree, auto concerns, auto text_of, const auto& tokens,
                std::string_view why) {
  findings found;
  for (const auto& [path, s] : tree) {
    if (!concerns(s))
      continue;
    for (const auto token : tokens)
      if (const auto offset = find_word(text_of(s), token))
        found.push_back(
            at(s, line_of(text_of(s), *offset), std::string(token) + ": " + std::string(why)));
  }
  return found;
}

constexpr auto code_of = [](const source& s) -> const std::string& { return s.code; };
constexpr auto text_of = [](const source& s) -> const std::string& { return s.text; };

/// The room a path or an include of ours belongs to: its place in `rooms`.
std::optional<std::size_t> room_of(std::string_view path) {
  for (const auto prefix : {"include/boyd/"sv, "boyd/"sv, "src/"sv})
    if (path.starts_with(prefix)) {
      path.remove_prefix(prefix.size());
      break;
    }
  const auto name = path.substr(0, path.find('/'));
  const auto room = std::ranges::find(rooms, name == "ports" ? "core"sv : name);
  if (name.size() == path.size() || room == rooms.end())
    return std::nullopt;
  return static_cast<std::size_t>(room - rooms.begin());
}

/// src/pch.hpp and the like.
bool is_beside_rooms(std::string_view path) {
  return path.starts_with("src/") && path.find('/', "src/"sv.size()) == path.npos;
}

/// "src/adapters/sqlite/" for a file in it.
std::string adapter_of(std::string_view path) {
  constexpr auto folder = "src/adapters/"sv;
  if (!path.starts_with(folder))
    return {};
  return std::string(path.substr(0, path.find('/', folder.size()) + 1));
}

/// The file of the tree that an include of ours names, looked up as the compiler would.
const source* resolve(const source_tree& tree, const source& from, const inclusion& i) {
  if (i.angled)
    return nullptr;
  const auto beside = std::filesystem::path(from.path).parent_path() / i.name;
  for (const auto& candidate : {beside.lexically_normal().generic_string(), "include/" + i.name,
                                i.name, "src/" + i.name, "tests/" + i.name})
    if (const auto file = tree.find(candidate); file != tree.end())
      return &file->second;
  return nullptr;
}

findings caf_stays_out(const source_tree& tree) {
  findings found;
  for (const auto& [path, s] : tree)
    for (const auto& i : s.inclusions)
      if (is_caf_free(s) && i.name.starts_with("caf/"))
        found.push_back(at(s, i.line, "CAF belongs to messages and actor shells: " + i.name));
  return found;
}

findings only_shells_spawn(const source_tree& tree) {
  // Beside the actors themselves, the two supervisors that are made of data spawn: the pool of
  // dispatchers and the root.
  constexpr std::array shells{"/actor.cpp"sv, "/actor.hpp"sv, "/pool.cpp"sv, "/root.cpp"sv};
  const auto concerns = [&](const source& s) {
    return s.is_cpp() && (s.is_below("actors/") || s.is_below("messages/")) &&
           std::ranges::none_of(shells, [&](auto name) { return s.path.ends_with(name); });
  };
  return forbid(tree, concerns, code_of, std::array{"spawn("sv, "spawn<"sv},
                "only an actor's shell, apps and tests spawn");
}

findings libraries_stay_in_their_adapter(const source_tree& tree) {
  findings found;
  const auto check = [&](const source& s, const inclusion& i) {
    const auto known = std::ranges::find_if(
        libraries, [&](const library& l) { return i.name.starts_with(l.header); });
    if (known == libraries.end()) {
      constexpr std::array system{"sys/"sv, "linux/"sv, "netinet/"sv, "arpa/"sv,
                                  "net/"sv, "bits/"sv,  "asm/"sv};
      if (i.name.find('/') != std::string::npos && !begins_with_any(i.name, system) &&
          !begins_with_any(i.name, everyday_libraries))
        found.push_back(at(s, i.line, "unknown library: " + i.name));
      return;
    }
    if (!s.is_below(known->folder))
      found.push_back(
          at(s, i.line, i.name + " is seen in " + std::string(known->folder) + " only"));
    if (s.is_header() && !s.is_below("apps/") && !is_internal(s.path))
      found.push_back(at(s, i.line, i.name + " in a header"));
  };
  for (const auto& [path, s] : tree)
    if (is_product(s))
      for (const auto& i : s.inclusions)
        if (i.angled)
          check(s, i);
  return found;
}

findings internal_headers_stay_inside(const source_tree& tree) {
  findings found;
  for (const auto& [path, s] : tree)
    for (const auto& i : s.inclusions) {
      const auto* target = is_product(s) ? resolve(tree, s, i) : nullptr;
      const auto folder = std::filesystem::path(path).parent_path();
      if (target && is_internal(target->path) &&
          std::filesystem::path(target->path).parent_path() != folder)
        found.push_back(at(s, i.line, "internal to another folder: " + i.name));
    }
  return found;
}

findings public_headers_need_no_library(const source_tree& tree) {
  findings found;
  for (const auto& [path, s] : tree)
    for (const auto& i : s.inclusions)
      if (s.is_below("include/") && i.angled && i.name.find('/') != std::string::npos &&
          !i.name.starts_with("tl/") && !i.name.starts_with("sys/"))
        found.push_back(at(s, i.line, "a public header shows a library: " + i.name));
  return found;
}

findings rooms_look_downwards(const source_tree& tree) {
  findings found;
  for (const auto& [path, s] : tree) {
    const auto own = is_product(s) ? room_of(path) : std::nullopt;
    if (!own) {
      if (is_product(s) && !is_beside_rooms(path))
        found.push_back(path +
                        ": its folder is not in the list of rooms (tests/unit/house/rules.cpp)");
      continue;
    }
    for (const auto& i : s.inclusions) {
      const auto* target = resolve(tree, s, i);
      const auto other = target ? room_of(target->path) : room_of(i.name);
      if (i.angled || !other)
        continue;
      if (*other > *own)
        found.push_back(at(s, i.line, "looks upwards: " + i.name));
      const auto adapter = target ? adapter_of(target->path) : adapter_of(i.name);
      if (!adapter.empty() && *own == *other && adapter != adapter_of(path))
        found.push_back(at(s, i.line, "one adapter knows another: " + i.name));
    }
  }
  return found;
}

/// Depth-first search; `on_path` holds the files between the root and here.
void find_circle(const source_tree& tree, const source& s, std::set<std::string>& done,
                 std::vector<std::string>& on_path, findings& found) {
  if (done.contains(s.path))
    return;
  on_path.push_back(s.path);
  for (const auto& i : s.inclusions) {
    const auto* next = resolve(tree, s, i);
    if (next == nullptr)
      continue;
    if (std::ranges::find(on_path, next->path) != on_path.end())
      found.push_back(at(s, i.line, "includes in a circle: " + next->path));
    else
      find_circle(tree, *next, done, on_path, found);
  }
  on_path.pop_back();
  done.insert(s.path);
}

findings includes_run_in_no_circle(const source_tree& tree) {
  findings found;
  std::set<std::string> done;
  for (const auto& [path, s] : tree) {
    std::vector<std::string> on_path;
    find_circle(tree, s, done, on_path, found);
  }
  return found;
}

/// The folder of a product file; the headers below include/ belong to the room that implements
/// them, and the ports to the vocabulary.
std::string folder_of(const source& s) {
  auto folder = std::filesystem::path(s.path).parent_path().generic_string();
  for (const auto top : {"include/boyd/"sv, "src/"sv})
    if (folder.starts_with(top))
      folder = "src/" + folder.substr(top.size());
  return folder == "src/ports" ? "src/core" : folder;
}

/// By folder: the folders that it includes, and one line that does.
using folder_graph = std::map<std::string, std::map<std::string, std::string>>;

/// Depth-first search, as above.
void find_circle(const folder_graph& graph, const std::string& folder, std::set<std::string>& done,
                 std::vector<std::string>& on_path, findings& found) {
  const auto includes = graph.find(folder);
  if (done.contains(folder) || includes == graph.end())
    return;
  on_path.push_back(folder);
  for (const auto& [next, where] : includes->second)
    if (std::ranges::find(on_path, next) != on_path.end())
      found.push_back(where + ": closes a circle of folders, " + folder + " and " + next);
    else
      find_circle(graph, next, done, on_path, found);
  on_path.pop_back();
  done.insert(folder);
}

findings folders_run_in_no_circle(const source_tree& tree) {
  folder_graph graph;
  for (const auto& [path, s] : tree)
    for (const auto& i : s.inclusions) {
      const auto* target = is_product(s) ? resolve(tree, s, i) : nullptr;
      if (target != nullptr && folder_of(*target) != folder_of(s))
        graph[folder_of(s)].emplace(folder_of(*target), at(s, i.line, i.name));
    }
  findings found;
  std::set<std::string> done;
  for (const auto& [folder, includes] : graph) {
    std::vector<std::string> on_path;
    find_circle(graph, folder, done, on_path, found);
  }
  return found;
}

findings files_stay_short(const source_tree& tree) {
  findings found;
  for (const auto& [path, s] : tree) {
    const auto lines = static_cast<std::size_t>(std::count(s.text.begin(), s.text.end(), '\n'));
    if (is_product(s) && lines > most_lines)
      found.push_back(path + ": " + std::to_string(lines) + " lines, more than " +
                      std::to_string(most_lines));
  }
  return found;
}

findings waits_are_finite(const source_tree& tree) {
  return forbid(tree, is_product, code_of, std::array{"caf::infinite"sv, ".await("sv, "->await("sv},
                "requests have finite timeouts and answer by .then(ok, error)");
}

findings tests_do_not_sleep(const source_tree& tree) {
  const auto concerns = [](const source& s) { return s.is_cpp() && s.is_below("tests/"); };
  return forbid(tree, concerns, code_of,
                std::array{"sleep_for"sv, "sleep_until"sv, "usleep("sv, "nanosleep("sv, "sleep("sv},
                "tests wait for events");
}

findings nothing_is_left_to_do(const source_tree& tree) {
  // In two pieces, or this file would break its own rule.
  const std::array marks{"TO"
                         "DO"sv,
                         "FIX"
                         "ME"sv,
                         "X"
                         "XX"sv,
                         "HA"
                         "CK"sv};
  const auto concerns = [](const source& s) {
    return !s.is_below("docs/") && !s.path.ends_with(".md");
  };
  return forbid(tree, concerns, text_of, marks, "do it or open an issue");
}

/// The first include after anything but comments, blank lines, other directives and includes.
std::optional<int> late_include(const source& s) {
  std::size_t begin = 0;
  bool declared = false;
  for (int line = 1; begin < s.code.size(); ++line) {
    const auto end = std::min(s.code.find('\n', begin), s.code.size());
    auto text = std::string_view(s.code).substr(begin, end - begin);
    text.remove_prefix(std::min(text.find_first_not_of(" \t"), text.size()));
    const bool includes =
        std::ranges::any_of(s.inclusions, [&](auto& i) { return i.line == line; });
    if (includes && declared)
      return line;
    declared = declared || (!text.empty() && text.front() != '#');
    begin = end + 1;
  }
  return std::nullopt;
}

findings headers_open_alike(const source_tree& tree) {
  findings found;
  for (const auto& [path, s] : tree) {
    if (!s.is_header())
      continue;
    if (!s.text.starts_with("#pragma once\n"))
      found.push_back(path + ":1: does not open with #pragma once");
    if (const auto line = late_include(s))
      found.push_back(at(s, *line, "an include after the first declaration"));
    if (s.is_below("include/") && !find_word(s.code, "namespace boyd"))
      found.push_back(path + ":1: declares nothing in namespace boyd");
  }
  return found;
}

findings time_and_chance_come_through_ports(const source_tree& tree) {
  const auto concerns = [](const source& s) {
    return is_caf_free(s) && !s.is_below("src/adapters/");
  };
  return forbid(tree, concerns, code_of,
                std::array{"system_clock::now"sv, "steady_clock::now"sv, "random_device"sv,
                           "getenv("sv, "std::rand"sv},
                "only adapters read the clock, chance and the environment");
}

/// By file: which function a thread begins with, the text does not say.
findings threads_have_a_signal_stack(const source_tree& tree) {
  findings found;
  for (const auto& [path, s] : tree) {
    if (!s.is_below("src/") && !s.is_below("actors/") && !s.is_below("apps/"))
      continue;
    if (s.code.find("give_signal_stack()") != std::string::npos)
      continue;
    for (const auto start : {"std::thread("sv, "std::jthread("sv, "thread_(["sv})
      if (const auto i = s.code.find(start); i != std::string::npos)
        found.push_back(
            at(s, line_of(s.code, i), "a thread that does not begin with give_signal_stack()"));
  }
  return found;
}

findings the_tree_names_no_workplace(const source_tree& tree) {
  const std::array places{"/wo"
                          "rk/"sv,
                          "/ro"
                          "ot/"sv};
  findings found;
  for (const auto& [path, s] : tree)
    for (const auto place : places) {
      // Only an absolute path: not the tail of a longer one, nor of a variable.
      constexpr auto glue = "._-/})$"sv;
      const auto i = s.text.find(place);
      if (i == std::string::npos ||
          (i > 0 && (is_word(s.text[i - 1]) || glue.find(s.text[i - 1]) != glue.npos)))
        continue;
      found.push_back(at(s, line_of(s.text, i), "a path of one machine: " + std::string(place)));
    }
  return found;
}

std::string lines(std::size_t n) {
  std::string text;
  for (std::size_t i = 0; i < n; ++i)
    text += "int x;\n";
  return text;
}

} // namespace

std::vector<rule> all_rules() {
  return {
      {"CAF stays out of the rooms and the actors' cores",
       caf_stays_out,
       {make_tree({{"actors/kernel/core.hpp", "#pragma once\n#include <caf/actor.hpp>\n"}}),
        make_tree({{"actors/kernel/cycle_core.cpp", "#include <caf/actor.hpp>\n"}}),
        make_tree({{"src/plan/a.cpp", "#include <caf/actor.hpp>\n"}})}},
      {"only an actor's shell, apps and tests spawn",
       only_shells_spawn,
       {make_tree({{"actors/kernel/core.cpp", "void f() { self->spawn(g); }\n"}})}},
      {"a library's headers are seen in one folder",
       libraries_stay_in_their_adapter,
       {make_tree({{"src/queue/a.cpp", "#include <sqlite3.h>\n"}}),
        make_tree({{"src/adapters/sqlite/a.hpp", "#include <sqlite3.h>\n"}}),
        make_tree({{"src/queue/a.cpp", "#include <newlib/x.h>\n"}})}},
      {"internal headers stay inside their folder",
       internal_headers_stay_inside,
       {make_tree({{"src/adapters/tz/tz_internal.hpp", "#pragma once\n"},
                   {"src/plan/a.cpp", "#include \"adapters/tz/tz_internal.hpp\"\n"}})}},
      {"public headers show no library",
       public_headers_need_no_library,
       {make_tree({{"include/boyd/plan/a.hpp", "#pragma once\n#include <nlohmann/json.hpp>\n"}})}},
      {"rooms look downwards, adapters not at each other",
       rooms_look_downwards,
       {make_tree({{"src/core/a.cpp", "#include \"boyd/queue/b.hpp\"\n"}}),
        make_tree({{"src/exec/a.cpp", "#include \"messages/store.hpp\"\n"}}),
        make_tree({{"src/adapters/sqlite/a.cpp", "#include \"src/adapters/postgres/b.hpp\"\n"}})}},
      {"includes run in no circle",
       includes_run_in_no_circle,
       {make_tree({{"include/boyd/core/a.hpp", "#include \"boyd/core/b.hpp\"\n"},
                   {"include/boyd/core/b.hpp", "#include \"boyd/core/a.hpp\"\n"}})}},
      {"includes between folders run in no circle",
       folders_run_in_no_circle,
       {make_tree({{"actors/a/x.hpp", "#pragma once\n#include \"actors/b/y.hpp\"\n"},
                   {"actors/b/y.hpp", "#pragma once\n"},
                   {"actors/b/z.cpp", "#include \"actors/a/w.hpp\"\n"},
                   {"actors/a/w.hpp", "#pragma once\n"}})}},
      {"files stay short",
       files_stay_short,
       {make_tree({{"src/core/a.cpp", lines(most_lines + 1)}})}},
      {"waits are finite",
       waits_are_finite,
       {make_tree({{"actors/kernel/actor.cpp", "void f() { g(a, caf::infinite, 1); }\n"}}),
        make_tree({{"actors/kernel/actor.cpp", "void f() { r.await(g); }\n"}})}},
      {"tests do not sleep",
       tests_do_not_sleep,
       {make_tree({{"tests/unit/a.cpp", "void f() { std::this_thread::sleep_for(1s); }\n"}})}},
      {"nothing is left to do",
       nothing_is_left_to_do,
       {make_tree({{"src/core/a.cpp", "// TO"
                                      "DO: later\n"}})}},
      {"headers open alike",
       headers_open_alike,
       {make_tree(
            {{"include/boyd/core/a.hpp", "#pragma once\nnamespace boyd {}\n#include <string>\n"}}),
        make_tree({{"include/boyd/core/a.hpp", "#pragma once\nint x;\n"}}),
        make_tree({{"actors/kernel/core.hpp", "#include <string>\n"}})}},
      {"time and chance come through ports",
       time_and_chance_come_through_ports,
       {make_tree({{"src/plan/a.cpp", "auto t = std::chrono::system_clock::now();\n"}})}},
      {"threads have a stack for signals",
       threads_have_a_signal_stack,
       {make_tree({{"src/core/a.cpp", "auto t = std::thread([] { work(); });\n"}}),
        make_tree({{"src/adapters/tz/a.cpp", "a::a() : thread_([this] { work(); }) {}\n"}})}},
      {"the tree names no workplace",
       the_tree_names_no_workplace,
       {make_tree({{"docs/a.md", "see /wo"
                                 "rk/here\n"}})}},
  };
}

} // namespace house
