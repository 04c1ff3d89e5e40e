#include "boyd/memory/entry.hpp"

#include "boyd/core/outside_json.hpp"
#include "boyd/core/sha256.hpp"
#include "boyd/core/text.hpp"
#include "boyd/memory/document.hpp"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <array>
#include <optional>
#include <unordered_set>
#include <utility>

namespace boyd::memory {

namespace {

using json = nlohmann::json;

constexpr std::size_t day_characters = 10; ///< 2026-02-13

/// docs/context.md: of scope, type and path.
std::string item_id(const std::string& kernel_id, const std::string& path) {
  constexpr std::size_t digits = 16;
  return "ctx_" +
         sha256_hex("kernel:" + kernel_id + "\ngenerated\nmemory/" + path).substr(0, digits);
}

// -- import lines --------------------------------------------------------------------------------

error bad_line(std::string what, std::string next) {
  return {errc::invalid_argument, std::move(what), {}, std::move(next)};
}

/// The member's text; empty when it is missing or null.
result<std::string> text_member(const json& object, const char* name) {
  const auto it = object.find(name);
  if (it == object.end() || it->is_null())
    return std::string();
  if (!it->is_string())
    return fail(bad_line(std::string(name) + " is not a string", "put it in quotation marks"));
  return it->get<std::string>();
}

result<void> check_sizes(const memory_entry& e) {
  for (const auto* name : {&e.key, &e.source, &e.author, &e.section})
    if (name->size() > most_name_bytes)
      return fail(bad_line("a name is too long: " + std::to_string(name->size()) + " bytes",
                           "key, source, author and section have at most " +
                               std::to_string(most_name_bytes) + " bytes"));
  if (trim(e.text).empty())
    return fail(bad_line("text is missing or empty", "add the text to remember: \"text\": \"…\""));
  if (e.text.size() > most_entry_bytes)
    return fail(
        bad_line("the text is too long: " + std::to_string(e.text.size()) + " bytes",
                 "split it: an entry has at most " + std::to_string(most_entry_bytes) + " bytes"));
  return {};
}

// -- files ---------------------------------------------------------------------------------------

bool is_date(std::string_view text) {
  constexpr std::string_view form = "dddd-dd-dd";
  if (text.size() != form.size())
    return false;
  for (std::size_t i = 0; i < form.size(); ++i)
    if (form[i] == 'd' ? text[i] < '0' || text[i] > '9' : text[i] != form[i])
      return false;
  return true;
}

std::optional<utc_time> day(std::string_view date) {
  if (!is_date(date))
    return std::nullopt;
  const auto t = parse_rfc3339(std::string(date) + "T00:00:00Z");
  return t ? std::optional(*t) : std::nullopt;
}

/// Lines after the first without the indentation that makes them part of a list item.
std::string plain_text(std::string_view words) {
  std::string out;
  for (const auto line : split(words, '\n')) {
    const auto indent = out.empty() ? 0 : std::min(line.find_first_not_of(' '), line.size());
    constexpr std::size_t most = 2;
    out += (out.empty() ? "" : "\n") + std::string(line.substr(std::min(indent, most)));
  }
  return std::string(trim(out));
}

/// Collects the entries of one Markdown file, each text of a source once.
class collector {
 public:
  collector(const std::string& kernel_id, file_entries& out) : kernel_id_(kernel_id), out_(out) {}

  void take(memory_entry e) {
    if (e.text.empty())
      return;
    if (const auto own = day(date_of_entry("- " + e.text).value_or(""))) {
      e.time = *own;
      e.has_time = true;
    }
    auto id = item_id(kernel_id_, e.source + "\n" + e.text);
    if (seen_.insert(id).second)
      out_.entries.push_back({std::move(id), std::move(e)});
  }

 private:
  const std::string& kernel_id_;
  file_entries& out_;
  std::unordered_set<std::string> seen_;
};

std::string source_of(const std::string& file, const std::string& section) {
  return section.empty() ? file : file + " — " + section;
}

void take_memory(const std::string& path, std::string_view bytes, utc_time file_time,
                 collector& to) {
  for (const auto& p : split_memory(bytes))
    if (p.entry)
      to.take({{},
               source_of(path, p.section),
               {},
               p.section,
               plain_text(words_of_entry(p.text)),
               file_time,
               false});
}

/// Below "## 2026-03-01 MEMORY.md — Section" stands what left that section on that day.
void take_archive(const std::string& path, std::string_view bytes, utc_time file_time,
                  collector& to) {
  constexpr std::string_view dash = " — ";
  for (const auto& p : split_memory(bytes)) {
    if (!p.entry)
      continue;
    memory_entry e{{}, path, {}, p.section, plain_text(words_of_entry(p.text)), file_time, false};
    if (const auto moved = day(std::string_view(p.section).substr(0, day_characters));
        moved && p.section.size() > day_characters + 1) {
      e.time = *moved;
      e.source = p.section.substr(day_characters + 1);
      const auto end = e.source.find(dash);
      e.section = end == std::string::npos ? "" : e.source.substr(end + dash.size());
    }
    to.take(std::move(e));
  }
}

/// List items, and what stands between them by its paragraphs.
void take_notes(const std::string& path, std::string_view bytes, utc_time file_time,
                collector& to) {
  const auto name = std::string_view(path).substr(path.rfind('/') + 1);
  const auto dated = day(name.substr(0, day_characters));
  const auto put = [&](const piece& p, std::string text) {
    to.take(
        {{}, path, {}, p.section, std::move(text), dated.value_or(file_time), dated.has_value()});
  };
  for (const auto& p : split_memory(bytes)) {
    if (p.entry)
      put(p, plain_text(words_of_entry(p.text)));
    if (p.entry || p.heading)
      continue;
    std::string paragraph;
    for (const auto line : split(p.text, '\n')) {
      if (!trim(line).empty())
        paragraph += std::string(line) + "\n";
      else
        put(p, std::string(trim(std::exchange(paragraph, {}))));
    }
    put(p, std::string(trim(paragraph)));
  }
}

void take_imported(const std::string& kernel_id, std::string_view bytes, file_entries& out) {
  std::unordered_set<std::string> seen;
  for (const auto line : split(bytes, '\n')) {
    if (trim(line).empty())
      continue;
    auto e = read_import_line(line);
    if (!e) {
      ++out.unreadable;
      continue;
    }
    auto id = id_of_import(kernel_id, *e);
    if (seen.insert(id).second)
      out.entries.push_back({std::move(id), std::move(*e)});
  }
}

constexpr std::string_view archived_note = "archive/note-";
constexpr std::string_view notes = "notes/";
constexpr std::string_view markdown = ".md";

/// The note that a file of the archive was; nothing: it was none.
std::optional<std::string> note_of(std::string_view path) {
  if (!path.starts_with(archived_note) || !path.ends_with(markdown))
    return std::nullopt;
  const auto date = path.substr(archived_note.size(), day_characters);
  if (!is_date(date) || path.size() != archived_note.size() + day_characters + markdown.size())
    return std::nullopt;
  return std::string(notes) + std::string(date) + std::string(markdown);
}

bool is_file_in(std::string_view path, std::string_view folder, std::string_view ending) {
  return path.starts_with(folder) && path.ends_with(ending) &&
         path.size() > folder.size() + ending.size() &&
         path.find('/', folder.size()) == std::string_view::npos && path[folder.size()] != '.';
}

} // namespace

result<memory_entry> read_import_line(std::string_view line) {
  auto mended = mend_json(line);
  if (!mended)
    return fail(bad_line("not JSON: " + mended.error().what,
                         "write one JSON object per line: {\"time\": \"2026-02-13T10:00:00Z\", "
                         "\"text\": \"…\"}"));
  const auto object = json::parse(mended->text, nullptr, false);
  if (!object.is_object())
    return fail(bad_line("not a JSON object", "write one JSON object per line"));
  memory_entry e;
  struct member {
    const char* name;
    std::string* to;
  };
  std::string time;
  for (const auto& m :
       std::array{member{"key", &e.key}, member{"source", &e.source}, member{"author", &e.author},
                  member{"section", &e.section}, member{"text", &e.text}, member{"time", &time}}) {
    auto text = text_member(object, m.name);
    if (!text)
      return fail(std::move(text.error()));
    *m.to = std::move(*text);
  }
  const auto at = parse_rfc3339(time);
  if (!at)
    return fail(bad_line(time.empty() ? "time is missing" : "not a time: " + time,
                         "use RFC 3339 with a time zone, such as 2026-02-13T10:00:00Z"));
  e.time = *at;
  if (auto fits = check_sizes(e); !fits)
    return fail(std::move(fits.error()));
  return e;
}

std::string write_import_line(const memory_entry& e) {
  const bool whole_second = to_unix_ms(e.time) % 1000 == 0; // NOLINT(readability-magic-numbers)
  json object{{"time", format_rfc3339(e.time, !whole_second)}, {"text", e.text}};
  for (const auto& [name, text] :
       {std::pair{"key", &e.key}, std::pair{"source", &e.source}, std::pair{"author", &e.author},
        std::pair{"section", &e.section}})
    if (!text->empty())
      object[name] = *text;
  return object.dump(-1, ' ', false, json::error_handler_t::replace);
}

std::string id_of_import(const std::string& kernel_id, const memory_entry& e) {
  return item_id(kernel_id, !e.key.empty() ? "key/" + e.key
                                           : std::to_string(to_unix_ms(e.time)) + "\n" + e.source +
                                                 "\n" + e.text);
}

bool is_memory_file(std::string_view path) {
  return path == "MEMORY.md" || path == "SOUL.md" || is_file_in(path, "archive/", ".md") ||
         is_file_in(path, "archive/", ".jsonl") || is_file_in(path, "research/", ".md") ||
         is_file_in(path, "notes/", ".md");
}

std::optional<std::string> archived_name(std::string_view note) {
  if (!note.starts_with(notes) || !note.ends_with(markdown) ||
      note.size() != notes.size() + day_characters + markdown.size())
    return std::nullopt;
  const auto date = note.substr(notes.size(), day_characters);
  if (!day(date))
    return std::nullopt;
  return std::string(archived_note) + std::string(date) + std::string(markdown);
}

file_entries entries_of_file(const std::string& kernel_id, const std::string& path,
                             std::string_view bytes, utc_time file_time) {
  file_entries out;
  if (path.ends_with(".jsonl")) {
    take_imported(kernel_id, bytes, out);
    return out;
  }
  collector to(kernel_id, out);
  if (const auto note = note_of(path))
    take_notes(*note, bytes, file_time, to);
  else if (path.starts_with("archive/"))
    take_archive(path, bytes, file_time, to);
  else if (path.find('/') != std::string::npos)
    take_notes(path, bytes, file_time, to);
  else
    take_memory(path, bytes, file_time, to);
  return out;
}

} // namespace boyd::memory
