#include "remesh/core/log.hpp"

#include <spdlog/logger.h>
#include <spdlog/sinks/stdout_sinks.h>

namespace remesh {
namespace {

spdlog::level::level_enum threshold(LogLevel level) {
  switch (level) {
    case LogLevel::error:
      return spdlog::level::err;
    case LogLevel::warn:
      return spdlog::level::warn;
    case LogLevel::info:
      return spdlog::level::info;
    case LogLevel::debug:
      return spdlog::level::debug;
  }
  return spdlog::level::warn;
}

}  // namespace

// A logger of its own, in none of spdlog's registries.
struct Log::Sink {
  Sink() : logger("remesh", std::make_shared<spdlog::sinks::stderr_sink_mt>()) {}

  spdlog::logger logger;
};

Log::Log(LogLevel level) : sink_(std::make_unique<Sink>()) {
  sink_->logger.set_pattern("%v");
  sink_->logger.set_level(threshold(level));
}

Log::~Log() = default;

// A pattern cannot say "warn", only "warning", so the lines bring their own prefix.
void Log::error(std::string_view text) const { sink_->logger.error("remesh: error: {}", text); }
void Log::warn(std::string_view text) const { sink_->logger.warn("remesh: warn: {}", text); }
void Log::info(std::string_view text) const { sink_->logger.info("remesh: info: {}", text); }
void Log::debug(std::string_view text) const { sink_->logger.debug("remesh: debug: {}", text); }

}  // namespace remesh
