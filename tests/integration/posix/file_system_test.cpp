#include "boyd/files/atomic_file.hpp"
#include "boyd/files/journal.hpp"
#include "src/adapters/posix/file_system.hpp"
#include "support/pch.hpp"
#include "support/temp_dir.hpp"

#include <filesystem>
#include <fstream>
#include <sys/resource.h>
#include <sys/stat.h>

namespace boyd::file_system_test {

using namespace boyd;

namespace {

constexpr std::size_t plenty = 1 << 20;

unsigned mode_of(file_system& fs, const std::string& path) {
  return fs.stat(path).value().mode;
}

} // namespace

TEST_CASE("files are read, written and described", "[posix][files]") {
  const test::temp_dir dir;
  const auto fs = adapters::make_posix_file_system();
  const auto path = dir.file("a");
  CHECK(fs->stat(path).value().kind == file_kind::missing);
  CHECK(fs->read(path, plenty).error().code == errc::not_found);
  {
    auto file = fs->open(path, open_mode::create_new).value();
    CHECK(file->write("hello ").value() == 6);
    CHECK(file->write("world").value() == 5);
    REQUIRE(file->sync());
    REQUIRE(file->truncate(5));
    CHECK(file->size().value() == 5);
    CHECK(file->write("!").value() == 1);
    CHECK(file->read_part(0, plenty).value() == "hello!");
    CHECK(file->read_part(3, 2).value() == "lo");
    CHECK(file->read_part(7, 1).value().empty());
  }
  CHECK(fs->read(path, plenty).value() == "hello!");
  CHECK(fs->read(path, 6).value() == "hello!");
  CHECK(fs->read(path, 5).error().code == errc::limit_exceeded);
  const auto info = fs->stat(path).value();
  CHECK(info.kind == file_kind::regular);
  CHECK(info.size == 6);
  CHECK(info.mode == 0600);
  CHECK(info.inode != 0);
  CHECK(fs->open(path, open_mode::create_new).error().code == errc::already_exists);
  REQUIRE(fs->rename(path, dir.file("b")));
  CHECK(fs->stat(dir.file("b")).value().inode == info.inode);
  REQUIRE(fs->unlink(dir.file("b")));
  CHECK(fs->unlink(dir.file("b")).error().code == errc::not_found);
}

TEST_CASE("below a directory no symbolic link is followed, above it any", "[posix][files]") {
  const test::temp_dir dir;
  const auto fs = adapters::make_posix_file_system();
  const auto home = dir.file("home");
  REQUIRE(fs->make_directories(home + "/notes"));
  std::ofstream(dir.file("secret")) << "secret";
  std::ofstream(home + "/own") << "own";
  std::ofstream(home + "/notes/today") << "today";
  std::filesystem::create_symlink(dir.file("secret"), home + "/link");
  std::filesystem::create_symlink("own", home + "/inside");
  std::filesystem::create_symlink("nowhere", home + "/dangling");
  std::filesystem::create_directory_symlink(dir.path(), home + "/out");
  std::filesystem::create_directory_symlink(home, dir.file("way"));
  for (const auto& root : {home, dir.file("way")}) {
    CHECK(fs->read_below(root, "own", plenty).value() == "own");
    CHECK(fs->read_below(root, "notes/today", plenty).value() == "today");
    for (const auto* name : {"link", "inside", "dangling", "out/secret", "out"}) {
      const auto text = fs->read_below(root, name, plenty);
      INFO(name);
      REQUIRE_FALSE(text);
      CHECK(text.error().code == errc::refused);
      CHECK(text.error().what.find("symbolic link") != std::string::npos);
    }
    CHECK(fs->read_below(root, "notes", plenty).error().code == errc::refused);
    CHECK(fs->read_below(root, "none", plenty).error().code == errc::not_found);
    CHECK(fs->read_below(root, "own/none", plenty).error().code != errc::refused);
    CHECK(fs->read_below(root, "../secret", plenty).error().code == errc::invalid_argument);
    CHECK(fs->read_below(root, "own", 2).error().code == errc::limit_exceeded);
    CHECK(fs->read_part(root + "/own", 1, 1).value() == "w");
    CHECK(fs->read_part(root + "/own", 1, plenty).value() == "wn");
    CHECK(fs->read_part(root + "/own", 3, plenty).value().empty());
    CHECK(fs->read_part(root + "/own", 10, plenty).value().empty());
    CHECK(fs->read_part(root + "/none", 0, plenty).error().code == errc::not_found);
  }
}

TEST_CASE("directories are made private, listed and synced", "[posix][files]") {
  const test::temp_dir dir;
  const auto fs = adapters::make_posix_file_system();
  const auto deep = dir.file("x/y/z");
  REQUIRE(fs->make_directories(deep));
  REQUIRE(fs->make_directories(deep));
  CHECK(mode_of(*fs, deep) == 0700);
  CHECK(mode_of(*fs, dir.file("x")) == 0700);
  std::ofstream(deep + "/2") << "";
  std::ofstream(deep + "/1") << "";
  CHECK(fs->list(deep).value() == std::vector<std::string>{"1", "2"});
  CHECK(fs->list(dir.file("none")).error().code == errc::not_found);
  CHECK(fs->make_directories(deep + "/1/q").error().code == errc::already_exists);
  REQUIRE(fs->sync_directory(deep));
  CHECK_FALSE(fs->sync_directory(dir.file("none")));
}

TEST_CASE("links are not followed for writing, and only regular files are opened",
          "[posix][files]") {
  const test::temp_dir dir;
  const auto fs = adapters::make_posix_file_system();
  std::ofstream(dir.file("target")) << "precious";
  std::filesystem::create_symlink(dir.file("target"), dir.file("link"));
  CHECK(fs->stat(dir.file("link")).value().kind == file_kind::symlink);
  CHECK(fs->open(dir.file("link"), open_mode::append).error().code == errc::refused);
  CHECK(fs->read(dir.file("link"), plenty).value() == "precious");
  REQUIRE(files::write_atomic(*fs, dir.file("link"), "mine"));
  CHECK(fs->stat(dir.file("link")).value().kind == file_kind::regular);
  CHECK(fs->read(dir.file("target"), plenty).value() == "precious");
  REQUIRE(::mkfifo(dir.file("fifo").c_str(), 0600) == 0);
  CHECK_FALSE(fs->read(dir.file("fifo"), plenty));
  CHECK_FALSE(fs->open(dir.file("fifo"), open_mode::append));
  CHECK_FALSE(fs->read(dir.path(), plenty));
}

TEST_CASE("bytes are written over themselves inside a file that is appended to", "[posix][files]") {
  const test::temp_dir dir;
  const auto fs = adapters::make_posix_file_system();
  const auto path = dir.file("log");
  const std::string content(std::size_t{300} << 10, 'x');
  auto file = fs->open(path, open_mode::append).value();
  REQUIRE(file->write(content + "tail").value() == content.size() + 4);
  REQUIRE(file->rewrite(content.size(), "tail"));
  REQUIRE(file->rewrite(0, content));
  REQUIRE(file->rewrite(0, ""));
  CHECK(file->size().value() == content.size() + 4);
  REQUIRE(file->sync());
  // It appends as before.
  REQUIRE(file->write("more"));
  CHECK(fs->read(path, plenty).value() == content + "tailmore");
}

TEST_CASE("fd-exhaustion: a journal that is open is appended to without a free descriptor",
          "[posix][files]") {
  const test::temp_dir dir;
  const auto fs = adapters::make_posix_file_system();
  auto journal = files::journal::open(*fs, dir.file("log")).value();
  rlimit before{};
  REQUIRE(::getrlimit(RLIMIT_NOFILE, &before) == 0);
  rlimit none = before;
  none.rlim_cur = 3;
  REQUIRE(::setrlimit(RLIMIT_NOFILE, &none) == 0);
  const auto appended = journal.append({"{}"});
  const auto opened = fs->open(dir.file("other"), open_mode::append);
  REQUIRE(::setrlimit(RLIMIT_NOFILE, &before) == 0);
  CHECK_FALSE(opened);
  REQUIRE(appended);
  CHECK(*appended == 3);
}

TEST_CASE("atomic files and journals work on a real disk", "[posix][files]") {
  const test::temp_dir dir;
  const auto fs = adapters::make_posix_file_system();
  const auto state = dir.file("STATE.md");
  REQUIRE(files::write_atomic(*fs, state, "one", {true}));
  REQUIRE(files::write_atomic(*fs, state, "two", {true}));
  CHECK(fs->list(dir.path()).value() == std::vector<std::string>{"STATE.md", "STATE.md.bak"});
  std::ofstream(state, std::ios::trunc) << "";
  CHECK(files::read_checked(*fs, state, plenty, nullptr).value().bytes == "two");

  const auto log = dir.file("graph.jsonl");
  {
    auto journal = files::journal::open(*fs, log).value();
    CHECK(journal.append({"{}", "{}"}).value() == 6);
  }
  std::ofstream(log, std::ios::app) << "{\"to";
  auto journal = files::journal::open(*fs, log).value();
  CHECK(journal.end() == 6);
  CHECK(fs->read(log + ".torn", plenty).value() == "{\"to\n");
  REQUIRE(std::filesystem::remove(log));
  CHECK(journal.append({"{}"}).error().code == errc::conflict);
}

} // namespace boyd::file_system_test
