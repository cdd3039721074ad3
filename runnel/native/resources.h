// Memory and threads for the code that XLA calls.

#ifndef RUNNEL_NATIVE_RESOURCES_H_
#define RUNNEL_NATIVE_RESOURCES_H_

#include <omp.h>

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <cstdlib>
#include <functional>
#include <iterator>
#include <map>
#include <memory>
#include <mutex>
#include <new>
#include <stdexcept>
#include <string>

#include "xla/ffi/api/ffi.h"

namespace runnel {

// Memory for the duration of a call. It is kept for later calls: what the system hands out anew
// costs a page fault for every 4 KiB. Where nothing that is kept fits, one buffer is given back for
// the new one, so there are never more of them than were in use together.
class Buffer {
 public:
  explicit Buffer(size_t bytes) {
    if (bytes == 0) return;
    std::lock_guard<std::mutex> hold(Mutex());
    auto found = Free().lower_bound(bytes);
    if (found != Free().end() && found->first <= 2 * bytes + kPage) {
      bytes_ = found->first;
      data_ = found->second;
      Free().erase(found);
      return;
    }
    if (!Free().empty()) {
      auto old = found != Free().begin() ? std::prev(found) : found;
      std::free(old->second);
      Free().erase(old);
    }
    bytes_ = (bytes + kPage - 1) / kPage * kPage;
    data_ = std::aligned_alloc(kPage, bytes_);
    if (data_ == nullptr) throw std::bad_alloc();
  }

  ~Buffer() {
    if (data_ == nullptr) return;
    std::lock_guard<std::mutex> hold(Mutex());
    Free().emplace(bytes_, data_);
  }

  Buffer(const Buffer&) = delete;

  char* data() const { return static_cast<char*>(data_); }

 private:
  static constexpr size_t kPage = 4096;

  static std::mutex& Mutex() {
    static auto* mutex = new std::mutex;
    return *mutex;
  }

  static std::multimap<size_t, void*>& Free() {
    static auto* free = new std::multimap<size_t, void*>;
    return *free;
  }

  size_t bytes_ = 0;
  void* data_ = nullptr;
};

// While it lives, OpenMP gives the calling thread no others.
class OnThisThread {
 public:
  OnThisThread() : before_(omp_get_max_threads()) { omp_set_num_threads(1); }
  ~OnThisThread() { omp_set_num_threads(before_); }
  OnThisThread(const OnThisThread&) = delete;

 private:
  int before_;
};

using Task = std::function<void(int64_t)>;

struct Work {
  const Task* task;
  int64_t count;
  std::atomic<int64_t> next{0};
  std::mutex mutex;
  std::condition_variable finished;
  int64_t done = 0;
  std::string error;
};

inline void Help(Work& work) {
  OnThisThread serial;
  for (int64_t i; (i = work.next++) < work.count;) {
    std::string error;
    try {
      (*work.task)(i);
    } catch (const std::exception& caught) {
      error = caught.what();
    }
    std::lock_guard<std::mutex> hold(work.mutex);
    if (!error.empty()) work.error = error;
    if (++work.done == work.count) work.finished.notify_all();
  }
}

// Runs task(0), ..., task(count - 1). The caller does what no thread of the pool has begun, and
// waits only for what others are at: busy threads delay it but cannot block it.
inline void InParallel(xla::ffi::ThreadPool& pool, int64_t count, const Task& task) {
  auto work = std::make_shared<Work>();
  work->task = &task;
  work->count = count;
  const int64_t helpers = std::min<int64_t>(count, pool.num_threads()) - 1;
  for (int64_t i = 0; i < helpers; ++i) pool.Schedule([work] { Help(*work); });
  Help(*work);
  std::unique_lock<std::mutex> hold(work->mutex);
  work->finished.wait(hold, [&] { return work->done == work->count; });
  if (!work->error.empty()) throw std::runtime_error(work->error);
}

}  // namespace runnel

#endif  // RUNNEL_NATIVE_RESOURCES_H_
