#pragma once

#include "support/temp_dir.hpp"

#include <fcntl.h>
#include <new>
#include <stdexcept>
#include <string>
#include <sys/mman.h>
#include <unistd.h>

namespace boyd::test {

/// A small file that holds one `Block`, mapped here and by what is preloaded into a program, so
/// that it can be read and set while the program runs. `Block` is made of atomics and plain memory.
template <class Block>
class shared_block {
 public:
  shared_block() : path_(directory_.file("block")) {
    const int fd = ::open(path_.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    const bool sized = fd >= 0 && ::ftruncate(fd, sizeof(Block)) == 0;
    void* at = sized ? ::mmap(nullptr, sizeof(Block), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0)
                     : MAP_FAILED;
    if (fd >= 0)
      ::close(fd);
    if (at == MAP_FAILED)
      throw std::runtime_error("cannot map " + path_);
    block_ = new (at) Block{};
  }
  ~shared_block() { ::munmap(block_, sizeof(Block)); }
  shared_block(const shared_block&) = delete;
  shared_block& operator=(const shared_block&) = delete;

  const std::string& path() const { return path_; }
  Block* operator->() const { return block_; }

 private:
  temp_dir directory_;
  std::string path_;
  Block* block_ = nullptr;
};

} // namespace boyd::test
