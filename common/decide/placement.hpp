// Where a session runs by the policy, and how a node of the cluster is asked for.
#pragma once

#include "common/policy/policy.hpp"

#include <string>
#include <vector>

namespace pi_agent {

constexpr const char *default_srun = "/usr/bin/srun";
constexpr const char *job_name = "pi"; // unless somebody names the job otherwise

// Whether sessions run in jobs of the cluster, and nowhere else.
bool has_jobs(const Policy &policy) noexcept;

// The program that asks for a job.
std::string srun_of(const Policy &policy);

// Options of srun for one task on one node: as much of it as the limits allow a session, and what the policy says of the job.
std::vector<std::string> job_options(const Policy &policy, const std::string &name);

// srun's whole command line for a session of this policy, without its own name: the job, and `command` on the node, whose input and output
// are srun's.
std::vector<std::string> srun_arguments(const Policy &policy, const std::vector<std::string> &command);

} // namespace pi_agent
