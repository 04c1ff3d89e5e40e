#pragma once

#include <nlohmann/json.hpp>

#include <cstdint>
#include <string>

namespace boyd::test {

/// A log of an older version, whose lines have no place in a chain.
struct written_log {
  static constexpr std::int64_t day = 86'400'000;
  static constexpr std::int64_t begin = 1'767'225'600'000; // 2026-01-01

  std::string text;
  int runs = 0;

  void run(const std::string& path, bool cited, bool good, std::int64_t at) {
    using nlohmann::json;
    const auto id = std::to_string(++runs);
    text += json{{"from", "ctx_" + path},
                 {"to", "exec_" + id},
                 {"type", "used_in"},
                 {"timestamp", at},
                 {"meta",
                  {{"path", path},
                   {"cited", cited},
                   {"used", cited},
                   {"fence", 1},
                   {"type", "file"},
                   {"from", "declared"},
                   {"scope", "repo:1"},
                   {"kernel", "default"}}}}
                .dump() +
            "\n";
    text += json{{"from", "exec_" + id},
                 {"to", "outcome_" + id},
                 {"type", "resulted_in"},
                 {"timestamp", at + 1},
                 {"meta",
                  {{"agent", "a"},
                   {"status", good ? "done" : "failed"},
                   {"class", good ? "none" : "deterministic"},
                   {"execution", good ? "succeeded" : "failed"},
                   {"claim", "none"},
                   {"verification", "none"},
                   {"fence", 1}}}}
                .dump() +
            "\n";
  }

  /// Of which the memory policy forgets one text, and promotes another.
  static written_log of_two_texts() {
    written_log log;
    for (int i = 0; i < 8; ++i)
      log.run("bad.md", true, false, begin + i * day);
    for (int i = 0; i < 30; ++i)
      log.run("good.md", true, true, begin + (i + 10) * day);
    return log;
  }
};

} // namespace boyd::test
