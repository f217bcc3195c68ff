#pragma once

#include <string_view>

namespace remesh {

/// Whether a model with this config.json has its embedding for its output as well: that it says
/// `tie_word_embeddings`, or for models of several kinds of input their `text_config`.
/// Throws Error(corrupt) if the text is no JSON object, or says something else than true or false.
/// An empty text says nothing.
bool ties_embeddings(std::string_view config_json);

}  // namespace remesh
