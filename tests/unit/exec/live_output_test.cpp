#include "boyd/exec/live_output.hpp"
#include "support/pch.hpp"

namespace boyd::live_output_test {

using namespace boyd;
using exec::live_output;

namespace {

constexpr auto out = output_stream::out;
constexpr auto err = output_stream::err;

std::string taken(live_output& from, bool at_end = false) {
  std::string all;
  for (const auto& piece : from.take(at_end))
    all += (piece.stream == out ? "out: " : "err: ") + piece.text;
  return all;
}

} // namespace

TEST_CASE("live output: whole lines are shown, the rest when the run ends", "[exec]") {
  live_output live({});
  CHECK(live.add(out, "one\ntw"));
  CHECK_FALSE(live.add(err, "warning\n")); // somebody was told already
  CHECK(taken(live) == "out: one\nerr: warning\n");
  // There was something: it is looked at once more without being asked to.
  CHECK(taken(live).empty());
  CHECK(live.add(out, "o\nthree"));
  CHECK(taken(live) == "out: two\n");
  CHECK(taken(live, true) == "out: three");
}

TEST_CASE("live output: it shows no secret, whichever pieces it came in", "[exec]") {
  live_output live({"hunter2-hunter2"});
  (void)live.add(out, "password: hunter2-");
  CHECK(taken(live).empty());
  (void)live.add(out, "hunter2\nnext\n");
  CHECK(taken(live) == "out: password: [redacted]\nnext\n");
  const std::string dashes(5, '-');
  const std::string first = "MIIBVQIBAKVNyhglMLsdbRMs3tYjey7ZHj9yH8sZcRdElNZJPJ1cNGC+MSAeaf7a";
  const std::string second = "oO7ouZl/XHwpmf2v5ZMlPNZUr0361xQnoK6z/ukjL4ryIR+e5JHFsQvstVY7/B5v";
  (void)live.add(out, "before\n" + dashes + "BEGIN PRIVATE KEY" + dashes + "\n" + first + "\n");
  CHECK(taken(live) == "out: before\n");
  (void)live.add(out, second + "\nk0J+y8j+KVXlzY5G3I7Ut8J2TSpa\n" + dashes + "END PRIVATE KEY" +
                          dashes + "\nbehind\n");
  const auto rest = taken(live);
  CHECK(rest.find(first) == std::string::npos);
  CHECK(rest.find(second) == std::string::npos);
  CHECK(rest.find("behind") != std::string::npos);
}

TEST_CASE("live output: what comes too fast is left out, and that is said", "[exec]") {
  live_output live({});
  const std::string line(1023, 'x');
  constexpr std::size_t lines = 1000;
  for (std::size_t i = 0; i < lines; ++i)
    (void)live.add(out, line + "\n");
  const auto shown = taken(live);
  CHECK(shown.size() < lines * (line.size() + 1));
  CHECK(shown.find(" bytes of output skipped because they came too fast") != std::string::npos);
  (void)live.add(out, "again\n");
  CHECK(taken(live) == "out: again\n");
}

TEST_CASE("live output: bytes that are no text do not break it", "[exec]") {
  live_output live({});
  (void)live.add(out, "\xff\xfe half: \xed\xa0\xbd\n");
  CHECK(taken(live) ==
        "out: \xEF\xBF\xBD\xEF\xBF\xBD half: \xEF\xBF\xBD\xEF\xBF\xBD\xEF\xBF\xBD\n");
}

} // namespace boyd::live_output_test
