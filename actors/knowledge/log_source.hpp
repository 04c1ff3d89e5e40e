#pragma once

#include "boyd/graph/inspector.hpp"
#include "boyd/graph/segments.hpp"
#include "boyd/ports/knowledge_index.hpp"

#include <cstdint>
#include <functional>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace boyd {

struct log_position;

/// Facts of the log as far as the index has read it: lines are found by the index and read from the
/// segments. Blocking; one thread; lives for one question.
class log_source final : public graph::fact_source {
 public:
  /// All outlive it.
  log_source(knowledge_index& index, graph::segment_files& files, const log_position& position);

  result<std::vector<graph::cited_fact>> facts_of(const std::string& node,
                                                  std::size_t most) override;
  result<std::vector<graph::cited_fact>> facts_between(const std::vector<std::string>& nodes,
                                                       std::size_t most) override;
  result<void> backwards(const std::function<bool(const graph::cited_fact&)>& take) override;
  result<std::optional<graph::learned_item>> item(const std::string& id) override;
  result<void>
  each_item(const std::function<void(const std::string& id, const graph::learned_item& item)>& f);
  result<std::optional<std::string>> value(index_area area, const std::string& key) override;
  result<std::vector<std::pair<std::string, std::string>>>
  some(index_area area, const std::string& from, std::size_t most) override;
  result<std::uint64_t> count(index_area area, const std::optional<std::string>& before) override;
  result<std::string> place(std::uint64_t line) override;
  /// How far `forwards` has come; it goes on from there, also in another source of the same log.
  struct forward {
    std::uint64_t until = 0;    ///< the last line that is wanted
    std::uint64_t line = 0;     ///< the last one that was read
    std::uint32_t segment = 1;  ///< where the next one stands
    std::uint64_t bytes = 0;    ///< of that segment that were read
    std::uint64_t sequence = 0; ///< of the last line that has one
    std::uint64_t unread = 0;   ///< lines that could not be read
  };
  /// The oldest first. False: `take` has answered so, and the line that it got was the last one.
  /// Without places: quick.
  result<bool>
  forwards(forward& at,
           const std::function<bool(const graph::edge& fact, std::uint64_t line)>& take);
  std::uint64_t left_out() const override;
  std::uint64_t lines() const override;

 private:
  /// A piece of a segment that was read, from a mark on.
  struct piece {
    line_mark from;
    std::string bytes;
  };

  result<std::optional<graph::cited_fact>> fact_at(std::uint64_t line);
  /// What a line says; nothing: it must not be believed.
  result<std::optional<graph::cited_fact>> fact_in(std::string_view text, std::uint64_t line,
                                                   std::uint32_t segment);
  result<graph::segment> segment_numbered(std::uint32_t number);
  /// The text of a line; nothing: it is not there any more.
  result<std::optional<std::string>> text_at(std::uint64_t line, const line_mark& mark);
  result<std::string> place_of(std::uint64_t line, std::uint32_t segment);
  /// Lines of the log from a mark to before `end`, taken from the last one on; false: enough.
  result<bool> take_back(const line_mark& from, std::uint64_t end,
                         const std::function<bool(const graph::cited_fact&)>& take);

  result<std::uint64_t> first_line_of(std::uint32_t segment);
  /// The lines of one segment; false: enough.
  result<bool>
  forwards_in(const graph::segment& which, forward& at,
              const std::function<bool(const graph::edge& fact, std::uint64_t line)>& take);

  knowledge_index& index_;
  graph::segment_files& files_;
  const log_position& position_;
  std::optional<std::vector<graph::segment>> segments_;
  std::optional<line_mark> begin_; ///< of the segment that was named last
  std::optional<piece> latest_;
  std::set<std::uint64_t> unread_; ///< lines that could not be read for this question
};

} // namespace boyd
