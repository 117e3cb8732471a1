// Looks for Slurm among the ancestors.
#include "runner/root/kernel/cluster_job.hpp"

#include "common/base/error.hpp"
#include "common/base/files.hpp"
#include "common/base/process.hpp"
#include "common/host/ancestors.hpp"
#include "common/host/trusted_file.hpp"

#include <utility>

namespace pi_agent {

namespace {

// A user may give a set-uid program any name, where the kernel lets them link to it, and then root runs under that name in a directory of
// theirs. So the name counts only where none but root gives names.
bool is_slurms(const Ancestor &ancestor)
{
    if (!ancestor.is_roots) return false;
    const std::string program = read_link(ancestor.directory, "exe");
    if (!program.substr(program.rfind('/') + 1).starts_with(job_process)) return false;
    try {
        const UniqueFd trusted = open_trusted(program, O_PATH, "Slurm's program for a job");
        struct stat runs {};
        return fstatat(ancestor.directory.get(), "exe", &runs, 0) == 0 &&
               is_same_file(runs, examine(trusted, "examining Slurm's program for a job"));
    } catch (const Failure &) { // others can change it, or it is gone: it proves nothing
        return false;
    }
}

} // namespace

UniqueFd find_job(const AsRoot & /*root*/)
{
    UniqueFd job;
    const bool is_there = has_ancestor([&](const Ancestor &ancestor) {
        job = open_process(ancestor.number);
        return job && is_slurms(ancestor); // asked of its directory, so it lived, and the number was its own, when `job` was opened
    });
    return is_there ? std::move(job) : UniqueFd();
}

} // namespace pi_agent
