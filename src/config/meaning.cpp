#include "adapters.hpp"
#include "boyd/config/cron.hpp"
#include "boyd/context/reference.hpp"
#include "boyd/core/ids.hpp"
#include "boyd/core/money.hpp"
#include "boyd/core/text.hpp"
#include "boyd/core/web_address.hpp"
#include "passes.hpp"
#include "schema.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <utility>

namespace boyd::config {
namespace {

bool is_text(const tree& t) {
  return t.kind == tree::kind_t::scalar && type_of(t) == scalar_type::string && !t.unusable;
}

/// The candidate in an error's "did you mean X?", or empty.
std::string suggestion(const error& e) {
  constexpr std::string_view lead = "did you mean ";
  if (!e.next.starts_with(lead) || !e.next.ends_with('?')) {
    return {};
  }
  return e.next.substr(lead.size(), e.next.size() - lead.size() - 1);
}

bool is_env_name(std::string_view text) {
  if (text.empty() || (text.front() >= '0' && text.front() <= '9')) {
    return false;
  }
  return text.find_first_not_of(
             "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_") ==
         std::string_view::npos;
}

bool is_exit_code(std::string_view text) {
  constexpr int highest = 255;
  int code = 0;
  const auto done = std::from_chars(text.data(), text.data() + text.size(), code);
  return done.ec == std::errc{} && done.ptr == text.data() + text.size() && code >= 1 &&
         code <= highest && text.front() != '0';
}

/// NAME:PORT.
bool is_host_and_port(std::string_view text) {
  const auto colon = text.rfind(':');
  if (colon == std::string_view::npos || colon == 0) {
    return false;
  }
  std::uint16_t port = 0;
  const auto* const end = text.data() + text.size();
  const auto done = std::from_chars(text.data() + colon + 1, end, port);
  return done.ec == std::errc{} && done.ptr == end && port > 0;
}

bool is_control(char c) {
  return (c >= 0 && c < ' ' && c != '\t') || c == '\x7f';
}

bool is_space_or_control(char c) {
  return c == ' ' || c == '\t' || is_control(c);
}

/// A token of RFC 9110 §5.6.2.
bool is_header_name(std::string_view text) {
  return !text.empty() &&
         text.find_first_not_of("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789"
                                "!#$%&'*+-.^_`|~") == std::string_view::npos;
}

/// The checks of single values, chosen by the schema's x-kind.
class value_checks {
 public:
  value_checks(pass& p, const time_zones& zones) : p_(p), zones_(zones) {}

  void check(const place& at) {
    const auto kind = word(at.at, "x-kind");
    if (kind == "requirement") {
      requirement_entry(at);
    } else if (at.value.kind == tree::kind_t::map) {
      keys(at);
    } else if (at.value.kind == tree::kind_t::scalar && !at.value.unusable) {
      scalar(at, kind);
    }
  }

 private:
  void wrong(const place& at, std::string problem, std::string near = {}) {
    p_.report(at.value.at, at.key, std::move(problem), describe(*at.at.front()), std::move(near));
  }

  /// An error about a value may quote it; a secret's may not.
  void hidden_or(const place& at, const char* hidden, const error& e) {
    if (at.value.secret) {
      wrong(at, hidden);
    } else {
      wrong(at, e.code == errc::io_error ? to_string(e) : e.what, suggestion(e));
    }
  }

  void scalar(const place& at, std::string_view kind) {
    const auto& text = at.value.text;
    if (kind == "duration") {
      if (text.empty() || text != word(at.at, "x-word")) {
        duration(at);
      }
    } else if (kind == "size") {
      size(at);
    } else if (kind == "dollars") {
      dollars(at);
    } else if (!is_text(at.value)) {
      return;
    } else if (kind == "reference") {
      reference_entry(at);
    } else if (model_text(at, kind)) {
      return;
    } else if (kind == "cron") {
      if (const auto fields = parse_cron(text); !fields) {
        hidden_or(at, "not a schedule", fields.error());
      }
    } else if (kind == "tz") {
      zone(at);
    } else if (kind == "name" && !is_valid_name(text)) {
      wrong(at, shown(at.value) + " is not a valid name");
    } else if (kind == "env_name" && !is_env_name(text)) {
      wrong(at, shown(at.value) + " is not a variable name");
    } else if (kind == "host_and_port" && !is_host_and_port(text)) {
      wrong(at, shown(at.value) + " is not HOST:PORT");
    } else if (kind == "store") {
      store(at);
    } else if (kind == "url" && !text.empty()) {
      if (const auto address = parse_web_address(text); !address) {
        hidden_or(at, "not a web address", address.error());
      }
    } else if (kind == "path" && text.starts_with("~")) {
      p_.report(at.value.at, at.key, "~ is not expanded", "${HOME}" + text.substr(1));
    } else if (kind == "person" &&
               (text.empty() || text.find_first_of("<>\n") != std::string::npos)) {
      wrong(at, shown(at.value) + " is not the name of an author");
    } else if (text.empty() && at.at.front()->value("minLength", 0) > 0) {
      wrong(at, "empty");
    }
  }

  /// What only the keys about models have; false for all else.
  bool model_text(const place& at, std::string_view kind) {
    const auto& text = at.value.text;
    if (kind == "base_url") {
      if (const auto address = parse_web_address(text); !address) {
        hidden_or(at, "not a web address", address.error());
      } else if (text.find('?') != std::string::npos) {
        wrong(at, "the base URL must not have a query, because paths are appended");
      }
    } else if (kind == "tool" || kind == "tool_pattern") {
      if (const auto known = check_tool(text, kind == "tool_pattern"); !known) {
        wrong(at, shown(at.value) + ": " + known.error().what, known.error().next);
      }
    } else if (kind == "word" && std::ranges::any_of(text, is_space_or_control)) {
      wrong(at, shown(at.value) + " contains spaces");
    } else if (kind == "pointer" && !pointer_problem(text).empty()) {
      wrong(at, shown(at.value) + ": " + std::string(pointer_problem(text)));
    } else if (kind == "header_value" && std::ranges::any_of(text, is_control)) {
      wrong(at, "contains a line break or another control character");
    } else {
      return kind == "word" || kind == "header_value" || kind == "pointer";
    }
    return true;
  }

  void dollars(const place& at) {
    const auto type = type_of(at.value);
    if (type == scalar_type::null || type == scalar_type::boolean) {
      return;
    }
    const auto value = parse_dollars(at.value.text);
    const auto high = at.at.front()->at("maximum").get<std::int64_t>();
    if (!value) {
      wrong(at, shown(at.value) + " is not an amount of dollars");
    } else if (*value > high * dollar) {
      p_.report(at.value.at, at.key, shown(at.value) + " is too much",
                "at most " + std::to_string(high) + " dollars");
    }
  }

  void duration(const place& at) {
    const auto type = type_of(at.value);
    if (type == scalar_type::null || type == scalar_type::boolean) {
      return;
    }
    const auto value = parse_duration(at.value.text);
    if (!value) {
      hidden_or(at, "not a duration", value.error());
      return;
    }
    const auto low = std::string(word(at.at, "x-min"));
    const auto high = std::string(word(at.at, "x-max"));
    if (*value < parse_duration(low).value_or(milliseconds{0})) {
      wrong(at, shown(at.value) + " is too short");
    } else if (*value > parse_duration(high).value_or(*value)) {
      p_.report(at.value.at, at.key, shown(at.value) + " is too long", "at most " + high);
    }
  }

  void size(const place& at) {
    const auto type = type_of(at.value);
    if (type == scalar_type::null || type == scalar_type::boolean) {
      return;
    }
    const auto value = parse_size(at.value.text);
    const auto low = at.at.front()->at("minimum").get<std::size_t>();
    const auto high = at.at.front()->at("maximum").get<std::size_t>();
    if (!value) {
      wrong(at, shown(at.value) + " is not a size");
    } else if (*value < low || *value > high) {
      p_.report(at.value.at, at.key, shown(at.value) + " is out of range",
                "from " + std::to_string(low) + " to " + std::to_string(high) + " bytes");
    }
  }

  void zone(const place& at) {
    const auto found = zones_.find(at.value.text);
    if (!found) {
      hidden_or(at, "not a time zone", found.error());
    }
  }

  void store(const place& at) {
    const auto& text = at.value.text;
    if (text == "sqlite") {
      return;
    }
    if (!text.starts_with("postgres://") && !text.starts_with("postgresql://")) {
      wrong(at, shown(at.value) + " is not a store", std::string(nearest(text, {"sqlite"})));
    } else if (!uri_password(text).empty() || text.find("password=") != std::string::npos) {
      p_.report(at.value.at, at.key, "the address contains a password",
                "store_password_file, or the environment variable PGPASSWORD");
    }
  }

  void keys(const place& at) {
    const auto kind = word(at.at, "x-keys");
    for (const auto& key : at.value.keys) {
      if (kind == "env_name" && !is_env_name(key.text)) {
        p_.report(key.at, child_path(at.key, key.text), "not a variable name",
                  "letters, digits and _, not starting with a digit");
      } else if (kind == "header_name" && !is_header_name(key.text)) {
        p_.report(key.at, child_path(at.key, key.text), "not a header name",
                  "letters, digits and -");
      } else if (kind == "pointer" && !pointer_problem(key.text).empty()) {
        p_.report(key.at, child_path(at.key, key.text), std::string(pointer_problem(key.text)),
                  "a JSON pointer (RFC 6901) such as /type");
      } else if (kind == "exit_code" && !is_exit_code(key.text)) {
        p_.report(key.at, child_path(at.key, key.text), "not an exit code", "1 to 255");
      }
    }
  }

  void reference_entry(const place& at) {
    const auto parsed = context::parse_declared(at.value.text);
    if (!parsed) {
      hidden_or(at, "not a reference", parsed.error());
    } else if (parsed->kind == context::reference_kind::command) {
      if (const auto words = context::words_of_command(parsed->target); !words) {
        p_.report(at.value.at, at.key, words.error().what, words.error().next);
      }
    }
  }

  void requirement_entry(const place& at) {
    const bool one_key = at.value.kind == tree::kind_t::map && at.value.items.size() == 1;
    if (!one_key && !is_text(at.value)) {
      return;
    }
    if (const auto parsed = parse_requirement(at.value); !parsed && is_text(at.value)) {
      wrong(at, parsed.error().what, parsed.error().next);
    }
  }

  pass& p_;
  const time_zones& zones_;
};

} // namespace

void check_meaning(pass& p, const tree& root, const time_zones& zones) {
  value_checks values(p, zones);
  walk(root, [&](const place& at) { values.check(at); });
  check_combinations(p, root);
  check_models(p, root);
  check_mcp(p, root);
  check_policies(p, root);
  check_adapters(p, root);
}

} // namespace boyd::config
