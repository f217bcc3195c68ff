#pragma once

/// @file
/// REMESH_SANITIZED: built with a sanitizer that brings its own allocator and address space.

#if defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define REMESH_SANITIZED
#endif
#endif
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define REMESH_SANITIZED
#endif
