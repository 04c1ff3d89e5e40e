#include "boyd/state/memory_files.hpp"

#include "boyd/core/limits.hpp"
#include "boyd/core/text.hpp"
#include "boyd/files/journal.hpp"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <array>
#include <chrono>
#include <utility>

namespace boyd::state {

namespace {

constexpr std::string_view archive = "archive";
constexpr std::string_view research = "research";
constexpr std::string_view imported_ending = ".jsonl";
constexpr std::size_t month_characters = 7; ///< 2026-02
constexpr std::size_t most_section_characters = 200;
/// Notes that one record of a cycle moves; the others come with the next ones.
constexpr std::size_t notes_at_once = 2;
/// Sections that belong to SOUL.md (docs/memory.md); all others to MEMORY.md.
constexpr std::array<std::string_view, 7> of_soul{
    "who i am",    "my traits",   "when i'm idle", "learning interests",
    "my thoughts", "competitors", "insights"};

std::string month_of(utc_time t) {
  return format_rfc3339(t).substr(0, month_characters);
}

std::string lower(std::string_view text) {
  std::string out(text);
  for (auto& c : out)
    if (c >= 'A' && c <= 'Z')
      c = static_cast<char>(c - 'A' + 'a');
  return out;
}

bool is_file_name(const std::string& file) {
  return file == "SOUL.md" || file == "MEMORY.md";
}

result<void> check_append(const std::string& file, std::string_view section,
                          std::string_view text) {
  if (!file.empty() && !is_file_name(file))
    return fail(errc::invalid_argument, "not a memory file: " + file, "file",
                "use MEMORY.md or SOUL.md, or omit it");
  if (section.empty() || section.find_first_of("\r\n") != section.npos ||
      section.starts_with('#') || count_characters(section) > most_section_characters)
    return fail(errc::invalid_argument, "a section name is one line of 1 to 200 characters",
                "section", "use a name such as \"Important Facts\", \"Learned Patterns — Build\"");
  if (text.empty())
    return fail(errc::invalid_argument, "the text to remember is empty", "text",
                "add the text of the entry");
  if (text.size() > memory::most_entry_bytes)
    return fail(errc::limit_exceeded,
                "the text is too long: " + std::to_string(text.size()) + " bytes", "text",
                "split it: an entry has at most " + std::to_string(memory::most_entry_bytes) +
                    " bytes");
  return {};
}

bool is_same(const file_info& a, const file_info& b) {
  return a.size == b.size && a.inode == b.inode && a.device == b.device && a.modified == b.modified;
}

} // namespace

memory_files::memory_files(versioned_store& store, file_system& files, memory_options options)
    : store_(store), files_(files), options_(std::move(options)) {}

std::string memory_files::filtered(std::string_view text) const {
  std::string plain(text);
  return options_.filter ? options_.filter(std::move(plain)) : plain;
}

/// An empty text for a file that is missing.
result<std::string> memory_files::current(const std::string& file) {
  auto text = store_.read(file);
  if (!text && text.error().code == errc::not_found)
    return std::string();
  return text;
}

/// Agents write below the home, and a link leads out of it.
result<void> memory_files::check_folder(const std::string& name) {
  const auto path = store_.path_of(name);
  const auto info = files_.stat(path);
  if (!info)
    return fail(info.error());
  if (info->kind != file_kind::directory && info->kind != file_kind::missing)
    return fail(errc::refused, "not a directory", path,
                "move it away; Boyd then creates the directory");
  return {};
}

// -- files of a person's kind ---------------------------------------------------------------------

result<std::string> memory_files::file_of(const std::string& section) {
  for (const char* file : {"MEMORY.md", "SOUL.md"}) {
    const auto text = current(file);
    if (!text)
      return fail(text.error());
    if (memory::has_section(*text, section))
      return std::string(file);
  }
  const auto name = lower(section);
  const bool soul =
      std::ranges::any_of(of_soul, [&](std::string_view known) { return name.starts_with(known); });
  return std::string(soul ? "SOUL.md" : "MEMORY.md");
}

result<memory_edit> memory_files::append(const std::string& file, const std::string& section,
                                         std::string_view given, utc_time now) {
  const auto name = std::string(trim(section));
  const auto text = filtered(trim(sanitize_utf8(given)));
  if (auto usable = check_append(file, name, text); !usable)
    return fail(std::move(usable.error()));
  auto target = file.empty() ? file_of(name) : result<std::string>(file);
  if (!target)
    return fail(std::move(target.error()));
  auto done = edit(
      *target,
      [&](std::string_view now_there) {
        if (memory::has_entry(now_there, name, text))
          return memory::memory_change{std::string(now_there), {}, {}};
        return memory::append_entry(now_there, name, text, options_.caps, now);
      },
      now);
  if (done)
    done->section = name;
  return done;
}

result<memory_edit> memory_files::compact(const std::string& file, bool dry_run, utc_time now) {
  const auto change = [&](std::string_view now_there) {
    return memory::keep_caps(now_there, options_.caps, now);
  };
  const auto text = current(file);
  if (!text)
    return fail(text.error());
  const auto would = change(*text);
  if (!dry_run && would.file != *text)
    return edit(file, change, now);
  memory_edit out{file, {}, would.file != *text, would.archived.size(), {}};
  for (const auto& note : would.notes)
    out.notes.push_back(note.name);
  return out;
}

/// What leaves the file is durable elsewhere before the file is replaced.
result<memory_edit> memory_files::edit(const std::string& file, const change_function& change,
                                       utc_time now) {
  memory_edit out{file, {}, false, 0, {}};
  // The edit keeps every byte that is not its own, and the next commit has it: no snapshot.
  auto written = store_.update(
      file,
      [&](std::string_view now_there) -> result<std::string> {
        const auto changed = change(now_there);
        out.changed = changed.file != now_there;
        out.archived = changed.archived.size();
        out.notes.clear();
        for (const auto& note : changed.notes)
          out.notes.push_back(note.name);
        if (auto kept = keep_leaving(file, changed, now); !kept)
          return fail(std::move(kept.error()));
        return changed.file;
      },
      versioned_store::snapshot_first::no);
  if (!written)
    return fail(std::move(written.error()));
  return out;
}

result<void> memory_files::keep_leaving(const std::string& file,
                                        const memory::memory_change& change, utc_time now) {
  constexpr auto no_snapshot = versioned_store::snapshot_first::no;
  if (!change.notes.empty())
    if (auto usable = check_folder(std::string(research)); !usable)
      return usable;
  for (const auto& note : change.notes) {
    const auto add = [&](std::string_view there) -> result<std::string> {
      // Somebody may have written into it since.
      if (there.find(note.text) != there.npos)
        return std::string(there);
      return std::string(there) + (there.empty() ? "" : "\n") + note.text;
    };
    if (auto kept = store_.update(std::string(research) + "/" + note.name, add, no_snapshot); !kept)
      return kept;
  }
  if (change.archived.empty())
    return {};
  if (auto usable = check_folder(std::string(archive)); !usable)
    return usable;
  const auto add = [&](std::string_view there) -> result<std::string> {
    return memory::add_to_archive(there, file, change.archived, now);
  };
  return store_.update(std::string(archive) + "/" + month_of(now) + ".md", add, no_snapshot);
}

result<std::size_t> memory_files::rotate_notes(int warm, bool dry_run, utc_time now) {
  const auto folder = store_.path_of("notes");
  const auto info = files_.stat(folder);
  if (!info)
    return fail(info.error());
  // Not through a link, which an agent may have put there.
  if (info->kind != file_kind::directory)
    return std::size_t{0};
  const auto names = files_.list(folder);
  if (!names)
    return fail(names.error());
  const auto first_warm = format_rfc3339(now - std::chrono::hours{24} * warm)
                              .substr(0, std::string_view("2026-02-13").size());
  std::size_t moved = 0;
  for (const auto& name : *names) {
    const auto note = "notes/" + name;
    const auto target = memory::archived_name(note);
    if (!target || name.substr(0, first_warm.size()) >= first_warm)
      continue;
    // A commit that takes away much of a home waits for a person.
    if (moved == notes_at_once)
      break;
    if (!dry_run)
      if (auto done = move_note(note, *target); !done)
        return fail(std::move(done.error()));
    ++moved;
  }
  return moved;
}

memory_files::moves memory_files::move_due(int warm, bool dry_run, utc_time now) {
  moves out;
  const auto failed = [&out](const std::string& what, const error& why) {
    if (out.outcome)
      out.outcome = fail(why.code, what + ": " + to_string(why));
  };
  for (const std::string file : {"SOUL.md", "MEMORY.md"})
    if (const auto edit = compact(file, dry_run, now); !edit) {
      failed("cannot enforce the limits of " + file, edit.error());
    } else {
      out.entries += edit->archived;
      out.notes += edit->notes.size();
    }
  if (const auto moved = rotate_notes(warm, dry_run, now); !moved)
    failed("cannot move old notes to the archive", moved.error());
  else
    out.notes += *moved;
  return out;
}

result<void> memory_files::keep_caps(int warm, utc_time now) {
  if (const auto due = move_due(warm, true, now); due.entries + due.notes == 0)
    return due.outcome;
  // Without a history the moves are made all the same; the store's health says what failed.
  (void)store_.commit_all(snapshot_subject);
  const auto moved = move_due(warm, false, now);
  if (moved.entries + moved.notes > 0)
    (void)store_.commit_all(
        "memory: moved to the archive (entries: " + std::to_string(moved.entries) +
        ", notes: " + std::to_string(moved.notes) + ")");
  return moved.outcome;
}

/// A crash in between leaves the note in both places; the next time it is found in the archive.
result<void> memory_files::move_note(const std::string& note, const std::string& target) {
  const auto text = store_.read(note);
  if (!text)
    return text.error().code == errc::not_found ? result<void>{} : fail(text.error());
  if (auto usable = check_folder(std::string(archive)); !usable)
    return usable;
  const auto add = [&](std::string_view there) -> result<std::string> {
    if (there.find(*text) != there.npos)
      return std::string(there);
    return std::string(there) + (there.empty() || there.ends_with('\n') ? "" : "\n") + *text;
  };
  if (auto kept = store_.update(target, add, versioned_store::snapshot_first::no); !kept)
    return kept;
  // What somebody has added meanwhile stays, and goes the next time.
  const auto again = store_.read(note);
  if (!again || *again != *text)
    return {};
  const auto path = store_.path_of(note);
  if (auto gone = files_.unlink(path); !gone && gone.error().code != errc::not_found)
    return gone;
  return files_.sync_directory(store_.path_of("notes"));
}

// -- imported entries -----------------------------------------------------------------------------

/// Reads the imported files that have changed since: after this node's own writes none has.
result<void> memory_files::learn_imported() {
  const auto folder = store_.path_of(std::string(archive));
  const auto info = files_.stat(folder);
  if (!info)
    return fail(info.error());
  if (info->kind == file_kind::missing) {
    imported_.clear();
    read_.clear();
    return {};
  }
  const auto names = files_.list(folder);
  if (!names)
    return fail(names.error());
  std::map<std::string, file_info> present;
  for (const auto& name : *names)
    if (name.ends_with(imported_ending))
      if (const auto found = files_.stat(folder + "/" + name);
          found && found->kind == file_kind::regular)
        present.emplace(name, *found);
  const bool known = present.size() == read_.size() &&
                     std::ranges::equal(present, read_, [](const auto& a, const auto& b) {
                       return a.first == b.first && is_same(a.second, b.second);
                     });
  if (known)
    return {};
  imported_.clear();
  read_.clear();
  for (const auto& [name, found] : present) {
    const auto path = std::string(archive) + "/" + name;
    const auto bytes = store_.read(path);
    if (!bytes)
      return fail(bytes.error());
    // The next append cuts a line off that has no end.
    const auto lines = std::string_view(*bytes).substr(0, bytes->rfind('\n') + 1);
    for (auto& e : memory::entries_of_file(options_.kernel_id, path, lines, {}).entries)
      imported_.insert(std::move(e.id));
  }
  read_ = std::move(present);
  return {};
}

result<memory_import> memory_files::add_imported(const std::vector<memory::memory_entry>& entries) {
  if (auto usable = check_folder(std::string(archive)); !usable)
    return fail(std::move(usable.error()));
  if (auto learned = learn_imported(); !learned)
    return fail(std::move(learned.error()));
  memory_import out;
  std::map<std::string, std::vector<std::string>> lines; ///< by month
  std::vector<std::string> fresh;
  std::unordered_set<std::string> now;
  for (auto e : entries) {
    e.text = filtered(e.text);
    auto id = memory::id_of_import(options_.kernel_id, e);
    if (imported_.contains(id) || !now.insert(id).second) {
      ++out.skipped;
      continue;
    }
    lines[month_of(e.time)].push_back(memory::write_import_line(e));
    fresh.push_back(std::move(id));
  }
  if (lines.empty())
    return out;
  const auto folder = store_.path_of(std::string(archive));
  if (auto made = files_.make_directories(folder); !made)
    return fail(std::move(made.error()));
  files::journal_options options;
  options.max_file_bytes = limits::revision_bytes; // what recall and the history can read
  options.parses = [](std::string_view line) { return nlohmann::json::accept(line); };
  for (const auto& [month, of_month] : lines) {
    // An error leaves what is known behind the files: they are read again.
    auto log =
        files::journal::open(files_, folder + "/" + month + std::string(imported_ending), options);
    if (!log)
      return fail(std::move(log.error()));
    if (auto appended = log->append(of_month); !appended)
      return fail(std::move(appended.error()));
  }
  out.imported = fresh.size();
  imported_.insert(fresh.begin(), fresh.end());
  for (const auto& [month, of_month] : lines) {
    const auto name = month + std::string(imported_ending);
    if (const auto info = files_.stat(folder + "/" + name))
      read_[name] = *info;
  }
  return out;
}

} // namespace boyd::state
