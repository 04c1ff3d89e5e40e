// Memory for boyd-sim. A seed allocates and frees a hundred thousand small pieces, all on one
// thread: with the C library's allocator that is a fifth of the whole run. No part of a sanitized
// build, whose own allocator watches over each piece.

#include <array>
#include <cstddef>
#include <cstdlib>
#include <new>

namespace {

/// What stands before each piece; as large as the alignment that every piece has.
struct alignas(std::max_align_t) head {
  union {
    std::size_t size_class; ///< while it is used
    head* next;             ///< while it is free
  };
};

constexpr std::size_t step = 32;
constexpr std::size_t classes = 32;
/// The class of what is too large: it comes from the C library.
constexpr std::size_t none = classes;
/// Small pieces are cut from so much.
constexpr std::size_t block_bytes = std::size_t{1} << 18;

/// The free pieces of a thread, and what is left of its block. Nothing is given back: the next seed
/// needs as much.
struct pool {
  std::array<head*, classes> free{};
  char* left = nullptr;
  std::size_t left_bytes = 0;
};

constinit thread_local pool mine;

void* cut(std::size_t bytes) {
  if (mine.left_bytes < bytes) {
    mine.left = static_cast<char*>(std::malloc(block_bytes));
    mine.left_bytes = mine.left == nullptr ? 0 : block_bytes;
  }
  if (mine.left_bytes < bytes)
    return nullptr;
  void* piece = mine.left;
  mine.left += bytes;
  mine.left_bytes -= bytes;
  return piece;
}

head* take(std::size_t bytes) {
  const auto size_class = bytes == 0 ? 0 : (bytes - 1) / step;
  if (size_class >= classes) {
    auto* large = static_cast<head*>(std::malloc(sizeof(head) + bytes));
    if (large != nullptr)
      large->size_class = none;
    return large;
  }
  auto*& free = mine.free[size_class];
  auto* piece = free;
  if (piece != nullptr)
    free = piece->next;
  else
    piece = static_cast<head*>(cut(sizeof(head) + (size_class + 1) * step));
  if (piece != nullptr)
    piece->size_class = size_class;
  return piece;
}

} // namespace

void* operator new(std::size_t bytes) {
  auto* piece = take(bytes);
  if (piece == nullptr)
    throw std::bad_alloc{};
  return piece + 1;
}

void operator delete(void* memory) noexcept {
  if (memory == nullptr)
    return;
  auto* piece = static_cast<head*>(memory) - 1;
  const auto size_class = piece->size_class;
  if (size_class == none)
    return std::free(piece);
  piece->next = mine.free[size_class];
  mine.free[size_class] = piece;
}

void operator delete(void* memory, std::size_t) noexcept {
  operator delete(memory);
}
