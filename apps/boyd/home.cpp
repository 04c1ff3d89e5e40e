#include "home.hpp"

#include "adapters/libgit2/repository.hpp"
#include "adapters/posix/clock.hpp"
#include "adapters/posix/entropy.hpp"
#include "adapters/posix/file_system.hpp"
#include "adapters/postgres/archive.hpp"
#include "adapters/postgres/store.hpp"
#include "adapters/sqlite/archive.hpp"
#include "adapters/sqlite/store.hpp"
#include "adapters/tz/zones.hpp"
#include "adapters/zstd/unpack.hpp"
#include "boyd/core/ids.hpp"
#include "boyd/core/limits.hpp"
#include "boyd/core/text.hpp"
#include "boyd/faults/points.hpp"
#include "boyd/files/atomic_file.hpp"
#include "boyd/ports/clock.hpp"
#include "boyd/ports/entropy.hpp"
#include "boyd/ports/file_system.hpp"
#include "boyd/ports/time_zones.hpp"
#include "store_identity.hpp"
#include "terminal.hpp"

#include <charconv>
#include <cstdlib>
#include <filesystem>
#include <utility>

namespace boyd::app {

namespace {

constexpr std::size_t node_id_bytes = 256;
constexpr std::size_t password_bytes = 4096;

std::string variable(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? std::string{} : std::string(value);
}

result<std::string> absolute(const std::string& path) {
  std::error_code failed;
  auto full = std::filesystem::absolute(path, failed);
  if (failed)
    return fail(errc::io_error, "cannot read the working directory", path);
  auto text = full.lexically_normal().string();
  while (text.size() > 1 && text.back() == '/')
    text.pop_back();
  return text;
}

result<std::string> standard_home() {
  if (auto home = variable("BOYD_HOME"); !home.empty())
    return home;
  if (auto state = variable("XDG_STATE_HOME"); !state.empty())
    return state + "/boyd";
  if (auto home = variable("HOME"); !home.empty())
    return home + "/.local/state/boyd";
  return fail(errc::invalid_argument, "no home given", "$HOME is not set",
              "use --home DIR, or set BOYD_HOME");
}

/// What helps depends on why: only where there is no file would init write one, and not a file
/// that it was to copy.
result<std::string> read_text(const std::string& path, file_system& files) {
  auto text = files.read(path, limits::config_bytes);
  if (text)
    return text;
  const auto& e = text.error();
  if (e.code == errc::not_found)
    return fail(errc::invalid_configuration, "configuration file not found", path,
                "check the name");
  auto next = e.next;
  if (e.code == errc::limit_exceeded)
    next = "the file is too large for a configuration; check the name";
  else if (next.empty())
    next = "use a file that boyd can read";
  return fail(errc::invalid_configuration, "cannot read the configuration: " + e.what, path,
              std::move(next));
}

result<adapters::postgres_options> postgres_of(const ports& p, const config::configuration& c,
                                               const std::string& uri) {
  adapters::postgres_options options;
  options.uri = uri;
  options.random = p.random;
  if (const auto& path = c.node_settings.store_password_file; !path.empty()) {
    auto text = p.files->read(path, password_bytes);
    if (!text)
      return fail(errc::invalid_configuration,
                  "cannot read the password file of the database: " + text.error().what, path,
                  "fix node.store_password_file");
    options.password = std::string(trim(*text));
  }
  return options;
}

} // namespace

result<place> place_of(const arguments& args) {
  auto named = args.home.empty() ? standard_home() : result<std::string>(args.home);
  if (!named)
    return fail(std::move(named.error()));
  auto home = absolute(*named);
  if (!home)
    return fail(std::move(home.error()));
  place where;
  where.home = std::move(*home);
  where.config_path = where.layout().configuration();
  if (!args.config.empty()) {
    auto path = absolute(args.config);
    if (!path)
      return fail(std::move(path.error()));
    where.config_path = std::move(*path);
  }
  return where;
}

namespace {

/// A place that may not or cannot be looked at is not one that is missing.
result<void> check_seen(const std::string& path) {
  std::error_code failed;
  if (std::filesystem::status(path, failed).type() != std::filesystem::file_type::none)
    return {};
  if (failed == std::errc::permission_denied)
    return fail(errc::refused, "permission denied", path,
                "run boyd as the owner of the home, or use another home: --home DIR");
  return fail(errc::io_error, "cannot access it: " + failed.message(), path,
              "check the system log for disk errors, then try again");
}

} // namespace

result<void> require_home(const place& where) {
  for (const auto& path : {where.home, where.layout().run(), where.config_path})
    if (auto seen = check_seen(path); !seen)
      return seen;
  std::error_code ignored;
  if (std::filesystem::exists(where.home, ignored) &&
      !std::filesystem::is_directory(where.home, ignored))
    return fail(errc::not_found, "the home is not a directory", where.home,
                "use another home: --home DIR");
  if (!std::filesystem::is_directory(where.home, ignored))
    return fail(errc::not_found, "no Boyd home at " + where.home, {},
                "boyd --home " + where.home + " init");
  if (!std::filesystem::exists(where.config_path, ignored) && where.has_own_config())
    return fail(errc::invalid_configuration, "configuration file not found", where.config_path,
                "use another file with --config, or leave it out to use " +
                    where.layout().configuration());
  if (!std::filesystem::exists(where.config_path, ignored))
    return fail(errc::not_found, "no Boyd home at " + where.home + ": boyd.yaml is missing",
                where.config_path,
                "make one: boyd --home " + where.home +
                    " init\n  or name a configuration that is elsewhere: --config FILE");
  return {};
}

config::environment_lookup environment() {
  return [](const std::string& name) -> std::optional<std::string> {
    const char* value = std::getenv(name.c_str());
    return value == nullptr ? std::nullopt : std::optional<std::string>(value);
  };
}

namespace {

config::file_reader reader_of(file_system& files) {
  return [&files](const std::string& path) { return files.read(path, limits::config_bytes); };
}

} // namespace

result<config::load_result> read_configuration(const std::string& path, file_system& files,
                                               const time_zones& zones) {
  auto text = read_text(path, files);
  if (!text)
    return fail(std::move(text.error()));
  return config::load(path, *text, environment(), zones, config::unset_variables::are_errors,
                      reader_of(files));
}

error error_of(const config::load_result& loaded, const std::string& path) {
  const auto n = loaded.findings.size();
  std::string what = "the configuration has " + std::to_string(n) + (n == 1 ? " error" : " errors");
  for (const auto& f : loaded.findings)
    what += "\n  " + f.text();
  return {errc::invalid_configuration, std::move(what), path,
          "fix the file, then run: boyd config validate"};
}

result<std::shared_ptr<const config::configuration>> parse_configuration(const std::string& path,
                                                                         const std::string& text,
                                                                         file_system& files,
                                                                         const time_zones& zones) {
  auto loaded = config::load(path, text, environment(), zones, config::unset_variables::are_errors,
                             reader_of(files));
  if (!loaded.value)
    return fail(error_of(loaded, path));
  return std::make_shared<const config::configuration>(std::move(*loaded.value));
}

result<std::shared_ptr<const config::configuration>>
load_configuration(const std::string& path, file_system& files, const time_zones& zones) {
  auto text = read_text(path, files);
  if (!text)
    return fail(std::move(text.error()));
  return parse_configuration(path, *text, files, zones);
}

namespace {

/// "A, B and C"
std::string enumerated(const std::vector<std::string>& names) {
  std::string text;
  for (std::size_t i = 0; i < names.size(); ++i)
    text += (i == 0 ? "" : i + 1 == names.size() ? " and " : ", ") + names[i];
  return text;
}

} // namespace

result<std::shared_ptr<const config::configuration>>
load_configuration_to_ask(const std::string& path, file_system& files, const time_zones& zones) {
  auto text = read_text(path, files);
  if (!text)
    return fail(std::move(text.error()));
  return parse_configuration_to_ask(path, *text, files, zones);
}

result<std::shared_ptr<const config::configuration>>
parse_configuration_to_ask(const std::string& path, const std::string& text, file_system& files,
                           const time_zones& zones, bool tell) {
  auto loaded = config::load(path, text, environment(), zones,
                             config::unset_variables::stay_as_text, reader_of(files));
  // Where a text will not do for the value (a number, a name), the missing variable is the finding.
  if (!loaded.value)
    return parse_configuration(path, text, files, zones);
  if (tell && !loaded.unset.empty())
    print_note(enumerated(loaded.unset) + (loaded.unset.size() == 1 ? " is" : " are") +
               " not set here; required by boyd node, cycle and plan (" + path + ")");
  return std::make_shared<const config::configuration>(std::move(*loaded.value));
}

config::load_result judge_configuration_to_ask(const std::string& path, const std::string& text,
                                               file_system& files, const time_zones& zones) {
  return config::load(path, text, environment(), zones, config::unset_variables::stay_as_text,
                      reader_of(files));
}

result<std::string> node_id_of(const place& where, file_system& files, clock_port& clock,
                               entropy& random) {
  const auto path = where.layout().node_id();
  const auto text = files.read(path, node_id_bytes);
  if (text && is_uuid(trim(*text)))
    return std::string(trim(*text));
  // It is there, perhaps: with another name the node would not know its own rows any more.
  if (!text && text.error().code == errc::io_error)
    return fail(text.error());
  if (auto made = files.make_directories(where.layout().run()); !made)
    return fail(std::move(made.error()));
  auto id = make_uuid_v7(clock.now(), random);
  if (auto written = files::write_atomic(files, path, id + "\n"); !written)
    return fail(std::move(written.error()));
  return id;
}

namespace {

/// Another day's time of day, for a trial that lives through many: `boyd selftest --learn` has each
/// of its commands run on the day that it has come to.
class clock_of_trial final : public clock_port {
 public:
  clock_of_trial(std::shared_ptr<clock_port> real, milliseconds ahead)
      : real_(std::move(real)), ahead_(ahead) {}

  utc_time now() const override { return real_->now() + ahead_; }
  steady_time steady() const override { return real_->steady(); }

 private:
  std::shared_ptr<clock_port> real_;
  milliseconds ahead_;
};

std::shared_ptr<clock_port> local_clock() {
  auto real = adapters::make_system_clock();
  const auto text = environment()(days_ahead_variable).value_or("");
  int days = 0;
  const auto [end, failed] = std::from_chars(text.data(), text.data() + text.size(), days);
  if (failed != std::errc{} || end != text.data() + text.size() || days < 0 ||
      days > most_days_ahead)
    return real;
  return std::make_shared<clock_of_trial>(std::move(real), days * std::chrono::hours{24});
}

} // namespace

ports local_ports() {
  ports p;
  p.clock = local_clock();
  p.random = adapters::make_system_entropy();
  p.files = adapters::make_posix_file_system();
  p.repositories = adapters::make_git_repositories();
  p.zones = adapters::make_time_zones();
  p.unpack = adapters::unpack_zstd;
  p.listen = [](const wake_function&) { return std::unique_ptr<wakeup_source>(); };
  return p;
}

result<make_store_function> plain_store(const ports& with, const place& where,
                                        const config::configuration& configuration,
                                        const std::string& name) {
  if (name == embedded_store) {
    adapters::sqlite_options options;
    options.path = where.layout().database();
    options.clock = with.clock;
    return [options] { return adapters::make_sqlite_store(options); };
  }
  auto options = postgres_of(with, configuration, name);
  if (!options)
    return fail(std::move(options.error()));
  return [o = *options] { return adapters::make_postgres_store(o); };
}

result<std::unique_ptr<store_archive>> archive_of(const ports& with, const place& where,
                                                  const config::configuration& configuration,
                                                  const std::string& name) {
  if (name == embedded_store)
    return adapters::make_sqlite_archive(where.layout().database());
  auto options = postgres_of(with, configuration, name);
  if (!options)
    return fail(std::move(options.error()));
  return adapters::make_postgres_archive(std::move(*options));
}

result<void> add_store(ports& to, const place& where, const config::configuration& configuration,
                       bool listening, const store_check& check) {
  const auto& name = configuration.node_settings.store;
  const auto identified = [files = to.files, path = where.layout().known_store(), name,
                           check](auto store) {
    return std::make_unique<identified_store>(std::move(store), files, path, name, check);
  };
  if (name == embedded_store) {
    auto make = plain_store(to, where, configuration, name);
    if (!make)
      return fail(std::move(make.error()));
    to.make_store = [make = std::move(*make), identified] { return identified(make()); };
    return {};
  }
  auto options = postgres_of(to, configuration, name);
  if (!options)
    return fail(std::move(options.error()));
  options->speaker = make_uuid_v7(to.clock->now(), *to.random);
  to.make_store = [o = *options, identified] {
    return identified(adapters::make_postgres_store(o));
  };
  if (listening)
    to.listen = [o = *options](wake_function wake) {
      return adapters::make_postgres_wakeups(o, std::move(wake));
    };
  return {};
}

} // namespace boyd::app
