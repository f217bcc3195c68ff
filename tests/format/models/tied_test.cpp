#include "remesh/models/tied.hpp"

#include <gtest/gtest.h>

#include "remesh/core/error.hpp"

namespace remesh {
namespace {

TEST(TiesEmbeddings, IsWhatTheConfigSays) {
  EXPECT_TRUE(ties_embeddings(R"({"tie_word_embeddings": true})"));
  EXPECT_FALSE(ties_embeddings(R"({"tie_word_embeddings": false})"));
  EXPECT_FALSE(ties_embeddings(R"({"tie_word_embeddings": null})"));
  EXPECT_FALSE(ties_embeddings("{}"));
  EXPECT_FALSE(ties_embeddings(""));
}

TEST(TiesEmbeddings, TheOuterOneCountsBeforeThatOfTheText) {
  EXPECT_TRUE(ties_embeddings(R"({"text_config": {"tie_word_embeddings": true}})"));
  EXPECT_FALSE(ties_embeddings(
      R"({"tie_word_embeddings": false, "text_config": {"tie_word_embeddings": true}})"));
}

TEST(TiesEmbeddings, WhatIsNoObjectIsRefused) {
  EXPECT_THROW(ties_embeddings("[]"), Error);
  EXPECT_THROW(ties_embeddings(R"({"tie_word_embeddings": "yes"})"), Error);
}

}  // namespace
}  // namespace remesh
