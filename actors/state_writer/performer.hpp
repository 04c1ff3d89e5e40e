#pragma once

#include "actors/keeper/core.hpp"
#include "actors/support/node_context.hpp"
#include "boyd/state/memory_files.hpp"
#include "boyd/state/versioned_store.hpp"
#include "messages/health.hpp"
#include "messages/state.hpp"

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace boyd {

/// The state writer worker's side without actors: the files of all kernel homes, one versioned
/// store for each. A home that disappears in mid-run is an error, never made anew: only
/// `init_kernel_home` makes directories. Blocking; one thread.
class state_session {
 public:
  /// `configuration` names the kernels; one that it does not know gets the defaults.
  state_session(node_context_ptr context, configuration_ptr configuration);

  /// Answers every job, one after the other: an edit is durable when its reply goes out.
  void perform(std::vector<job<state_request, state_reply>>& batch);

  /// Looks after homes that were used: is the directory there, does the repository open again?
  void probe();

  /// The worst of all kernels, by name.
  part_health health() const;

 private:
  struct home {
    std::unique_ptr<state::versioned_store> files;
    std::unique_ptr<state::memory_files> memory;
    config::kernel settings;
    /// What of STATE.md was ours when it was last written or found in the history; anything else is
    /// somebody's text between the markers.
    std::optional<std::string> own_part;
    std::string missing;      ///< the directory is gone; empty: it is there
    std::string failed_write; ///< why the latest write failed; empty: it did not
    std::optional<utc_time> since;
  };

  /// A text of STATE.md that can replace what is damaged or gone, and where it was found.
  struct kept_text {
    std::string text;
    std::string from;
  };

  result<state_reply> answer(const state_request& request);
  result<state_reply> carry_out(home& h, const init_kernel_home& what);
  result<state_reply> carry_out(home& h, const read_state& what);
  result<state_reply> carry_out(home& h, const read_kernel_files& what);
  result<state_reply> carry_out(home& h, const render_cycle& what);
  result<state_reply> carry_out(home& h, const write_runtime_block& what);
  result<state_reply> carry_out(home& h, const write_kernel_files& what);
  result<state_reply> carry_out(home& h, const write_derived_files& what);
  result<state_reply> carry_out(home& h, const write_skill& what);
  result<state_reply> carry_out(home& h, const append_memory& what);
  result<state_reply> carry_out(home& h, const import_memory& what);
  result<state_reply> carry_out(home& h, const compact_memory& what);
  result<state_reply> carry_out(home& h, const change_buffer& what);

  result<home*> home_of(const std::string& kernel_id);
  std::string hidden(const std::string& text) const;
  result<void> check_directory(home& h);
  bool has_lost_history(const home& h);
  result<std::string> sound_state(home& h);
  result<std::optional<kept_text>> kept_state(home& h);
  result<std::string> restore_state(home& h, const std::string& damage);
  result<std::string> bring_back_state(home& h, const kept_text& kept);
  result<std::string> block_text(const home& h, const write_runtime_block& what) const;
  bool is_foreign_block(home& h, std::string_view current);
  result<state_reply> written(home& h, result<void> outcome);
  void note_time(home& h);

  node_context_ptr context_;
  configuration_ptr configuration_;
  std::map<std::string, home> homes_;
  std::string last_error_;
};

} // namespace boyd
