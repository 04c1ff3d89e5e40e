#pragma once

#include "actors/knowledge/approval_proof.hpp"
#include "actors/knowledge/fact_reader.hpp"
#include "actors/support/node_context.hpp"
#include "boyd/graph/learned.hpp"
#include "boyd/memory/recall.hpp"
#include "boyd/ports/knowledge_index.hpp"
#include "boyd/skills/document.hpp"
#include "messages/knowledge.hpp"

#include <cstddef>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace boyd {

/// The part of the knowledge worker that knows the bank, candidates and skills: by what the log of
/// facts says (index areas items, candidates, skills) and the files of kernel homes, which it reads
/// and never writes. A skill's bytes count as approved when a fact of the log names their hash: the
/// log itself is asked, for the index can be changed by anybody. Blocking; one thread.
class skill_keeper {
 public:
  /// `facts` outlives it.
  skill_keeper(node_context_ptr context, configuration_ptr configuration, const fact_reader& facts)
      : context_(std::move(context)), configuration_(std::move(configuration)), facts_(facts),
        proof_(context_) {}

  /// All items come anew.
  void forget() { banks_.clear(); }
  /// An item as the log has it now.
  void note(std::string_view id, const graph::learned_item& item);

  /// The answer to offer_learned, look_at_skills or draw_lessons; nothing: it is another
  /// request.
  std::optional<result<knowledge_reply>> answer(knowledge_index& index,
                                                const knowledge_request& request) const;

  /// What a person should know of skills whose approval does not stand in the log; empty: nothing.
  std::string doubts() const { return proof_.doubts(); }

 private:
  /// The items of one kernel that outlive the run.
  struct bank {
    std::map<std::string, graph::learned_item> items;
    /// Over their contents; null: it has to be made anew.
    mutable std::unique_ptr<memory::recall_index> search;
  };
  struct approved_skill;

  result<knowledge_reply> carry_out(knowledge_index& index, const offer_learned& what) const;
  result<knowledge_reply> carry_out(knowledge_index& index, const look_at_skills& what) const;
  result<knowledge_reply> carry_out(knowledge_index& index, const draw_lessons& what) const;

  const config::learning_settings& settings_of(const std::string& kernel_id) const;
  bool is_taken(const config::learning_settings& settings, const graph::learned_item& item) const;
  std::string content_of(const graph::learned_item& item) const;
  std::string text_of_object(const std::string& hash, std::size_t most) const;
  memory::recall_index& search_of(const bank& b) const;
  void offer_bank(const offer_learned& what, knowledge_reply& reply) const;
  result<void> offer_skills(knowledge_index& index, const offer_learned& what,
                            knowledge_reply& reply) const;
  std::vector<std::string> names_of_skills(const std::string& kernel_id) const;
  result<skill_view> view_of(knowledge_index& index, const std::string& kernel_id,
                             const std::string& name) const;
  result<std::vector<skill_view>> all_skills(knowledge_index& index,
                                             const std::string& kernel_id) const;
  result<std::vector<candidate_view>> all_candidates(knowledge_index& index,
                                                     const std::string& kernel_id,
                                                     const std::vector<skill_view>& skills) const;
  void write_text(candidate_view& c, const std::string& kernel_id) const;
  void add_bank_files(const draw_lessons& what, knowledge_reply& reply,
                      const std::map<std::string, graph::learned_item>& items) const;
  result<void> apply_policy(knowledge_index& index, const draw_lessons& what,
                            const std::map<std::string, graph::learned_item>& items,
                            knowledge_reply& reply) const;
  result<void> approve_by_policy(knowledge_index& index, const draw_lessons& what,
                                 knowledge_reply& reply) const;

  node_context_ptr context_;
  configuration_ptr configuration_;
  const fact_reader& facts_;
  mutable approval_proof proof_;
  std::map<std::string, bank> banks_; ///< by kernel
};

} // namespace boyd
