#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <set>

#include "base/error.h"
#include "trainer/data/row_plan.h"
#include "trainer/data/self_prompts.h"
#include "trainer/data/shard.h"

namespace orthrus::train {
namespace {

std::string temporary(const std::string& name) { return testing::TempDir() + "/orthrus_" + name; }

Shard sample(int64_t vocab_size) {
  Shard shard{"abc", vocab_size, {{"prompts", "made up"}}, {}};
  for (int32_t i = 0; i < 30; ++i) {
    Document d;
    for (int32_t t = 0; t < 10 + 3 * i; ++t) d.tokens.push_back((i * 131 + t * 7) % 1000);
    d.answers = {{2, 5}, {6, static_cast<int64_t>(d.tokens.size())}};
    shard.documents.push_back(d);
  }
  return shard;
}

std::string bytes_of(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

TEST(Shard, ComesBackAsItWas) {
  for (const int64_t vocab : {1000, 65536, 65537, 151936}) {
    const std::string path = temporary("round.shard");
    const Shard shard = sample(vocab);
    write_shard(path, shard);
    const Shard back = read_shard(path);
    EXPECT_EQ(back.base_hash, "abc");
    EXPECT_EQ(back.provenance, shard.provenance);
    ASSERT_EQ(back.documents.size(), shard.documents.size());
    for (size_t i = 0; i < back.documents.size(); ++i) {
      EXPECT_EQ(back.documents[i].tokens, shard.documents[i].tokens);
      ASSERT_EQ(back.documents[i].answers.size(), 2u);
      EXPECT_EQ(back.documents[i].answers[1].end, shard.documents[i].answers[1].end);
    }
    std::filesystem::remove(path);
  }
}

// Every truncation and every changed byte is refused or read as a valid shard: never a crash, never
// a token outside of the vocabulary.
TEST(Shard, DamagedFilesAreErrorsOrValid) {
  const std::string path = temporary("damaged.shard");
  write_shard(path, sample(1000));
  const std::string good = bytes_of(path);
  int refused = 0;
  const auto probe = [&](const std::string& bytes) {
    std::ofstream(path, std::ios::binary | std::ios::trunc) << bytes;
    try {
      const Shard shard = read_shard(path);
      for (const Document& d : shard.documents) {
        for (const int32_t token : d.tokens) {
          ASSERT_GE(token, 0);
          ASSERT_LT(token, shard.vocab_size);
        }
        for (const AnswerSpan& a : d.answers) {
          ASSERT_LE(a.end, static_cast<int64_t>(d.tokens.size()));
        }
      }
    } catch (const Error& error) {
      EXPECT_EQ(std::string(error.what()).find('\n'), std::string::npos);
      ++refused;
    }
  };
  for (size_t size = 0; size < good.size(); size += 13) probe(good.substr(0, size));
  EXPECT_EQ(refused, static_cast<int>((good.size() + 12) / 13));
  for (size_t at = 0; at < std::min<size_t>(good.size(), 600); ++at) {
    std::string bad = good;
    bad[at] = static_cast<char>(bad[at] ^ 0x85);
    probe(bad);
  }
  EXPECT_GT(refused, 300);
  std::filesystem::remove(path);
}

TEST(SelfPrompts, OnlyUsableTextsAreKept) {
  for (const char* usable : {"What is the capital of Kenya?", "Sort [3, 1, 2] in Python, please.",
                             "Tell me a story.\nIt should have a dragon.",
                             // The filter is one of scripts, not of languages.
                             "Quelle est la capitale du Kenya, et combien de villes y a-t-il?"}) {
    EXPECT_TRUE(usable_self_prompt(usable)) << usable;
  }
  const std::string words = "one two three four five six seven eight nine ten ";
  std::string long_text;
  for (int i = 0; i < 60; ++i) long_text += words;
  for (const std::string& useless :
       {std::string("Hi there"), std::string("Supercalifragilistic"), long_text,
        std::string("go on and go on and go on and go on and go on and go on"),
        // "Where is the capital?" in Greek letters.
        std::string(
            "\xce\xa0\xce\xbf\xcf\x8d \xce\xb5\xce\xaf\xce\xbd\xce\xb1\xce\xb9 \xce\xb7 abc?"),
        std::string("\xe4\xbd\xa0\xe5\xa5\xbd\xe4\xb8\x96\xe7\x95\x8c a b c d"),
        std::string("not valid UTF-8: \xff\xfe at all")}) {
    EXPECT_FALSE(usable_self_prompt(useless)) << useless;
  }
}

TEST(RowPlan, EveryDocumentOnceAnEpochAndAnchorsWithoutRepeats) {
  const Shard data = sample(1000);
  RowPlanOptions options;
  options.row_tokens = 120;
  options.row_blocks = 20;
  options.seed = 7;
  RowPlan plan(data, options);
  std::multiset<std::vector<int64_t>> seen;
  while (plan.state().epoch == 0) {
    const PlannedRow row = plan.next();
    if (plan.state().epoch == 1) break;
    EXPECT_LE(row.row.tokens.size(), 120u);
    EXPECT_LE(row.blocks.size(), 20u);
    std::set<int64_t> anchors;
    for (const TrainBlock& b : row.blocks) {
      EXPECT_TRUE(anchors.insert(b.block.anchor).second);
      const auto& d = row.row.documents[static_cast<size_t>(b.block.document)];
      EXPECT_GE(b.block.anchor, d.begin + 2);
      EXPECT_LT(b.block.anchor + b.targets, d.end);
      EXPECT_GE(b.targets, 1);
      EXPECT_LE(b.targets, 7);
      EXPECT_NE(b.block.anchor, d.begin + 5);  // between the answers
      if (b.block.anchor < d.begin + 5) {
        EXPECT_EQ(b.targets, d.begin + 4 - b.block.anchor);
      }
    }
    for (const auto& d : row.row.documents) {
      seen.insert({row.row.tokens.begin() + d.begin, row.row.tokens.begin() + d.end});
    }
  }
  ASSERT_EQ(seen.size(), data.documents.size());
  for (const Document& d : data.documents) {
    EXPECT_EQ(seen.count({d.tokens.begin(), d.tokens.end()}), 1u);
  }
}

TEST(RowPlan, GoesOnFromAnyState) {
  const Shard data = sample(1000);
  RowPlanOptions options;
  options.row_tokens = 120;
  RowPlan straight(data, options);
  for (int i = 0; i < 50; ++i) {
    RowPlan resumed(data, options);
    resumed.restore(straight.state());
    const PlannedRow a = straight.next();
    const PlannedRow b = resumed.next();
    EXPECT_EQ(a.row.tokens, b.row.tokens);
    ASSERT_EQ(a.blocks.size(), b.blocks.size());
    for (size_t k = 0; k < a.blocks.size(); ++k) {
      EXPECT_EQ(a.blocks[k].block.anchor, b.blocks[k].block.anchor);
    }
    EXPECT_EQ(straight.state().next, resumed.state().next);
  }
}

}  // namespace
}  // namespace orthrus::train
