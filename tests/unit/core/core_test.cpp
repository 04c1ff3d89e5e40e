#include "boyd/core/cycle.hpp"
#include "boyd/core/dispatch.hpp"
#include "boyd/core/errc.hpp"
#include "boyd/core/result.hpp"
#include "boyd/core/sha256.hpp"
#include "boyd/core/verdict.hpp"
#include "support/pch.hpp"

#include <set>

namespace boyd::core_test {

using namespace boyd;

namespace {

/// Every enumerator has a name of its own that reads back, and the first number past the end none.
template <class E, class From>
void check_names(std::size_t count, From from) {
  std::set<std::string_view> seen;
  for (std::size_t i = 0; i < count; ++i) {
    const auto value = static_cast<E>(i);
    const auto back = from(name_of(value));
    REQUIRE(back.has_value());
    CHECK(*back == value);
    seen.insert(name_of(value));
  }
  CHECK(seen.size() == count);
  CHECK(name_of(static_cast<E>(count)) == "unknown");
  CHECK_FALSE(from("unknown").has_value());
  CHECK_FALSE(from("").has_value());
}

} // namespace

TEST_CASE("every stable name reads back") {
  check_names<execution_verdict>(7, execution_verdict_from);
  check_names<claim_verdict>(3, claim_verdict_from);
  check_names<verification_verdict>(3, verification_verdict_from);
  check_names<failure_class>(6, failure_class_from);
  check_names<dispatch_status>(5, dispatch_status_from);
  check_names<cycle_status>(5, cycle_status_from);
  check_names<occurrence_state>(5, occurrence_state_from);
  CHECK(name_of(execution_verdict::timed_out) == "timed_out");
  CHECK(name_of(cycle_status::partial_success) == "partial_success");
  CHECK(name_of(settle_result::already_settled) == "already_settled");
}

TEST_CASE("every error code has a name and a category") {
  std::set<std::string_view> names;
  std::size_t known = 0;
  for (int i = 0; i < 256; ++i) {
    const auto code = static_cast<errc>(i);
    if (name_of(code) == "unknown") {
      CHECK(category_of(code) == error_category::bug);
      continue;
    }
    ++known;
    names.insert(name_of(code));
    CHECK(name_of(category_of(code)) != "unknown");
  }
  CHECK(known == 23);
  CHECK(names.size() == known);
  CHECK(category_of(errc::store_unavailable) == error_category::transient);
  CHECK(category_of(errc::stale_fence) == error_category::conflict);
  CHECK(category_of(errc::invalid_configuration) == error_category::config);
  CHECK(category_of(errc::overloaded) == error_category::overloaded);
  CHECK(category_of(errc::cancelled) == error_category::cancelled);
  CHECK(category_of(errc::corrupt) == error_category::permanent);
}

TEST_CASE("an error reads as where, what, next") {
  CHECK(to_string(error{errc::not_found, "no such agent: x", "boyd.yaml:3:1", "run boyd agents"}) ==
        "boyd.yaml:3:1: no such agent: x; run boyd agents");
  CHECK(to_string(error{errc::not_found, "no such agent: x", {}, {}}) == "no such agent: x");
  CHECK(to_string(error{errc::no_space, {}, "STATE.md", {}}) == "STATE.md: no_space");
}

TEST_CASE("only a good execution without a failed claim or check is a success") {
  run_outcome o;
  CHECK_FALSE(is_success(o));
  o.execution = execution_verdict::succeeded;
  CHECK(is_success(o));
  o.verification = verification_verdict::passed;
  CHECK(is_success(o));
  o.claim = claim_verdict::failed;
  CHECK_FALSE(is_success(o));
  o.claim = claim_verdict::done;
  o.verification = verification_verdict::failed;
  CHECK_FALSE(is_success(o));
  o.verification = verification_verdict::none;
  o.execution = execution_verdict::indeterminate;
  CHECK_FALSE(is_success(o));
}

TEST_CASE("retryable classes and final states are exactly these") {
  CHECK(is_retryable(failure_class::transient));
  CHECK(is_retryable(failure_class::flaky));
  for (const auto c : {failure_class::none, failure_class::deterministic,
                       failure_class::environment, failure_class::policy})
    CHECK_FALSE(is_retryable(c));
  CHECK_FALSE(is_final(dispatch_status::pending));
  CHECK_FALSE(is_final(dispatch_status::running));
  for (const auto s : {dispatch_status::done, dispatch_status::failed, dispatch_status::cancelled})
    CHECK(is_final(s));
}

TEST_CASE("sha256_hex gives the digests of FIPS 180-4") {
  CHECK(sha256_hex("") == "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
  CHECK(sha256_hex("abc") == "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  CHECK(sha256_hex(std::string(1'000'000, 'a')) ==
        "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0");
}

} // namespace boyd::core_test
