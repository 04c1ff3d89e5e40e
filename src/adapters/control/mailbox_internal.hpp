#pragma once

#include <boost/asio/io_context.hpp>
#include <boost/asio/post.hpp>

#include <mutex>
#include <utility>

namespace boyd::adapters::control_detail {

/// The way from any thread to the server's, which outlives the server: what comes after its end is
/// dropped.
class mailbox {
 public:
  explicit mailbox(boost::asio::io_context& io) : io_(&io) {}

  template <class Task>
  void post(Task task) {
    const std::lock_guard lock(mutex_);
    if (io_ != nullptr)
      boost::asio::post(*io_, std::move(task));
  }

  void close() {
    const std::lock_guard lock(mutex_);
    io_ = nullptr;
  }

 private:
  std::mutex mutex_;
  boost::asio::io_context* io_;
};

} // namespace boyd::adapters::control_detail
