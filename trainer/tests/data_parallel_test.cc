// Several processes that train together, on one machine.
#include <arpa/inet.h>
#include <sys/socket.h>

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

/// Three rows a step: one process has two of them, the other one.
TEST_F(DataParallel, TwoProcessesHaveTheCurveOfOneAlsoWhenResumed) {
  const std::vector<std::string> half{"--step-rows", "3", "--steps", "8"};
  EXPECT_EQ(wait(start("alone", half)), 0);
  std::string port = free_port();
  pid_t first = start_rank(0, port, half), second = start_rank(1, port, half);
  wait_for_steps("group", 2);
  ::kill(second, SIGTERM);
  EXPECT_EQ(wait(first), 0);
  EXPECT_EQ(wait(second), 0);
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

TEST_F(DataParallel, WrongVariablesAreUsageErrors) {
  EXPECT_EQ(wait(start("group", {"--steps", "1"}, {"RANK=0"})), 2);
  EXPECT_EQ(wait(start("group", {"--steps", "1"}, {"RANK=2", "WORLD_SIZE=2"})), 2);
  EXPECT_EQ(wait(start("group", {"--steps", "1"}, {"RANK=0", "WORLD_SIZE=2"})), 2);
  EXPECT_EQ(
      wait(start("group", {"--steps", "1"}, {"OMPI_COMM_WORLD_RANK=1", "OMPI_COMM_WORLD_SIZE=x"})),
      2);
}

TEST_F(DataParallel, NobodyElseComes) {
  const std::string port = free_port();
  EXPECT_EQ(wait(start_rank(1, port, {"--steps", "1", "--peer-minutes", "0.01"})), 1);
}

}  // namespace
}  // namespace orthrus::train
