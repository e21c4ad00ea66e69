#include "server/answer_job.h"

#include <boost/asio/post.hpp>
#include <type_traits>
#include <utility>

#include "base/log.h"
#include "server/api_error.h"

namespace orthrus {
namespace {

double seconds_between(AnswerJob::Clock::time_point from, AnswerJob::Clock::time_point to) {
  return std::chrono::duration<double>(to - from).count();
}

}  // namespace

/// Hears of one choice, on the engine's thread.
struct AnswerJob::Choice : EngineListener {
  Choice(AnswerJob& owner, int64_t number) : job(owner), index(number) {}

  void on_text(std::string_view piece) override { text += piece; }

  void on_step(const GenerateResult& so_far) override {
    note(so_far);
    if (!job.stream_) return;
    job.on_strand([i = index, step = take_step(so_far)](AnswerJob& self) {
      if (!self.closed_) self.reply_->write(self.format_->stream().step(i, step));
    });
  }

  void on_done(GenerateResult result) override {
    note(result);
    job.parts_.metrics.answered(job.origin_.endpoint, result,
                                seconds_between(job.origin_.arrival, Clock::now()));
    job.on_strand([i = index, last = take_step(result), whole = std::move(result)](
                      AnswerJob& self) { self.choice_done(i, last, whole); });
    job.one_ended();
  }

  void on_failed(const Error& error) override {
    job.parts_.metrics.failed(job.origin_.endpoint, Outcome::kError);
    std::string param;
    if (dynamic_cast<const FormError*>(&error)) param = job.format_->request().form;
    job.on_strand([told = api_error(error, param)](AnswerJob& self) { self.refuse(told); });
    job.one_ended();
  }

  void note(const GenerateResult& so_far) {
    job.parts_.metrics.worked(so_far, counted);
    const size_t tokens = so_far.token_ids.size();
    if (tokens == told_tokens) return;
    const Clock::time_point now = Clock::now();
    new_tokens = tokens - told_tokens;
    if (told_tokens == 0) {
      job.parts_.metrics.first_token(seconds_between(job.origin_.arrival, now));
    } else {
      job.parts_.metrics.next_tokens(seconds_between(last_time, now),
                                     static_cast<int64_t>(new_tokens));
    }
    told_tokens = tokens;
    last_time = now;
  }

  /// What came since the last step; after note().
  AnswerStep take_step(const GenerateResult& so_far) {
    AnswerStep step;
    step.text = std::exchange(text, {});
    step.cycle_tokens = static_cast<int64_t>(std::exchange(new_tokens, 0));
    step.forward_passes = so_far.forward_passes - std::exchange(told_passes, so_far.forward_passes);
    const auto tail = [&](const auto& all) {
      return std::remove_cvref_t<decltype(all)>(all.end() - step.cycle_tokens, all.end());
    };
    if (!so_far.logprobs.empty()) {
      step.token_ids = tail(so_far.token_ids);
      step.logprobs = tail(so_far.logprobs);
    }
    return step;
  }

  AnswerJob& job;
  int64_t index;
  std::string text;  // since the last step
  size_t told_tokens = 0;
  size_t new_tokens = 0;  // since the last step
  int64_t told_passes = 0;
  Metrics::Counted counted;
  Clock::time_point last_time;
};

AnswerJob::AnswerJob(const Parts& parts, Origin origin, std::unique_ptr<AnswerFormat> format,
                     std::shared_ptr<HttpReply> reply)
    : parts_(parts),
      origin_(std::move(origin)),
      format_(std::move(format)),
      reply_(std::move(reply)),
      strand_(boost::asio::make_strand(parts.writers)),
      timer_(strand_),
      stream_(format_->request().stream) {}

AnswerJob::~AnswerJob() = default;

void AnswerJob::start() {
  // On the strand, so that the head of a stream goes out before what its choices have to say.
  on_strand([](AnswerJob& self) {
    Outcome outcome = Outcome::kError;
    try {
      return self.submit();
    } catch (const ApiError& error) {
      if (error.status == 429) outcome = Outcome::kRejected;
      self.refuse(error);
    } catch (const Error& error) {
      self.refuse(api_error(error));
    }
    self.parts_.metrics.failed(self.origin_.endpoint, outcome);
  });
}

void AnswerJob::on_strand(std::function<void(AnswerJob&)> work) {
  boost::asio::post(strand_, [self = shared_from_this(), work = std::move(work)] {
    try {
      work(*self);
    } catch (const std::exception& error) {
      spdlog::error("{}: {}", self->origin_.id, error.what());
      self->refuse(api_error(Error(ErrorKind::kInternal, error.what())));
    }
  });
}

std::vector<Engine::Submission> AnswerJob::submissions() {
  std::vector<Engine::Submission> submissions;
  for (EngineRequest& request : format_->requests()) {
    request.client = origin_.client;
    request.priority = format_->request().priority;
    choices_.push_back(std::make_unique<Choice>(*this, static_cast<int64_t>(choices_.size())));
    submissions.push_back({std::move(request), choices_.back().get()});
  }
  results_.resize(choices_.size());
  return submissions;
}

void AnswerJob::submit() {
  std::vector<Engine::Submission> all = submissions();
  const auto count = static_cast<int64_t>(all.size());
  if (count > parts_.places.most()) throw too_many_answers(count, parts_.places.most());
  if (!parts_.places.take(count)) throw queue_full();
  origin_.share.set(0);
  try {
    const std::lock_guard lock(mutex_);
    ids_ = parts_.engine.submit(std::move(all));
    running_ = ids_.size();
    self_ = shared_from_this();
  } catch (...) {
    parts_.places.give_back(count);
    throw;
  }
  if (stream_) {
    head_sent_ = true;
    reply_->begin_stream({.status = 200, .content_type = "text/event-stream"});
    reply_->write(format_->stream().begin());
  }
  if (parts_.time_limit.count() > 0) {
    timer_.expires_after(parts_.time_limit);
    timer_.async_wait([weak = weak_from_this()](const boost::system::error_code& error) {
      const auto self = weak.lock();
      if (error || !self) return;
      self->refuse(timed_out());
    });
  }
  reply_->on_close([weak = weak_from_this()] {
    if (const auto self = weak.lock()) self->cancel_choices();
  });
}

void AnswerJob::choice_done(int64_t index, const AnswerStep& last, const GenerateResult& result) {
  if (closed_) return;
  // Not by the client, nor by the time limit: both close the job.
  if (result.finish_reason == FinishReason::kCancelled) return refuse(going_down());
  if (stream_) {
    std::string text = format_->stream().step(index, last);
    text += format_->stream().done(index, result);
    reply_->write(text);
  } else {
    results_[static_cast<size_t>(index)] = result;
  }
  if (++done_ == results_.size()) finish();
}

void AnswerJob::finish() {
  closed_ = true;
  timer_.cancel();
  if (stream_) {
    reply_->write(format_->stream().end());
    reply_->end();
  } else {
    reply_->send({.body = format_->whole(results_)});
  }
}

void AnswerJob::refuse(const ApiError& error) {
  if (std::exchange(closed_, true)) return;
  timer_.cancel();
  if (head_sent_) {
    reply_->write(sse_error(error));
    reply_->end();
  } else {
    reply_->send(error_answer(error));
  }
  cancel_choices();
}

void AnswerJob::cancel_choices() {
  const std::lock_guard lock(mutex_);
  if (std::exchange(cancelled_, true)) return;
  for (const uint64_t id : ids_) parts_.engine.cancel(id);
}

void AnswerJob::one_ended() {
  parts_.places.give_back(1);
  std::shared_ptr<AnswerJob> last;
  {
    const std::lock_guard lock(mutex_);
    if (--running_ == 0) last = std::move(self_);
  }
  if (!last) return;
  // The last owner lets go on the strand, not within the call of a choice; and nothing of the job
  // is touched once that may happen.
  const auto strand = strand_;
  boost::asio::post(strand, [job = std::move(last)] {});
}

}  // namespace orthrus
