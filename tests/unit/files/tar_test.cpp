#include "boyd/files/tar.hpp"
#include "support/pch.hpp"

#include <rapidcheck.h>

#include <array>
#include <cstdio>

namespace boyd::tar_test {

using namespace boyd;
using files::tar_entry;

namespace {

/// Gives the bytes of a text, and no more than there are.
class source {
 public:
  explicit source(std::string text) : text_(std::move(text)) {}
  result<std::string> operator()(std::size_t n) {
    if (text_.size() - at_ < n)
      return fail(errc::corrupt, "the end");
    at_ += n;
    return text_.substr(at_ - n, n);
  }

 private:
  std::string text_;
  std::size_t at_ = 0;
};

result<std::optional<tar_entry>> read(std::string bytes) {
  source from(std::move(bytes));
  return files::next_tar_entry([&](std::size_t n) { return from(n); });
}

tar_entry file(std::string path, std::uint64_t size = 0) {
  tar_entry e;
  e.path = std::move(path);
  e.size = size;
  e.modified = 1'770'000'000;
  return e;
}

/// With its checksum made right again.
std::string mended(std::string block) {
  block.replace(148, 8, 8, ' ');
  unsigned sum = 0;
  for (const char c : block)
    sum += static_cast<unsigned char>(c);
  std::array<char, 8> text{};
  std::snprintf(text.data(), text.size(), "%07o", sum);
  block.replace(148, 7, text.data());
  return block;
}

} // namespace

TEST_CASE("what is written is read again, whatever its length") {
  REQUIRE(rc::check([] {
    auto e = file("d");
    const auto parts = *rc::gen::inRange(0, 40);
    for (int i = 0; i < parts; ++i)
      e.path += "/" + std::string(static_cast<std::size_t>(*rc::gen::inRange(1, 30)), 'x');
    e.size = *rc::gen::inRange<std::uint64_t>(0, std::uint64_t{1} << 40);
    e.mode = *rc::gen::inRange(0U, 01000U);
    e.modified = *rc::gen::inRange<std::int64_t>(0, std::int64_t{1} << 33);
    const auto kind = *rc::gen::inRange(0, 3);
    e.kind = static_cast<tar_entry::kind_t>(kind);
    if (e.kind != tar_entry::kind_t::file)
      e.size = 0;
    if (e.kind == tar_entry::kind_t::symlink)
      e.target = std::string(static_cast<std::size_t>(*rc::gen::inRange(1, 200)), 't');
    const auto header = files::tar_header(e);
    RC_ASSERT(header.size() % files::tar_block == 0U);
    const auto again = read(header);
    RC_ASSERT(again.has_value());
    RC_ASSERT(again->has_value());
    RC_ASSERT(**again == e);
  }));
}

TEST_CASE("an archive ends with blocks of zeros, and files fill their blocks") {
  const auto end = read(files::tar_end());
  REQUIRE(end);
  CHECK_FALSE(*end);
  CHECK(files::tar_padding(0).empty());
  CHECK(files::tar_padding(512).empty());
  CHECK(files::tar_padding(513).size() == 511);
}

TEST_CASE("no path leads out of its directory") {
  for (const char* path : {"", "/etc/passwd", "a/../b", "..", "a/..", "./a", "a//b", "a/./b"}) {
    INFO(path);
    CHECK_FALSE(files::path_trouble(path).empty());
    CHECK(read(files::tar_header(file(path))).error().code == errc::corrupt);
  }
  CHECK(files::path_trouble("a/b..c/...").empty());
}

TEST_CASE("what is no archive, damaged or something else than files is refused") {
  const auto good = files::tar_header(file("a", 3));
  CHECK(read(good)->has_value());
  auto flipped = good;
  flipped[3] = static_cast<char>(flipped[3] ^ 1);
  CHECK(read(flipped).error().code == errc::corrupt);
  auto device = good;
  device[156] = '3';
  CHECK(read(mended(device)).error().what.find("not a file, directory or link") !=
        std::string::npos);
  auto hard_link = good;
  hard_link[156] = '1';
  CHECK_FALSE(read(mended(hard_link)).has_value());
  CHECK_FALSE(read(std::string(512, 'x')).has_value());
  CHECK_FALSE(read(good.substr(0, 100)).has_value());
}

TEST_CASE("any bytes are read or refused") {
  REQUIRE(rc::check([](const std::string& text) {
    auto block = text;
    block.resize(1024, '\0');
    (void)read(block);
    (void)read(mended(block.substr(0, 512)) + block.substr(512));
    // As an extension of any content.
    auto extension = files::tar_header(file("pax", text.size())).substr(0, 512);
    extension[156] = 'x';
    (void)read(mended(extension) + text + files::tar_padding(text.size()) +
               files::tar_header(file("a")));
  }));
}

} // namespace boyd::tar_test
