#include "boyd/core/money.hpp"
#include "support/pch.hpp"

#include <rapidcheck.h>

#include <limits>

namespace boyd::money_test {

using namespace boyd;

TEST_CASE("money: dollars are read exactly, or not at all", "[money]") {
  CHECK(parse_dollars("2.50") == 2'500'000);
  CHECK(parse_dollars("3") == 3'000'000);
  CHECK(parse_dollars("0") == 0);
  CHECK(parse_dollars("0.000001") == 1);
  CHECK(parse_dollars("007.1") == 7'100'000);
  CHECK(parse_dollars("9223372036854.775807") == std::numeric_limits<std::int64_t>::max());
  for (const auto* text : {"", ".", "1.", ".5", "-1", "+1", "1e3", "1,5", "$1", " 1", "1 ", "0x1",
                           "1.2345678", "1.2.3", "9223372036854.775808", "99999999999999999999"}) {
    INFO(text);
    CHECK_FALSE(parse_dollars(text));
  }
}

TEST_CASE("money: what is shown is all of it", "[money]") {
  CHECK(format_dollars(0) == "0.00");
  CHECK(format_dollars(2'500'000) == "2.50");
  CHECK(format_dollars(125) == "0.000125");
  CHECK(format_dollars(-1'000'000) == "-1.00");
  CHECK(format_dollars(std::numeric_limits<std::int64_t>::min()) == "-9223372036854.775808");
  REQUIRE(rc::check("what is shown is read back", [](std::int64_t amount) {
    const auto text = format_dollars(amount);
    const bool negative = amount < 0;
    const auto back = parse_dollars(std::string_view(text).substr(negative ? 1 : 0));
    RC_PRE(amount != std::numeric_limits<std::int64_t>::min());
    RC_ASSERT(back.has_value());
    RC_ASSERT(*back == (negative ? -amount : amount));
  }));
}

} // namespace boyd::money_test
