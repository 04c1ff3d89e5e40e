#pragma once

#include <cstddef>
#include <initializer_list>
#include <memory>
#include <utility>
#include <vector>

namespace boyd {

/// A list that never changes: its copies share it. For what is sent in a message and still needed
/// by its sender. Threads: any.
template <class T>
class shared_list {
 public:
  shared_list() : shared_list(std::vector<T>{}) {}
  shared_list(std::vector<T> items) // NOLINT(google-explicit-constructor): a list as such
      : items_(std::make_shared<const std::vector<T>>(std::move(items))) {}
  shared_list(std::initializer_list<T> items) : shared_list(std::vector<T>(items)) {}

  auto begin() const { return items_->begin(); }
  auto end() const { return items_->end(); }
  std::size_t size() const { return items_->size(); }
  bool empty() const { return items_->empty(); }
  const T& operator[](std::size_t i) const { return (*items_)[i]; }

 private:
  std::shared_ptr<const std::vector<T>> items_;
};

} // namespace boyd
