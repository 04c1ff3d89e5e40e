#pragma once

#include <memory>
#include <optional>
#include <utility>

namespace boyd {

/// An optional whose value stands on the heap: for what is large and mostly not there, in values
/// that are made by the ten thousand a second. Empty it has the size of a pointer. Copies are deep,
/// equality is that of the values; what is dereferenced must be there, as with std::optional.
template <class T>
class boxed {
 public:
  using value_type = T;

  boxed() = default;
  boxed(std::nullopt_t) {}
  boxed(T value) : value_(std::make_unique<T>(std::move(value))) {}
  boxed(const boxed& other) : value_(other ? std::make_unique<T>(*other) : nullptr) {}
  boxed(boxed&&) noexcept = default;
  boxed& operator=(const boxed& other) {
    value_ = other ? std::make_unique<T>(*other) : nullptr;
    return *this;
  }
  boxed& operator=(boxed&&) noexcept = default;
  ~boxed() = default;

  explicit operator bool() const noexcept { return value_ != nullptr; }
  bool has_value() const noexcept { return value_ != nullptr; }

  T& operator*() { return *value_; }
  const T& operator*() const { return *value_; }
  T* operator->() { return value_.get(); }
  const T* operator->() const { return value_.get(); }

  template <class... Arguments>
  T& emplace(Arguments&&... arguments) {
    value_ = std::make_unique<T>(std::forward<Arguments>(arguments)...);
    return *value_;
  }
  void reset() noexcept { value_.reset(); }

  friend bool operator==(const boxed& a, const boxed& b) { return a && b ? *a == *b : !a && !b; }

 private:
  std::unique_ptr<T> value_;
};

} // namespace boyd
