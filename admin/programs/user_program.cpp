// Choosing what holds a program together.
#include "admin/programs/user_program.hpp"

#include "admin/programs/program_unit.hpp"
#include "common/seams/seams.hpp"
#include "runner/root/method/own_group.hpp"

namespace pi_agent {

namespace {

ProgramResult run_in_group(const AsRoot &root, const std::vector<std::string> &command, int patience_seconds)
{
    const ProgramGroup group(root);
    if (group.entrance().empty()) return run_program_apart(command, patience_seconds);
    std::vector<std::string> entering = {"sh", "-c", "echo 0 >\"$0\" && exec \"$@\"", group.entrance()};
    entering.insert(entering.end(), command.begin(), command.end());
    return run_program_apart(entering, patience_seconds);
}

} // namespace

ProgramResult run_confined_to_group(const AsRoot &root, Uid user, const std::vector<std::string> &command, int patience_seconds)
{
    require_program(command.front());
    if (!defence_is_on("canary-apart")) return run_program_apart(command, patience_seconds);
    if (has_systemd() && defence_is_on("program-unit")) return run_in_unit(root, user, command, patience_seconds);
    return run_in_group(root, command, patience_seconds);
}

ProgramResult run_as_user(const AsRoot &root, const Account &user, const std::vector<std::string> &arguments, int patience_seconds,
                          NewPrivileges privileges)
{
    std::vector<std::string> command = {
        "setpriv",       "--reuid",    std::to_string(user.uid.value()), "--regid", std::to_string(user.gid.value()),
        "--init-groups", "--reset-env"};
    if (privileges == NewPrivileges::refused) command.emplace_back("--no-new-privs");
    command.insert(command.end(), arguments.begin(), arguments.end());
    return run_confined_to_group(root, user.uid, command, patience_seconds);
}

} // namespace pi_agent
