#include "boyd/memory/tokens.hpp"
#include "support/pch.hpp"

#include <cmath>
#include <string>
#include <string_view>

using namespace boyd::memory;

namespace {

/// Texts with the counts of two public byte pair vocabularies, cl100k_base and o200k_base.
struct counted_text {
  std::string_view name;
  double older;
  double newer;
  std::string_view text;
};

constexpr counted_text texts[] =
    {
        {"English prose", 149, 149,
         R"~(The queue keeps every request in one table. A dispatcher claims the next one, counts the attempt, and renews its lease while the program runs; when the lease ends without a word, another node takes the request over. Nothing is deleted before its outcome stands in the row, so that a crash between two steps is found by the next start. People who operate such a system want three things: that no work is lost, that no work is done twice, and that they are told in plain words why something waits. The first two are properties of the transaction that moves a row from one state to the next. The third one is a habit: each refusal says what was refused, where it happened, and what to do about it.)~"},
        {"Chinese prose", 226, 152,
         R"~(队列把每一个请求都保存在同一张表里。调度器领取下一个请求，记录尝试次数，并在程序运行期间续约；如果租约到期而没有任何消息，另一个节点就会接手这个请求。在结果写入表格之前，什么都不会被删除，因此两个步骤之间的崩溃会在下一次启动时被发现。运维这种系统的人只想要三件事：工作不会丢失，工作不会重复，并且有人用简单的语言告诉他们为什么要等待。前两点是事务的性质，第三点是一种习惯：每一次拒绝都要说明拒绝了什么、发生在哪里以及应该怎么办。)~"},
        {"C++", 178, 178,
         R"~(std::vector<std::size_t> longest_runs(const std::vector<int>& values, std::size_t wanted) {
  std::map<std::size_t, std::vector<std::size_t>, std::greater<>> by_length;
  for (std::size_t begin = 0; begin < values.size();) {
    auto end = begin + 1;
    while (end < values.size() && values[end] == values[begin])
      ++end;
    by_length[end - begin].push_back(begin);
    begin = end;
  }
  std::vector<std::size_t> out;
  for (const auto& [length, places] : by_length)
    for (const auto place : places) {
      if (out.size() == wanted)
        return out;
      out.push_back(place);
    }
  return out;
}
)~"},
        {"Python", 117, 120, R"~(def read_table(path, *, separator=";", strict=False):
    rows = []
    with open(path, encoding="utf-8") as lines:
        names = next(lines).rstrip("\n").split(separator)
        for number, line in enumerate(lines, start=2):
            cells = line.rstrip("\n").split(separator)
            if len(cells) != len(names):
                if strict:
                    raise ValueError(f"line {number}: {len(cells)} cells, {len(names)} expected")
                continue
            rows.append(dict(zip(names, cells)))
    return rows
)~"},
        {"JSON", 227, 227, R"~({"items": [{"id": "ctx_a7691eb0097b894f", "path": "src/queue/leases.cpp:10-30", "type": "file", "tokens": 212, "score": 0.8249, "cited": true, "section": "high"}, {"id": "ctx_51695f6e7e9df347", "path": "docs/operations.md", "type": "file", "tokens": 1840, "score": 0.7, "cited": false, "section": "medium"}], "budget_tokens": 8000, "tokens": 2052, "dispatch_id": "01a22964-7598-7d35-8d5a-60bf82776764", "started_at": "2026-11-29T22:19:39.291Z", "usage": {"input_tokens": 4211, "output_tokens": 377, "cached_tokens": 3072, "cost_microusd": 1260}})~"},
        {"log lines", 639, 639,
         R"~(2026-11-29T22:00:39.000Z info dispatcher-0: dispatch 01a22900-9ac5-7d3f claimed by node 4f1c, attempt 1, lease 30s
2026-11-29T22:01:39.037Z info dispatcher-1: dispatch 01a2290b-9ac5-7d3f claimed by node 4f1c, attempt 2, lease 30s
2026-11-29T22:02:39.074Z info dispatcher-2: dispatch 01a22916-9ac5-7d3f claimed by node 4f1c, attempt 3, lease 30s
2026-11-29T22:03:39.111Z info dispatcher-3: dispatch 01a22921-9ac5-7d3f claimed by node 4f1c, attempt 1, lease 30s
2026-11-29T22:04:39.148Z info dispatcher-0: dispatch 01a2292c-9ac5-7d3f claimed by node 4f1c, attempt 2, lease 30s
2026-11-29T22:05:39.185Z info dispatcher-1: dispatch 01a22937-9ac5-7d3f claimed by node 4f1c, attempt 3, lease 30s
2026-11-29T22:06:39.222Z info dispatcher-2: dispatch 01a22942-9ac5-7d3f claimed by node 4f1c, attempt 1, lease 30s
2026-11-29T22:07:39.259Z info dispatcher-3: dispatch 01a2294d-9ac5-7d3f claimed by node 4f1c, attempt 2, lease 30s
2026-11-29T22:08:39.296Z info dispatcher-0: dispatch 01a22958-9ac5-7d3f claimed by node 4f1c, attempt 3, lease 30s
2026-11-29T22:09:39.333Z info dispatcher-1: dispatch 01a22963-9ac5-7d3f claimed by node 4f1c, attempt 1, lease 30s
2026-11-29T22:10:39.370Z info dispatcher-2: dispatch 01a2296e-9ac5-7d3f claimed by node 4f1c, attempt 2, lease 30s
2026-11-29T22:11:39.407Z info dispatcher-3: dispatch 01a22979-9ac5-7d3f claimed by node 4f1c, attempt 3, lease 30s)~"},
        {"mixed notes", 82, 78, R"~(# 备份 (nightly copy)

- 2026-03-03 Lin: the copy failed again, `rsync: connection reset`; 重试后成功。
- 2026-03-04 Mason: moved it to 02:30, after the 数据库 dump.
- Naïve café names like Müller or Señor must survive — see issue #42 🙂
)~"},
};

constexpr double allowed = 0.15;

} // namespace

TEST_CASE("tokens are estimated within 15 % of a real tokenizer", "[memory][tokens]") {
  double older = 0;
  double newer = 0;
  double estimated = 0;
  for (const auto& t : texts) {
    const auto n = static_cast<double>(estimate_tokens(t.text));
    INFO(t.name << ": " << n << " for " << t.older << " and " << t.newer);
    CHECK(std::abs(n - t.older) <= allowed * t.older);
    older += t.older;
    newer += t.newer;
    estimated += n;
  }
  CHECK(std::abs(estimated - older) <= allowed * older);
  CHECK(std::abs(estimated - newer) <= allowed * newer);
}

TEST_CASE("estimated tokens of any bytes are bounded by their number", "[memory][tokens]") {
  CHECK(estimate_tokens("") == 0);
  CHECK(estimate_tokens("a") == 1);
  CHECK(estimate_tokens(" ") == 0);
  CHECK(estimate_tokens("\n") == 1);
  CHECK(estimate_tokens("\xff\xfe\x80") <= 4);
  CHECK(estimate_tokens(std::string(1000, 'x')) < 1000);
}
