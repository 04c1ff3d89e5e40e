#include "cli_skills.hpp"

namespace boyd::app {

namespace {

void add_id(CLI::App* a, arguments& args, const char* help) {
  a->add_option("id", args.id, help)->required()->type_name("ID");
}

void add_reason(CLI::App* a, arguments& args) {
  a->add_option("--reason", args.reason, "Why; stays on record")->type_name("TEXT");
}

} // namespace

void add_skill_verbs(CLI::App& app, arguments& args, const verb_maker& verb) {
  constexpr const char* either = "A skill's name, or a candidate or the beginning of its id";
  auto* s = verb(app, "skills",
                 "What proved useful and what a person has approved of it; without a verb: ls.",
                 "boyd skills review");
  auto* list =
      verb(*s, "ls", "Skills with their states, and candidates for them.", "boyd skills ls --json");
  auto* show = verb(*s, "show", "One skill or candidate: its text, evidence, versions.",
                    "boyd skills show release-notes");
  auto* review = verb(*s, "review", "The candidates that wait for a person, with their texts.",
                      "boyd skills review");
  auto* approve =
      verb(*s, "approve", "Let runs use a candidate, or the SKILL.md that is there, as it is now.",
           "boyd skills approve 3f9c2ab1 --reason \"used it ten times\"");
  auto* reject = verb(*s, "reject", "Refuse a candidate until its evidence has doubled.",
                      "boyd skills reject 3f9c2ab1 --reason \"too special\"");
  auto* defer =
      verb(*s, "defer", "Decide later; its evidence counts on.", "boyd skills defer 3f9c2ab1");
  auto* enable = verb(*s, "enable",
                      "Use an approved skill again that is disabled, degraded or "
                      "archived.",
                      "boyd skills enable release-notes");
  auto* disable = verb(*s, "disable", "Take a skill out of use.",
                       "boyd skills disable release-notes --reason \"outdated\"");
  auto* rollback = verb(*s, "rollback", "Make an earlier version the newest one.",
                        "boyd skills rollback release-notes --to 1");
  for (auto* a : {show, approve})
    add_id(a, args, either);
  for (auto* a : {reject, defer})
    add_id(a, args, "The candidate, or the beginning of its id");
  for (auto* a : {enable, disable, rollback})
    add_id(a, args, "The skill's name");
  for (auto* a : {approve, reject, defer, enable, disable, rollback})
    add_reason(a, args);
  approve->add_option("--hash", args.hash, "Only if this is the SHA-256 of the text that you saw")
      ->type_name("SHA256");
  approve->footer("It is shown first, and approved as it was shown. Programs that Boyd started "
                  "cannot approve.");
  rollback->add_option("--to", args.to, "The version; the one before the newest when left out")
      ->type_name("VERSION");
  auto* draft =
      verb(*s, "draft", "Write the text that a candidate is to become; approve it afterwards.",
           "boyd skills draft 3f9c2ab1 SKILL.md");
  add_id(draft, args, "The candidate, or the beginning of its id");
  auto* take =
      verb(*s, "import", "Put a skill of another tool into the kernel's home, not approved.",
           "boyd skills import ~/skills/pdf-forms");
  auto* give = verb(*s, "export", "Write a skill for other tools.",
                    "boyd skills export release-notes --dir /tmp");
  add_id(give, args, "The skill's name");
  give->add_option("--dir", args.dir, "Where its folder is made; here when left out")
      ->type_name("DIR");
  auto* validate = verb(*s, "validate", "Check SKILL.md files: every finding with its line.",
                        "boyd skills validate ~/skills");
  auto* scan =
      verb(*s, "scan", "What a person should see in SKILL.md files before they approve them.",
           "boyd skills scan ~/skills/pdf-forms");
  for (auto* a : {draft, take, validate, scan})
    a->add_option("path", args.path,
                  a == draft ? "The text; - reads standard input"
                             : "A SKILL.md, its folder, or a folder of such")
        ->required()
        ->type_name("FILE");
  for (auto* a : {draft, take, give})
    a->add_option("--kernel", args.kernel, "Which kernel; the first one when left out")
        ->type_name("ID");
  for (auto* a : {list, show, review, approve, reject, defer, enable, disable, rollback})
    a->add_option("--kernel", args.kernel, "Which kernel; the first one when left out")
        ->type_name("ID");
}

} // namespace boyd::app
