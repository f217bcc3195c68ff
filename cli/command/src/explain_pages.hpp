#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

/// @file
/// What `remesh explain RM202` says: one page for each id that a finding can have.

namespace remesh {

struct Page {
  std::string_view id;
  std::string_view title;
  bool raised = false;  ///< whether this build raises it; otherwise the id is reserved
  std::string_view what;
  std::string_view why;    ///< why it matters
  std::string_view cause;  ///< a likely one
  std::string_view next;   ///< what to do
};

/// The pages of RM1xx and RM2xx, of RM3xx and RM4xx, of RM5xx to RM7xx; each ordered by id.
std::span<const Page> container_pages();
std::span<const Page> tensor_pages();
std::span<const Page> number_pages();

/// All pages, ordered by id.
std::vector<Page> all_pages();

/// An id as it is written: "202", "rm202" and "RM202" are the same.
std::string normal_id(std::string_view id);

/// The family of an id: "files" for "RM202".
std::string_view family_of(std::string_view id);

}  // namespace remesh
