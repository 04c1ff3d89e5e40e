#include "../exit_codes.hpp"
#include "../hints.hpp"
#include "../home.hpp"
#include "../kept_patches.hpp"
#include "../run_view.hpp"
#include "../time_view.hpp"
#include "asking.hpp"
#include "commands.hpp"

#include <string>

/// `boyd patches`: what runs in worktrees changed.
namespace boyd::app {

namespace {

json time_or_null(const std::optional<utc_time>& t) {
  return t ? json(format_rfc3339(*t)) : json(nullptr);
}

std::string state_of(const kept_patch& p) {
  if (p.applied_at)
    return "applied";
  return p.heading && p.heading->hash.empty() ? "cut" : "open";
}

json json_of(const kept_patch& p) {
  json out{{"dispatch_id", p.dispatch_id},
           {"run", p.run},
           {"agent_id", p.agent_id},
           {"state", state_of(p)},
           {"made_at", format_rfc3339(p.made_at)},
           {"applied_at", time_or_null(p.applied_at)},
           {"file", p.file}};
  const auto& h = p.heading;
  out["repository"] = h ? json(h->repository) : json(nullptr);
  out["base"] = h ? json(h->base) : json(nullptr);
  out["branch"] = h ? json(h->branch) : json(nullptr);
  out["files"] = h ? json(h->files) : json(nullptr);
  out["added"] = h ? json(h->added) : json(nullptr);
  out["removed"] = h ? json(h->removed) : json(nullptr);
  out["on_branch"] = h ? json(h->on_branch) : json(nullptr);
  return out;
}

std::string change_of(const kept_patch& p) {
  if (!p.heading)
    return "-";
  const auto& h = *p.heading;
  return std::to_string(h.files) + (h.files == 1 ? " file +" : " files +") +
         std::to_string(h.added) + " -" + std::to_string(h.removed);
}

std::string id_of(const kept_patch& p) {
  return short_id(p.dispatch_id);
}

int show_list(const arguments& args, const std::vector<kept_patch>& all) {
  json items = json::array();
  const auto t = terminal_of_stdout(args);
  table rows({"RUN", "N", "AGENT", "MADE", "CHANGE", "STATE", "REPOSITORY"});
  for (const auto& p : all) {
    if (p.applied_at && !args.all)
      continue;
    items.push_back(json_of(p));
    rows.add_cells({id_of(p),
                    std::to_string(p.run),
                    p.agent_id.empty() ? "-" : p.agent_id,
                    brief_moment_of(items.back(), "made_at", t),
                    change_of(p),
                    {state_of(p), p.applied_at ? colour::faint : colour::none},
                    p.heading ? p.heading->repository : "-"});
  }
  rows.drop_when_narrow({"N", "STATE"});
  if (args.json)
    print(json{{"schema", "boyd.patches/1"}, {"items", items}}.dump() + "\n");
  else if (rows.rows() == 0)
    print(
        all.empty()
            ? "No patches. Runs with a `worktree` leave them.\n"
            : hint_lines(as_hint("No open patches. Also show applied ones: boyd patches ls --all"),
                         0, t) +
                  "\n");
  else
    print(rows.render(t));
  return exit_code::ok;
}

int show_one(const arguments& args, const kept_patch& p, file_system& files) {
  const auto text = read_patch(p, files);
  if (!text)
    return report(text.error(), args.json);
  if (args.json) {
    auto body = json_of(p);
    body["schema"] = "boyd.patch/1";
    body["patch"] = *text;
    print(body.dump(-1, ' ', false, json::error_handler_t::replace) + "\n");
  } else {
    print(terminal_of_stdout(args).is_tty ? printable(*text) : *text);
    if (p.heading && p.heading->hash.empty())
      print_note(p.heading->on_branch
                     ? "this patch is cut; the whole change is on the branch " + p.heading->branch
                     : std::string("this patch is cut, and the rest of the change was not kept"));
  }
  return exit_code::ok;
}

std::string listed(const std::vector<std::string>& names) {
  std::string text;
  for (const auto& n : names)
    text += "  " + printable(n) + "\n";
  return text;
}

int apply(const arguments& args, const kept_patch& p, const home_layout& home, const ports& with) {
  if (p.applied_at)
    return report({errc::refused, "the patch was applied at " + format_rfc3339(*p.applied_at),
                   id_of(p), "see what is open: boyd patches ls"},
                  args.json);
  const auto done = apply_patch(p, home, with);
  if (!done)
    return report(done.error(), args.json);
  if (args.json) {
    print(json{{"schema", "boyd.patch_applied/1"},
               {"dispatch_id", p.dispatch_id},
               {"run", p.run},
               {"repository", p.heading->repository},
               {"changed", done->changed},
               {"merged", done->merged},
               {"unchanged", done->same}}
              .dump(-1, ' ', false, json::error_handler_t::replace) +
          "\n");
    return exit_code::ok;
  }
  print("Applied to " + p.heading->repository + " (nothing is staged or committed):\n" +
        listed(done->changed));
  if (!done->merged.empty())
    print("Merged with other changes since the run began:\n" + listed(done->merged));
  if (!done->same.empty())
    print("Already as the patch wants them:\n" + listed(done->same));
  return exit_code::ok;
}

int discard(const arguments& args, const kept_patch& p, file_system& files) {
  if (!p.applied_at)
    if (auto agreed = agree(args,
                            "Remove this patch of " + p.agent_id + " (" + change_of(p) +
                                ")? Nothing else has these changes.",
                            "patches discard " + shell_word(args.id) +
                                (args.run.empty() ? "" : " --attempt " + args.run));
        !agreed)
      return report(agreed.error(), args.json);
  if (auto gone = discard_patch(p, files); !gone)
    return report(gone.error(), args.json);
  if (args.json)
    print(json{{"schema", "boyd.patch_discarded/1"}, {"dispatch_id", p.dispatch_id}, {"run", p.run}}
              .dump() +
          "\n");
  else
    print("Discarded the patch of attempt " + std::to_string(p.run) + " of run " + id_of(p) +
          ".\n");
  return exit_code::ok;
}

} // namespace

int run_patches(const arguments& args) {
  auto where = place_of(args);
  if (!where)
    return report(where.error(), args.json);
  if (auto there = require_home(*where); !there)
    return report(there.error(), args.json);
  const auto with = local_ports();
  const auto all = list_patches(where->layout(), *with.files);
  if (!all)
    return report(all.error(), args.json);
  const auto what = args.verb.substr(args.verb.find(' ') + 1);
  if (what == "ls")
    return show_list(args, *all);
  const auto p = find_patch(*all, args.id, args.run);
  if (!p)
    return report(p.error(), args.json);
  if (what == "show")
    return show_one(args, *p, *with.files);
  return what == "apply" ? apply(args, *p, where->layout(), with) : discard(args, *p, *with.files);
}

} // namespace boyd::app
