#include "remesh/core/thread_pool.hpp"

#include <algorithm>
#include <condition_variable>
#include <exception>
#include <mutex>
#include <sched.h>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "remesh/core/error.hpp"

namespace remesh {
namespace {

// The affinity mask counts, not the machine: mpirun and cpusets give a process a part of it.
int usable_processors() {
  cpu_set_t set;
  CPU_ZERO(&set);
  if (sched_getaffinity(0, sizeof set, &set) == 0) return CPU_COUNT(&set);
  return static_cast<int>(std::max(1U, std::thread::hardware_concurrency()));
}

}  // namespace

// All of it is guarded by the mutex but the threads, which the owner alone touches.
struct ThreadPool::State {
  using Task = std::function<void(std::size_t index, int worker)>;

  ~State();

  void start(int size);
  void work(int worker);
  void perform(std::size_t index, int worker, std::unique_lock<std::mutex>& lock);
  bool ended() const { return next == count && running == 0; }

  std::mutex mutex;
  std::condition_variable wake;  // there is an index to start, or the pool closes
  std::condition_variable done;  // the last task has ended
  bool closing = false;

  const Task* task = nullptr;
  std::size_t count = 0;
  std::size_t next = 0;  // the first index not started; == count once a task threw
  int running = 0;
  std::size_t failed_index = 0;
  std::exception_ptr failure;

  std::vector<std::thread> threads;
};

ThreadPool::State::~State() {
  {
    const std::scoped_lock lock(mutex);
    closing = true;
  }
  wake.notify_all();
  for (std::thread& thread : threads) thread.join();
}

void ThreadPool::State::start(int size) {
  threads.reserve(static_cast<std::size_t>(size));
  for (int worker = 0; worker < size; ++worker) {
    try {
      threads.emplace_back([this, worker] { work(worker); });
    } catch (const std::system_error& error) {
      throw Error(Errc::out_of_memory, fmt::format("cannot start thread {} of {}: {}", worker + 1,
                                                   size, error.code().message()));
    }
  }
}

void ThreadPool::State::work(int worker) {
  std::unique_lock lock(mutex);
  while (true) {
    wake.wait(lock, [this] { return closing || next < count; });
    if (closing) return;
    const std::size_t index = next++;
    ++running;
    perform(index, worker, lock);
    --running;
    if (ended()) done.notify_one();
  }
}

// Runs one task without the lock. Indices start in increasing order, so whichever task throws first
// in time, the lowest that will throw has started already: the result does not depend on timing.
void ThreadPool::State::perform(std::size_t index, int worker, std::unique_lock<std::mutex>& lock) {
  std::exception_ptr thrown;
  lock.unlock();
  try {
    (*task)(index, worker);
  } catch (...) {
    thrown = std::current_exception();
  }
  lock.lock();
  if (!thrown) return;
  next = count;
  if (!failure || index < failed_index) {
    failure = std::move(thrown);
    failed_index = index;
  }
}

ThreadPool::ThreadPool(int size) : state_(std::make_unique<State>()) {
  if (size < 0) {
    throw Error(Errc::invalid_argument,
                fmt::format("cannot start {} threads: expected 1 or more, or 0 for one for each "
                            "processor",
                            size));
  }
  state_->start(size == 0 ? usable_processors() : size);
}

ThreadPool::~ThreadPool() = default;

int ThreadPool::size() const noexcept { return static_cast<int>(state_->threads.size()); }

void ThreadPool::run(std::size_t count,
                     const std::function<void(std::size_t index, int worker)>& task) {
  State& state = *state_;
  std::unique_lock lock(state.mutex);
  if (state.task != nullptr) {
    throw Error(Errc::internal,
                "cannot run tasks on a pool that is running some: a task, or a second thread, "
                "called run()");
  }
  state.task = &task;
  state.count = count;
  state.next = 0;
  state.wake.notify_all();
  state.done.wait(lock, [&state] { return state.ended(); });

  state.task = nullptr;
  if (const std::exception_ptr failure = std::exchange(state.failure, nullptr)) {
    std::rethrow_exception(failure);
  }
}

}  // namespace remesh
