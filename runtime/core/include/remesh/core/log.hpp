#pragma once

#include <memory>
#include <string_view>

namespace remesh {

enum class LogLevel { error, warn, info, debug };

/// Lines for people on standard error, each with its level. Handed in, never global. Thread-safe.
class Log {
 public:
  explicit Log(LogLevel level = LogLevel::warn);
  Log(const Log&) = delete;
  Log& operator=(const Log&) = delete;
  ~Log();

  void error(std::string_view text) const;
  void warn(std::string_view text) const;
  void info(std::string_view text) const;
  void debug(std::string_view text) const;

 private:
  struct Sink;
  std::unique_ptr<Sink> sink_;
};

}  // namespace remesh
