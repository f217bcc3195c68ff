#pragma once

#include <cstddef>
#include <functional>
#include <memory>

namespace remesh {

/// A fixed set of threads.
class ThreadPool {
 public:
  /// `size` threads; 0 means one for each processor that this process may use.
  explicit ThreadPool(int size = 0);
  ThreadPool(const ThreadPool&) = delete;
  ThreadPool& operator=(const ThreadPool&) = delete;
  ~ThreadPool();

  int size() const noexcept;

  /// Calls task(index, worker) once for each index in [0, count), in increasing order of start, on
  /// at most size() threads at a time; `worker` in [0, size()) names the thread, so that a task can
  /// use that worker's buffer. Returns when all have ended.
  ///
  /// After a task throws, no further index is started; the exception of the lowest index that threw
  /// is rethrown. Not to be called from within a task, nor by two threads at once.
  void run(std::size_t count, const std::function<void(std::size_t index, int worker)>& task);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace remesh
