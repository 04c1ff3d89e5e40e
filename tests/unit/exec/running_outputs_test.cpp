#include "boyd/exec/running_outputs.hpp"
#include "support/pch.hpp"

#include <rapidcheck.h>

namespace boyd::running_outputs_test {

using namespace boyd;
using exec::output_keeper;
using exec::running_outputs;

namespace {

/// A run whose standard output is `kept`.
running_outputs::source run_of(const output_keeper& kept, std::vector<std::string> secrets = {}) {
  return {7, std::move(secrets),
          [&kept](output_stream stream, std::uint64_t offset, std::size_t limit) {
            return stream == output_stream::out ? kept.since(offset, limit)
                                                : output_keeper::piece{offset, {}, false};
          }};
}

/// All that can be read now, part by part; each gap as "[N]".
std::string all_of(const running_outputs& outputs, std::uint64_t& place) {
  std::string text;
  for (;;) {
    const auto seen = outputs.read("d", {place, 0});
    REQUIRE(seen);
    if (seen->out.next == place)
      return text;
    if (seen->out.missing > 0)
      text += "[" + std::to_string(seen->out.missing) + "]";
    text += seen->out.text;
    place = seen->out.next;
  }
}

} // namespace

TEST_CASE("running outputs: whole lines, from where the last part ended", "[exec]") {
  output_keeper kept(1000);
  running_outputs outputs;
  CHECK_FALSE(outputs.read("d", {}));
  auto known = outputs.add("d", run_of(kept));
  std::uint64_t place = 0;
  kept.append("one\ntw");
  CHECK(all_of(outputs, place) == "one\n");
  CHECK(all_of(outputs, place).empty());
  kept.append("o\nthree\n");
  CHECK(all_of(outputs, place) == "two\nthree\n");
  CHECK(outputs.read("d", {})->fence == 7);
  known.reset();
  CHECK_FALSE(outputs.read("d", {}));
}

TEST_CASE("running outputs: of two runs with one id the later one is known", "[exec]") {
  output_keeper first(100);
  output_keeper second(100);
  first.append("first\n");
  second.append("second\n");
  running_outputs outputs;
  auto one = outputs.add("d", run_of(first));
  auto two = outputs.add("d", run_of(second));
  one.reset();
  CHECK(outputs.read("d", {})->out.text == "second\n");
}

TEST_CASE("running outputs: what is not kept is counted, and nothing stands still", "[exec]") {
  output_keeper kept(20);
  running_outputs outputs;
  const auto known = outputs.add("d", run_of(kept));
  kept.append("0123456\n89abcdefghijklmnopqrs\ntuvwxyz\n");
  std::uint64_t place = 0;
  CHECK(all_of(outputs, place) == "0123456\n89[18]s\ntuvwxyz\n");
  CHECK(place == kept.total());
  kept.append("end\n");
  CHECK(all_of(outputs, place) == "end\n");
  // A place behind the end is nobody's, and no trouble.
  CHECK(outputs.read("d", {1000, 1000})->out.text.empty());
}

TEST_CASE("running outputs: no secret, on whichever side of a cut", "[exec]") {
  output_keeper kept(40);
  running_outputs outputs;
  const auto known = outputs.add("d", run_of(kept, {"hunter2-hunter2"}));
  kept.append("a hunter2-hunter2\nb hunter2-");
  kept.append("hunter2 and much more between here hunter2-hunter2 z\n");
  std::uint64_t place = 0;
  const auto text = all_of(outputs, place);
  INFO(text);
  CHECK(text.find("hunter2-hunter2") == std::string::npos);
  CHECK(text.find("a [redacted]\n") != std::string::npos);
}

TEST_CASE("running outputs: read in any portions, the parts are the whole", "[exec]") {
  REQUIRE(rc::check([](const std::vector<std::vector<bool>>& portions) {
    output_keeper kept(1u << 20);
    running_outputs outputs;
    const auto known = outputs.add("d", run_of(kept));
    std::string whole;
    std::string read;
    std::uint64_t place = 0;
    for (const auto& portion : portions) {
      std::string text;
      for (const bool is_end : portion)
        text += is_end ? '\n' : 'x';
      whole += text;
      kept.append(text);
      read += all_of(outputs, place);
    }
    RC_ASSERT(read == whole.substr(0, whole.rfind('\n') + 1));
  }));
}

} // namespace boyd::running_outputs_test
