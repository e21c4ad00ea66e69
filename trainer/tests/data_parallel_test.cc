// Several processes that train together, on one machine.
#include <arpa/inet.h>
#include <sys/socket.h>

#include "base/error.h"
#include "trainer/fit/process_group.h"
#include "trainer/tests/fit_runs.h"

namespace orthrus::train {
namespace {

std::string free_port() {
  const int socket = ::socket(AF_INET, SOCK_STREAM, 0);
  sockaddr_in address = {};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof address;
  EXPECT_EQ(::bind(socket, reinterpret_cast<sockaddr*>(&address), size), 0);
  EXPECT_EQ(::getsockname(socket, reinterpret_cast<sockaddr*>(&address), &size), 0);
  ::close(socket);
  return std::to_string(ntohs(address.sin_port));
}

class DataParallel : public Fit {
 protected:
  pid_t start_rank(int rank, const std::string& port, const std::vector<std::string>& extra) const {
    return start("group", extra,
                 {"RANK=" + std::to_string(rank), "WORLD_SIZE=2", "LOCAL_RANK=0",
                  "MASTER_ADDR=127.0.0.1", "MASTER_PORT=" + port, "OMP_NUM_THREADS=1"});
  }
};

/// Three rows a step: one process has two of them, the other one. In float32: bfloat16 products
/// round the two orders of the same sums apart by more than this looks for.
TEST_F(DataParallel, TwoProcessesHaveTheCurveOfOneAlsoWhenResumed) {
  const std::vector<std::string> half{"--step-rows", "3", "--steps", "8", "--precision", "f32"};
  EXPECT_EQ(wait(start("alone", half)), 0);
  std::string port = free_port();
  pid_t first = start_rank(0, port, half), second = start_rank(1, port, half);
  wait_for_steps("group", 2);
  ::kill(second, SIGTERM);
  EXPECT_EQ(wait(first), kStopped);
  EXPECT_EQ(wait(second), kStopped);
  EXPECT_LT(losses("group").size(), 8u);

  std::vector<std::string> rest = half;
  rest.push_back("--resume");
  port = free_port();
  first = start_rank(0, port, rest), second = start_rank(1, port, rest);
  EXPECT_EQ(wait(first), 0);
  EXPECT_EQ(wait(second), 0);
  const auto expected = losses("alone"), found = losses("group");
  ASSERT_EQ(expected.size(), 8u);
  ASSERT_EQ(found.size(), 8u);
  for (size_t i = 0; i < expected.size(); ++i) {
    EXPECT_EQ(found[i].first, expected[i].first);
    EXPECT_NEAR(found[i].second, expected[i].second, 1e-4) << "step " << i + 1;
  }
  EXPECT_LT(expected.back().second, expected.front().second);
  const auto alone = events("alone", "step"), group = events("group", "step");
  EXPECT_EQ(alone.back()["tokens"], group.back()["tokens"]);
}

TEST_F(DataParallel, ADeadProcessEndsTheOther) {
  const std::string port = free_port();
  const pid_t first = start_rank(0, port, {"--steps", "100000"});
  const pid_t second = start_rank(1, port, {"--steps", "100000"});
  wait_for_steps("group", 1);
  ::kill(second, SIGKILL);
  EXPECT_EQ(wait(first), 1);
  EXPECT_EQ(wait(second), 128 + SIGKILL);
}

/// Of what the test was started with, nothing counts.
WorldPlace world(const std::vector<std::pair<const char*, const char*>>& variables) {
  for (const char* name :
       {"RANK", "WORLD_SIZE", "LOCAL_RANK", "MASTER_ADDR", "MASTER_PORT", "OMPI_COMM_WORLD_RANK",
        "OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_LOCAL_RANK", "OMPI_COMM_WORLD_LOCAL_SIZE",
        "PMI_RANK", "PMI_SIZE", "MPI_LOCALRANKID", "MPI_LOCALNRANKS",
        "TORCHELASTIC_USE_AGENT_STORE"}) {
    ::unsetenv(name);
  }
  for (const auto& [name, value] : variables) ::setenv(name, value, 1);
  const auto clean_up = [&] {
    for (const auto& [name, value] : variables) ::unsetenv(name);
  };
  try {
    const WorldPlace place = world_from_environment();
    clean_up();
    return place;
  } catch (...) {
    clean_up();
    throw;
  }
}

TEST(World, TorchrunAndMpirunAreUnderstood) {
  EXPECT_EQ(world({}).size, 1);
  const WorldPlace torchrun = world({{"RANK", "3"},
                                     {"WORLD_SIZE", "4"},
                                     {"LOCAL_RANK", "1"},
                                     {"MASTER_ADDR", "node-0"},
                                     {"MASTER_PORT", "1234"},
                                     {"TORCHELASTIC_USE_AGENT_STORE", "True"}});
  EXPECT_EQ(torchrun.rank, 3);
  EXPECT_EQ(torchrun.size, 4);
  EXPECT_EQ(torchrun.local_rank, 1);
  EXPECT_EQ(torchrun.address, "node-0");
  EXPECT_EQ(torchrun.port, 1234);
  EXPECT_TRUE(torchrun.store_is_there);
  const WorldPlace mpirun = world({{"OMPI_COMM_WORLD_RANK", "1"},
                                   {"OMPI_COMM_WORLD_SIZE", "2"},
                                   {"OMPI_COMM_WORLD_LOCAL_RANK", "1"},
                                   {"OMPI_COMM_WORLD_LOCAL_SIZE", "2"}});
  EXPECT_EQ(mpirun.rank, 1);
  EXPECT_EQ(mpirun.size, 2);
  EXPECT_EQ(mpirun.local_rank, 1);
  EXPECT_EQ(mpirun.address, "127.0.0.1");
  EXPECT_FALSE(mpirun.store_is_there);
  const WorldPlace mpich = world(
      {{"PMI_RANK", "2"}, {"PMI_SIZE", "3"}, {"MPI_LOCALRANKID", "2"}, {"MPI_LOCALNRANKS", "3"}});
  EXPECT_EQ(mpich.rank, 2);
  EXPECT_EQ(mpich.size, 3);
  EXPECT_EQ(mpich.local_rank, 2);
  EXPECT_EQ(mpich.address, "127.0.0.1");
}

TEST(World, WrongVariablesAreNamed) {
  const auto refusal = [](const std::vector<std::pair<const char*, const char*>>& variables) {
    try {
      world(variables);
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), ErrorKind::kUsage);
      return std::string(error.what());
    }
    return std::string();
  };
  EXPECT_NE(refusal({{"RANK", "0"}}).find("WORLD_SIZE"), std::string::npos);
  EXPECT_NE(refusal({{"RANK", "2"}, {"WORLD_SIZE", "2"}}).find("RANK = 2"), std::string::npos);
  EXPECT_NE(refusal({{"RANK", "0"}, {"WORLD_SIZE", "2"}}).find("MASTER_ADDR"), std::string::npos);
  EXPECT_NE(refusal({{"OMPI_COMM_WORLD_RANK", "0"}, {"OMPI_COMM_WORLD_SIZE", "x"}}).find("= x"),
            std::string::npos);
  // On several machines the place to meet must be given.
  EXPECT_NE(refusal({{"OMPI_COMM_WORLD_RANK", "0"},
                     {"OMPI_COMM_WORLD_SIZE", "2"},
                     {"OMPI_COMM_WORLD_LOCAL_SIZE", "1"}})
                .find("MASTER_ADDR"),
            std::string::npos);
}

TEST_F(DataParallel, NobodyElseComes) {
  const std::string port = free_port();
  EXPECT_EQ(wait(start_rank(1, port, {"--steps", "1", "--peer-minutes", "0.01"})), 1);
}

}  // namespace
}  // namespace orthrus::train
