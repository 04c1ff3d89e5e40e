#pragma once

#include "actors/keeper/core.hpp"
#include "actors/knowledge/fact_reader.hpp"
#include "actors/knowledge/skill_keeper.hpp"
#include "actors/support/node_context.hpp"
#include "boyd/memory/entry.hpp"
#include "boyd/memory/recall.hpp"
#include "boyd/ports/file_system.hpp"
#include "boyd/ports/knowledge_index.hpp"
#include "messages/health.hpp"
#include "messages/knowledge.hpp"

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <vector>

namespace boyd {

/// The knowledge worker's side without actors: the node's index of what its kernels remember, and
/// of what the log of facts teaches. It reads the files of kernel homes and the log, and never
/// writes them; before each batch it takes over what has changed in them. Blocking; one thread.
class knowledge_session {
 public:
  enum class task : std::uint8_t {
    all,
    /// inspect_graph, judge_memory and replay_policy alone, from an index that another session
    /// keeps: it says what that one has read, and writes nothing.
    questions,
  };

  /// Secrets of `configuration` (null: none), and what looks like one, are not indexed.
  explicit knowledge_session(node_context_ptr context, configuration_ptr configuration = nullptr,
                             task what = task::all);
  ~knowledge_session();
  knowledge_session(const knowledge_session&) = delete;
  knowledge_session& operator=(const knowledge_session&) = delete;

  void perform(std::vector<job<knowledge_request, knowledge_reply>>& batch);
  /// What has failed is tried again by the next question.
  void probe() { drop_abandoned_replay(); }
  part_health health() const;

 private:
  /// An entry that at least one file holds.
  struct known_entry {
    utc_time time{};
    std::size_t files = 0; ///< that hold it
  };

  /// A folder of so many files that they are not all looked at before each question.
  struct large_folder {
    file_info info;
    utc_time listed_at{};
  };

  /// One kernel's memory, as the index on the disk has it.
  struct kernel_memory {
    memory::recall_index index;
    bool is_sound = false; ///< what follows, and the index, are those of the disk
    std::map<std::string, memory_file> files;
    std::map<std::string, std::unordered_set<std::string>> ids; ///< by file
    std::unordered_map<std::string, known_entry> entries;
    std::map<std::string, std::string> unreadable; ///< now: why, by file
    std::map<std::string, large_folder> large;     ///< by name, as they were listed
    std::string looked_up_to; ///< the file of a large folder that was looked at last
  };

  /// What became of the files since the last look.
  struct file_changes;

  /// The history under other numbers, as far as it has been read.
  struct running_replay;

  result<knowledge_reply> answer(const knowledge_request& request);
  result<knowledge_reply> try_to_answer(const knowledge_request& request);
  /// An error of the index alone: a log that cannot be read is told of, and teaches nothing.
  result<void> read_facts();
  /// Nothing: it is another request.
  std::optional<result<knowledge_reply>> answer_question(const knowledge_request& request);
  result<knowledge_reply> inspect(const inspect_graph& what);
  /// Sources that a run cited without having been given them, as its record has them.
  std::vector<std::string> invented_by(const std::string& execution) const;
  /// What the log lacks, as far as it is known; empty: nothing.
  std::string damage_of_log();
  void tell_losses(knowledge_reply& reply);
  result<knowledge_reply> find(const find_evidence& what);
  result<knowledge_reply> judge(const judge_memory& what);
  result<knowledge_reply> replay(const replay_policy& what);
  /// One that nobody has asked for lately.
  void drop_abandoned_replay();
  /// With what the files hold now, if one that the answer comes from was changed.
  result<knowledge_reply> carry_out(kernel_memory& m, const recall_memory& what);
  result<knowledge_reply> ask_index(kernel_memory& m, const recall_memory& what);
  bool is_current(const std::string& kernel_id, const kernel_memory& m,
                  const knowledge_reply& reply) const;
  /// What questions had taught, for those of the batch that are about the past.
  result<earlier_feedback> feedback_before(const recall_memory& what, utc_time now);
  result<std::vector<recalled_row>> answer_to(kernel_memory& m, const std::string& kernel_id,
                                              const memory::recall_question& asked,
                                              const memory::recall_feedback& learned);
  result<knowledge_reply> carry_out(kernel_memory& m, const describe_memory& what);

  /// `whole`: every file is looked at, also in large folders.
  result<kernel_memory*> fresh_memory(const std::string& kernel_id, bool whole);
  /// Another one, or one that somebody has changed, is never taken for the one that was open: the
  /// session that keeps it makes it again, the others wait for that one's next look.
  result<void> open_index();
  bool is_the_index(const file_info& file) const;
  /// Closed; what is at hand of it is read anew.
  void forget_index();
  result<void> load(const std::string& kernel_id, kernel_memory& m);
  result<void> look(const std::string& kernel_id, kernel_memory& m);
  /// Names of large folders in which no file came, went or was replaced since they were listed.
  std::set<std::string> settled_folders(const std::string& kernel_id, kernel_memory& m) const;
  /// All files, without those of settled folders; large folders among the others are noted.
  std::map<std::string, file_info> present_files(const std::string& kernel_id, kernel_memory& m,
                                                 const std::set<std::string>& settled) const;
  /// Some files of settled folders, others each time.
  static std::vector<std::string> next_files(kernel_memory& m,
                                             const std::set<std::string>& settled);
  result<void> look_at_file(const std::string& kernel_id, kernel_memory& m, const std::string& path,
                            const file_info& info, file_changes& changes);
  result<void> take_file(const std::string& kernel_id, kernel_memory& m, memory_file file,
                         const std::string& bytes, file_changes& changes);
  result<void> drop_file(const std::string& kernel_id, kernel_memory& m, const std::string& path,
                         file_changes& changes);
  void describe_sections(const std::string& kernel_id, const std::string& file,
                         memory_description& to) const;

  memory_row row_of(memory::filed_entry e, const std::string& file) const;

  node_context_ptr context_;
  configuration_ptr configuration_;
  task task_;
  std::unique_ptr<knowledge_index> index_; ///< null until the first request
  file_info index_file_;                   ///< as the session left it
  fact_reader facts_;
  skill_keeper skills_;
  bool has_read_facts_ = false; ///< in this batch
  std::map<std::string, kernel_memory> kernels_;
  std::set<std::string> looked_at_;        ///< kernels, in this batch
  std::string sound_end_;                  ///< of the log: commits were compared with it
  std::set<std::string> found_heads_;      ///< lines that commits name, and that were there
  std::unique_ptr<running_replay> replay_; ///< one at a time; null: there is none
  std::string problem_;                    ///< why the latest request failed; empty: it did not
  std::optional<utc_time> since_;
};

} // namespace boyd
