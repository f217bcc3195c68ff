#include "explain_pages.hpp"

#include <algorithm>
#include <cctype>

namespace remesh {

std::vector<Page> all_pages() {
  std::vector<Page> all;
  for (const std::span<const Page> pages : {container_pages(), tensor_pages(), number_pages()}) {
    all.insert(all.end(), pages.begin(), pages.end());
  }
  return all;
}

std::string normal_id(std::string_view id) {
  std::string upper(id);
  std::ranges::transform(upper, upper.begin(), [](char c) {
    return static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
  });
  return upper.starts_with("RM") ? upper : "RM" + upper;
}

std::string_view family_of(std::string_view id) {
  switch (id.size() > 2 ? id[2] : '0') {
    case '1':
      return "container and commit";
    case '2':
      return "files";
    case '3':
      return "tensors and coverage";
    case '4':
      return "replicas";
    case '5':
      return "numbers";
    case '6':
      return "safety";
    case '7':
      return "environment";
    default:
      return "unknown";
  }
}

}  // namespace remesh
