#pragma once

#include "program.hpp"
#include "support/model_answers.hpp"
#include "support/pch.hpp"
#include "support/planted_secrets.hpp"

#include <filesystem>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

/// What tests with planted secrets share: ways in, and where to look for what came through.
namespace boyd::test::canary_lab {

/// Where a secret was put in, and where it may be found again.
struct canary {
  std::string way;
  planted_secret secret;
  std::set<std::string> files; ///< of the home, by their path in it, that may hold it
};

/// Every one of the forms goes one of the ways, some several.
class canaries {
 public:
  explicit canaries(unsigned seed) : make_(seed), forms_(make_.all()) {}

  /// The next form's, as it stands in a text.
  std::string next(const std::string& way, std::set<std::string> files = {}) {
    const auto s = forms_[next_++ % forms_.size()];
    if (next_ % forms_.size() == 0)
      forms_ = make_.all();
    all_.push_back({way, s, std::move(files)});
    return all_.back().secret.text;
  }

  /// So many of them, one in a line.
  std::string lines(std::size_t n, const std::string& way,
                    const std::set<std::string>& files = {}) {
    std::string text;
    for (std::size_t i = 0; i < n; ++i)
      text += "it is " + next(way, files) + "\n";
    return text;
  }

  /// A key without anything around it: for names of files and single lines.
  std::string word(const std::string& way) {
    all_.push_back({way, make_.with_prefix(std::string("gh") + "p_", 36), {}});
    return all_.back().secret.text;
  }

  /// One that has no form, but which the configuration knows.
  std::string known(const std::string& way, std::set<std::string> files = {}) {
    std::string word = "known";
    for (const char c : make_.key(24))
      if (c < '0' || c > '9')
        word += c;
    all_.push_back({way, {"known", word, word}, std::move(files)});
    return word;
  }

  const std::vector<canary>& all() const { return all_; }

 private:
  secret_maker make_;
  std::vector<planted_secret> forms_;
  std::size_t next_ = 0;
  std::vector<canary> all_;
};

/// `text` with the values in place of their names.
inline std::string filled(std::string text, const std::map<std::string, std::string>& values) {
  for (const auto& [key, value] : values)
    for (auto at = text.find(key); at != std::string::npos; at = text.find(key))
      text.replace(at, key.size(), value);
  return text;
}

/// Every object of every repository below the home, unpacked.
inline std::string all_objects(const home_of_boyd& home) {
  program git(
      {"/bin/sh", "-c",
       "git -C \"$0\" fsck --no-progress && git -C \"$0\" cat-file --batch --batch-all-objects",
       home.file("kernel/default")});
  const auto done = git.finish();
  INFO(done.err);
  REQUIRE(done.code == 0);
  return done.out;
}

/// What was seen, by the name of where.
using sightings = std::vector<std::pair<std::string, std::string>>;

/// The first place that shows a part of it; empty: none.
inline std::string place_of(const canary& c, const sightings& seen) {
  for (const auto& [where, text] : seen)
    if (!c.files.contains(where) && shows_part_of(text, c.secret.core))
      return where;
  return {};
}

/// The files of the home as they are on the disk, the database and its log among them. Objects of
/// git are compressed: they are looked at apart.
inline void look_at_files(const home_of_boyd& home, sightings& seen) {
  for (const auto& entry : std::filesystem::recursive_directory_iterator(home.path())) {
    const auto name = std::filesystem::relative(entry.path(), home.path()).string();
    if (entry.is_regular_file() && name.find("/.git/objects/") == std::string::npos &&
        name != "boyd.yaml")
      seen.emplace_back(name, read_file(entry.path()));
  }
}

} // namespace boyd::test::canary_lab
