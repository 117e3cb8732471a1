// One errand to the user's project.
#include "runner/root/errand/user_tmpdir.hpp"

#include "common/seams/fault_point.hpp"
#include "runner/as_user/user_tmpdir.hpp"
#include "runner/plan/tmpdir_place.hpp"
#include "runner/root/errand/errand.hpp"

namespace pi_agent {

std::string ask_user_tmpdir(const AsRoot &root, const Account &caller, const OpenedProject &project, const Request &request)
{
    if (request.tmpdir.empty()) return "";
    const UniqueFd &top = project.shown.directory;
    std::string place = place_of_tmpdir(request.tmpdir, project.shown.path(), project.below);
    ask<Done>(root, {"maker of the temporary directory", caller, {top.get()}}, [&](const AsUser & /*user*/) {
        fault_point("making-tmpdir");
        make_user_tmpdir(caller, top, place, request.umask);
        return Done{};
    });
    return place;
}

} // namespace pi_agent
