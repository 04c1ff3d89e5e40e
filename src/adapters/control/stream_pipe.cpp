#include "stream_pipe_internal.hpp"

#include <utility>

namespace boyd::adapters::control_detail {

namespace {

class stream_handle final : public event_stream {
 public:
  explicit stream_handle(std::shared_ptr<stream_pipe> pipe) : pipe_(std::move(pipe)) {}
  ~stream_handle() override { pipe_->finish(); }
  stream_handle(const stream_handle&) = delete;
  stream_handle& operator=(const stream_handle&) = delete;

  bool send(std::string_view chunk) override { return pipe_->send(chunk); }

 private:
  std::shared_ptr<stream_pipe> pipe_;
};

} // namespace

bool stream_pipe::send(std::string_view chunk) {
  const std::lock_guard lock(mutex_);
  if (closed_ || finished_)
    return false;
  if (chunk.size() > http_stream_buffer_bytes - waiting_.size() - in_flight_) {
    closed_ = true;
    wanted_.close();
    return false;
  }
  waiting_ += chunk;
  if (!std::exchange(pumping_, true))
    wanted_.pump();
  return true;
}

void stream_pipe::finish() {
  const std::lock_guard lock(mutex_);
  if (std::exchange(finished_, true) || closed_)
    return;
  if (!std::exchange(pumping_, true))
    wanted_.pump();
}

stream_pipe::taken stream_pipe::take() {
  const std::lock_guard lock(mutex_);
  taken next{std::exchange(waiting_, {}), finished_};
  in_flight_ = next.data.size();
  pumping_ = in_flight_ > 0;
  return next;
}

void stream_pipe::close() {
  const std::lock_guard lock(mutex_);
  closed_ = true;
  waiting_.clear();
}

std::shared_ptr<event_stream> make_stream_handle(std::shared_ptr<stream_pipe> pipe) {
  return std::make_shared<stream_handle>(std::move(pipe));
}

} // namespace boyd::adapters::control_detail
