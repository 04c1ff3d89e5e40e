#pragma once

#include <spdlog/sinks/base_sink.h>
#include <spdlog/spdlog.h>

#include <cstddef>
#include <memory>
#include <mutex>
#include <string>

namespace boyd::test {

/// Hears what is logged in its scope instead of showing it. Methods: any thread.
class heard_log {
 public:
  heard_log() : sink_(std::make_shared<sink>()), before_(spdlog::default_logger()) {
    spdlog::set_default_logger(std::make_shared<spdlog::logger>("heard", sink_));
  }
  ~heard_log() { spdlog::set_default_logger(before_); }
  heard_log(const heard_log&) = delete;
  heard_log& operator=(const heard_log&) = delete;

  std::string text() const { return sink_->text(); }

  std::size_t times(const std::string& words) const {
    const auto all = text();
    std::size_t n = 0;
    for (auto at = all.find(words); at != std::string::npos; at = all.find(words, at + 1))
      ++n;
    return n;
  }

 private:
  class sink final : public spdlog::sinks::base_sink<std::mutex> {
   public:
    std::string text() {
      const std::lock_guard lock(mutex_);
      return text_;
    }

   private:
    void sink_it_(const spdlog::details::log_msg& m) override {
      text_.append(m.payload.data(), m.payload.size()).append("\n");
    }
    void flush_() override {}

    std::string text_;
  };

  std::shared_ptr<sink> sink_;
  std::shared_ptr<spdlog::logger> before_;
};

} // namespace boyd::test
