#include "remesh/models/tied.hpp"

#include "config.hpp"

namespace remesh {

bool ties_embeddings(std::string_view config_json) {
  const detail::Config config = detail::Config::parse(config_json);
  constexpr std::string_view outer = "tie_word_embeddings";
  if (config.says(outer)) return config.flag(outer).value_or(false);
  return config.flag("text_config.tie_word_embeddings").value_or(false);
}

}  // namespace remesh
