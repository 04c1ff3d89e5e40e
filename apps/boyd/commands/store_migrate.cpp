#include "../counted.hpp"
#include "../json_view.hpp"
#include "../terminal.hpp"
#include "boyd/core/sha256.hpp"
#include "boyd/ports/clock.hpp"
#include "boyd/queue/archive.hpp"
#include "store_place.hpp"

#include <algorithm>
#include <map>
#include <utility>
#include <variant>

namespace boyd::app {

namespace {

/// Rows of one transaction: outputs and prompts make a dispatch large.
constexpr std::size_t rows_with_bodies = 100;
constexpr std::size_t rows_without = 1'000;

/// A node that was seen within this time may be running.
constexpr milliseconds is_recent = 1min;

std::size_t limit_of(const store::archive_section& section) {
  return std::string_view(section.name) == "dispatches" ? rows_with_bodies : rows_without;
}

/// It would stand in the stores, and in the list of processes.
bool has_password(std::string_view address) {
  const auto begin = address.find("://");
  const auto end = address.find('@');
  const bool in_front =
      begin != std::string_view::npos && end != std::string_view::npos && begin + 3 < end &&
      address.substr(begin + 3, end - begin - 3).find(':') != std::string_view::npos;
  return in_front || address.find("password=") != std::string_view::npos;
}

/// How far a move has come: what stands behind store_facts::incoming in the target.
struct progress {
  std::string from;         ///< node.store of the source
  std::string id;           ///< of the source
  std::size_t section = 0;  ///< all before it are there
  store::archive_row after; ///< and of this one what comes before and with this key

  std::string text() const {
    json key = json::array();
    for (const auto& value : after)
      key.push_back(value.value_or(""));
    return json{{"from", from}, {"id", id}, {"section", section}, {"after", key}}.dump();
  }
};

progress progress_of(const std::string& text) {
  const auto value = object_of(text);
  progress p{text_of(value, "from"),
             text_of(value, "id"),
             static_cast<std::size_t>(std::max<std::int64_t>(0, number_of(value, "section"))),
             {}};
  for (const auto& each : rows_of(value, "after"))
    if (each.is_string())
      p.after.emplace_back(each.get<std::string>());
  return p;
}

/// The key of the last row, from which a read goes on.
store::archive_row key_of(const store::archive_section& section, const store::archive_row& row) {
  return {row.begin(), row.begin() + static_cast<std::ptrdiff_t>(section.key)};
}

/// Rows and a checksum over all of them, in the order of their keys.
struct section_sum {
  std::uint64_t rows = 0;
  std::string checksum;

  bool operator==(const section_sum&) const = default;
};

result<section_sum> sum_of(store_archive& of, const store::archive_section& section) {
  section_sum sum;
  store::archive_row after;
  for (;;) {
    auto rows = of.read(section, after, limit_of(section));
    if (!rows)
      return fail(std::move(rows.error()));
    for (const auto& row : *rows)
      sum.checksum = sha256_hex(sum.checksum + queue::line_of(row));
    sum.rows += rows->size();
    if (rows->size() < limit_of(section))
      return sum;
    after = key_of(section, rows->back());
  }
}

/// Nobody may write to a store that is moved: other homes may share it.
result<void> check_unused(dispatch_store& s, const store_place& at) {
  auto replies = s.apply({store::list_nodes{}});
  if (!replies)
    return fail(std::move(replies.error()));
  const auto* nodes = std::get_if<store::list_nodes::reply>(&replies->front());
  const auto now = at.local.clock->now();
  for (const auto& n : nodes == nullptr ? store::list_nodes::reply{} : *nodes)
    if (n.node_id != at.node_id && now - n.last_seen < is_recent)
      return fail(errc::locked,
                  "node " + n.node_id + " on " + n.host + " (pid " + std::to_string(n.pid) +
                      ") uses this database, or did so within the last minute",
                  s.describe(), "stop that node, wait one minute, then try again");
  return {};
}

/// One move, step by step; each may be repeated after an interruption.
class move_of_store {
 public:
  move_of_store(store_place& at, std::string from, std::string to)
      : at_(at), from_(std::move(from)), to_(std::move(to)) {}

  result<std::string> run();

 private:
  result<bool> look();
  result<void> open_archives();
  result<void> check_empty();
  result<void> copy();
  result<void> copy_section(std::size_t number);
  result<void> mark_source(const std::string& moved_to);
  result<void> compare();
  result<void> accept();
  result<void> remember();

  store_place& at_;
  std::string from_;
  std::string to_;
  std::string source_id_;
  std::string target_id_;
  progress done_;
  bool goes_on_ = false; ///< an earlier call has begun it
  std::unique_ptr<store_archive> source_;
  std::unique_ptr<store_archive> target_;
  std::uint64_t rows_ = 0;
};

/// Opens, and thus migrates, both, and looks how they stand to each other. False: it was moved
/// before, to its end.
result<bool> move_of_store::look() {
  auto source = open_store(at_, from_);
  if (!source)
    return fail(std::move(source.error()));
  auto target = open_store(at_, to_);
  if (!target)
    return fail(std::move(target.error()));
  for (auto* s : {source->store.get(), target->store.get()})
    if (auto unused = check_unused(*s, at_); !unused)
      return fail(std::move(unused.error()));
  source_id_ = source->content.fact(store_facts::id);
  target_id_ = target->content.fact(store_facts::id);
  if (source_id_ == target_id_)
    return fail(errc::invalid_argument, "FROM and TO are the same database", to_);
  const auto moved = source->content.fact(store_facts::moved_to);
  const auto incoming = target->content.fact(store_facts::incoming);
  if (incoming.empty() && target->content.facts.contains(store_facts::came_from + source_id_) &&
      moved == to_)
    return false;
  if (!moved.empty() && (moved != to_ || incoming.empty()))
    return fail(errc::refused, "the content of this database was moved to " + moved,
                source->store->describe(), "use the new database: set node.store: " + moved);
  if (const auto other = source->content.fact(store_facts::incoming); !other.empty())
    return fail(errc::refused, "an unfinished move into this database exists",
                source->store->describe(),
                "finish it with: boyd store migrate " + progress_of(other).from + " " + from_);
  done_ = {from_, source_id_, 0, {}};
  goes_on_ = !incoming.empty();
  if (goes_on_)
    done_ = progress_of(incoming);
  if (done_.id != source_id_)
    return fail(errc::refused,
                "an unfinished move from " + done_.from + " into this database exists",
                target->store->describe(), "finish that move first, or use an empty database");
  return true;
}

result<void> move_of_store::open_archives() {
  for (auto [archive, name] : {std::pair{&source_, &from_}, std::pair{&target_, &to_}}) {
    auto made = archive_of(at_.local, at_.where, *at_.settings, *name);
    if (!made)
      return fail(std::move(made.error()));
    *archive = std::move(*made);
    if (auto opened = (*archive)->open(); !opened)
      return opened;
  }
  return {};
}

result<void> move_of_store::check_empty() {
  if (goes_on_)
    return {};
  for (const auto& section : queue::archive_sections()) {
    auto rows = target_->read(section, {}, 1);
    if (!rows)
      return fail(std::move(rows.error()));
    if (!rows->empty())
      return fail(errc::refused,
                  std::string("the new database is not empty; it has ") + section.name, to_,
                  to_ == embedded_store ? "move " + at_.where.layout().database() +
                                              ", its -wal and -shm away, then try again"
                                        : "create an empty database: createdb NAME");
  }
  return {};
}

result<void> move_of_store::copy_section(std::size_t number) {
  const auto& section = queue::archive_sections()[number];
  for (bool more = true; more;) {
    auto rows = source_->read(section, done_.after, limit_of(section));
    if (!rows)
      return fail(std::move(rows.error()));
    more = rows->size() == limit_of(section);
    auto next = done_;
    if (more)
      next.after = key_of(section, rows->back());
    else
      next = {from_, source_id_, number + 1, {}};
    if (auto written = target_->write(section, *rows, store_facts::incoming, next.text()); !written)
      return written;
    done_ = std::move(next);
    if (!rows->empty())
      print_note("moved " + counted(rows->size(), "row") + " of " + section.name);
  }
  return {};
}

result<void> move_of_store::copy() {
  const auto& sections = queue::archive_sections();
  // Before its first row, so that nobody takes the target for a store of its own.
  if (!goes_on_)
    if (auto begun = target_->write(sections.front(), {}, store_facts::incoming, done_.text());
        !begun)
      return begun;
  while (done_.section < sections.size())
    if (auto copied = copy_section(done_.section); !copied)
      return copied;
  return target_->finish();
}

/// From here on no node begins to work with it.
result<void> move_of_store::mark_source(const std::string& moved_to) {
  return source_->write(queue::archive_sections().front(), {}, store_facts::moved_to, moved_to);
}

result<void> move_of_store::compare() {
  for (const auto& section : queue::archive_sections()) {
    auto source = sum_of(*source_, section);
    if (!source)
      return fail(std::move(source.error()));
    auto target = sum_of(*target_, section);
    if (!target)
      return fail(std::move(target.error()));
    if (*source != *target) {
      if (auto unmarked = mark_source({}); !unmarked)
        return unmarked;
      return fail(
          errc::corrupt,
          std::string(section.name) + " differ: " + std::to_string(source->rows) +
              " rows in the old database, " + std::to_string(target->rows) +
              " in the new one, or different content; the old database stays in use",
          to_, "stop everything that writes to the old database, then move to an empty database");
    }
    rows_ += source->rows;
  }
  return {};
}

/// The target is a store of its own from here on.
result<void> move_of_store::accept() {
  source_.reset();
  target_.reset();
  auto target = open_store(at_, to_);
  if (!target)
    return fail(std::move(target.error()));
  const json record{{"from", from_}, {"at", format_rfc3339(at_.local.clock->now())}};
  auto written = target->store->apply(
      {store::put_fact{store_facts::scope, store_facts::came_from + source_id_, record.dump()},
       store::put_fact{store_facts::scope, store_facts::incoming, {}}});
  return written ? result<void>{} : fail(std::move(written.error()));
}

result<void> move_of_store::remember() {
  return write_known_store(*at_.local.files, at_.where.layout().known_store(), {target_id_, to_});
}

result<std::string> move_of_store::run() {
  auto open = look();
  if (!open)
    return fail(std::move(open.error()));
  const auto& there = at_.settings->node_settings.store;
  const auto next = there == to_
                        ? std::string{}
                        : "next: set node.store: " + to_ + " in " + at_.where.config_path + "\n";
  if (!*open) {
    if (auto remembered = remember(); !remembered)
      return fail(std::move(remembered.error()));
    return "The content of " + from_ + " is already in " + to_ + ".\n" + next;
  }
  using step = result<void> (move_of_store::*)();
  for (const step each :
       {&move_of_store::open_archives, &move_of_store::check_empty, &move_of_store::copy})
    if (auto taken = (this->*each)(); !taken)
      return fail(std::move(taken.error()));
  if (auto marked = mark_source(to_); !marked)
    return fail(std::move(marked.error()));
  for (const step each :
       {&move_of_store::compare, &move_of_store::accept, &move_of_store::remember})
    if (auto taken = (this->*each)(); !taken)
      return fail(std::move(taken.error()));
  return "Moved " + counted(rows_, "row") + " from " + from_ + " to " + to_ +
         "; counts and checksums of all " + std::to_string(queue::archive_sections().size()) +
         " tables are equal.\n" + next;
}

} // namespace

result<std::string> migrate_store(const arguments& args) {
  if (args.from == args.to)
    return fail(errc::invalid_argument, "FROM and TO are the same database", args.to);
  for (const auto& name : {args.from, args.to})
    if (has_password(name))
      return fail(errc::invalid_argument, "the address contains a password", {},
                  "use node.store_password_file, or the environment variable PGPASSWORD");
  auto at = take_home(args);
  if (!at)
    return fail(std::move(at.error()));
  return move_of_store(*at, args.from, args.to).run();
}

} // namespace boyd::app
