#include "verbs.hpp"

namespace boyd::app {

namespace {

void add_id(CLI::App* a, arguments& args, const char* help) {
  a->add_option("id", args.id, help)->required()->type_name("ID");
}

void add_reason(CLI::App* a, arguments& args) {
  a->add_option("--reason", args.reason, "Reason; recorded")->type_name("TEXT");
}

} // namespace

void add_skill_verbs(CLI::App& app, arguments& args, const verb_maker& verb) {
  constexpr const char* either = "Name of a skill, or id of a candidate (or the beginning of it)";
  auto* s = verb(app, "skills",
                 "Review and manage skills: instructions that proved useful (default command: ls).",
                 "boyd skills review");
  auto* list =
      verb(*s, "ls", "List skills and candidates with their states.", "boyd skills ls --json");
  auto* show = verb(*s, "show", "Show one skill or candidate: text, evidence, versions.",
                    "boyd skills show release-notes");
  auto* review = verb(*s, "review", "Show the candidates that await a decision, with their texts.",
                      "boyd skills review");
  auto* approve =
      verb(*s, "approve", "Allow runs to use a candidate, or an existing SKILL.md, as it is now.",
           "boyd skills approve 3f9c2ab1 --reason \"used it ten times\"");
  auto* reject = verb(*s, "reject", "Reject a candidate until its evidence doubles.",
                      "boyd skills reject 3f9c2ab1 --reason \"too special\"");
  auto* defer =
      verb(*s, "defer", "Decide later; evidence continues to count.", "boyd skills defer 3f9c2ab1");
  auto* enable =
      verb(*s, "enable", "Re-enable an approved skill that is disabled, degraded or archived.",
           "boyd skills enable release-notes");
  auto* disable = verb(*s, "disable", "Disable a skill.",
                       "boyd skills disable release-notes --reason \"outdated\"");
  auto* rollback = verb(*s, "rollback", "Return to an earlier version.",
                        "boyd skills rollback release-notes --to 1");
  for (auto* a : {show, approve})
    add_id(a, args, either);
  for (auto* a : {reject, defer})
    add_id(a, args, "Id of the candidate, or the beginning of it");
  for (auto* a : {enable, disable, rollback})
    add_id(a, args, "Name of the skill");
  for (auto* a : {approve, reject, defer, enable, disable, rollback})
    add_reason(a, args);
  approve->add_option("--hash", args.hash, "Approve only if the text still has this SHA-256")
      ->type_name("SHA256");
  approve->footer("The command shows the text and approves exactly that text. Programs that Boyd "
                  "started cannot approve.");
  rollback->add_option("--to", args.to, "Version number (default: the previous version)")
      ->type_name("VERSION");
  auto* draft = verb(*s, "draft",
                     "Set the text of a candidate, or let a model write it; approve it afterwards.",
                     "boyd skills draft 3f9c2ab1 SKILL.md");
  add_id(draft, args, "Id of the candidate, or the beginning of it");
  auto* take = verb(*s, "import",
                    "Copy a skill from another tool into the kernel's home; approve it afterwards.",
                    "boyd skills import ~/skills/pdf-forms");
  auto* give = verb(*s, "export", "Copy a skill to a folder for other tools.",
                    "boyd skills export release-notes --dir /tmp");
  add_id(give, args, "Name of the skill");
  give->add_option("--dir", args.dir, "Target directory (default: the current directory)")
      ->type_name("DIR");
  auto* validate =
      verb(*s, "validate", "Check the format of SKILL.md files; list all errors with line numbers.",
           "boyd skills validate ~/skills");
  auto* scan = verb(*s, "scan", "List risky content in SKILL.md files, to review before approval.",
                    "boyd skills scan ~/skills/pdf-forms");
  auto* file = draft
                   ->add_option("path", args.path,
                                "File with the text; - reads standard input (default: a model "
                                "writes it)")
                   ->type_name("FILE");
  draft->add_option("--provider", args.provider, "Without FILE: provider of the model")
      ->excludes(file)
      ->type_name("ID");
  draft->add_option("--model", args.model, "Without FILE: use this model")
      ->excludes(file)
      ->type_name("NAME");
  draft->add_flag("--replace", args.replace, "Without FILE: replace the draft that there is")
      ->excludes(file);
  draft->footer(
      "A model's call counts towards the node's budget. It words the text of the candidate's item, "
      "never a draft. What it writes is a draft: read it with boyd skills show, then approve it.");
  for (auto* a : {take, validate, scan})
    a->add_option("path", args.path, "A SKILL.md, its folder, or a folder of skill folders")
        ->required()
        ->type_name("FILE");
  for (auto* a : {draft, take, give})
    a->add_option("--kernel", args.kernel, "The kernel (default: the first kernel)")
        ->type_name("ID");
  for (auto* a : {list, show, review, approve, reject, defer, enable, disable, rollback})
    a->add_option("--kernel", args.kernel, "The kernel (default: the first kernel)")
        ->type_name("ID");
}

} // namespace boyd::app
