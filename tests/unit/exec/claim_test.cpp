#include "attempt_bench.hpp"
#include "src/exec/claim.hpp"
#include "src/exec/words.hpp"

namespace boyd::claim_test {

using namespace boyd::test;

TEST_CASE("field case 22: a question in other words is one") {
  for (const auto* line : {"Soll ich fortfahren? 🙂",
                           "„Soll ich das löschen?“",
                           "続けますか？」",
                           "Proceed? [y/N]",
                           "Dois-je continuer\xC2\xA0?",
                           "هل أستمر؟",
                           "Να συνεχίσω;",
                           "Να συνεχίσω\u037E",
                           "ሽታ፧",
                           "Continue?!",
                           "Continue?...",
                           "Continue?…",
                           "⚠️ **Überschreiben?** ❌",
                           "_Weiter?_  ",
                           "\x1b[1mWeiter?\x1b[0m",
                           "Go on❓",
                           "Really‽",
                           "«Продолжить?»",
                           "（続けますか？）",
                           "Weiter?\u200B",
                           "Overwrite (yes/no)",
                           "Overwrite [Y/n]:",
                           "Overwrite? (y/N) ",
                           "Löschen (ja/nein):",
                           "Supprimer [o/N] >",
                           "Продолжить [д/Н]",
                           "削除しますか（はい／いいえ）",
                           "Apply patch [y,n,q,a,d,e]",
                           "[Y]es/[N]o/[C]ancel",
                           "Continue y/n",
                           "Press Enter to continue",
                           "Press any key…",
                           "Is `/etc/hosts` the right file?",
                           "`Shall we delete it?`",
                           "Keep it? 👨‍👩‍👧",
                           "Delete 3 files?*",
                           "| Delete? |",
                           "Ջնջե՞լ"}) {
    INFO(line);
    CHECK_FALSE(check_no_question(line).passed);
  }
}

TEST_CASE("field case 22: code, addresses and figures ask nothing") {
  for (const auto* line : {"Done.",
                           "See https://example.com/search?",
                           "See <https://example.com/?>",
                           "id = ?",
                           "VALUES (?, ?)",
                           "The pattern is `colou?`",
                           "matches *.tx?",
                           "let x = read()?",
                           "12 tests (3/5)",
                           "throughput (MB/s)",
                           "value (n/a)",
                           "mode [read/write]",
                           "https://example.com/a?b=c",
                           "He asked \"why?\".",
                           "Γειά σου.",
                           "x = 1;",
                           "🙂",
                           "```",
                           "",
                           "took 3 s [ok/total]"}) {
    INFO(line);
    CHECK(check_no_question(line).passed);
  }
  line_watch lines;
  lines.append("```\nProceed? [y/N]\n```\n🙂\n");
  lines.finish();
  CHECK(lines.last() == "🙂");
  CHECK(lines.last_words() == "Proceed? [y/N]");
}

TEST_CASE("field case 37: a claim of failure counts in every form") {
  const std::string claims[] = {R"({"status":"failed","score":NaN})",
                                R"({"status":"failed"})"
                                "\x1b[0m",
                                "{\n  \"status\": \"failed\",\n  \"summary\": \"x\"\n}",
                                "```json\n{\"status\":\"failed\"}\n```",
                                "{\"status\":\"failed\"}\nBye.",
                                R"({"status":"FAILED"})",
                                R"({"Status":"Failed"})",
                                R"(Result: {"status":"failed"})",
                                R"({"status":"done","status":"failed"})",
                                R"({"status":"failed","status":"done"})",
                                R"({'status': 'failed'})",
                                R"({status: failed})",
                                R"({"status":"failed","summary":"he said "no""})",
                                R"({"status":"failed","summary":"broken off)",
                                "{\n  \"status\": \"failed\",\n  \"summary\": \"broken off",
                                R"({"status":"done","summary":"broken off)",
                                "\xEF\xBB\xBF{\"status\":\"failed\"}\r",
                                R"({"status":"failed","x":"\ud83d"})",
                                R"({"status":"failed","details":{"a":[1,2]},"n":1,})",
                                R"({"n":1,"details":{"a":[1,2]},"status":"failed"})",
                                R"({"status":"failed","details":")" + std::string(200'000, 'x') +
                                    "\"}"};
  for (const auto& claim : claims) {
    INFO(claim.substr(0, 200));
    attempt_bench b;
    const auto& o = b.run({.output = "working\n" + claim + "\n"});
    CHECK(o.claim == claim_verdict::failed);
    CHECK_FALSE(is_success(o));
    CHECK_FALSE(o.error.empty());
  }
}

TEST_CASE("field case 37: readable claims are read, and other words are none") {
  const auto pretty = find_claim("{\n \"status\": \"failed\",\n \"summary\": \"x\",\n"
                                 " \"failure_class\": \"transient\"\n}\n");
  CHECK(pretty.verdict == claim_verdict::failed);
  CHECK_FALSE(pretty.is_unreadable);
  CHECK(pretty.summary == "x");
  CHECK(pretty.failure == failure_class::transient);
  CHECK(find_claim("```json\n{\"status\":\"done\",\"score\":NaN}\n```\n").verdict ==
        claim_verdict::done);
  CHECK(find_claim(R"({"status":"done","status":"done"})").verdict == claim_verdict::done);
  for (const auto* text :
       {"", "done", "status: failed", R"({"status":"ok"})", R"({"status":500})",
        R"({"status":"failed: 3 tests"})", R"([{"status":"failed"}])",
        R"({"jobs":{"status":"failed"}})", R"({"jobs":[{"id":1},{"status":"failed"}]})",
        R"({"exit_status":"failed"})", "if (status == \"failed\") {", "use {x} or {y}",
        "{\"status\":\"failed\"}\none\ntwo\nthree\n"}) {
    INFO(text);
    CHECK(find_claim(text).verdict == claim_verdict::none);
  }
}

} // namespace boyd::claim_test
