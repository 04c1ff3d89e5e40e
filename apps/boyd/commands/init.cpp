#include "../exit_codes.hpp"
#include "../hints.hpp"
#include "../home.hpp"
#include "../person.hpp"
#include "../signals.hpp"
#include "../store_identity.hpp"
#include "../terminal.hpp"
#include "adapters/libgit2/repository.hpp"
#include "adapters/posix/home_lock.hpp"
#include "adapters/tz/zones.hpp"
#include "boyd/config/cron.hpp"
#include "boyd/config/load.hpp"
#include "boyd/core/ids.hpp"
#include "boyd/core/limits.hpp"
#include "boyd/core/text.hpp"
#include "boyd/files/atomic_file.hpp"
#include "boyd/plan/schedule.hpp"
#include "boyd/ports/clock.hpp"
#include "boyd/ports/dispatch_store.hpp"
#include "boyd/ports/file_system.hpp"
#include "boyd/ports/repository.hpp"
#include "boyd/ports/time_zones.hpp"
#include "boyd/state/seed.hpp"
#include "boyd/state/versioned_store.hpp"
#include "commands.hpp"
#include "copy_configuration.hpp"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <optional>
#include <sys/stat.h>
#include <unistd.h>

namespace boyd::app {

namespace {

constexpr mode_t others = 077;
constexpr mode_t private_mode = 0700;

using settings_ptr = std::shared_ptr<const config::configuration>;

/// What was there and what was made, in order.
struct init_report {
  std::vector<std::pair<std::string, bool>> items; ///< path, made now

  void note(const std::string& path, bool made) { items.emplace_back(path, made); }
};

/// Puts a name, a schedule and a time zone into the first kernel of the standard file.
std::string with_answers(std::string text, const std::string& name, const std::string& schedule,
                         const std::string& zone) {
  constexpr std::string_view id = "kernel_id: default\n";
  constexpr std::string_view schedule_key = "    schedule: ";
  constexpr std::string_view zone_value = "    tz: UTC";
  if (const auto at = text.find(zone_value); at != std::string::npos && zone != "UTC") {
    const auto begin = at + zone_value.size() - 3;
    // The comment behind it stays in its column while there is room.
    const auto blanks = text.find_first_not_of(' ', begin + 3) - begin;
    text.replace(begin, blanks,
                 zone + std::string(blanks > zone.size() ? blanks - zone.size() : 1, ' '));
  }
  if (!schedule.empty())
    if (const auto at = text.find(schedule_key); at != std::string::npos) {
      const auto begin = at + schedule_key.size();
      const auto end = text.find('"', begin + 1) + 1;
      text.replace(begin, end - begin, nlohmann::json(schedule).dump());
    }
  if (!name.empty() && name != "default")
    if (const auto at = text.find(id); at != std::string::npos)
      text.replace(at, id.size(), "kernel_id: " + nlohmann::json(name).dump() + "\n");
  return text;
}

/// A schedule that is none is told of here: the file whose line a finding would name is not
/// written.
result<std::string> standard_text(const arguments& args) {
  auto name = args.name;
  auto schedule = args.schedule;
  const auto zone = adapters::local_zone_name();
  if (can_ask(args)) {
    if (name.empty() && !ask_person(name, "Name of the kernel", "default", problem_of_name))
      return fail(unanswered());
    if (schedule.empty() &&
        !ask_person(schedule, "Schedule, in the time zone " + zone + " (cron, @hourly, @every 30s)",
                    "*/10 * * * *", problem_of_schedule))
      return fail(unanswered());
  }
  if (!name.empty() && !is_valid_name(name))
    return fail(errc::invalid_argument, "this name cannot be a kernel's",
                "--name " + nlohmann::json(name).dump(), problem_of_name(name));
  if (!schedule.empty())
    if (auto fields = config::parse_cron(schedule); !fields)
      return fail(errc::invalid_argument, "not a schedule: " + fields.error().what,
                  "--schedule " + nlohmann::json(schedule).dump(), fields.error().next);
  return with_answers(config::default_yaml(), name, schedule, zone);
}

/// The text of the new boyd.yaml, and what it must mean when it is a copy.
struct new_configuration {
  std::string text;
  settings_ptr original;
};

result<new_configuration> make_text(const arguments& args, const ports& p) {
  if (args.from.empty()) {
    auto text = standard_text(args);
    if (!text)
      return fail(std::move(text.error()));
    return new_configuration{std::move(*text), nullptr};
  }
  const auto from = std::filesystem::absolute(args.from).lexically_normal().string();
  // It is copied, not run: the secrets that it names need not be here.
  auto original = load_configuration_to_ask(from, *p.files, *p.zones);
  if (!original)
    return fail(std::move(original.error()));
  auto text = p.files->read(from, limits::config_bytes);
  if (!text)
    return fail(std::move(text.error()));
  return new_configuration{moved_configuration(from, *text), *original};
}

/// Writes `bytes` unless the file exists.
result<void> write_new(const ports& p, const std::string& path, const std::string& bytes,
                       init_report& report) {
  auto info = p.files->stat(path);
  if (!info)
    return fail(std::move(info.error()));
  const bool missing = info->kind == file_kind::missing;
  report.note(path, missing);
  return missing ? files::write_atomic(*p.files, path, bytes) : result<void>{};
}

/// What init is going to do, decided before anything is written: what is refused leaves nothing.
struct init_plan {
  std::optional<std::string> new_text; ///< of the configuration; nothing: it is there already
  settings_ptr settings;
};

result<init_plan> make_plan(const arguments& args, const place& where, const ports& p) {
  auto info = p.files->stat(where.config_path);
  if (!info)
    return fail(std::move(info.error()));
  init_plan plan;
  if (info->kind != file_kind::missing) {
    auto settings = load_configuration(where.config_path, *p.files, *p.zones);
    if (!settings)
      return fail(std::move(settings.error()));
    plan.settings = std::move(*settings);
    return plan;
  }
  auto made = make_text(args, p);
  if (!made)
    return fail(std::move(made.error()));
  auto settings =
      made->original
          ? parse_configuration_to_ask(where.config_path, made->text, *p.files, *p.zones, false)
          : parse_configuration(where.config_path, made->text, *p.files, *p.zones);
  if (!settings)
    return fail(std::move(settings.error()));
  if (made->original)
    if (auto same = same_meaning(*made->original, **settings); !same)
      return fail(std::move(same.error()));
  plan.new_text = std::move(made->text);
  plan.settings = std::move(*settings);
  return plan;
}

/// A kernel's home is a repository of its own, which has no place inside somebody else's.
result<void> check_places(const place& where, const config::configuration& settings) {
  for (const auto& k : settings.kernels)
    if (auto free = adapters::check_place_of_repository(where.layout().kernel(k.kernel_id)); !free)
      return free;
  return {};
}

/// Writes the configuration, when it is new, and the schema. That one stays in the home: beside a
/// configuration elsewhere nothing is put that nobody asked for.
result<void> write_configuration(const place& where, const init_plan& plan, const ports& p,
                                 init_report& report) {
  if (!plan.new_text)
    report.note(where.config_path, false);
  else if (auto written = write_new(p, where.config_path, *plan.new_text, report); !written)
    return written;
  return write_new(p, where.home + "/boyd.schema.json", config::schema_json(), report);
}

result<void> make_kernel(const place& where, const config::kernel& k, const ports& p,
                         init_report& report) {
  state::versioned_store_options options;
  options.path = where.layout().kernel(k.kernel_id);
  options.who = {k.author_name, k.author_email};
  options.auto_commit = k.auto_commit;
  const auto git_dir = options.path + "/.git";
  const auto before = p.files->stat(git_dir);
  const bool had_none = before && before->kind == file_kind::missing;
  state::versioned_store store(*p.files, *p.repositories, *p.clock, options);
  if (auto made = store.init(); !made)
    return made;
  if (store.health().degraded)
    return fail(errc::repository_unavailable, store.health().reason, options.path,
                "see: boyd doctor");
  // The agents' part may be in the backup or the history: the node restores it from there.
  const auto backup = p.files->stat(options.path + "/STATE.md.bak");
  const auto history = store.history("STATE.md", 1);
  const bool kept =
      (backup && backup->kind != file_kind::missing) || (history && !history->empty());
  auto seeded =
      kept ? result<bool>{false}
           : store.seed("STATE.md", state::seed_state(k.name.empty() ? k.kernel_id : k.name));
  if (!seeded)
    return fail(std::move(seeded.error()));
  report.note(options.path, *seeded);
  if (!*seeded && had_none)
    report.note(git_dir, true);
  if (!*seeded && !had_none)
    return {};
  auto committed = store.commit_all("init: kernel home");
  return committed ? result<void>{} : fail(std::move(committed.error()));
}

result<void> make_store(const place& where, const config::configuration& settings, ports& p,
                        init_report& report) {
  if (auto added = add_store(p, where, settings, false); !added)
    return added;
  const bool embedded = settings.node_settings.store == "sqlite";
  if (embedded) {
    auto info = p.files->stat(where.layout().database());
    report.note(where.layout().database(), info && info->kind == file_kind::missing);
    // Whoever runs init without a database accepts an empty one (check_database_is_there), but not
    // in the place of another kind of store.
    const bool lost = info && (info->kind == file_kind::missing || info->size == 0);
    const auto known = read_known_store(*p.files, where.layout().known_store());
    if (lost && known && *known) {
      if ((*known)->name != embedded_store)
        return fail(another_store(**known, embedded_store, "a missing database",
                                  where.layout().database()));
      if (auto forgotten = p.files->unlink(where.layout().known_store()); !forgotten)
        return forgotten;
    }
  }
  auto store = p.make_store();
  auto opened = store->open();
  if (!embedded && opened)
    report.note(store->describe(), false);
  return opened;
}

/// Directories that are made are private; one that is there is made so when it is a home already,
/// or holds nothing but a configuration.
result<void> make_private(const place& where, const ports& p) {
  struct ::stat info {};
  if (::lstat(where.home.c_str(), &info) != 0 || !S_ISDIR(info.st_mode) ||
      (info.st_mode & others) == 0)
    return {};
  auto names = p.files->list(where.home);
  if (!names)
    return fail(std::move(names.error()));
  const auto id = p.files->stat(where.layout().node_id());
  const bool is_home = id && id->kind == file_kind::regular;
  const bool is_bare = std::ranges::all_of(
      *names, [](const auto& name) { return name == "boyd.yaml" || name == "boyd.schema.json"; });
  if (!is_home && !is_bare)
    return fail(errc::refused,
                "the directory is accessible to other users and contains other files", where.home,
                "choose another home, or: chmod 0700 " + where.home);
  if (::chmod(where.home.c_str(), private_mode) != 0)
    return fail(errc::refused,
                std::string("cannot restrict access to the home: ") + std::strerror(errno),
                where.home, "run as its owner, or choose another home");
  return {};
}

result<void> make_home(const arguments& args, const place& where, ports& p, init_report& report) {
  auto plan = make_plan(args, where, p);
  if (!plan)
    return fail(std::move(plan.error()));
  if (auto free = check_places(where, *plan->settings); !free)
    return free;
  if (auto tight = make_private(where, p); !tight)
    return tight;
  for (const auto& directory : {where.home, where.layout().run(), where.layout().kernels()})
    if (auto made = p.files->make_directories(directory); !made)
      return made;
  auto id = node_id_of(where, *p.files, *p.clock, *p.random);
  if (!id)
    return fail(std::move(id.error()));
  auto lock = adapters::home_lock::acquire(where.home, p.clock->now(), *id);
  if (!lock)
    return fail(std::move(lock.error()));
  if (auto written = write_configuration(where, *plan, p, report); !written)
    return written;
  for (const auto& k : plan->settings->kernels)
    if (auto made = make_kernel(where, k, p, report); !made)
      return made;
  return make_store(where, *plan->settings, p, report);
}

void print_report(const arguments& args, const place& where, const init_report& report) {
  if (args.json) {
    nlohmann::json made = nlohmann::json::array();
    nlohmann::json kept = nlohmann::json::array();
    for (const auto& [path, is_new] : report.items)
      (is_new ? made : kept).push_back(path);
    print(nlohmann::json{{"schema", "boyd.init/1"},
                         {"home", where.home},
                         {"config", where.config_path},
                         {"made", made},
                         {"kept", kept}}
              .dump() +
          "\n");
    return;
  }
  const auto t = terminal_of_stdout(args);
  print("Boyd home: " + where.home + "\n");
  for (const auto& [path, is_new] : report.items)
    print("  " + t.paint(is_new ? colour::good : colour::faint, is_new ? "made " : "kept ") + path +
          "\n");
  print("next:\n");
  for (const auto& [command, what] :
       std::vector<std::pair<std::string, std::string>>{{"cycle", "run one cycle now"},
                                                        {"node", "follow the schedule"},
                                                        {"status", "show the state"}})
    print("  " + as_hint("boyd " + command) + std::string(13 - command.size(), ' ') + what + "\n");
  print("  edit " + where.config_path + "\n");
}

/// A copy is the file as it is: what is asked for besides would be lost.
result<void> check_flags(const arguments& args) {
  if (args.from.empty() || (args.name.empty() && args.schedule.empty()))
    return {};
  return fail(errc::invalid_argument, "--name and --schedule cannot be combined with --from",
              args.from, "edit the copy instead, or leave out --from");
}

} // namespace

int run_init(const arguments& args) {
  if (auto meant = check_flags(args); !meant)
    return report(meant.error(), args.json);
  auto where = place_of(args);
  if (!where)
    return report(where.error(), args.json);
  auto p = local_ports();
  init_report made;
  if (auto done = make_home(args, *where, p, made); !done) {
    auto e = done.error();
    if (e.next.empty() && e.code == errc::already_exists)
      e.next = "choose another home: --home DIR";
    return report(e, args.json);
  }
  print_report(args, *where, made);
  return exit_code::ok;
}

} // namespace boyd::app
