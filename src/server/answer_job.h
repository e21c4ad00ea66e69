#pragma once

#include <atomic>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/strand.hpp>
#include <boost/asio/thread_pool.hpp>
#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "engine/engine.h"
#include "server/answer_format.h"
#include "server/api_error.h"
#include "server/http_body_share.h"
#include "server/http_reply.h"
#include "server/metrics.h"

namespace orthrus {

/// How many answers may be under way, being written or waiting. Any thread.
class Places {
 public:
  explicit Places(int64_t most) : most_(most) {}
  int64_t most() const { return most_; }
  bool full() const { return taken_ >= most_; }
  /// All of them or none.
  bool take(int64_t count) {
    int64_t taken = taken_;
    while (count <= most_ - taken) {
      if (taken_.compare_exchange_weak(taken, taken + count)) return true;
    }
    return false;
  }
  void give_back(int64_t count) { taken_ -= count; }

 private:
  const int64_t most_;
  std::atomic<int64_t> taken_ = 0;
};

/// One request on its way through the engine to its client: submits its choices, tells the client
/// what becomes of them, and ends them when the client goes away or time is up. Lives until the
/// last choice has ended.
///
/// The engine's thread only moves what happened to the job's strand, where texts are made of it.
class AnswerJob : public std::enable_shared_from_this<AnswerJob> {
 public:
  using Clock = std::chrono::steady_clock;
  struct Parts {
    Engine& engine;
    Metrics& metrics;
    Places& places;
    boost::asio::thread_pool& writers;
    std::chrono::seconds time_limit{0};  ///< from now to the end of the answer; 0: none
  };
  /// Whose request it is, and since when.
  struct Origin {
    std::string id;        ///< of the request, for the log
    std::string endpoint;  ///< for the metrics
    std::string client;
    Clock::time_point arrival;
    HttpBodyShare share;  ///< of the request's body; given back when it has a place
  };
  /// All of the parts must outlive the job.
  AnswerJob(const Parts& parts, Origin origin, std::unique_ptr<AnswerFormat> format,
            std::shared_ptr<HttpReply> reply);
  ~AnswerJob();

  /// Submits all choices, or answers that it is not possible. Does not wait. Once.
  void start();

 private:
  struct Choice;

  // On the strand:
  void submit();
  std::vector<Engine::Submission> submissions();
  void choice_done(int64_t index, const AnswerStep& last, const GenerateResult& result);
  void finish();
  /// The client hears the error unless it has heard the end; what still runs is cancelled.
  void refuse(const ApiError& error);

  // From any thread:
  /// Runs `work` on the strand; the client is told of what it throws.
  void on_strand(std::function<void(AnswerJob&)> work);
  void cancel_choices();
  void one_ended();

  Parts parts_;
  Origin origin_;
  std::unique_ptr<AnswerFormat> format_;
  std::shared_ptr<HttpReply> reply_;
  boost::asio::strand<boost::asio::thread_pool::executor_type> strand_;
  boost::asio::steady_timer timer_;
  const bool stream_;
  std::vector<std::unique_ptr<Choice>> choices_;

  // Of the strand:
  std::vector<GenerateResult> results_;
  size_t done_ = 0;
  bool head_sent_ = false;  // of a stream
  bool closed_ = false;     // nothing more is sent

  std::mutex mutex_;  // of what follows
  std::vector<uint64_t> ids_;
  bool cancelled_ = false;
  size_t running_ = 0;
  std::shared_ptr<AnswerJob> self_;  // while choices run
};

}  // namespace orthrus
